package archive

import (
	"context"

	"github.com/weir-dev/weir/collector/clickhouse"
	"github.com/weir-dev/weir/collector/history/schema"
	"github.com/weir-dev/weir/collector/stream"
)

// watchImports looks what came into the history without the streams, until ctx ends: what is remembered of the table is read anew
// then, and in Redis it is noted up to where the streams alone are not everything. What fails here fails elsewhere too, and is told
// there.
func (a *Archive) watchImports(ctx context.Context) error {
	for {
		_ = a.seeImports(ctx)
		if !pause(ctx, a.timing.imports) {
			return ctx.Err()
		}
	}
}

// seeImports looks for notes of imports.
func (a *Archive) seeImports(ctx context.Context) error {
	type noted struct {
		Count uint64 `ch:"n"`
		Last  uint64 `ch:"last"`
	}
	found, err := clickhouse.One[noted](ctx, a.options.Client, clickhouse.Query{
		SQL: "SELECT count() AS n, max(begin) AS last FROM " + schema.Gaps + " WHERE end = 0",
	})
	if err != nil {
		return err
	}
	// The place goes first: where it cannot be noted the next look sees the notes again.
	if err := a.noteBeyond(ctx, stream.Position(found.Last)); err != nil {
		return err
	}
	if a.imports.Swap(found.Count) != found.Count {
		a.Reread()
	}
	return nil
}

// seeRestored looks whether the table has events that the stream lacks though they were never trimmed, before anything is noted: its
// Redis is another one, or has come back with less than it had. That is so where the table has more than is noted to be there or on its
// way, and the stream has not; else it is the notes that are lost.
func (a *Archive) seeRestored(ctx context.Context) error {
	before, err := a.options.Stream.ArchiveState(ctx)
	if err != nil {
		return err
	}
	last, err := eventsTable(a.options.Client, a.options.Metrics).Last(ctx, before.Events)
	if err != nil || last == 0 {
		return err
	}
	state, err := a.options.Stream.ArchiveState(ctx) // after the table, for another archive may be at work
	if err != nil || last <= max(state.Events, state.EventsIntent.Last) {
		return err
	}
	if there, err := a.options.Stream.Exists(ctx, last); err != nil || there {
		return err
	}
	return a.noteBeyond(ctx, last)
}

// noteBeyond notes up to where the history has events that were never in the stream.
func (a *Archive) noteBeyond(ctx context.Context, position stream.Position) error {
	if position == 0 {
		return nil
	}
	state, err := a.options.Stream.ArchiveState(ctx)
	if err != nil || state.Beyond >= position {
		return err
	}
	return a.options.Stream.NoteBeyond(ctx, position)
}
