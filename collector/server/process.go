package server

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// process is a running program.
type process struct {
	id   int
	name string
}

func (p process) String() string { return fmt.Sprintf("process %d (%s)", p.id, p.name) }

// processListening finds the process that listens on a TCP port. It reads what Linux shows below /proc: without
// root that is enough for processes of the same user. Elsewhere it finds nothing.
func processListening(port int) (process, bool) {
	sockets := listeningSockets(port)
	if len(sockets) == 0 {
		return process{}, false
	}
	// The error is a bad pattern's; this one is good.
	descriptors, _ := filepath.Glob("/proc/[0-9]*/fd/*")
	for _, descriptor := range descriptors {
		target, err := os.Readlink(descriptor)
		if err != nil || !sockets[target] {
			continue // closed since, or of a process that we may not look into
		}
		directory := filepath.Dir(filepath.Dir(descriptor))
		id, err := strconv.Atoi(filepath.Base(directory))
		if err != nil {
			continue
		}
		name, err := os.ReadFile(filepath.Join(directory, "comm"))
		if err != nil {
			continue // it has just ended
		}
		return process{id: id, name: strings.TrimSpace(string(name))}, true
	}
	return process{}, false
}

// listeningSockets returns the sockets that listen on port, as /proc/PID/fd links to them: "socket:[12345]".
func listeningSockets(port int) map[string]bool {
	sockets := map[string]bool{}
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		text, err := os.ReadFile(table)
		if err != nil {
			continue // not Linux, or without IPv6
		}
		for line := range strings.Lines(string(text)) {
			// sl local_address rem_address st tx:rx tr:when retrnsmt uid timeout inode …
			fields := strings.Fields(line)
			const listening = "0A"
			if len(fields) < 10 || fields[3] != listening {
				continue
			}
			_, hexPort, _ := strings.Cut(fields[1], ":")
			if p, err := strconv.ParseUint(hexPort, 16, 16); err == nil && int(p) == port {
				sockets["socket:["+fields[9]+"]"] = true
			}
		}
	}
	return sockets
}
