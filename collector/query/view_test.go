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
}

func (m *memory) ReadEvents(ctx context.Context, after stream.Position, count int, block time.Duration) ([]stream.Entry, error) {
	for i, entry := range m.entries {
		if entry.Position > after {
			return m.entries[i:min(i+count, len(m.entries))], nil
		}
	}
	return nil, m.wait(ctx, block)
}

func (m *memory) ReadRecords(ctx context.Context, after stream.Position, _ int, block time.Duration) (stream.Records, error) {
	// The records' own stream is one entry at position 1 that holds them all.
	if len(m.records) > 0 && after == 0 {
		return stream.Records{Records: m.records, Last: 1}, nil
	}
	return stream.Records{Last: after}, m.wait(ctx, block)
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

func (m *memory) RecordBounds(context.Context) (stream.Bounds, error) {
	if len(m.records) == 0 {
		return stream.Bounds{}, nil
	}
	return stream.Bounds{First: 1, Last: 1, Newest: 1, Length: 1}, nil
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
	for !view.Status().Ready {
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
