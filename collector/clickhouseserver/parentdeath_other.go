//go:build !linux

package clickhouseserver

import "syscall"

// endWithParent can bind no child to its parent on this system; it stays until somebody ends it.
func endWithParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
