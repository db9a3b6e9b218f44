package backup

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/weir-dev/weir/collector/stream"
)

// restoring is one call of the restore.
type restoring struct {
	name string
	connection
	property, from string
	check, discard bool
	Environment
}

// RestoreCommand is the restore as a command for people. It returns the exit code, as [Command] does.
func RestoreCommand(ctx context.Context, name string, args []string, e Environment) int {
	c := &restoring{name: name, Environment: e}
	set := flag.NewFlagSet(name, flag.ContinueOnError)
	c.add(set)
	set.StringVar(&c.property, "property", "", "the Property, as `NAMESPACE/NAME`: that of the backup, so that none is put back by mistake")
	set.BoolVar(&c.check, "check", false, "read the backup, say what it is of and whether it is whole, and do nothing else")
	set.BoolVar(&c.discard, "discard", false, "remove what a restore of the Property has left that was broken off, and do nothing else")
	if ok, code := parse(set, restoreUsage, args, &e); !ok {
		return code
	}
	if problems := c.problems(set.Args()); len(problems) > 0 {
		for _, problem := range problems {
			fmt.Fprintf(e.Stderr, "%s: %s\n", name, problem)
		}
		return misused
	}
	if err := c.run(ctx); err != nil {
		fmt.Fprintf(e.Stderr, "%s: %v\n", name, err)
		return failed
	}
	return succeeded
}

func (c *restoring) problems(rest []string) (problems []string) {
	switch {
	case c.discard && (c.check || len(rest) > 0):
		problems = append(problems, "--discard: is for itself, without a FILE")
	case !c.discard && len(rest) != 1:
		problems = append(problems, "one FILE is needed, or - for the standard input; flags go before it")
	case !c.discard:
		c.from = rest[0]
	}
	if !c.check && !stream.IsProperty(c.property) {
		problems = append(problems, badProperty)
	}
	if isBucket(c.from) {
		problems = append(problems, c.bucket.check(c.from)...)
	}
	return problems
}

func (c *restoring) run(ctx context.Context) error {
	if c.check {
		report, err := c.verify(ctx)
		if err == nil {
			fmt.Fprintf(c.Stdout, "the backup is whole: %v\n", report)
		}
		return err
	}
	client, err := c.dial(c.Getenv)
	if err != nil {
		return err
	}
	defer client.Close()
	if err := c.reach(ctx, client, c.name); err != nil {
		return err
	}
	namespace, name, _ := strings.Cut(c.property, "/")
	s := client.Stream(namespace, name)
	if c.discard {
		return s.DiscardRestore(ctx)
	}
	if c.from != "-" { // nothing is written before all of it is known to be good
		if report, err := c.verify(ctx); err != nil {
			return err
		} else if report.Property != c.property {
			return &OtherError{Has: report.Property, Wanted: c.property}
		}
	}
	report, err := c.put(ctx, s)
	if err != nil {
		return explained(err)
	}
	fmt.Fprintf(c.Stdout, "restored %v\n", report)
	return nil
}

// explained adds what can be done about an error.
func explained(err error) error {
	switch {
	case errors.Is(err, stream.ErrNotEmpty):
		return fmt.Errorf("%w; a backup is put into a Property that has received none", err)
	case errors.Is(err, stream.ErrFull):
		return fmt.Errorf("%w: give it more, and run it again: it goes on where it was. The Property has nothing of it yet; --discard removes what was written", err)
	case errors.Is(err, ErrTruncated), errors.Is(err, ErrDamaged):
		return fmt.Errorf("%w; the Property has nothing of it. With the whole backup it goes on where it was, and --discard removes what was written", err)
	default:
		return err
	}
}

// verify reads the backup to its end.
func (c *restoring) verify(ctx context.Context) (Report, error) {
	from, err := c.open(ctx)
	if err != nil {
		return Report{}, err
	}
	report, err := Verify(from)
	return report, errors.Join(err, from.Close())
}

func (c *restoring) put(ctx context.Context, s *stream.Stream) (Report, error) {
	from, err := c.open(ctx)
	if err != nil {
		return Report{}, err
	}
	report, err := restore(ctx, s, from, time.Now(), c.progress())
	return report, errors.Join(err, from.Close())
}

// open opens what is restored.
func (c *restoring) open(ctx context.Context) (io.ReadCloser, error) {
	switch {
	case c.from == "-":
		return io.NopCloser(c.Stdin), nil
	case isBucket(c.from):
		return c.bucket.open(ctx, c.from, c.Getenv)
	default:
		return os.Open(c.from)
	}
}
