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
	for older := false; ; {
		if err := a.seeImports(ctx); err == nil && !older {
			older = a.seeOlder(ctx) == nil
		}
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

// seeOlder looks whether the table has events from before the stream began, where nothing ever left that: as where its Redis is another
// one.
func (a *Archive) seeOlder(ctx context.Context) error {
	bounds, err := a.options.Stream.Bounds(ctx)
	if err != nil || bounds.Length != bounds.Added {
		return err // what was trimmed is known by that
	}
	last, err := clickhouse.One[uint64](ctx, a.options.Client, clickhouse.Query{
		SQL:        "SELECT max(at) FROM " + schema.Events + " WHERE at < {first:UInt64} AND bitAnd(at, {imported:UInt64}) = 0",
		Parameters: map[string]any{"first": uint64(firstOf(bounds)), "imported": uint64(schema.Imported)},
	})
	if err != nil {
		return err
	}
	return a.noteBeyond(ctx, stream.Position(last))
}

// firstOf is the position before which a stream has nothing.
func firstOf(bounds stream.Bounds) stream.Position {
	if bounds.Length == 0 {
		return 1<<63 - 1
	}
	return bounds.First
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
