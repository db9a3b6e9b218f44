package clickhouseserver

import "syscall"

// endWithParent lets the kernel kill the child when the thread that started it ends. SIGKILL loses nothing that
// was answered: ClickHouse hands each part to the kernel before it answers.
func endWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}
