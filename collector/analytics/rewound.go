package analytics

import (
	"context"
	"errors"
	"sync"

	"github.com/weir-dev/weir/collector/stream"
)

// errRewound says that a stream no longer holds what has been read from it, though nothing trimmed it: Redis
// has come back with less than it had.
var errRewound = errors.New("the stream was rewound")

// look notices a rewound stream, forgets what has been trimmed, and makes nobody's what is older than identities are kept.
func (f *follower) look(ctx context.Context) error {
	events, records := stream.Position(f.events.Load()), stream.Position(f.records.Load())
	checked := []stream.Position{events}
	if f.caughtUp {
		checked, f.doubts = append(checked, f.doubts...), nil
	}
	for _, position := range checked {
		if _, err := f.checkEvents(ctx, position); err != nil {
			return err
		}
	}
	if err := f.checkRecords(ctx, records); err != nil {
		return err
	}
	trimmed, bounds, err := f.countTrimmed(ctx)
	if err != nil {
		return err
	}
	if trimmed > f.trimmed.Swap(trimmed) {
		f.view.setTrimmed(beginOf(bounds))
	}
	if newest := f.view.newestBefore(beginOf(bounds)); newest != 0 && (f.caughtUp || newest > bounds.MaxDeleted) {
		f.view.Forget(beginOf(bounds))
	}
	beyond, err := f.source.Beyond(ctx)
	if err != nil {
		return err
	}
	if beyond != 0 {
		f.view.setTrimmed(beyond)
	}
	// A view that reads events now whose identities are dropped finds them nobody's.
	dropped, err := f.source.Dropped(ctx)
	if err == nil && !dropped.Identities.IsZero() {
		f.view.Anonymize(stream.At(dropped.Identities))
	}
	return err
}

// countTrimmed returns how many events have ever been trimmed, which are those that are gone and were not erased, and the
// bounds of the events stream when that was so: what was erased until then has left the view. Before both streams have been
// read to their ends it knows of no more than before where any have been erased.
func (f *follower) countTrimmed(ctx context.Context) (trimmed int64, bounds stream.Bounds, err error) {
	for {
		erased, added := f.erased.count()
		if bounds, err = f.source.Bounds(ctx); err != nil {
			return 0, bounds, err
		}
		if !f.caughtUp {
			if bounds.MaxDeleted != 0 {
				return f.trimmed.Load(), bounds, nil
			}
			return bounds.Added - bounds.Length, bounds, nil
		}
		if err := f.hear(ctx); err != nil {
			return 0, bounds, err
		}
		if f.erased.settle(added) { // else it may have been before the bounds were looked at, or behind that
			return bounds.Added - bounds.Length - erased, bounds, nil
		}
	}
}

// erasedCount counts erased events. One that was erased for several reasons is announced several times in one step, so those
// that were announced since the deliveries stream was last read to its end are remembered.
type erasedCount struct {
	mu      sync.Mutex
	settled int64
	lately  map[stream.Position]struct{}
	// added counts the calls of add.
	added int
}

func (c *erasedCount) add(positions []stream.Position) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(positions) == 0 {
		return
	}
	if c.lately == nil {
		c.lately = map[stream.Position]struct{}{}
	}
	for _, position := range positions {
		c.lately[position] = struct{}{}
	}
	c.added++
}

// count returns how many events were erased, and what settle asks for.
func (c *erasedCount) count() (erased int64, added int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.settled + int64(len(c.lately)), c.added
}

// settle says whether none were added since they were counted: then none of those is announced again.
func (c *erasedCount) settle(added int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.added != added {
		return false
	}
	c.settled += int64(len(c.lately))
	c.lately = nil
	return true
}

func (c *erasedCount) restart() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.settled, c.lately = 0, nil
}

// beginOf returns the position before which a stream holds nothing.
func beginOf(bounds stream.Bounds) stream.Position {
	if bounds.Length == 0 {
		return bounds.Newest + 1
	}
	return bounds.First
}

// checkEvents fails with [errRewound] where the newest event that was read is gone and was neither trimmed nor erased. Where
// it has been trimmed, cut is where the stream begins now, otherwise 0.
//
// Of an event that may have been erased the deliveries stream tells whether it was, in the step in which it was. So that is
// read then, and where it was, the next older event stands for it. Before both streams have been read to their ends that
// cannot be: the event is doubted until then.
func (f *follower) checkEvents(ctx context.Context, newest stream.Position) (cut stream.Position, err error) {
	for looked := newest; looked != 0; {
		entries, err := f.source.ReadEvents(ctx, looked-1, 1, 0)
		if err != nil || len(entries) > 0 && entries[0].Position == looked {
			return 0, err
		}
		bounds, err := f.source.Bounds(ctx)
		if err != nil {
			return 0, err
		}
		if bounds.Newest < newest {
			return 0, errRewound
		}
		if bounds.MaxDeleted >= looked {
			if !f.caughtUp {
				f.doubts = append(f.doubts, newest)
				return 0, nil
			}
			if err := f.hear(ctx); err != nil {
				return 0, err
			}
			if left := f.view.newestBefore(looked + 1); left != looked {
				looked = left
				continue
			}
		}
		if !trimmed(bounds, looked) {
			return 0, errRewound
		}
		return beginOf(bounds), nil
	}
	if newest == 0 {
		return 0, nil
	}
	// All that was read is gone, the newest of it erased: others behind it may have been trimmed.
	trimmed, bounds, err := f.countTrimmed(ctx)
	if err != nil || trimmed <= f.trimmed.Load() {
		return 0, err
	}
	return beginOf(bounds), nil
}

// checkRecords is checkEvents for the deliveries stream. Its entries are erased without a word: what they say of others is
// said again behind the newest one. Where one of those that are not older than the newest that was read has been erased,
// that may be it.
func (f *follower) checkRecords(ctx context.Context, newest stream.Position) error {
	if newest == 0 {
		return nil
	}
	// Whether the entry can be decoded makes no difference to its being there.
	var unreadable *stream.RecordsError
	found, err := f.source.ReadRecords(ctx, newest-1, 1, 0)
	if err != nil && !errors.As(err, &unreadable) {
		return err
	}
	if found.Last == newest {
		return nil
	}
	bounds, err := f.source.RecordBounds(ctx)
	if err != nil || trimmed(bounds, newest) || bounds.Newest >= newest && bounds.MaxDeleted >= newest {
		return err
	}
	return errRewound
}

// trimmed says whether an entry that is gone lay below what a stream still holds. It is asked for an entry that
// was seen to be gone before the bounds were looked at.
func trimmed(bounds stream.Bounds, gone stream.Position) bool {
	return bounds.Newest >= gone && (bounds.Length == 0 || bounds.First > gone)
}
