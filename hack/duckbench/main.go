// The command duckbench measures the read side: it asks the read API and DuckDB the same queries about the same
// demo past, in turns, while further events arrive, and compares the answers. With a Redis it measures replay and
// freshness too.
package main

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"time"

	"github.com/weir-dev/weir/collector/config"
	"github.com/weir-dev/weir/collector/platforms"
)

// options are what the flags say.
type options struct {
	events, days, rounds int
	seed                 uint64
	// ingest is how many events a second arrive while queries are asked.
	ingest int
	duck   bool
	// streamed is how many events go through Redis for the measurements of replay and freshness; 0 leaves these out.
	streamed int
}

func main() {
	var o options
	flag.IntVar(&o.events, "events", 1_000_000, "how many events the past has")
	flag.IntVar(&o.days, "days", 30, "how many days the past has")
	flag.Uint64Var(&o.seed, "seed", 1, "which past it is")
	flag.IntVar(&o.rounds, "rounds", 5, "how often DuckDB is asked each query; the read API is asked up to 20 times as often")
	flag.IntVar(&o.ingest, "ingest", 1000, "how many events a second arrive while queries are asked")
	flag.BoolVar(&o.duck, "duck", true, "whether DuckDB is asked at all")
	flag.IntVar(&o.streamed, "streamed", 300_000, "how many events go through Redis for replay and freshness; 0 for none")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "duckbench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o options) error {
	end := time.Now().UTC().Truncate(24 * time.Hour)
	p := &past{options: o, from: end.AddDate(0, 0, -o.days), to: end}
	if err := p.fill(ctx); err != nil {
		return err
	}
	defer p.close()
	if err := p.ask(ctx); err != nil {
		return err
	}
	if o.streamed == 0 {
		return nil
	}
	return measureStreams(ctx, o)
}

// property is the one that the past is of.
func property() *config.Property {
	return &config.Property{
		Namespace: "default", Name: "shop", Currency: "EUR", TimeZone: "UTC",
		Platforms: []platforms.Platform{{Name: "meta", Type: platforms.TypeMeta}, {Name: "console", Type: platforms.TypeLog}},
	}
}

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }
