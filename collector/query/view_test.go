package query

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/weir-dev/weir/collector/analytics"
	"github.com/weir-dev/weir/collector/stream"
)

// memory is the two streams of a property in memory.
type memory struct {
	entries []stream.Entry
	records []stream.Record
	// away is a Redis that does not answer.
	away bool
	// recordsRead counts the records that were read.
	recordsRead int
}

func (m *memory) ReadEvents(ctx context.Context, after stream.Position, count int, block time.Duration) ([]stream.Entry, error) {
	for i, entry := range m.entries {
		if entry.Position > after {
			return m.entries[i:min(i+count, len(m.entries))], nil
		}
	}
	return nil, m.wait(ctx, block)
}

// ReadRecords has an entry for each record, dated like it.
func (m *memory) ReadRecords(ctx context.Context, after stream.Position, count int, block time.Duration) (stream.Records, error) {
	if m.away {
		return stream.Records{Last: after}, errors.New("connection refused")
	}
	found := stream.Records{Last: after}
	for i, position := range m.recordPositions() {
		if position > after && len(found.Records) < count {
			found.Records, found.Last = append(found.Records, m.records[i]), position
		}
	}
	m.recordsRead += len(found.Records)
	if len(found.Records) > 0 {
		return found, nil
	}
	return found, m.wait(ctx, block)
}

// recordPositions are where the records stand in their stream.
func (m *memory) recordPositions() []stream.Position {
	positions := make([]stream.Position, len(m.records))
	var last stream.Position
	for i := range m.records {
		last = max(last+1, stream.At(m.records[i].At))
		positions[i] = last
	}
	return positions
}

// Entries finds what is at the positions.
func (m *memory) Entries(_ context.Context, positions []stream.Position) ([]stream.Entry, error) {
	if m.away {
		return nil, errors.New("connection refused")
	}
	var found []stream.Entry
	for _, p := range positions {
		if i, there := slices.BinarySearchFunc(m.entries, p, func(e stream.Entry, p stream.Position) int { return cmp.Compare(e.Position, p) }); there {
			found = append(found, m.entries[i])
		}
	}
	return found, nil
}

// wait blocks as a read does that finds nothing new.
func (m *memory) wait(ctx context.Context, block time.Duration) error {
	if block == 0 {
		return nil
	}
	<-ctx.Done()
	return ctx.Err()
}

func (m *memory) Bounds(context.Context) (stream.Bounds, error) {
	if len(m.entries) == 0 {
		return stream.Bounds{}, nil
	}
	first, last := m.entries[0].Position, m.entries[len(m.entries)-1].Position
	return stream.Bounds{First: first, Last: last, Newest: last, Length: int64(len(m.entries))}, nil
}

func (m *memory) Dropped(context.Context) (stream.Dropped, error) { return stream.Dropped{}, nil }
func (m *memory) Beyond(context.Context) (stream.Position, error) { return 0, nil }

func (m *memory) RecordBounds(context.Context) (stream.Bounds, error) {
	positions := m.recordPositions()
	if len(positions) == 0 {
		return stream.Bounds{}, nil
	}
	first, last := positions[0], positions[len(positions)-1]
	return stream.Bounds{First: first, Last: last, Newest: last, Length: int64(len(positions))}, nil
}

// fill lets the view follow streams until it is ready.
func fill(t testing.TB, view *analytics.View, m *memory) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- view.Follow(ctx, m) }()
	ticker := time.NewTicker(time.Millisecond)
	defer ticker.Stop()
	for !view.Status(t.Context()).Ready {
		select {
		case err := <-ended:
			t.Fatalf("the view is not ready: %v", err)
		case <-ticker.C:
		}
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("the view ended with %v", err)
	}
}
