// Command pause holds a pod's namespaces open until it is told to end, and reaps the processes that are handed to
// it as the first process of a process namespace. It is what containerd runs beside the containers of every pod
// on the nodes of our tests.
package main

import (
	"errors"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	end, children := make(chan os.Signal, 1), make(chan os.Signal, 1)
	signal.Notify(end, syscall.SIGINT, syscall.SIGTERM)
	signal.Notify(children, syscall.SIGCHLD)
	for {
		select {
		case <-end:
			return
		case <-children:
			reap()
		}
	}
}

// reap takes leave of all children that have ended: one signal may stand for several.
func reap() {
	for {
		pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil)
		if !errors.Is(err, syscall.EINTR) && pid <= 0 {
			return
		}
	}
}
