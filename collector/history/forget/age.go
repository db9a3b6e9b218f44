package forget

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/weir-dev/weir/collector/clickhouse"
	"github.com/weir-dev/weir/collector/history/schema"
	"github.com/weir-dev/weir/collector/stream"
)

// age sees to what has become too old, once a day: limits are the beginnings of days.
func (f *Forgetter) age(ctx context.Context) error {
	limits, err := f.limits(ctx)
	if err != nil {
		return err
	}
	if !f.witness.trusts(ctx, limits.Now) {
		return nil
	}
	limits = Limits{Oldest: schema.DayOf(limits.Oldest), Anonymous: schema.DayOf(limits.Anonymous)}
	if f.aged != nil && *f.aged == limits || f.job != nil {
		return nil
	}
	f.aged = &limits
	f.begin(func() error { return errors.Join(f.drop(ctx, limits.Oldest), f.anonymize(ctx, limits.Anonymous)) }, func() { f.aged = nil })
	return nil
}

// partition is a month of a table.
type partition struct {
	Table string `ch:"table"`
	Month string `ch:"partition"`
}

// drop removes what is older than is kept: months that are over as a whole, without reading them. Of the month that is partly over
// the days go once a day: that writes one month's rows again, where waiting for its end would keep them a month longer than was
// promised.
func (f *Forgetter) drop(ctx context.Context, oldest stream.Position) error {
	if oldest == 0 {
		return nil
	}
	condition := "at < " + strconv.FormatUint(uint64(oldest), 10)
	events, err := f.count(ctx, schema.Events, condition)
	if err != nil {
		return err
	}
	records, err := f.count(ctx, schema.Records, condition)
	if err != nil || events == 0 && records == 0 {
		return err
	}
	if events > 0 {
		if err := f.noteGap(ctx, oldest); err != nil {
			return err
		}
	}
	month := schema.MonthOf(oldest)
	partitions, err := clickhouse.Select[partition](ctx, f.client, clickhouse.Query{
		SQL: "SELECT DISTINCT table, partition FROM " + f.cluster.System("parts") + " WHERE active AND database = {database:String} AND table IN ('" +
			f.cluster.Local(schema.Events) + "', '" + f.cluster.Local(schema.Records) + "')",
		Parameters: map[string]any{"database": f.client.Database()},
	})
	if err != nil {
		return err
	}
	for _, one := range partitions {
		number, err := strconv.Atoi(one.Month)
		if err != nil || number >= month {
			continue
		}
		if err := f.client.Exec(ctx, clickhouse.Query{SQL: fmt.Sprintf("%s DROP PARTITION %d", f.cluster.Alter(f.cluster.Whole(one.Table)), number)}); err != nil {
			return fmt.Errorf("drop a month of table %s: %w", one.Table, err)
		}
	}
	if err := f.mutateWhere(ctx, schema.Events, condition, fmt.Sprintf("DELETE IN PARTITION %d WHERE ", month)); err != nil {
		return err
	}
	// A record is written after its event, and may lie in a later month.
	return f.mutateWhere(ctx, schema.Records, condition, "DELETE WHERE ")
}

// noteGap has answers say from when on they are complete, before anything goes.
func (f *Forgetter) noteGap(ctx context.Context, oldest stream.Position) error {
	type gap struct {
		Begin uint64 `ch:"begin"`
		End   uint64 `ch:"end"`
	}
	before := uint64(oldest) - 1
	if err := clickhouse.Insert(ctx, f.client, schema.Gaps, []gap{{0, before}}, ""); err != nil {
		return err
	}
	// Those that end at 0 are notes of imports.
	return f.mutateWhere(ctx, schema.Gaps, "end > 0 AND end < "+strconv.FormatUint(before, 10), "DELETE WHERE ")
}

// count counts the rows of a table that a condition is true of.
func (f *Forgetter) count(ctx context.Context, table, condition string) (uint64, error) {
	return clickhouse.One[uint64](ctx, f.client, clickhouse.Query{SQL: "SELECT count() FROM " + table + " WHERE " + condition, Settings: unlogged()})
}

// mutateWhere changes the rows of a table that a condition is true of, where there are any.
func (f *Forgetter) mutateWhere(ctx context.Context, table, condition, change string) error {
	rows, err := f.count(ctx, table, condition)
	if err != nil || rows == 0 {
		return err
	}
	return f.mutate(ctx, table, change+condition)
}

// somebodys is the condition that an event tells whose it is, or where that one came from.
const somebodys = "(visitor != 0 OR client_id != '' OR identity != '' OR notEmpty(identifiers) OR origin != '')"

// anonymize makes nobody's the events before a position: in the tables too, as answers take them already.
func (f *Forgetter) anonymize(ctx context.Context, before stream.Position) error {
	if before == 0 {
		return nil
	}
	condition := "at < " + strconv.FormatUint(uint64(before), 10) + " AND " + somebodys
	months, err := clickhouse.Select[string](ctx, f.client, clickhouse.Query{SQL: "SELECT DISTINCT _partition_id FROM events WHERE " + condition})
	if err != nil {
		return err
	}
	for _, month := range months {
		number, err := strconv.Atoi(month)
		if err != nil {
			return fmt.Errorf("partition of table %s: %w", schema.Events, err)
		}
		err = f.mutate(ctx, schema.Events, fmt.Sprintf("UPDATE visitor = 0, client_id = '', identity = '', identifiers = [], origin = '', origin_age = 0 IN PARTITION %d WHERE %s", number, condition))
		if err != nil {
			return err
		}
	}
	return nil
}
