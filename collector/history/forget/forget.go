// Package forget takes out of a property's history what must not be in it any more: persons who are erased, what is older than it
// is kept, and whose events are that are nobody's by now.
//
// Rows go in steps, and whoever is killed between two is followed by one that goes on: what is to go stands in the table erased
// first, which every question leaves out; then what is left of the persons' visitors comes from where it would come from without
// these rows; then the rows go, and when no file has them any more their positions leave that table. What is found is found again
// where it is still there, and every step may be taken twice.
package forget

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/weir-dev/weir/collector/clickhouse"
	"github.com/weir-dev/weir/collector/event/erasure"
	"github.com/weir-dev/weir/collector/history/schema"
	"github.com/weir-dev/weir/collector/stream"
)

// Ledger says who has been erased.
type Ledger interface {
	// Known returns everybody who stands in the ledger by now, and what the digests are made with. It fails where that is not known.
	Known(ctx context.Context) ([]erasure.Entry, erasure.Salt, error)
}

// Erasures are what is known of a property's erasures beside the ledger.
type Erasures interface {
	// HistoryErasures returns those that are not done in the history.
	HistoryErasures(ctx context.Context) ([]stream.HistoryErasure, error)
	// ErasureEntries returns what the ledger has of each of some erasures.
	ErasureEntries(ctx context.Context, ids []string) (map[string][]erasure.Entry, error)
	// NoteHistory notes how far some are.
	NoteHistory(ctx context.Context, notes []stream.HistoryNote) error
}

// Limits are the ages of what a history may have. They go by the clock that is believed.
type Limits struct {
	// Now is the time that they are told by. Where this process has not seen it come nothing goes for good by it.
	Now time.Time
	// Oldest is the position before which nothing is kept, Anonymous that before which events are nobody's; 0 for no such limit.
	Oldest, Anonymous stream.Position
}

// Options configure a [Forgetter].
type Options struct {
	// Client reaches the database with the property's tables, as the archive's user.
	Client *clickhouse.Client
	// Cluster is over which shards the tables are spread.
	Cluster  schema.Cluster
	Ledger   Ledger
	Erasures Erasures
	// Settled returns when the blocks that were begun before are in the tables or have failed: later ones have nobody who stands in
	// the ledger. Nil where nobody else writes.
	Settled func(ctx context.Context) error
	// Hidden is called when rows were hidden: whoever else writes is not to have new rows come from these. Nil where nobody does.
	Hidden func()
	// Current is the time up to which everything that was received is in the tables; nil where nobody else writes.
	Current func(ctx context.Context) (time.Time, error)
	// Limits are asked with each look; nil for none.
	Limits func(ctx context.Context) (Limits, error)
	Logger *slog.Logger
	// Interval is how often it looks; 0 for every two seconds.
	Interval time.Duration
	// Wall is this process's clock, Monotonic says how long something runs; nil for the process's own.
	Wall      func() time.Time
	Monotonic func() time.Duration
}

const (
	// defaultInterval is how often it looks.
	defaultInterval = 2 * time.Second
	// again is how often rows that came to the tables since the last look are looked at, and wholly how often all are.
	again, wholly = time.Minute, 24 * time.Hour
)

// Forgetter keeps one property's history. It is not safe for concurrent use.
type Forgetter struct {
	client   *clickhouse.Client
	cluster  schema.Cluster
	ledger   Ledger
	erasures Erasures
	settled  func(context.Context) error
	hidden   func()
	current  func(context.Context) (time.Time, error)
	limits   func(context.Context) (Limits, error)
	logger   *slog.Logger
	interval time.Duration
	elapsed  func() time.Duration

	// done are the ledger's entries of which the tables had no row when they were looked for.
	done map[erasure.Digest]erasure.Entry
	// seen is what has been looked through for all of them, at looked; whole is when everything was for the last time.
	seen          *tables
	looked, whole time.Duration
	// held are the erasures of which it is not known yet what was seen with their subjects; waits are the digests of the rows that
	// have to be there until it is.
	held  map[string]time.Time
	waits map[erasure.Digest]bool

	// batch is the number of what is hidden now. uncorrected says that something may come from it, unfinished that some of it may have
	// rows.
	batch                   uint32
	uncorrected, unfinished bool
	// job is what takes long and is under way, nil for nothing.
	job *job
	// purge is what is being waited for, nil for nothing; leftover says that something is hidden.
	purge    *purge
	leftover bool
	// aged are the limits that have been seen to, witness says which may be.
	aged    *Limits
	witness *witness
}

// New prepares a forgetter.
func New(o Options) *Forgetter {
	f := &Forgetter{
		client: o.Client, cluster: o.Cluster, ledger: o.Ledger, erasures: o.Erasures, settled: o.Settled, hidden: o.Hidden, current: o.Current, limits: o.Limits,
		logger: o.Logger, interval: o.Interval,
		elapsed: o.Monotonic, done: map[erasure.Digest]erasure.Entry{}, uncorrected: true, unfinished: true, leftover: true,
	}
	if f.settled == nil {
		f.settled = func(context.Context) error { return nil }
	}
	if f.hidden == nil {
		f.hidden = func() {}
	}
	if f.limits == nil {
		f.limits = func(context.Context) (Limits, error) { return Limits{}, nil }
	}
	if f.interval == 0 {
		f.interval = defaultInterval
	}
	if f.elapsed == nil {
		began := time.Now()
		f.elapsed = func() time.Duration { return time.Since(began) }
	}
	f.witness = &witness{wall: o.Wall, elapsed: f.elapsed, logger: o.Logger}
	if o.Wall == nil {
		f.witness.wall = time.Now
	}
	return f
}

// Run forgets until ctx ends, and returns its error. What fails is tried again.
func (f *Forgetter) Run(ctx context.Context) error {
	defer f.Wait()
	ticker := time.NewTicker(f.interval)
	defer ticker.Stop()
	failed := false
	for {
		err := f.Step(ctx)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if (err != nil) != failed {
			failed = err != nil
			if failed {
				f.logger.LogAttrs(ctx, slog.LevelError, "the history cannot forget what it has to; it is tried again and again", slog.Any("error", err))
			} else {
				f.logger.LogAttrs(ctx, slog.LevelInfo, "the history forgets what it has to again")
			}
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
		}
	}
}

// Step does what is to be done now. What takes long goes on behind it, one thing at a time, so that it keeps nobody from being
// hidden: see [Forgetter.Wait].
func (f *Forgetter) Step(ctx context.Context) error {
	if err := f.finish(); err != nil {
		return err
	}
	// Persons go before all else, and neither keeps the other from being done.
	return errors.Join(f.forgetPersons(ctx), f.age(ctx))
}

// forgetPersons does the erasures that are to be done.
func (f *Forgetter) forgetPersons(ctx context.Context) error {
	// In this order: the ledger has whoever is among the erasures.
	open, err := f.erasures.HistoryErasures(ctx)
	if err != nil {
		return err
	}
	entries, salt, err := f.ledger.Known(ctx)
	if err != nil {
		return err
	}
	l, err := f.plan(ctx, open, entries, salt)
	if err != nil {
		return err
	}
	if l != nil {
		if err := f.look(ctx, l); err != nil {
			return err
		}
	}
	if f.uncorrected && f.job == nil {
		if err := f.correct(ctx); err != nil {
			return err
		}
	}
	if !f.uncorrected {
		if err := f.noteHidden(ctx, open); err != nil {
			return err
		}
	}
	switch {
	case f.job != nil || f.uncorrected:
		return nil
	case f.unfinished:
		if err := f.reconsider(ctx); err != nil {
			return err
		}
		f.unfinished = false
		f.begin(func() error { return f.remove(ctx) }, func() { f.unfinished = true })
		return nil
	}
	return f.purgeRest(ctx, open)
}

// job is what takes long.
type job struct {
	done chan struct{}
	err  error
	// failed has it done again.
	failed func()
}

// begin begins what takes long. Nothing else may be under way.
func (f *Forgetter) begin(work func() error, failed func()) {
	one := &job{done: make(chan struct{}), failed: failed}
	f.job = one
	go func() {
		defer close(one.done)
		one.err = work()
	}()
}

// finish takes note of what took long, where that is done.
func (f *Forgetter) finish() error {
	if f.job == nil {
		return nil
	}
	select {
	case <-f.job.done:
	default:
		return nil
	}
	one := f.job
	f.job = nil
	if one.err != nil {
		one.failed()
	}
	return one.err
}

// Wait waits for what takes long and is under way. It ends early where the context has ended that was given to [Forgetter.Step].
func (f *Forgetter) Wait() {
	if f.job != nil {
		<-f.job.done
	}
}

// noteHidden notes of those erasures that wait for nothing that no answer has anything of them.
func (f *Forgetter) noteHidden(ctx context.Context, open []stream.HistoryErasure) error {
	var ready []*stream.HistoryErasure
	var ids []string
	for i := range open {
		if one := &open[i]; !one.Follow && !one.Hidden {
			ready, ids = append(ready, one), append(ids, one.ID)
		}
	}
	entries := map[string][]erasure.Entry{}
	if len(f.waits) > 0 && len(ready) > 0 {
		var err error
		if entries, err = f.erasures.ErasureEntries(ctx, ids); err != nil {
			return err
		}
	}
	var notes []stream.HistoryNote
	for _, one := range ready {
		// One that shares a row with another that waits is not hidden yet.
		if !slices.ContainsFunc(entries[one.ID], func(entry erasure.Entry) bool { return f.waits[entry.Digest] }) {
			one.Hidden = true
			notes = append(notes, stream.HistoryNote{ID: one.ID, Ledgered: one.Ledgered, Step: stream.HistoryHidden})
		}
	}
	return f.note(ctx, notes)
}

func (f *Forgetter) note(ctx context.Context, notes []stream.HistoryNote) error {
	if len(notes) == 0 {
		return nil
	}
	return f.erasures.NoteHistory(ctx, notes)
}
