package imports

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/weir-dev/weir/collector/bots"
	"github.com/weir-dev/weir/collector/clickhouse"
	"github.com/weir-dev/weir/collector/config"
	"github.com/weir-dev/weir/collector/history/schema"
)

// The ways in which a command ends.
const (
	succeeded = 0
	failed    = 1
	misused   = 2
)

const usage = `Usage: %s --config DIR [flags] FILE…

Brings the past of another system, or an export of Weir's own, into a Property's history in ClickHouse.
FILE is a file in NDJSON, which may be compressed by gzip, a folder with such, a pattern, or - for the standard input.
Nothing is delivered, and what is there already is not added again.

`

// Command is the import as a command for people. It returns the exit code: 0, 1 for what went wrong, bad lines among it, 2 for what
// was asked wrongly.
func Command(ctx context.Context, name string, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	c, code := parse(name, args, stdout, stderr)
	if c == nil {
		return code
	}
	c.options.Input, c.stdout, c.stderr = stdin, stdout, stderr
	if err := c.load(); err != nil {
		fmt.Fprintf(stderr, "%s: %v\n", name, err)
		return misused
	}
	defer c.options.Client.Close()
	if err := c.run(ctx); err != nil {
		fmt.Fprintf(stderr, "%s: %v\n", name, err)
		return failed
	}
	return succeeded
}

// command is one call.
type command struct {
	name     string
	dir, url string
	options  Options
	// nobodyErased says that nobody was erased where nothing else tells.
	nobodyErased   bool
	stdout, stderr io.Writer
	// shown is how many bad lines were shown.
	shown int
}

// parse reads the command line. Where there is nothing to do, or nothing can be done, it has said so.
func parse(name string, args []string, stdout, stderr io.Writer) (*command, int) {
	c := &command{name: name}
	set := flag.NewFlagSet(name, flag.ContinueOnError)
	set.SetOutput(io.Discard)
	var format, times, before string
	var memory int
	set.StringVar(&c.dir, "config", "", "`DIRECTORY` with the Property's rendered configuration, as its pods have it")
	set.StringVar(&c.url, "url", "", "`URL` of the Property's database in ClickHouse, with a user that may add rows; default: that in the configuration, or WEIR_HISTORY_URL")
	set.StringVar(&format, "format", "", "`FORMAT` of all files: weir, segment or rudderstack; default: told by each file's first line")
	set.StringVar(&times, "times", string(Received), "`WORD` for the time that events count by: received, or happened")
	set.StringVar(&before, "before", "", "import events before this `TIME` alone, as in 2026-01-31T00:00:00Z")
	set.IntVar(&c.options.SkipBad, "skip-bad", 0, "leave out up to `N` lines that are bad; with more nothing is imported")
	set.BoolVar(&c.options.DryRun, "dry-run", false, "read and judge everything and say what would be imported, and import nothing")
	set.BoolVar(&c.nobodyErased, "nobody-erased", false, "import although the configuration has neither erasures/ledger nor redis/url: nobody's data was erased")
	set.IntVar(&memory, "memory", defaultMemory>>20, "how many `MIB` of events are held in memory; more go to files")
	set.StringVar(&c.options.TempDir, "temp-dir", "", "`DIRECTORY` for these; default: the system's")
	switch err := set.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprintf(stdout, usage, name)
		set.SetOutput(stdout)
		set.PrintDefaults()
		return nil, succeeded
	case err != nil:
		fmt.Fprintf(stderr, "%s: %v; \"%s -h\" lists the flags\n", name, err, name)
		return nil, misused
	}
	c.options.Paths, c.options.Format, c.options.Times, c.options.Memory = set.Args(), Format(format), Times(times), memory<<20
	problems := c.check(before)
	for _, problem := range problems {
		fmt.Fprintf(stderr, "%s: %s\n", name, problem)
	}
	if len(problems) > 0 {
		return nil, misused
	}
	return c, succeeded
}

// check says what is wrong with the command line.
func (c *command) check(before string) (problems []string) {
	o := &c.options
	if c.dir == "" {
		problems = append(problems, "--config: the directory with the Property's configuration is needed")
	}
	if len(o.Paths) == 0 {
		problems = append(problems, "at least one FILE is needed, or - for the standard input")
	}
	switch o.Format {
	case "", Weir, Segment, RudderStack:
	default:
		problems = append(problems, "--format: must be weir, segment or rudderstack")
	}
	if o.Times != Received && o.Times != Happened {
		problems = append(problems, "--times: must be received or happened")
	}
	if before != "" {
		var err error
		if o.Before, err = time.Parse(time.RFC3339, before); err != nil {
			problems = append(problems, "--before: must be a time as in 2026-01-31T00:00:00Z")
		}
	}
	if o.SkipBad < 0 {
		problems = append(problems, "--skip-bad: must be at least 0")
	}
	if o.Memory < 1<<20 || o.Memory > 1<<40 {
		problems = append(problems, "--memory: must be at least 1")
	}
	return problems
}

// load reads the configuration.
func (c *command) load() error {
	var err error
	o := &c.options
	if o.Property, err = config.Load(c.dir); err != nil {
		return err
	}
	if o.Property.History == nil {
		return fmt.Errorf("%s: the Property has no history: spec.history.type must be ClickHouse", config.PropertyFile)
	}
	reached, found, err := config.LoadClickHouse(c.dir)
	if err != nil {
		return err
	}
	if c.url == "" {
		c.url = os.Getenv("WEIR_HISTORY_URL")
	}
	switch {
	case c.url != "":
		if err := config.CheckHistoryURL(c.url); err != nil {
			return fmt.Errorf("--url: %w", err)
		}
		reached.URL = c.url
	case !found:
		return fmt.Errorf("%s: is missing; say by --url where the history is", config.HistoryURLFile)
	}
	if o.Client, err = clickhouse.Dial(reached.URL, clickhouse.Options{TLS: reached.TLS, Settings: schema.Cluster(o.Property.History.Cluster).Settings()}); err != nil {
		return fmt.Errorf("--url: %w", err)
	}
	o.Now, o.Workers = time.Now, runtime.GOMAXPROCS(0)
	o.Bots, err = bots.New()
	return err
}

// Bounds of what is printed.
const (
	progressInterval = 5 * time.Second
	mostShown        = 100
)

// run imports, and tells of it.
func (c *command) run(ctx context.Context) error {
	if err := c.options.Client.Ping(ctx); err != nil {
		return err
	}
	erased, err := openLedger(ctx, c.dir, &c.options.Property)
	if err != nil {
		return err
	}
	defer erased.close()
	if !erased.tells() && !c.nobodyErased {
		return errLedger
	}
	c.options.Erased, c.options.Refresh = erased.erased, erased.refresh
	var mu sync.Mutex
	said := time.Now()
	c.options.Progress = func(p Progress) {
		mu.Lock()
		defer mu.Unlock()
		if time.Since(said) < progressInterval {
			return
		}
		said = time.Now()
		fmt.Fprintln(c.stderr, p)
	}
	c.options.Bad = func(b Bad) {
		if c.shown++; c.shown <= mostShown {
			fmt.Fprintln(c.stderr, b)
		}
	}
	report, err := Run(ctx, c.options)
	if c.shown > mostShown {
		fmt.Fprintf(c.stderr, "and %d more\n", c.shown-mostShown)
	}
	if report.Lines > 0 {
		fmt.Fprint(c.stdout, report.text(c.options.DryRun))
	}
	switch {
	case err == nil:
		return nil
	case errors.Is(err, ErrBadLines) && c.options.SkipBad == 0:
		return fmt.Errorf("%w; --skip-bad leaves out bad lines", err)
	case report.Imported > 0:
		return fmt.Errorf("%w; run again it goes on with what is not there yet", err)
	default:
		return err
	}
}

// String is a line for people.
func (p Progress) String() string {
	if !p.Sorted {
		return fmt.Sprintf("read %d lines, %d MiB, of %d files", p.Lines, p.Bytes>>20, p.Files)
	}
	return fmt.Sprintf("read %d lines; %d events are in the history", p.Lines, p.Done)
}

// text is the report for people.
func (r *Report) text(dryRun bool) string {
	var b strings.Builder
	line := func(name string, count int64, note string) {
		if count > 0 {
			fmt.Fprintf(&b, "%-22s %d%s\n", name+":", count, note)
		}
	}
	imported := "imported"
	if dryRun {
		imported = "would be imported"
	}
	fmt.Fprintf(&b, "%-22s %d, of %d files\n", "lines:", r.Lines, r.Files)
	fmt.Fprintf(&b, "%-22s %d\n", imported+":", r.Imported)
	line("already there", r.There, "")
	line("no events", r.NoEvents, " (identify, group, alias)")
	line("left out", r.TooOld, " older than history.retentionDays")
	line("left out", r.NotBefore, " not before --before")
	line("left out", r.Erased, " of persons who were erased")
	line("left out", r.Repeated, " that are there twice in the files")
	line("left out", r.Bad, " bad lines")
	line("nobody's", r.Nobodys, " older than retention.identifiersDays")
	line("delivery records", r.Records, "")
	line("origins changed", r.Origins, "")
	line("files passed over", int64(r.PassedOver), " that are called neither .json, .jsonl, .ndjson nor .gz")
	if !r.First.IsZero() {
		fmt.Fprintf(&b, "%-22s %s to %s\n", "from:", r.First.Format(time.RFC3339), r.Last.Format(time.RFC3339))
	}
	return b.String()
}
