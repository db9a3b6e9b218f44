package role_test

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/weir-dev/weir/collector/role"
)

// asRelaxed makes the test's process the program whose timers are relaxed.
const asRelaxed = "WEIR_TEST_AS_RELAXED"

// slackOfAThread is that of one that the process has started; in nanoseconds.
func slackOfAThread() (slack int, err error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // and ends with the goroutine
		slack, err = unix.PrctlRetInt(unix.PR_GET_TIMERSLACK, 0, 0, 0, 0)
	}()
	<-done
	return slack, err
}

func TestRelaxTimers(t *testing.T) {
	if os.Getenv(asRelaxed) != "" {
		if err := role.RelaxTimers(); err != nil {
			t.Fatal(err)
		}
		slack, err := slackOfAThread()
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(os.Stdout, "process %d has a slack of %d ns and hands on %q\n", os.Getpid(), slack, os.Getenv("WEIR_TIMERS_RELAXED"))
		return
	}
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	child := exec.CommandContext(t.Context(), program, "-test.run=^TestRelaxTimers$")
	child.Env = append(os.Environ(), asRelaxed+"=1")
	var out strings.Builder
	child.Stdout, child.Stderr = &out, &out
	if err := child.Run(); err != nil {
		t.Fatalf("%v:\n%s", err, &out)
	}
	want := fmt.Sprintf("process %d has a slack of 1000000 ns and hands on \"\"\n", child.Process.Pid)
	if got := out.String(); strings.Count(got, "process ") != 1 || !strings.Contains(got, want) {
		t.Errorf("got %q, want once %q", got, want)
	}
}
