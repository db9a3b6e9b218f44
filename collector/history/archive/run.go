package archive

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"github.com/weir-dev/weir/collector/clickhouse"
	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/history/rows"
	"github.com/weir-dev/weir/collector/history/schema"
	"github.com/weir-dev/weir/collector/stream"
)

// blockLimit is about how many rows a block has at most.
const blockLimit = 50_000

// Options configure an [Archive].
type Options struct {
	// Property is namespace/name.
	Property string
	// Stream is where the property's streams are, opening what tells whose an event is.
	Stream *stream.Stream
	// Client reaches the database with the property's tables. Its owner closes it.
	Client *clickhouse.Client
	// Cluster is over which shards the tables are spread.
	Cluster schema.Cluster
	// Erased says of an event that was received at a time that its person was erased: it never gets into the history. Nil for none.
	Erased func(e *event.Event, received time.Time) bool
	// Beside runs for as long as this archive is the one that works. Nil for nothing.
	Beside  func(ctx context.Context)
	Metrics *Metrics
	Logger  *slog.Logger
}

// Archive copies a property's streams into its history.
type Archive struct {
	options Options
	notes   notes
	timing  timing
	limit   int
	pace    *pace
	health  *health
	reached atomic.Bool
	stale   atomic.Bool
	// imports are how many notes of imports the table has had.
	imports atomic.Uint64
	// wrote is how many blocks have been copied since parts were looked at.
	wrote atomic.Int64
	// faultyEvents and faultyRecords outlive what comes and goes with an epoch.
	faultyEvents, faultyRecords *faulty
}

// New returns an archive, which does nothing before [Archive.Run].
func New(o Options) *Archive {
	return &Archive{
		options: o, notes: notes{o.Stream}, timing: usual(), limit: blockLimit, pace: newPace(usual(), o.Metrics.delayedBy.WithLabelValues()),
		health:       &health{log: o.Logger, problems: map[string]Problem{}},
		faultyEvents: &faulty{lane: Events, metrics: o.Metrics, log: o.Logger}, faultyRecords: &faulty{lane: Records, metrics: o.Metrics, log: o.Logger},
	}
}

// Reached says whether ClickHouse has answered, and was good.
func (a *Archive) Reached() bool { return a.reached.Load() }

// Reread has it remember nothing of the table's rows any more: some were taken out, or changed, by others.
func (a *Archive) Reread() { a.stale.Store(true) }

// Run archives until ctx ends. It survives both systems: what cannot be read or written is tried again. Several may run for a
// property: the one that has begun last works, and the others stand by.
func (a *Archive) Run(ctx context.Context) {
	told, stop := context.WithCancel(ctx)
	defer stop()
	var reporting errgroup.Group
	reporting.Go(func() error { a.report(told); return nil })
	for ctx.Err() == nil {
		if epoch, began := a.begin(ctx); began && errors.Is(a.work(ctx, epoch), ErrDeposed) {
			a.options.Logger.InfoContext(ctx, "another archive has taken over; this one stands by")
			a.standBy(ctx)
		}
	}
	stop()
	_ = reporting.Wait() // it returns nothing
}

// begin takes over from other archives, once ClickHouse can be reached. It says whether it has.
func (a *Archive) begin(ctx context.Context) (epoch uint64, began bool) {
	const part = "begin"
	for failures := 1; ; failures++ {
		err := a.options.Client.Ping(ctx)
		if err == nil {
			a.reached.Store(true)
			err = a.seeRestored(ctx)
		}
		if err == nil {
			epoch, err = a.options.Stream.BeginArchive(ctx)
		}
		if err == nil {
			a.health.fine(ctx, part)
			return epoch, true
		}
		if ctx.Err() != nil || !a.failed(ctx, part, err, failures) {
			return 0, false
		}
	}
}

// failed waits after a failure, and says whether ctx has not ended.
func (a *Archive) failed(ctx context.Context, part string, err error, failures int) bool {
	problem := a.health.failed(ctx, part, err)
	a.options.Metrics.errors.WithLabelValues(string(problem)).Inc()
	if problem == HistoryTooManyParts {
		a.pace.slower()
	}
	return pause(ctx, a.timing.after(failures))
}

// standBy waits until no other archive is at work.
func (a *Archive) standBy(ctx context.Context) {
	var beat uint64
	for since := time.Now(); time.Since(since) < a.timing.standby; {
		state, err := a.options.Stream.ArchiveState(ctx)
		if err != nil || state.Beat != beat {
			beat, since = state.Beat, time.Now()
		}
		if !pause(ctx, a.timing.beat) {
			return
		}
	}
}

// work copies both streams until it is deposed or ctx ends.
func (a *Archive) work(ctx context.Context, epoch uint64) error {
	o := a.options
	copied := map[Lane]*progress{Events: newProgress(), Records: newProgress()}
	known := &names{client: o.Client}
	eventsLane := newLane(a, epoch, Events, eventsTable(o.Client, o.Metrics), &events{
		property: o.Property, stream: o.Stream, erased: o.Erased, touches: &touches{client: o.Client}, visits: newVisits(), stale: &a.stale, names: known, faulty: a.faultyEvents,
	})
	eventsLane.missed = a.missed
	eventsLane.lacks = func(ctx context.Context, last stream.Position) error {
		// Until it is filled again answers are to say so.
		return a.notes.beat(ctx, epoch, last.Time().Add(time.Millisecond))
	}
	recordsLane := newLane(a, epoch, Records, recordsTable(o.Client, o.Metrics), &records{
		stream: o.Stream, events: copied[Events], names: known, said: newSaid(o.Client), faulty: a.faultyRecords,
	})
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return runLane(ctx, a, eventsLane, copied[Events]) })
	group.Go(func() error { return runLane(ctx, a, recordsLane, copied[Records]) })
	group.Go(func() error { return a.beat(ctx, epoch, copied) })
	group.Go(func() error { return a.measure(ctx, copied) })
	group.Go(func() error { return a.watchImports(ctx) })
	if o.Beside != nil {
		group.Go(func() error { o.Beside(ctx); return nil })
	}
	return group.Wait()
}

func newLane[Row rows.Event | rows.Record](a *Archive, epoch uint64, name Lane, to *table[Row], from Source[Row]) *lane[Row] {
	return &lane[Row]{
		name: name, notes: a.notes, source: from, table: &paced[Row]{to, a.pace, time.Now}, epoch: epoch, limit: a.limit, readsAhead: true, spread: a.options.Cluster != "", token: uuid.NewString,
	}
}

// runLane copies one stream. A block goes when it is full, or when its entries have been gathered for long enough.
func runLane[Row any](ctx context.Context, a *Archive, l *lane[Row], copied *progress) error {
	for failures := 0; ctx.Err() == nil; {
		began := time.Now()
		some, err := l.step(ctx)
		switch {
		case ctx.Err() != nil, errors.Is(err, ErrDeposed):
			return err
		case err != nil:
			failures++
			a.failed(ctx, string(l.name), err, failures)
			continue
		}
		failures = 0
		if some {
			a.wrote.Add(1)
		} else {
			a.pace.took(0) // who sends nothing presses nobody, and is not to look more seldom than others
		}
		a.health.fine(ctx, string(l.name))
		copied.move(l.at, l.last.End, l.last.Began, l.last.Asked)
		if l.last.End || !some || a.pace.pressed() {
			pause(ctx, time.Until(began.Add(a.pace.now())))
		}
	}
	return ctx.Err()
}

// missed notes that events may be missing that were trimmed before they were archived.
func (a *Archive) missed(ctx context.Context, after, next, lost stream.Position) error {
	bounds, err := a.options.Stream.Bounds(ctx)
	if err != nil || bounds.First <= after || bounds.Added == bounds.Length {
		return err // a stream that begins there, or has the entry in question, has lost nothing from between
	}
	begin, end := after+1, min(lost, next-1)
	if err := addGap(ctx, a.options.Client, begin, end); err != nil {
		return err
	}
	a.options.Metrics.gaps.Inc()
	a.options.Logger.WarnContext(ctx, "events may be missing in the history: they left the stream before they were archived",
		"from", begin.Time(), "to", end.Time())
	return nil
}

// beat notes that the archive is at work, and up to when all is archived.
func (a *Archive) beat(ctx context.Context, epoch uint64, copied map[Lane]*progress) error {
	const part = "beat"
	for {
		current := copied[Events].currentAt()
		if other := copied[Records].currentAt(); other.Before(current) {
			current = other
		}
		err := a.notes.beat(ctx, epoch, current)
		switch {
		case errors.Is(err, ErrDeposed):
			return err
		case err != nil && ctx.Err() == nil:
			a.health.failed(ctx, part, err)
		case err == nil:
			a.health.fine(ctx, part)
		}
		if !pause(ctx, a.timing.beat) {
			return ctx.Err()
		}
	}
}

// measure looks at lags and parts.
func (a *Archive) measure(ctx context.Context, copied map[Lane]*progress) error {
	for {
		// What fails here fails elsewhere too, and is told there. Blocks make parts: who writes few has no need to ask, which costs
		// ClickHouse time too.
		if a.wrote.Load() >= blocksALook || a.pace.pressed() {
			a.wrote.Store(0)
			if parts, err := partsOf(ctx, a.options.Client, a.options.Cluster); err == nil {
				a.pace.see(parts)
			}
		}
		if now, err := a.options.Stream.Now(ctx); err == nil {
			if bounds, err := a.options.Stream.Bounds(ctx); err == nil {
				a.tellLag(Events, copied[Events], bounds, now)
			}
			if bounds, err := a.options.Stream.RecordBounds(ctx); err == nil {
				a.tellLag(Records, copied[Records], bounds, now)
			}
		}
		if !pause(ctx, a.timing.measure) {
			return ctx.Err()
		}
	}
}

func (a *Archive) tellLag(lane Lane, copied *progress, bounds stream.Bounds, now time.Time) {
	entries, since := copied.lag(bounds)
	a.options.Metrics.lagEntries.WithLabelValues(string(lane)).Set(entries)
	seconds := 0.0
	if !since.IsZero() {
		seconds = max(0, now.Sub(since).Seconds())
	}
	a.options.Metrics.lagSeconds.WithLabelValues(string(lane)).Set(seconds)
}

// report says in Redis what a person has to mend, for as long as it is so.
func (a *Archive) report(ctx context.Context) {
	for pause(ctx, a.timing.beat) {
		if problem := a.health.problem(); problem != "" && problem != RedisUnreachable {
			_ = a.options.Stream.PausePlatform(ctx, stream.ArchiveName, string(problem)) // a Redis that is away is told by others
		}
	}
}
