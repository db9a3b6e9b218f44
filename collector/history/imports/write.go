package imports

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/weir-dev/weir/collector/clickhouse"
	"github.com/weir-dev/weir/collector/history/rows"
	"github.com/weir-dev/weir/collector/history/schema"
	"github.com/weir-dev/weir/collector/stream"
)

// writer is the second pass's other half.
type writer struct {
	*run
	client *clickhouse.Client
	// cluster is over which shards the tables are spread.
	cluster schema.Cluster
	// months are those in which there are events of the files, by the numbers of [monthOf].
	months map[int]bool
	// said says that it is noted that this import adds something.
	said bool
}

// write is the second pass: while one block is added the next is made.
func (r *run) write(ctx context.Context) error {
	w := &writer{run: r, client: r.Client, cluster: schema.Cluster(r.Property.History.Cluster), months: map[int]bool{}}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	made, done := make(chan block), make(chan error, 1)
	go func() {
		var failed error
		for b := range made {
			if failed == nil {
				if failed = w.add(ctx, b); failed != nil {
					cancel(failed)
				}
			}
		}
		done <- failed
	}()
	out := r.newBlocks(func(b block) error {
		select {
		case made <- b:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	})
	err := r.sorted.each(func(encoded []byte) error { return out.add(ctx, encoded) })
	if err == nil {
		err = out.end(ctx)
	}
	close(made)
	if failed := <-done; failed != nil {
		err = failed
	}
	if err != nil || r.DryRun {
		return err
	}
	if err := w.mend(ctx); err != nil {
		return err
	}
	return w.sayEnd(ctx)
}

// add adds a block. Where that fails in a way that passes it is tried again: what is there is looked up anew each time.
func (w *writer) add(ctx context.Context, b block) error {
	for attempt := 0; ; attempt++ {
		err := w.attempt(ctx, &b)
		if err == nil {
			w.count(&b)
			return nil
		}
		problem, isProblem := errors.AsType[*clickhouse.Problem](err)
		if !isProblem || !passes(problem) || attempt >= len(w.Pauses) {
			return err
		}
		select {
		case <-time.After(w.Pauses[attempt]):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// passes says whether a problem may be gone in a while.
func passes(p *clickhouse.Problem) bool {
	return slices.ContainsFunc([]error{clickhouse.Unreachable, clickhouse.Timeout, clickhouse.TooManyParts, clickhouse.MemoryLimit}, func(kind error) bool {
		return errors.Is(p, kind)
	})
}

func (w *writer) attempt(ctx context.Context, b *block) error {
	there, err := w.look(ctx, b)
	if err != nil {
		return fmt.Errorf("look what the history has: %w", err)
	}
	if err := b.settle(there); err != nil || w.DryRun {
		return err
	}
	if fresh := b.fresh(); len(fresh) > 0 {
		if err := w.sayBegin(ctx); err != nil {
			return err
		}
		if err := w.addEvents(ctx, fresh); err != nil {
			return fmt.Errorf("add events: %w", err)
		}
	}
	return w.addRecords(ctx, b)
}

// errUnsettled says that a block was added and is not there.
var errUnsettled = errors.New("what was added to the history is not there")

// addEvents adds rows under a token that follows from them. Where they are not there after that the table knows the token from rows
// that it has lost since, as by an erasure, so that no late copy can come any more: they go under another one.
func (w *writer) addEvents(ctx context.Context, fresh []rows.Event) error {
	positions := make([]uint64, len(fresh))
	for i := range fresh {
		positions[i] = fresh[i].At
	}
	own := token("events", len(fresh), func(i int) uint64 { return positions[i] })
	for _, addition := range []string{own, ""} {
		if err := clickhouse.Insert(ctx, w.client, schema.Events, fresh, addition); err != nil {
			return err
		}
		count, err := clickhouse.One[uint64](ctx, w.client, clickhouse.Query{
			SQL:      "SELECT uniqExact(at) FROM events WHERE " + between(positions[0], positions[len(positions)-1]) + " AND at IN " + list(positions),
			Settings: longStatement(),
		})
		switch {
		case err != nil:
			return err
		case count == uint64(len(positions)):
			return nil
		case count > 0: // the block is there as a whole or not at all: somebody else is at work
			return errUnsettled
		}
	}
	return errUnsettled
}

// count notes a block that is there.
func (w *writer) count(b *block) {
	for i := range b.events {
		p := &b.events[i]
		if p.there {
			w.report.There++
		} else {
			w.report.Imported++
			if p.nobodys {
				w.report.Nobodys++
			}
		}
	}
	first, last := time.UnixMilli(b.events[0].ms).UTC(), time.UnixMilli(b.events[len(b.events)-1].ms).UTC()
	if w.report.First.IsZero() {
		w.report.First = first
	}
	w.report.Last = last
	w.months[monthOf(b.events[0].ms)] = true
	w.progress.Done += int64(len(b.events))
	w.tell()
}

// addRecords adds what became of a block's events, as far as the history lacks it. Of those that came in by a stream it is not ours.
func (w *writer) addRecords(ctx context.Context, b *block) error {
	records, known := recordsOf(b)
	if len(records) == 0 {
		return nil
	}
	if len(known) > 0 {
		type found struct {
			At       uint64 `ch:"at"`
			Platform string `ch:"platform"`
		}
		there, err := clickhouse.Select[found](ctx, w.client, clickhouse.Query{
			SQL: "SELECT at, toString(platform) AS platform FROM records WHERE at IN " + list(known), Settings: longStatement(),
		})
		if err != nil {
			return fmt.Errorf("look which records the history has: %w", err)
		}
		has := make(map[found]bool, len(there))
		for _, one := range there {
			has[one] = true
		}
		records = slices.DeleteFunc(records, func(r rows.Record) bool { return has[found{r.At, r.Platform}] })
	}
	months := map[int][]rows.Record{}
	for _, r := range records {
		month := monthOf(stream.Position(r.Entry).Milliseconds())
		months[month] = append(months[month], r)
	}
	for _, some := range months {
		slices.SortFunc(some, compareRecords)
		err := clickhouse.Insert(ctx, w.client, schema.Records, some, token("records", len(some), func(i int) uint64 { return some[i].Entry ^ some[i].At<<1 }))
		if err != nil {
			return fmt.Errorf("add delivery records: %w", err)
		}
		w.report.Records += int64(len(some))
	}
	return nil
}
