package role_test

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/weir-dev/weir/collector/role"
)

// asRelaxed makes the test's process the program whose timers are relaxed. It begins by saying with which slack it starts: a
// program that replaces itself says it twice.
const asRelaxed = "WEIR_TEST_AS_RELAXED"

func TestRelaxTimers(t *testing.T) {
	if os.Getenv(asRelaxed) != "" {
		slack, err := unix.PrctlRetInt(unix.PR_GET_TIMERSLACK, 0, 0, 0, 0)
		fmt.Fprintln(os.Stdout, "process", os.Getpid(), "starts with", slack, err)
		if err := role.RelaxTimers(); err != nil {
			t.Fatal(err)
		}
		_, handedOn := os.LookupEnv("WEIR_TIMERS_RELAXED")
		fmt.Fprintln(os.Stdout, "relaxed, and tells its children so:", handedOn)
		return
	}
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	slack, err := unix.PrctlRetInt(unix.PR_GET_TIMERSLACK, 0, 0, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		environment []string
		// want are the slacks that the program starts with, each time that it does.
		want []int
	}{
		"replaces the program by itself, once":  {nil, []int{slack, 500_000}},
		"does nothing where it has done so":     {[]string{"WEIR_TIMERS_RELAXED=1"}, []int{slack}},
		"does nothing where it is said to have": {[]string{"WEIR_TIMERS_RELAXED="}, []int{slack}},
	} {
		t.Run(name, func(t *testing.T) {
			child := exec.CommandContext(t.Context(), program, "-test.run=^TestRelaxTimers$")
			child.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "WEIR_TIMERS_RELAXED=") })
			child.Env = append(append(child.Env, asRelaxed+"=1"), test.environment...)
			out, err := child.CombinedOutput()
			if err != nil {
				t.Fatalf("%v:\n%s", err, out)
			}
			want := ""
			for _, slack := range test.want {
				want += fmt.Sprintln("process", child.Process.Pid, "starts with", slack, nil)
			}
			want += "relaxed, and tells its children so: false\nPASS\n"
			if !strings.HasPrefix(string(out), want) {
				t.Errorf("got %q, want %q", out, want)
			}
		})
	}
}
