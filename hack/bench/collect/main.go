// Command collect measures what taking an event in costs, end to end: wrk sends purchases over loopback connections
// to the collector's binary, which appends them to a Redis with an append-only file. It runs by turns with a bare
// handler that reads the body and answers 202, and with raw pipelined XADD, and reports the ratios of neighbours in
// time: generator, collector and Redis share the machine's processors, so absolute figures say little.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// settings are what the command line says.
type settings struct {
	wrk, collector string
	rounds         int
	duration       time.Duration
	connections    string
	fsync          string
	batches        string
}

func run(ctx context.Context, args []string, out io.Writer) error {
	if len(args) == 1 && args[0] == bareArgument {
		return serveBare(ctx, out)
	}
	var s settings
	flags := flag.NewFlagSet("collect", flag.ContinueOnError)
	flags.StringVar(&s.wrk, "wrk", "wrk", "the load generator's `PATH`")
	flags.StringVar(&s.collector, "collector", "bin/collector", "the collector's `PATH`")
	flags.IntVar(&s.rounds, "rounds", 5, "how many rounds; medians are taken over them")
	flags.DurationVar(&s.duration, "duration", 2*time.Second, "how long each measurement takes")
	flags.StringVar(&s.connections, "connections", "64,256", "how many connections send at a time, with commas between")
	flags.StringVar(&s.fsync, "fsync", "everysec,always", "Redis's appendfsync, with commas between")
	flags.StringVar(&s.batches, "batches", "0,100", "how many events a request carries, with commas between; 0: one, not in a batch")
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		return nil
	} else if err != nil {
		return err
	}
	cells, err := s.cells()
	if err != nil {
		return err
	}
	directory, err := os.MkdirTemp("", "weir-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(directory)
	b := &bench{settings: s, directory: directory, out: out}
	defer b.stop()
	if err := b.start(ctx); err != nil {
		return err
	}
	if err := b.measure(ctx, cells); err != nil {
		return err
	}
	if err := b.report(cells); err != nil {
		return err
	}
	return b.measureBytes(ctx)
}

// cell is one kind of load.
type cell struct {
	fsync       string
	connections int
	// batch is how many events a request carries; 0 is one event that is not in a batch.
	batch int
}

func (c cell) events() int { return max(1, c.batch) }

func (c cell) String() string {
	kind := "single"
	if c.batch > 0 {
		kind = fmt.Sprintf("batches of %d", c.batch)
	}
	return fmt.Sprintf("%s, %d connections, %s", kind, c.connections, c.fsync)
}

func (s *settings) cells() ([]cell, error) {
	connections, err := numbers("-connections", s.connections)
	if err != nil {
		return nil, err
	}
	batches, err := numbers("-batches", s.batches)
	if err != nil {
		return nil, err
	}
	var cells []cell
	for _, batch := range batches {
		for _, n := range connections {
			for fsync := range strings.SplitSeq(s.fsync, ",") {
				cells = append(cells, cell{fsync: fsync, connections: n, batch: batch})
			}
			if batch > 0 {
				break // what batches save does not depend on the number of connections
			}
		}
	}
	return cells, nil
}

// numbers reads a flag's whole numbers.
func numbers(name, list string) ([]int, error) {
	var read []int
	for part := range strings.SplitSeq(list, ",") {
		var n int
		if _, err := fmt.Sscanf(part, "%d", &n); err != nil || n < 0 || n > 500 {
			return nil, fmt.Errorf("%s must be whole numbers up to 500 with commas between, not %q", name, list)
		}
		read = append(read, n)
	}
	return read, nil
}

// bench is what runs, and what was measured.
type bench struct {
	settings
	directory string
	out       io.Writer
	script    string
	bare      *process
	// sites are a collector and its Redis for each fsync policy.
	sites map[string]*site
	stops []func()
	runs  int

	results map[cell][]pair
	xadds   map[string][]xaddResult
	// bareRuns are the bare handler's, by load.
	bareRuns map[cell][]result
}

func (b *bench) stop() {
	for _, stop := range slices.Backward(b.stops) {
		stop()
	}
}

// start writes the generator's script and starts the bare handler and a collector with its Redis for each policy.
func (b *bench) start(ctx context.Context) error {
	b.sites, b.results, b.xadds, b.bareRuns = map[string]*site{}, map[cell][]pair{}, map[string][]xaddResult{}, map[cell][]result{}
	b.script = filepath.Join(b.directory, "load.lua")
	if err := os.WriteFile(b.script, []byte(loadScript), 0o600); err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	if b.bare, err = b.launch(ctx, exec.CommandContext(ctx, self, bareArgument), ""); err != nil {
		return fmt.Errorf("bare handler: %w", err)
	}
	for fsync := range strings.SplitSeq(b.fsync, ",") {
		if b.sites[fsync], err = b.startSite(ctx, fsync); err != nil {
			return fmt.Errorf("collector with appendfsync %s: %w", fsync, err)
		}
	}
	return nil
}

// freeAddress returns a loopback address that nobody listens on.
func freeAddress(ctx context.Context) (string, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return listener.Addr().String(), listener.Close()
}
