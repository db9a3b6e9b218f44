package history

import (
	"context"
	"slices"

	"github.com/weir-dev/weir/collector/analytics"
	"github.com/weir-dev/weir/collector/clickhouse"
	"github.com/weir-dev/weir/collector/event/wire"
	"github.com/weir-dev/weir/collector/history/rows"
	"github.com/weir-dev/weir/collector/stream"
)

// Entries returns the events at the positions as entries of their stream, in their order, without those that are gone. What tells
// of the visitors' devices is in none, and nothing of whose they are in those that have become nobody's.
func (e *Engine) Entries(ctx context.Context, positions []stream.Position) ([]stream.Entry, error) {
	wanted := make([]uint64, len(positions))
	for i, position := range positions {
		wanted[i] = uint64(position)
	}
	byPosition := make(map[uint64]stream.Entry, len(positions))
	for listed := range slices.Chunk(wanted, positionsAtOnce) {
		found, err := all[rows.Event](ctx, e, clickhouse.Query{SQL: "SELECT * FROM events WHERE " + isListed, Parameters: atPositions(listed)})
		if err != nil {
			return nil, err
		}
		for i := range found {
			if found[i].At < uint64(e.anonymous()) {
				withoutPerson(&found[i])
			}
			restored, err := found[i].Restore()
			if err != nil {
				return nil, err
			}
			byPosition[found[i].At] = stream.Entry{Position: stream.Position(found[i].At), Data: wire.Encode(&restored)}
		}
	}
	var entries []stream.Entry
	for _, position := range wanted {
		if entry, found := byPosition[position]; found {
			entries = append(entries, entry)
		}
	}
	return entries, nil
}

// Bounds returns the ends of what the history has of the events stream: what lies before the first one is not kept any more.
// It says nothing of entries that were deleted.
func (e *Engine) Bounds(ctx context.Context) (stream.Bounds, error) {
	m, err := e.now(ctx)
	return stream.Bounds{First: stream.Position(m.first), Last: stream.Position(m.last), Newest: stream.Position(m.last), Length: int64(m.count), Added: int64(m.count)}, err
}

// Attempts returns all records of an event, in the order in which they were written. It may have one twice, as those are that
// an erasure has written anew.
func (e *Engine) Attempts(ctx context.Context, of *analytics.Record) ([]stream.Record, error) {
	m, err := e.now(ctx)
	if err != nil {
		return nil, err
	}
	position := uint64(of.Position)
	said, err := e.recordsOf(ctx, m, []uint64{position})
	if err != nil {
		return nil, err
	}
	list := make([]stream.Record, len(said[position]))
	for i := range said[position] {
		list[i] = said[position][i].Restore()
	}
	return list, nil
}
