package analytics

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-dev/weir/collector/stream"
)

// Source is where a view's two streams are read; a [stream.Stream] is one.
//
//nolint:interfacebloat // two streams, two queries each
type Source interface {
	ReadEvents(ctx context.Context, after stream.Position, count int, block time.Duration) ([]stream.Entry, error)
	ReadRecords(ctx context.Context, after stream.Position, count int, block time.Duration) (stream.Records, error)
	Bounds(ctx context.Context) (stream.Bounds, error)
	RecordBounds(ctx context.Context) (stream.Bounds, error)
	Dropped(ctx context.Context) (stream.Dropped, error)
	// Beyond is up to where there were events that were never in the events stream; 0 for none.
	Beyond(ctx context.Context) (stream.Position, error)
}

const (
	// readCount is how many entries are asked for at a time. An event takes up to 64 KiB.
	readCount = 1000
	// readBlock is how long a read waits for a new entry. It also bounds how old [Status.CurrentAt] grows while
	// nothing happens.
	readBlock = time.Second
	// watchEvery is how often the streams' ends are looked at: that is how late a trimmed event leaves the view.
	watchEvery = 5 * time.Second
	// Between attempts to reach the source the view waits minBackoff, then twice as long each time up to maxBackoff.
	minBackoff = 100 * time.Millisecond
	maxBackoff = 5 * time.Second
)

// Follow fills the view from the source's streams and keeps it up to date until the context ends, whose error
// it returns. It survives the source: it reads on where it was, and where a stream has been rewound it begins
// anew. Only one Follow may run for a view.
func (v *View) Follow(ctx context.Context, source Source) error {
	f := &follower{view: v, source: source, reading: make(chan struct{}, 1), backoff: minBackoff}
	for {
		err := f.run(ctx)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if errors.Is(err, errRewound) || errors.Is(err, ErrBehind) {
			v.log.WarnContext(ctx, "rebuilding the view", slog.String("property", v.property), slog.Any("error", err))
			f.restart()
		} else {
			v.setConnected(false)
			if !f.lost {
				v.log.WarnContext(ctx, "view cannot read its source", slog.String("property", v.property), slog.Any("error", err))
				f.lost = true
			}
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(f.backoff):
		}
		f.backoff = min(2*f.backoff, maxBackoff)
	}
}

// follower is one Follow.
type follower struct {
	view   *View
	source Source
	// events and records are the positions up to which the streams have been read.
	events, records atomic.Uint64
	// reading is held while records are read.
	reading chan struct{}
	// caughtUp says that the run has read both streams to their ends. doubts are events that were gone before, and of which
	// only what the deliveries stream says can tell why.
	caughtUp bool
	doubts   []stream.Position
	// erased counts the events of which the deliveries stream says that they were erased, trimmed those that were trimmed when
	// the follower looked last.
	erased  erasedCount
	trimmed atomic.Int64
	// backoff is how long to wait after the next failure; lost says that one has been logged since the view last
	// was up to date.
	backoff time.Duration
	lost    bool
}

func (f *follower) restart() {
	f.view.Reset()
	f.events.Store(0)
	f.records.Store(0)
	f.erased.restart()
	f.trimmed.Store(0)
	f.doubts = nil
}

// run catches up with the streams and follows them until something fails.
func (f *follower) run(ctx context.Context) error {
	f.caughtUp = false
	if err := f.look(ctx); err != nil {
		return err
	}
	f.view.setConnected(true)
	if err := f.catchUp(ctx); err != nil {
		return err
	}
	f.caughtUp = true
	// Catching up may have taken minutes, in which much can have been trimmed.
	if err := f.look(ctx); err != nil {
		return err
	}
	f.view.setReady()
	f.backoff, f.lost = minBackoff, false
	f.view.log.InfoContext(ctx, "view is up to date", slog.String("property", f.view.property), slog.Int("events", f.view.Status(ctx).Events))

	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var group sync.WaitGroup
	for _, role := range []func(context.Context) error{f.tailEvents, f.tailRecords, f.watch} {
		group.Go(func() { cancel(role(ctx)) })
	}
	group.Wait()
	return context.Cause(ctx)
}

// catchUp reads both streams to their ends: the events first, so that hardly a record comes before its event.
func (f *follower) catchUp(ctx context.Context) error {
	if err := f.replayEvents(ctx); err != nil {
		return err
	}
	return f.hear(ctx)
}

// hear reads the deliveries stream to its end: what was erased until now is then known.
func (f *follower) hear(ctx context.Context) error {
	for more := true; more; {
		var err error
		if more, err = f.readRecords(ctx, 0); err != nil {
			return err
		}
	}
	return nil
}

// replayed is what reading ahead found: entries, or why there are no more.
type replayed struct {
	decoded
	err error
}

// replayEvents reads the events stream to its end. What comes next is read and decoded while what came before is
// added.
func (f *follower) replayEvents(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	found := make(chan replayed, 1)
	var reader sync.WaitGroup
	reader.Go(func() { f.readAhead(ctx, found) })
	defer reader.Wait()
	defer cancel()
	for r := range found {
		if r.err != nil {
			return r.err
		}
		f.add(ctx, r.decoded)
	}
	return ctx.Err()
}

// readAhead reads and decodes events until there are no more.
func (f *follower) readAhead(ctx context.Context, found chan<- replayed) {
	defer close(found)
	for after := stream.Position(f.events.Load()); ; {
		asked := time.Now()
		entries, cut, err := f.readBehind(ctx, after, 0)
		if err == nil && len(entries) == 0 {
			f.view.setCurrent(asked)
			return
		}
		next := replayed{err: err}
		if err == nil {
			next.decoded = f.view.decode(entries)
			next.cut = cut
		}
		select {
		case found <- next:
		case <-ctx.Done():
			return
		}
		if err != nil {
			return
		}
		after = next.last
	}
}

// add adds events to the view and remembers how far they reach.
func (f *follower) add(ctx context.Context, d decoded) {
	if err := f.view.add(d); err != nil {
		f.view.log.ErrorContext(ctx, "entries left out of the view", slog.String("property", f.view.property), slog.Any("error", err))
	}
	f.events.Store(uint64(d.last))
}

func (f *follower) tailEvents(ctx context.Context) error {
	for {
		if err := f.readEvents(ctx); err != nil {
			return err
		}
	}
}

func (f *follower) tailRecords(ctx context.Context) error {
	for {
		if _, err := f.readRecords(ctx, readBlock); err != nil {
			return err
		}
	}
}

// watch looks at the streams' ends from time to time.
func (f *follower) watch(ctx context.Context) error {
	ticker := time.NewTicker(watchEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
		}
		if err := f.look(ctx); err != nil {
			return err
		}
	}
}

// readEvents reads on in the events stream, and waits where there is nothing to read.
func (f *follower) readEvents(ctx context.Context) error {
	asked := time.Now()
	entries, cut, err := f.readBehind(ctx, stream.Position(f.events.Load()), readBlock)
	if err != nil {
		return err
	}
	if len(entries) == 0 {
		f.view.setCurrent(time.Now()) // whatever came while the read waited would have ended it
		return ctx.Err()
	}
	next := f.view.decode(entries)
	next.cut = cut
	f.add(ctx, next)
	if len(entries) < readCount {
		f.view.setCurrent(asked)
	}
	return nil
}

// readBehind reads events behind a position, up to which the view has them. Trimming may have removed the event there and
// others behind it that nobody has read; cut is then where the stream began afterwards, otherwise 0. The view has no gap
// where what it held before cut leaves it in the step that adds the entries.
func (f *follower) readBehind(ctx context.Context, after stream.Position, block time.Duration) (entries []stream.Entry, cut stream.Position, err error) {
	entries, err = f.source.ReadEvents(ctx, after, readCount, block)
	if err != nil || len(entries) == 0 {
		return nil, 0, err
	}
	cut, err = f.checkEvents(ctx, after)
	return entries, cut, err
}

// readRecords reads on in the deliveries stream. It says whether there was something to read. An entry that
// cannot be decoded is passed over.
func (f *follower) readRecords(ctx context.Context, block time.Duration) (more bool, err error) {
	select {
	case f.reading <- struct{}{}:
		defer func() { <-f.reading }()
	case <-ctx.Done():
		return false, ctx.Err()
	}
	after := stream.Position(f.records.Load())
	records, err := f.source.ReadRecords(ctx, after, readCount, block)
	if _, unreadable := errors.AsType[*stream.RecordsError](err); unreadable {
		f.view.log.ErrorContext(ctx, "delivery records left out of the view", slog.String("property", f.view.property), slog.Any("error", err))
		err = nil
	}
	if err != nil || records.Last == after {
		return false, errors.Join(err, ctx.Err())
	}
	f.view.AddRecords(records.Records)
	if err := f.view.Erase(records.Erased); err != nil {
		return false, err
	}
	f.erased.add(records.Erased)
	f.records.Store(uint64(records.Last))
	return true, nil
}
