// The command history measures the history's engine: it makes a past of many events in a ClickHouse, asks the engine and the
// best hand-written SQL the same in turns, and says how long each took, and what the past takes on the disk.
//
// The past is one of package demo, repeated: each repetition has visitors of its own, at times a little later.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"time"

	"github.com/weir-dev/weir/collector/clickhouse"
	"github.com/weir-dev/weir/collector/clickhouseserver"
	"github.com/weir-dev/weir/collector/history/schema"
)

// options are what the flags say.
type options struct {
	events, base, rounds int
	seed                 uint64
	server, dir          string
	memory               int64
	ask                  *regexp.Regexp
}

func main() {
	var o options
	flag.IntVar(&o.events, "events", 100_000_000, "how many events the past has")
	flag.IntVar(&o.base, "base", 2_000_000, "how many of them are made up one by one; the others repeat these")
	flag.IntVar(&o.rounds, "rounds", 5, "how often each question is asked")
	flag.Uint64Var(&o.seed, "seed", 1, "which past it is")
	flag.StringVar(&o.server, "server", "", "the program of a ClickHouse server: what hack/clickhouse.sh prints")
	flag.StringVar(&o.dir, "dir", "", "a directory that is kept, with the past in it; \"\" for one that is not")
	flag.Int64Var(&o.memory, "memory", 8<<30, "how many bytes of memory one statement may take")
	flag.Func("ask", "which questions are asked, by a regular expression of their names; all without", func(text string) (err error) {
		o.ask, err = regexp.Compile(text)
		return err
	})
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, o, os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench-history:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o options, out io.Writer) (err error) {
	if o.dir == "" {
		if o.dir, err = os.MkdirTemp("", "weir-history-"); err != nil {
			return err
		}
		defer func() { err = firstOf(err, os.RemoveAll(o.dir)) }()
	}
	server, err := clickhouseserver.Start(ctx, o.server, clickhouseserver.Options{Dir: o.dir})
	if err != nil {
		return err
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
		defer cancel()
		err = firstOf(err, server.Stop(ctx))
	}()
	client, err := open(ctx, server)
	if err != nil {
		return err
	}
	defer client.Close()
	p := &past{options: o, out: out, client: client}
	if err := p.fill(ctx); err != nil {
		return err
	}
	if err := p.size(ctx); err != nil {
		return err
	}
	return p.ask(ctx)
}

// open makes the database and its tables where they are missing.
func open(ctx context.Context, server *clickhouseserver.Server) (*clickhouse.Client, error) {
	database := schema.Database("bench", "shop")
	admin, err := clickhouse.Dial(server.URL("default"), clickhouse.Options{})
	if err != nil {
		return nil, err
	}
	defer admin.Close()
	if err := admin.Exec(ctx, clickhouse.Query{SQL: "CREATE DATABASE IF NOT EXISTS " + schema.Quote(database)}); err != nil {
		return nil, err
	}
	client, err := clickhouse.Dial(server.URL(database), clickhouse.Options{})
	if err != nil {
		return nil, err
	}
	_, err = schema.Ensure(ctx, client)
	return client, err
}

func firstOf(err, other error) error {
	if err != nil {
		return err
	}
	return other
}
