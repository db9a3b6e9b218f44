package forget

import (
	"context"

	"github.com/weir-dev/weir/collector/clickhouse"
	"github.com/weir-dev/weir/collector/history/schema"
	"github.com/weir-dev/weir/collector/stream"
)

// purge is what has left the tables and may still be in files: those of parts that others have taken the place of, which
// ClickHouse keeps for some minutes, and for as long as a question reads them.
type purge struct {
	files map[string]bool
	// batch is the last number of what is hidden that is waited for.
	batch uint32
	// erasures are those of which nothing is left then.
	erasures []stream.HistoryErasure
}

// files returns the parts that are in use no more and still there.
func (f *Forgetter) files(ctx context.Context) (map[string]bool, error) {
	names, err := clickhouse.Select[string](ctx, f.client, clickhouse.Query{
		SQL: "SELECT concat(hostName(), '/', table, '/', name) AS file FROM " + f.cluster.System("parts") +
			" WHERE NOT active AND database = {database:String} AND table IN ('" + f.cluster.Local(schema.Events) + "', '" + f.cluster.Local(schema.Records) + "')",
		Parameters: map[string]any{"database": f.client.Database()},
	})
	files := map[string]bool{}
	for _, name := range names {
		files[name] = true
	}
	return files, err
}

// purgeRest waits, over several looks, until no file has anything of what was removed, then forgets which positions that was and
// notes that it is done. Until then questions leave them out: one that began before the removal may still read the files.
func (f *Forgetter) purgeRest(ctx context.Context, open []stream.HistoryErasure) error {
	if f.purge == nil {
		return f.beginPurge(ctx, open)
	}
	files, err := f.files(ctx)
	if err != nil {
		return err
	}
	for name := range f.purge.files {
		if files[name] {
			return nil
		}
	}
	if err := f.reconsider(ctx); err != nil || f.purge == nil {
		f.unfinished = true
		return err
	}
	if err := f.mutate(ctx, schema.Erased, "DELETE WHERE batch <= "+listed([]uint32{f.purge.batch})); err != nil {
		return err
	}
	done := f.purge.erasures
	f.purge = nil
	return f.notePurged(ctx, done)
}

// reconsider waits for nothing any more where rows are there again of what was removed: they leave further files.
func (f *Forgetter) reconsider(ctx context.Context) error {
	if f.purge == nil {
		return nil
	}
	for _, table := range []string{schema.Records, schema.Events} {
		left, err := f.count(ctx, table, "at IN (SELECT at FROM erased WHERE batch <= "+listed([]uint32{f.purge.batch})+")")
		if err != nil {
			return err
		}
		if left > 0 {
			f.purge = nil
			return nil
		}
	}
	return nil
}

// beginPurge begins to wait where there is something to wait for.
func (f *Forgetter) beginPurge(ctx context.Context, open []stream.HistoryErasure) error {
	var erasures []stream.HistoryErasure
	for _, one := range open {
		if one.Hidden && !one.Follow {
			erasures = append(erasures, one)
		}
	}
	if f.batch == 0 && len(erasures) == 0 && !f.leftover {
		return nil
	}
	hidden, err := clickhouse.One[uint64](ctx, f.client, clickhouse.Query{SQL: "SELECT count() FROM erased"})
	if err != nil {
		return err
	}
	f.leftover = hidden > 0
	if hidden == 0 {
		f.batch = 0
		return f.notePurged(ctx, erasures)
	}
	if err := f.number(ctx); err != nil {
		return err
	}
	files, err := f.files(ctx)
	if err != nil {
		return err
	}
	f.purge = &purge{files, f.batch, erasures}
	f.batch++
	return nil
}

func (f *Forgetter) notePurged(ctx context.Context, done []stream.HistoryErasure) error {
	notes := make([]stream.HistoryNote, 0, len(done))
	for _, one := range done {
		notes = append(notes, stream.HistoryNote{ID: one.ID, Ledgered: one.Ledgered, Step: stream.HistoryPurged})
	}
	return f.note(ctx, notes)
}
