package forget

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weir-dev/weir/collector/analytics"
	"github.com/weir-dev/weir/collector/clickhouse"
	"github.com/weir-dev/weir/collector/history/schema"
	"github.com/weir-dev/weir/collector/stream"
)

const (
	// visitorsAtOnce is how many visitors' rows are read by one statement, changesAtOnce how many rows one changes.
	visitorsAtOnce, changesAtOnce = 1000, 10_000
	// positionBytes is about how long a statement is for each position in it, changeBytes for each row that it changes.
	positionBytes, changeBytes = 21, 512
	// mutationLook is how often it is looked whether a change of a table is done.
	mutationLook = time.Second
)

// changesAtOnce is how many rows one statement changes.
func (f *Forgetter) changesAtOnce() int { return f.cluster.MostNamed(changesAtOnce, changeBytes) }

// errMutation says that a change of a table fails again and again.
var errMutation = errors.New("ClickHouse cannot finish a change of a table that is under way")

// number finds out the number of what is hidden now.
func (f *Forgetter) number(ctx context.Context) error {
	if f.batch > 0 {
		return nil
	}
	last, err := clickhouse.One[uint32](ctx, f.client, clickhouse.Query{SQL: "SELECT max(batch) FROM erased"})
	f.batch = last + 1
	if err != nil {
		f.batch = 0
	}
	return err
}

// hiddenPositions gives what is hidden to a function, some positions at a time, in order.
func (f *Forgetter) hiddenPositions(ctx context.Context, to func([]uint64) error) error {
	for after := uint64(0); ; {
		positions, err := clickhouse.Select[uint64](ctx, f.client, clickhouse.Query{
			SQL:        "SELECT DISTINCT at FROM erased WHERE at > {after:UInt64} ORDER BY at LIMIT {limit:UInt64}",
			Parameters: map[string]any{"after": after, "limit": f.cluster.MostNamed(positionsAtOnce, positionBytes)},
		})
		if err != nil || len(positions) == 0 {
			return err
		}
		if err := to(positions); err != nil {
			return err
		}
		after = positions[len(positions)-1]
	}
}

// correct has what is left of the visitors of hidden rows come from where it would come from without these, and know of no hidden
// row before it. Where there is such a thing it begins to write it, and it is to be called again.
func (f *Forgetter) correct(ctx context.Context) error {
	var changed []originRow
	err := f.hiddenPositions(ctx, func(positions []uint64) error {
		visitors, err := clickhouse.Select[uint64](ctx, f.client, clickhouse.Query{
			SQL:      "SELECT DISTINCT visitor FROM events WHERE at IN (" + listed(positions) + ") AND visitor != 0",
			Settings: unlogged(),
		})
		if err != nil {
			return err
		}
		for some := range slices.Chunk(visitors, visitorsAtOnce) {
			if len(changed) < f.changesAtOnce() {
				if changed, err = f.corrections(ctx, some, changed); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	if f.uncorrected = len(changed) > 0; f.uncorrected {
		f.begin(func() error { return f.setOrigins(ctx, changed) }, func() {})
	}
	return nil
}

// originRow is what tells where an event comes from.
type originRow struct {
	Visitor   uint64 `ch:"visitor"`
	At        uint64 `ch:"at"`
	Touch     string `ch:"touch"`
	Origin    string `ch:"origin"`
	OriginAge uint32 `ch:"origin_age"`
	Since     uint32 `ch:"since"`
	Gone      uint8  `ch:"gone"`
}

// origins follows rows of visitors in order.
type origins struct {
	visitor uint64
	// latest is the latest touch that stays, gone are those that do not; here is when the visitor's rows are that stay.
	latest *originRow
	gone   map[touched]bool
	here   map[int64]bool
}

// touched is a touch as a row has it that comes from it.
type touched struct {
	ms   int64
	text string
}

// next returns the row as it shall be, where that is not as it is. A row that does not come from a touch that goes keeps where it
// comes from: the table may have lost that by age.
func (o *origins) next(row originRow) (originRow, bool) {
	if row.Visitor != o.visitor {
		*o = origins{visitor: row.Visitor, gone: map[touched]bool{}, here: map[int64]bool{}}
	}
	ms := stream.Position(row.At).Milliseconds()
	if row.Gone == 1 {
		if row.Touch != "" {
			o.gone[touched{ms, row.Touch}] = true
		}
		return row, false
	}
	before := row
	if row.Since > 0 && !o.here[ms-int64(row.Since)+1] {
		row.Since = 0
	}
	o.here[ms] = true
	if row.Touch != "" {
		o.latest = &before
	} else if row.Origin != "" && o.gone[touched{ms - int64(row.OriginAge), row.Origin}] {
		row.Origin, row.OriginAge = "", 0
		if o.latest != nil {
			if age := ms - stream.Position(o.latest.At).Milliseconds(); age <= analytics.TouchLookback.Milliseconds() {
				row.Origin, row.OriginAge = o.latest.Touch, uint32(age)
			}
		}
	}
	return row, row != before
}

// corrections appends the rows of some visitors as they shall be, until there are enough for a statement.
func (f *Forgetter) corrections(ctx context.Context, visitors []uint64, changed []originRow) ([]originRow, error) {
	var follow origins
	rows := clickhouse.Rows[originRow](ctx, f.client, clickhouse.Query{
		SQL: "SELECT visitor, at, toString(touch) AS touch, toString(origin) AS origin, origin_age, since, at IN (SELECT at FROM erased) AS gone FROM events WHERE visitor IN (" +
			listed(visitors) + ") ORDER BY visitor, at",
		Settings: unlogged(),
	})
	for row, err := range rows {
		if err != nil {
			return nil, err
		}
		if row, differs := follow.next(row); differs {
			changed = append(changed, row)
		}
		if len(changed) == f.changesAtOnce() {
			break
		}
	}
	return changed, nil
}

// setOrigins writes where some rows come from.
func (f *Forgetter) setOrigins(ctx context.Context, changed []originRow) error {
	positions, ages, sinces := make([]uint64, len(changed)), make([]uint32, len(changed)), make([]uint32, len(changed))
	origins := make([]string, len(changed))
	for i := range changed {
		positions[i], ages[i], sinces[i] = changed[i].At, changed[i].OriginAge, changed[i].Since
		origins[i] = quoted(changed[i].Origin)
	}
	texts := "[" + strings.Join(origins, ",") + "]"
	at := listed(positions)
	return f.mutate(ctx, schema.Events, "UPDATE origin = transform(at, ["+at+"], "+texts+", toString(origin)), "+
		"origin_age = toUInt32(transform(at, ["+at+"], ["+listed(ages)+"], origin_age)), "+
		"since = toUInt32(transform(at, ["+at+"], ["+listed(sinces)+"], since)) WHERE at IN ("+at+")")
}

// remove removes what is hidden from the tables.
func (f *Forgetter) remove(ctx context.Context) error {
	return f.hiddenPositions(ctx, func(positions []uint64) error {
		// Records first: without its event a record says of nobody that it is to go.
		for _, table := range []string{schema.Records, schema.Events} {
			condition := "at IN (" + listed(positions) + ")"
			left, err := f.count(ctx, table, condition)
			if err != nil {
				return err
			}
			if left == 0 {
				continue
			}
			if err := f.mutate(ctx, table, "DELETE WHERE "+condition); err != nil {
				return err
			}
		}
		return nil
	})
}

// mutate changes a table and waits until that is done. One that is under way already, as whoever was killed has left it, is waited
// for before.
func (f *Forgetter) mutate(ctx context.Context, table, change string) error {
	if err := f.idle(ctx, table); err != nil {
		return err
	}
	settings := unlogged()
	settings["mutations_sync"] = 2
	if err := f.client.Exec(ctx, clickhouse.Query{SQL: f.cluster.Alter(table) + " " + change, Settings: settings}); err != nil {
		return fmt.Errorf("change table %s: %w", table, err)
	}
	return nil
}

// idle waits until no change of a table is under way.
func (f *Forgetter) idle(ctx context.Context, table string) error {
	type underWay struct {
		Number uint64 `ch:"number"`
		Failed uint64 `ch:"failed"`
	}
	for {
		now, err := clickhouse.One[underWay](ctx, f.client, clickhouse.Query{
			SQL: "SELECT count() AS number, countIf(latest_fail_reason != '') AS failed FROM " + f.cluster.System("mutations") +
				" WHERE NOT is_done AND database = {database:String} AND table = {table:String}",
			Parameters: map[string]any{"database": f.client.Database(), "table": f.cluster.Local(table)},
		})
		if err != nil || now.Number == 0 {
			return err
		}
		if now.Failed > 0 {
			return errMutation
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(mutationLook):
		}
	}
}
