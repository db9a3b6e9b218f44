// Command backup measures how long it takes to back a Property up and to put it back: it fills a Redis with events that have ids, an
// order and a visitor each, writes all of it to a file while events go on coming in, and restores that into another Redis.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"github.com/weir-dev/weir/collector/backup"
	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/event/wire"
	"github.com/weir-dev/weir/collector/redisserver"
	"github.com/weir-dev/weir/collector/stream"
)

const (
	property   = "default/shop"
	callEvents = 500
	writers    = 8
	window     = 7 * 24 * time.Hour
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	b := &bench{out: os.Stdout}
	flag.IntVar(&b.events, "events", 200_000, "how many `EVENTS` there are")
	flag.IntVar(&b.waiting, "waiting", 10_000, "how many of them `WAIT` for another attempt on one platform")
	flag.IntVar(&b.rate, "rate", 500, "how many `EVENTS` a second come in meanwhile")
	flag.StringVar(&b.dir, "dir", "", "`DIRECTORY` for both Redises and the file; default: a temporary one")
	flag.Parse()
	err := b.run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "backup:", err)
		os.Exit(1)
	}
}

// bench is one run.
type bench struct {
	events, waiting, rate int
	dir                   string
	out                   io.Writer
}

func (b *bench) run(ctx context.Context) (err error) {
	if b.dir == "" {
		if b.dir, err = os.MkdirTemp("", "weir-backup-"); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(b.dir)) }()
	}
	file := filepath.Join(b.dir, "shop.weir")
	if err := b.backUp(ctx, file); err != nil {
		return err
	}
	return b.restore(ctx, file)
}

// backUp fills a Redis and backs it up under load.
func (b *bench) backUp(ctx context.Context, file string) error {
	from, stop, err := serve(ctx, filepath.Join(b.dir, "from"))
	if err != nil {
		return err
	}
	defer stop()
	client, err := dial(ctx, from)
	if err != nil {
		return err
	}
	defer client.Close()
	s := client.Stream("default", "shop")
	took, err := timed(func() error { return fill(ctx, s, b.events, b.waiting) })
	if err != nil {
		return err
	}
	b.took(fmt.Sprintf("%d events appended in", b.events), took)
	load := loadOn(ctx, client, s, b.rate)
	took, err = timed(func() error {
		return command(ctx, backup.Command, "--redis-url", from, "--property", property, "--to", file)
	})
	slowest, appended := load()
	if err != nil {
		return err
	}
	info, err := os.Stat(file)
	if err != nil {
		return err
	}
	b.took("backed up in", took)
	fmt.Fprintf(b.out, "%-40s %12d %10.1f an event\n", "bytes of the file", info.Size(), float64(info.Size())/float64(b.events))
	fmt.Fprintf(b.out, "%-40s %12d\n", "events appended meanwhile", appended)
	fmt.Fprintf(b.out, "%-40s %12s\n", "slowest answer of Redis meanwhile", slowest.Round(100*time.Microsecond))
	return nil
}

// restore reads the file, and puts it into another Redis.
func (b *bench) restore(ctx context.Context, file string) error {
	to, stop, err := serve(ctx, filepath.Join(b.dir, "to"))
	if err != nil {
		return err
	}
	defer stop()
	took, err := timed(func() error { return command(ctx, backup.RestoreCommand, "--check", file) })
	if err != nil {
		return err
	}
	b.took("of a restore, checking the file takes", took)
	took, err = timed(func() error {
		return command(ctx, backup.RestoreCommand, "--redis-url", to, "--property", property, file)
	})
	if err != nil {
		return err
	}
	b.took("restored in", took)
	return nil
}

// took prints how long something took that was done with all events.
func (b *bench) took(what string, took time.Duration) {
	fmt.Fprintf(b.out, "%-40s %12s %10.0f events a second\n", what, took.Round(time.Millisecond), float64(b.events)/took.Seconds())
}

func timed(do func() error) (time.Duration, error) {
	began := time.Now()
	err := do()
	return time.Since(began), err
}

// serve starts a Redis that writes an append-only file.
func serve(ctx context.Context, dir string) (url string, stop func(), err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", nil, err
	}
	binary, err := redisserver.Find(ctx, slog.New(slog.DiscardHandler))
	if err != nil {
		return "", nil, err
	}
	server, err := redisserver.Start(ctx, binary, redisserver.Options{Dir: dir, Persist: true, Fsync: redisserver.FsyncEverySec})
	if err != nil {
		return "", nil, err
	}
	return server.URL(), func() { _ = server.Stop(context.WithoutCancel(ctx)) }, nil
}

func dial(ctx context.Context, url string) (*stream.Client, error) {
	client, err := stream.Dial(url, stream.DialOptions{})
	if err != nil {
		return nil, err
	}
	return client, client.Load(ctx)
}

// command runs a command as people do.
func command(ctx context.Context, do func(context.Context, string, []string, backup.Environment) int, args ...string) error {
	var said bytes.Buffer
	if do(ctx, "weir", args, backup.Environment{Stdout: &said, Stderr: &said, Getenv: os.Getenv, Version: "bench"}) != 0 {
		return errors.New(said.String())
	}
	return nil
}

// purchases are additions of some purchases with numbers from first on.
func purchases(random *rand.Rand, n int) []stream.Addition {
	additions := make([]stream.Addition, n)
	for i := range additions {
		amount := event.Amount(random.IntN(10_000_000))
		e := event.Event{
			ID: uuid.NewString(), DeliveryID: uuid.New(), Name: event.Purchase, Platforms: []string{"meta"},
			ClientID: fmt.Sprintf("%d.%d", random.Uint32(), 1_700_000_000), OrderID: fmt.Sprint("order-", random.Uint64()),
			Value: &amount, Currency: "EUR",
		}
		e.Context.PageURL = fmt.Sprintf("https://shop.example/products/%d", random.IntN(100_000))
		additions[i] = stream.Addition{
			Entry: wire.Encode(&e), EventID: e.ID, OrderID: e.OrderID, Identifiers: e.Identifiers(property, nil).Packed(),
		}
	}
	return additions
}

// fill appends events, and has some of them wait for another attempt.
func fill(ctx context.Context, s *stream.Stream, events, waiting int) error {
	a := stream.NewAppender(s, stream.AppenderOptions{Window: window, JoinedFor: 62 * 24 * time.Hour})
	var left atomic.Int64
	left.Store(int64(events))
	group, calls := errgroup.WithContext(ctx)
	for w := range writers {
		group.Go(func() error {
			random := rand.New(rand.NewPCG(1, uint64(w)))
			for {
				n := min(int(left.Add(-callEvents))+callEvents, callEvents)
				if n <= 0 {
					return nil
				}
				if _, err := a.Append(calls, purchases(random, n)); err != nil {
					return err
				}
			}
		})
	}
	if err := errors.Join(group.Wait(), a.Close(ctx)); err != nil {
		return err
	}
	entries, err := s.ReadEvents(ctx, 0, waiting, 0)
	if err != nil || len(entries) == 0 {
		return err
	}
	state := stream.GroupState{After: entries[len(entries)-1].Position, Passed: int64(len(entries)), Due: time.Now().Add(time.Hour)}
	for _, entry := range entries {
		state.Waiting = append(state.Waiting, stream.Delivery{Entry: stream.Entry{Position: entry.Position}, Attempts: 1})
	}
	_, err = s.EnsureGroup(ctx, "meta", state)
	return err
}

// loadOn appends events at a rate, and asks Redis again and again how long an answer takes. The end returns the slowest, and how many
// were appended.
func loadOn(ctx context.Context, client *stream.Client, s *stream.Stream, rate int) (end func() (time.Duration, int)) {
	ctx, cancel := context.WithCancel(ctx)
	var both sync.WaitGroup
	var times []time.Duration
	appended := 0
	both.Go(func() {
		for ctx.Err() == nil {
			if took, err := timed(func() error { return client.Ping(ctx) }); err == nil {
				times = append(times, took)
			}
			pause(ctx, time.Millisecond)
		}
	})
	both.Go(func() {
		a := stream.NewAppender(s, stream.AppenderOptions{Window: window, JoinedFor: 62 * 24 * time.Hour})
		defer a.Close(context.WithoutCancel(ctx))
		random := rand.New(rand.NewPCG(2, 2))
		for ctx.Err() == nil {
			n := max(rate/20, 1)
			if _, err := a.Append(ctx, purchases(random, n)); err == nil {
				appended += n
			}
			pause(ctx, 50*time.Millisecond)
		}
	})
	return func() (time.Duration, int) {
		cancel()
		both.Wait()
		return slices.Max(append(times, 0)), appended
	}
}

func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
