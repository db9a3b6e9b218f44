package redisserver

import "syscall"

// endWithParent lets the kernel kill the child when the thread that started it ends. SIGKILL loses nothing:
// Redis hands each command to the kernel before it answers.
func endWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}
