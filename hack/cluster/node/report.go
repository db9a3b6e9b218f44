package node

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

const (
	removeTimeout = 20 * time.Second
	// crashesAllowed is how often a program may end before it is given up: some end once or twice before the API
	// server answers.
	crashesAllowed = 5
	// explanation is how many lines of a log are shown where something failed.
	explanation = 15
)

// step is one line of what a command tells that it does.
type step struct {
	does string
	logs []string // programs whose logs explain a failure
	do   func(context.Context) error
}

// failedStep is the error of a step, with the logs that explain it.
type failedStep struct {
	step
	err error
}

func (f *failedStep) Error() string { return f.does + ": " + f.err.Error() }
func (f *failedStep) Unwrap() error { return f.err }

// follow does the steps one after another and prints each with the seconds since the beginning.
func (n *Node) follow(ctx context.Context, begin time.Time, steps []step) error {
	for _, one := range steps {
		if err := one.do(ctx); err != nil {
			fmt.Fprintf(n.Out, "%7.1f s  FAILED: %s\n", time.Since(begin).Seconds(), one.does)
			return &failedStep{one, err}
		}
		fmt.Fprintf(n.Out, "%7.1f s  %s\n", time.Since(begin).Seconds(), one.does)
	}
	return nil
}

// await polls, and gives up early where one of the programs that it depends on keeps ending.
func (n *Node) await(ctx context.Context, process firstProcess, timeout time.Duration, awaited string, depends []string,
	ask func(context.Context) (bool, error),
) error {
	return poll(ctx, timeout, awaited, func(ctx context.Context) (bool, error) {
		done, err := ask(ctx)
		if done || err != nil {
			return done, err
		}
		var list []Status
		if err := process.ask(ctx, "GET", "/programs", &list); err != nil {
			if _, gone := n.running(); gone != nil {
				return false, fmt.Errorf("the node's first process ended: %w", err)
			}
			return false, nil // it is just beginning
		}
		for _, status := range list {
			for _, name := range depends {
				if status.Name == name && status.Crashes > crashesAllowed {
					return false, fmt.Errorf("%s ended %d times", name, status.Crashes)
				}
			}
		}
		return false, nil
	})
}

// Logs prints the last lines of programs' logs; without names, of all. "node" is the first process.
func (n *Node) Logs(lines int, names ...string) error {
	if len(names) == 0 {
		names = append([]string{"node"}, programNames()...)
	}
	for _, name := range names {
		if name != "node" && !named(name) {
			return fmt.Errorf("no program is named %q: they are node, %s", name, strings.Join(programNames(), ", "))
		}
		if err := n.printTail(name, lines); err != nil {
			return err
		}
	}
	return nil
}

func (n *Node) printTail(name string, lines int) error {
	file, err := os.Open(n.LogFile(name))
	if os.IsNotExist(err) {
		return nil // it was never started
	}
	if err != nil {
		return err
	}
	defer file.Close()
	last, err := tail(file, lines)
	if err != nil {
		return err
	}
	fmt.Fprintf(n.Out, "==> %s <==\n", n.LogFile(name))
	for _, line := range last {
		fmt.Fprintln(n.Out, line)
	}
	return nil
}

// tail returns the last lines of a text.
func tail(text io.Reader, lines int) ([]string, error) {
	var last []string
	scanner := bufio.NewScanner(text)
	scanner.Buffer(nil, 1<<20)
	for scanner.Scan() {
		if last = append(last, scanner.Text()); len(last) > lines {
			last = last[1:]
		}
	}
	return last, scanner.Err()
}
