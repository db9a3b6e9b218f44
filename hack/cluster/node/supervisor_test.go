package node

import (
	"context"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// supervised runs a supervisor whose children end as they do in a node.
func supervised(t *testing.T, list ...program) *supervisor {
	t.Helper()
	s := newSupervisor(list, t.TempDir(), slog.New(slog.DiscardHandler))
	children := make(chan os.Signal, 1)
	signal.Notify(children, syscall.SIGCHLD)
	done := make(chan struct{})
	go func() {
		for {
			select {
			case <-children:
				s.bury()
			case <-done:
				return
			}
		}
	}()
	t.Cleanup(func() {
		for _, one := range list {
			if err := s.stop(one.Name); err != nil {
				t.Error(err)
			}
		}
		signal.Stop(children)
		close(done)
	})
	return s
}

// waitFor polls until the one program's status is as wanted.
func waitFor(t *testing.T, s *supervisor, wanted string, is func(Status) bool) Status {
	t.Helper()
	var last Status
	err := poll(t.Context(), 30*time.Second, wanted, func(context.Context) (bool, error) {
		last = s.statuses()[0]
		return is(last), nil
	})
	if err != nil {
		t.Fatalf("%v: %+v", err, last)
	}
	return last
}

func TestAProgramRunsUntilItIsStopped(t *testing.T) {
	s := supervised(t, program{Name: "one", Args: []string{"/bin/sh", "-c", "echo begun; exec sleep 600"}})
	if got := s.statuses()[0]; got.PID != 0 {
		t.Fatalf("it runs before it was started: %+v", got)
	}
	if err := s.start("one"); err != nil {
		t.Fatal(err)
	}
	first := waitFor(t, s, "a process", func(got Status) bool { return got.PID != 0 })
	// A shell that is stopped before it has said anything never does, so its words are awaited while it runs.
	err := poll(t.Context(), 30*time.Second, "the program's words in its log", func(context.Context) (bool, error) {
		content, err := os.ReadFile(filepath.Join(s.logs, "one.log"))
		return string(content) == "begun\n", err
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.start("one"); err != nil {
		t.Fatal(err)
	}
	if got := s.statuses()[0]; got != first {
		t.Errorf("starting it again made %+v of %+v", got, first)
	}
	if err := s.restart("one"); err != nil {
		t.Fatal(err)
	}
	if got := s.statuses()[0]; got.PID == 0 || got.PID == first.PID || got.Crashes != 0 {
		t.Errorf("after a restart: %+v, before it %+v", got, first)
	}
	if err := s.stop("one"); err != nil {
		t.Fatal(err)
	}
	if got := s.statuses()[0]; got.PID != 0 || got.Crashes != 0 {
		t.Errorf("after it was stopped: %+v", got)
	}
}

func TestAProgramThatEndsUnaskedIsStartedAgain(t *testing.T) {
	s := supervised(t, program{Name: "one", Args: []string{"/bin/sleep", "600"}})
	if err := s.start("one"); err != nil {
		t.Fatal(err)
	}
	before := waitFor(t, s, "a process", func(got Status) bool { return got.PID != 0 })
	if err := s.kill("one"); err != nil {
		t.Fatal(err)
	}
	waitFor(t, s, "another process", func(got Status) bool { return got.PID != 0 && got.PID != before.PID && got.Crashes == 1 })
}

func TestOnlyWhatIsListedCanBeStarted(t *testing.T) {
	s := supervised(t)
	for _, do := range []func(string) error{s.start, s.stop, s.restart, s.kill} {
		if err := do("one"); err == nil || !strings.Contains(err.Error(), `"one"`) {
			t.Errorf("error %v, want one that names it", err)
		}
	}
}
