package role

import (
	"fmt"
	"os"
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// timerSlack is by how much the kernel may put off what wakes a thread by time; it is 50 µs where nobody says otherwise.
const timerSlack = 500 * time.Microsecond

// timersRelaxed is set in the environment of a program that has replaced itself, so that it does so once.
const timersRelaxed = "WEIR_TIMERS_RELAXED"

// RelaxTimers lets the kernel wake the process's threads up to half a millisecond late. Go's monitor looks after a busy
// process every 20 µs, and waking it for that takes a tenth of the processor time of a collector under load. Threads
// inherit the slack from the one that starts them, and Go starts its monitor before any code of ours runs: so the program
// replaces itself, in the same process. It is for the very beginning of main. The error says why timers stay as they are.
func RelaxTimers() error {
	if _, done := os.LookupEnv(timersRelaxed); done {
		return os.Unsetenv(timersRelaxed)
	}
	runtime.LockOSThread() // the slack that the program begins with is that of the thread which replaces it
	defer runtime.UnlockOSThread()
	if err := unix.Prctl(unix.PR_SET_TIMERSLACK, uintptr(timerSlack), 0, 0, 0); err != nil {
		return fmt.Errorf("set the timer slack: %w", err)
	}
	path, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find the program: %w", err)
	}
	return fmt.Errorf("start %s anew: %w", path, unix.Exec(path, os.Args, append(os.Environ(), timersRelaxed+"=1")))
}
