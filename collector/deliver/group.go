package deliver

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/stream"
)

// scanCount is how many entries are read at a time when a lost group is restored.
const scanCount = 5000

// awaitGroup makes sure of the platform's group, however long that takes; false means that taking has ended.
func (l *lane) awaitGroup(taking context.Context) bool {
	for {
		err := l.ensureGroup(taking)
		if err == nil {
			return true
		}
		if !l.recover(taking, err) {
			return false
		}
	}
}

// ensureGroup makes the platform's group where it is missing: because the platform is new, or because Redis
// lost it. Either way it begins before the oldest event that names the platform and has no final record there.
func (l *lane) ensureGroup(ctx context.Context) error {
	groups, err := l.stream.Groups(ctx)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(groups, func(g stream.Group) bool { return g.Platform == l.cfg.Name }) {
		return nil
	}
	known, err := l.finalRecords(ctx)
	if err != nil {
		return err
	}
	after, err := l.lastBeforeOpen(ctx, known)
	if err != nil {
		return err
	}
	// Set first: once the group is there its events are handed out.
	l.finals.set(known, after)
	created, err := l.stream.EnsureGroup(ctx, l.cfg.Name, after)
	if err != nil {
		return err
	}
	if created {
		l.logger.Info("consumer group made", "after", after.String(), "final", len(known))
	}
	return nil
}

// finalRecords returns, in order, the events that have a final record on the platform.
func (l *lane) finalRecords(ctx context.Context) ([]stream.Position, error) {
	var known []stream.Position
	for after := stream.Position(0); ; {
		records, last, err := l.stream.ReadRecords(ctx, after, scanCount, 0)
		var unreadable *stream.RecordsError
		switch {
		case errors.As(err, &unreadable):
			l.logger.Error("delivery records cannot be read; their events may be delivered again", "error", err)
		case err != nil:
			return nil, err
		}
		for _, record := range records {
			if record.Platform == l.cfg.Name && record.Status.Final() {
				known = append(known, record.Event)
			}
		}
		if last == after {
			slices.Sort(known)
			return slices.Compact(known), nil
		}
		after = last
	}
}

// lastBeforeOpen returns the position before the oldest event that names the platform and is not among the
// known ones; where there is none, the newest event's.
func (l *lane) lastBeforeOpen(ctx context.Context, known []stream.Position) (stream.Position, error) {
	for after := stream.Position(0); ; {
		entries, err := l.stream.ReadEvents(ctx, after, scanCount, 0)
		if err != nil || len(entries) == 0 {
			return after, err
		}
		for _, entry := range entries {
			if _, found := slices.BinarySearch(known, entry.Position); !found {
				// What cannot be decoded is for the worker to judge.
				e, err := event.DecodeEntry(entry.Data)
				if err != nil || slices.Contains(e.Platforms, l.cfg.Name) {
					return after, nil
				}
			}
			after = entry.Position
		}
	}
}

// finals is a set of events that are not to be delivered again although their group hands them out.
type finals struct {
	mu        sync.Mutex
	positions []stream.Position
}

// set makes the set that of the ordered positions behind after.
func (f *finals) set(positions []stream.Position, after stream.Position) {
	start, _ := slices.BinarySearch(positions, after+1)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.positions = slices.Clone(positions[start:])
}

// has says whether the position is in the set.
func (f *finals) has(position stream.Position) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	_, found := slices.BinarySearch(f.positions, position)
	return found
}
