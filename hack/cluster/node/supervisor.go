package node

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"
)

const (
	restartDelay = 500 * time.Millisecond
	stopTimeout  = 15 * time.Second
)

// Status is what the node's first process knows about one program.
type Status struct {
	Name string `json:"name"`
	// PID is the process id inside the node, 0 where the program does not run.
	PID int `json:"pid"`
	// Crashes counts how often it ended without having been told to.
	Crashes int `json:"crashes"`
}

// supervisor starts programs and starts those again that end unasked. As it is the node's first process, it also
// buries orphans; so it alone waits for children, and nothing else in this process may start one.
type supervisor struct {
	logs   string // the folder of the programs' logs
	logger *slog.Logger

	mu      sync.Mutex // held while a process is made, so that none is buried before it is known
	order   []string
	managed map[string]*managed
	byPID   map[int]*managed
}

// managed is a program with what has become of it.
type managed struct {
	program
	pid     int
	wanted  bool
	crashes int
	ended   chan struct{} // closed when the process of this pid has ended
}

func newSupervisor(list []program, logs string, logger *slog.Logger) *supervisor {
	s := &supervisor{logs: logs, logger: logger, managed: map[string]*managed{}, byPID: map[int]*managed{}}
	for _, one := range list {
		s.order = append(s.order, one.Name)
		s.managed[one.Name] = &managed{program: one}
	}
	return s
}

// start starts a program; one that runs is left alone.
func (s *supervisor) start(name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	m, ok := s.managed[name]
	if !ok {
		return fmt.Errorf("no program is named %q", name)
	}
	m.wanted = true
	if m.pid != 0 {
		return nil
	}
	return s.spawn(m)
}

// spawn makes the process. Its output is appended to the program's log. The lock is held.
func (s *supervisor) spawn(m *managed) error {
	log, err := os.OpenFile(filepath.Join(s.logs, m.Name+".log"), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	nothing, err := os.Open(os.DevNull)
	if err != nil {
		return err
	}
	defer nothing.Close()
	pid, err := syscall.ForkExec(m.Args[0], m.Args, &syscall.ProcAttr{
		Env:   []string{"PATH=" + searchPath, "HOME=/root", "TMPDIR=/tmp"},
		Files: []uintptr{nothing.Fd(), log.Fd(), log.Fd()},
		Sys:   &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		return fmt.Errorf("start %s: %w", m.Name, err)
	}
	m.pid, m.ended = pid, make(chan struct{})
	s.byPID[pid] = m
	return nil
}

// stop ends a program and waits for its end: it is asked first, and killed where it takes too long.
func (s *supervisor) stop(name string) error {
	s.mu.Lock()
	m, ok := s.managed[name]
	if !ok {
		s.mu.Unlock()
		return fmt.Errorf("no program is named %q", name)
	}
	m.wanted = false
	pid, ended := m.pid, m.ended
	s.mu.Unlock()
	if pid == 0 {
		return nil
	}
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		if err := syscall.Kill(pid, signal); err != nil && err != syscall.ESRCH {
			return fmt.Errorf("stop %s: %w", name, err)
		}
		select {
		case <-ended:
			return nil
		case <-time.After(stopTimeout):
		}
	}
	return fmt.Errorf("%s does not end", name)
}

// restart stops a program and starts it again.
func (s *supervisor) restart(name string) error {
	if err := s.stop(name); err != nil {
		return err
	}
	return s.start(name)
}

// kill ends a program as a crash would: it is started again.
func (s *supervisor) kill(name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	m, ok := s.managed[name]
	if !ok {
		return fmt.Errorf("no program is named %q", name)
	}
	if m.pid == 0 {
		return fmt.Errorf("%s does not run", name)
	}
	return syscall.Kill(m.pid, syscall.SIGKILL)
}

// bury waits for all children that have ended, and has those programs started again that were not told to end.
func (s *supervisor) bury() {
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, syscall.WNOHANG, nil)
		if err == syscall.EINTR {
			continue
		}
		if err != nil || pid <= 0 {
			return
		}
		s.mu.Lock()
		if m, ok := s.byPID[pid]; ok {
			delete(s.byPID, pid)
			m.pid = 0
			close(m.ended)
			if m.wanted {
				m.crashes++
				s.logger.Warn("a program ended", "program", m.Name, "exit_code", status.ExitStatus(), "signal", int(status.Signal()))
				time.AfterFunc(restartDelay, func() { s.revive(m) })
			}
		}
		s.mu.Unlock()
	}
}

// revive starts a program again unless it has been stopped or started meanwhile.
func (s *supervisor) revive(m *managed) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !m.wanted || m.pid != 0 {
		return
	}
	if err := s.spawn(m); err != nil {
		s.logger.Error("a program cannot be started again", "program", m.Name, "error", err)
		time.AfterFunc(restartDelay, func() { s.revive(m) })
	}
}

func (s *supervisor) statuses() []Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := []Status{}
	for _, name := range s.order {
		m := s.managed[name]
		list = append(list, Status{Name: name, PID: m.pid, Crashes: m.crashes})
	}
	return list
}

// handler is the control interface: GET /programs and POST /programs/{name}/{start,stop,restart,kill}.
func (s *supervisor) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /programs", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(w).Encode(s.statuses()); err != nil {
			s.logger.Warn("the statuses were not taken", "error", err)
		}
	})
	for action, do := range map[string]func(string) error{"start": s.start, "stop": s.stop, "restart": s.restart, "kill": s.kill} {
		mux.HandleFunc("POST /programs/{name}/"+action, func(w http.ResponseWriter, r *http.Request) {
			if err := do(r.PathValue("name")); err != nil {
				http.Error(w, err.Error(), http.StatusInternalServerError)
				return
			}
			w.WriteHeader(http.StatusNoContent)
		})
	}
	return mux
}
