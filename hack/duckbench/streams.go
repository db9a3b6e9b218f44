package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/weir-dev/weir/collector/analytics"
	"github.com/weir-dev/weir/collector/demo"
	"github.com/weir-dev/weir/collector/event/wire"
	"github.com/weir-dev/weir/collector/redisserver"
	"github.com/weir-dev/weir/collector/stream"
)

// measureStreams measures a view that follows a real Redis.
func measureStreams(ctx context.Context, o options) (err error) {
	directory, err := os.MkdirTemp("", "weir-bench-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(directory)) }()
	binary, err := redisserver.Find(ctx, quiet())
	if err != nil {
		return err
	}
	server, err := redisserver.Start(ctx, binary, redisserver.Options{Dir: directory, Persist: true, Fsync: redisserver.FsyncEverySec})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.Stop(context.WithoutCancel(ctx))) }()
	client, err := stream.Dial(server.URL(), stream.DialOptions{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, client.Close()) }()
	if err := client.Load(ctx); err != nil {
		return err
	}
	s := client.Stream("default", "shop")
	samples, err := store(ctx, s, o)
	if err != nil {
		return err
	}
	view, stop, err := replay(ctx, s)
	if err != nil {
		return err
	}
	defer stop()
	return freshness(ctx, s, view, samples)
}

// store appends the past's events and two deliveries of each. It returns some of the events.
func store(ctx context.Context, s *stream.Stream, o options) ([]stream.Addition, error) {
	told, err := demo.New(demo.Options{Property: property(), Events: o.streamed, Days: o.days, Seed: o.seed, End: time.Now()})
	if err != nil {
		return nil, err
	}
	appender := stream.NewAppender(s, stream.AppenderOptions{Window: time.Hour, Logger: quiet()})
	defer func() { _ = appender.Close(context.WithoutCancel(ctx)) }()
	additions := make([]stream.Addition, 0, 500)
	flush := func() error {
		_, err := appender.Append(ctx, additions)
		additions = additions[:0]
		return err
	}
	for batch := range told.Batches() {
		for i := range batch.Events {
			e := &batch.Events[i]
			additions = append(additions, stream.Addition{Entry: batch.Entries[i].Data, EventID: e.ID})
			if len(additions) == cap(additions) {
				if err := flush(); err != nil {
					return nil, err
				}
			}
		}
	}
	if err := flush(); err != nil {
		return nil, err
	}
	// The events that were appended last are still there behind the slice's end.
	return additions[:min(cap(additions), o.streamed)], record(ctx, s)
}

// record writes two deliveries of each event that is stored.
func record(ctx context.Context, s *stream.Stream) error {
	for last := stream.Position(0); ; {
		entries, err := s.ReadEvents(ctx, last, 500, 0)
		if err != nil || len(entries) == 0 {
			return err
		}
		last = entries[len(entries)-1].Position
		for _, platform := range property().PlatformNames() {
			records := make([]stream.Record, len(entries))
			for i, entry := range entries {
				records[i] = stream.Record{
					Event: entry.Position, Platform: platform, Status: stream.Delivered, Attempts: 1,
					Latency: 80 * time.Millisecond, At: entry.Position.Time().Add(time.Second),
				}
			}
			if err := s.Record(ctx, platform, records); err != nil {
				return err
			}
		}
	}
}

// replay lets a new view read the streams and reports how long it took until it was ready.
func replay(ctx context.Context, s *stream.Stream) (*analytics.View, func(), error) {
	view := analytics.NewView(analytics.Options{Property: "default/shop", Currency: "EUR", Logger: quiet()})
	following, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	began := time.Now()
	go func() { ended <- view.Follow(following, s) }()
	stop := func() { cancel(); <-ended }
	for !view.Status(context.Background()).Ready {
		if err := wait(ctx, time.Millisecond); err != nil {
			stop()
			return nil, nil, err
		}
	}
	took := time.Since(began)
	fmt.Printf("\nreplay from Redis: %.0f events/s, with two delivery records each\n", float64(view.Status(context.Background()).Events)/took.Seconds())
	return view, stop, nil
}

// freshness appends 1,000 events a second for ten seconds and reports how long after its acknowledgement each is in
// the listing.
func freshness(ctx context.Context, s *stream.Stream, view *analytics.View, samples []stream.Addition) error {
	const rate, seconds = 1000, 10
	appender := stream.NewAppender(s, stream.AppenderOptions{Window: time.Hour, Logger: quiet()})
	defer func() { _ = appender.Close(context.WithoutCancel(ctx)) }()
	watched := &watcher{view: view, acknowledged: map[string]time.Time{}, seen: map[string]time.Time{}}
	watching, cancel := context.WithCancel(ctx)
	var watch, appends sync.WaitGroup
	watch.Go(func() { watched.watch(watching) })
	ticker := time.NewTicker(time.Second / rate)
	defer ticker.Stop()
	for n := range rate * seconds {
		<-ticker.C
		appends.Go(func() { watched.append(ctx, appender, samples[n%len(samples)], fmt.Sprint("fresh ", n)) })
	}
	appends.Wait()
	err := wait(ctx, time.Second)
	cancel()
	watch.Wait()
	if err != nil {
		return err
	}
	return watched.report(rate * seconds)
}

// watcher notes when events are acknowledged and when they are in the listing.
type watcher struct {
	view         *analytics.View
	mu           sync.Mutex
	acknowledged map[string]time.Time
	seen         map[string]time.Time
	failure      error
}

func (w *watcher) append(ctx context.Context, appender *stream.Appender, sample stream.Addition, id string) {
	renamed, err := rename(sample, id)
	if err == nil {
		_, err = appender.Append(ctx, []stream.Addition{renamed})
	}
	now := time.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.acknowledged[id], w.failure = now, errors.Join(w.failure, err)
}

func (w *watcher) watch(ctx context.Context) {
	for ctx.Err() == nil {
		page, err := w.view.Listing(ctx, analytics.ListingQuery{Range: analytics.Range{To: time.Now().Add(time.Hour)}, Limit: 1000})
		now := time.Now()
		if err != nil {
			return
		}
		w.mu.Lock()
		for _, r := range page.Records {
			if _, known := w.seen[r.EventID]; known {
				break
			}
			w.seen[r.EventID] = now
		}
		w.mu.Unlock()
		_ = wait(ctx, time.Millisecond)
	}
}

func (w *watcher) report(count int) error {
	if w.failure != nil {
		return w.failure
	}
	delays := make([]time.Duration, 0, count)
	for id, at := range w.acknowledged {
		seen, ok := w.seen[id]
		if !ok {
			return fmt.Errorf("event %s was acknowledged and is not in the listing", id)
		}
		delays = append(delays, max(0, seen.Sub(at)))
	}
	fmt.Printf("from acknowledged to visible at 1,000 events/s: p50 %.1f ms, p99 %.1f ms, p100 %.1f ms\n",
		milliseconds(quantile(delays, 50)), milliseconds(quantile(delays, 99)), milliseconds(quantile(delays, 100)))
	return nil
}

// rename returns the addition with another event id.
func rename(sample stream.Addition, id string) (stream.Addition, error) {
	e, err := wire.Decode(sample.Entry)
	if err != nil {
		return stream.Addition{}, err
	}
	e.ID, e.DeliveryID = id, uuid.New()
	return stream.Addition{Entry: wire.Encode(&e), EventID: id}, nil
}
