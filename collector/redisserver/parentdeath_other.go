//go:build !linux

package redisserver

import "syscall"

// endWithParent can bind no child to its parent on this system; the next [Start] in the same directory ends
// a server that was left over.
func endWithParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
