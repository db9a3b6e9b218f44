// Command operator measures weir-operator, as a process of its own, with many Properties: on a real etcd and
// kube-apiserver, as the ServiceAccount and with the rules of config/default, and on a real Redis. No other
// controller runs but what this program plays: it reports rollouts as the deployment controller would.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
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
	binary, assets string
	properties     int
	namespaces     int
	changes        int
	steady         time.Duration
	fsync          bool
}

func run(ctx context.Context, args []string, out io.Writer) error {
	var s settings
	flags := flag.NewFlagSet("operator", flag.ContinueOnError)
	flags.StringVar(&s.binary, "operator", "bin/weir-operator", "the operator's `PATH`")
	flags.StringVar(&s.assets, "assets", os.Getenv("KUBEBUILDER_ASSETS"), "`FOLDER` with etcd, kube-apiserver and kubectl; default: the environment's KUBEBUILDER_ASSETS")
	flags.IntVar(&s.properties, "properties", 1000, "how many Properties there are")
	flags.IntVar(&s.namespaces, "namespaces", 20, "over how many namespaces they are spread")
	flags.IntVar(&s.changes, "changes", 100, "how many Properties are changed, one after the other, for each kind of change")
	flags.DurationVar(&s.steady, "steady", time.Minute, "how long the operator is watched while nothing changes; everything is looked at again twice in it")
	flags.BoolVar(&s.fsync, "fsync", false, "let etcd wait for the disk, as it does in a cluster")
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		return nil
	} else if err != nil {
		return err
	}
	if s.properties < 1 || s.namespaces < 1 || s.changes < 1 || s.steady < 3*time.Second {
		return errors.New("-properties, -namespaces and -changes must be at least 1, -steady at least 3s")
	}
	directory, err := os.MkdirTemp("", "weir-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(directory)
	b := &bench{settings: s, directory: directory, out: out}
	defer b.stop()
	if err := b.startCluster(ctx); err != nil {
		return err
	}
	return b.measure(ctx)
}

// bench is one run: what it started, in the order in which it did.
type bench struct {
	settings
	directory string
	out       io.Writer
	stops     []func()

	cluster  *cluster
	operator *process
}

// stop ends what was started, the last first.
func (b *bench) stop() {
	for _, end := range slices.Backward(b.stops) {
		end()
	}
}

func (b *bench) printf(format string, args ...any) { fmt.Fprintf(b.out, format, args...) }
