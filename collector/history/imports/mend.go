package imports

import (
	"context"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weir-dev/weir/collector/analytics"
	"github.com/weir-dev/weir/collector/clickhouse"
	"github.com/weir-dev/weir/collector/history/rows"
	"github.com/weir-dev/weir/collector/history/schema"
)

const (
	// mostWindowed is how many rows are gone through at once where visitors are followed along their events.
	mostWindowed = 1_000_000
	// mostChanged is how many rows one mutation changes, mostDoubled how many are looked at that are there twice.
	mostChanged = 50_000
	mostDoubled = 10_000
	// positionBytes is about how long a statement is for each position in it, changeBytes for each row that it changes.
	positionBytes, changeBytes = 21, 512
)

// mend puts right what depends on more than a block: rows that a block has brought which came late, when its writer had been killed
// and another had looked before; and where visitors come from, of imported events and of later ones.
func (w *writer) mend(ctx context.Context) error {
	affected := map[int]bool{}
	for month := range w.months {
		_, end := boundsOf(month)
		for at := end.Add(-1); at.Before(end.Add(analytics.TouchLookback)); at = at.AddDate(0, 0, 1) {
			affected[monthOf(at.UnixMilli())] = true
		}
		if err := w.mendDoubled(ctx, month); err != nil {
			return fmt.Errorf("look for rows that are there twice: %w", err)
		}
	}
	for _, month := range slices.Sorted(maps.Keys(affected)) {
		if err := w.mendOrigins(ctx, month); err != nil {
			return fmt.Errorf("tell where visitors come from: %w", err)
		}
	}
	return nil
}

// boundsOf is when a month begins and ends.
func boundsOf(month int) (from, to time.Time) {
	from = time.Date(month/100, time.Month(month%100), 1, 0, 0, 0, 0, time.UTC)
	return from, from.AddDate(0, 1, 0)
}

// mendDoubled leaves of rows that are there twice one. One that is imported and there twice has the same position both times, for
// that follows from its identity. Should this break off in between, the next import of the same events adds them.
func (w *writer) mendDoubled(ctx context.Context, month int) error {
	from, to := boundsOf(month)
	for {
		doubled, err := clickhouse.Select[uint64](ctx, w.client, clickhouse.Query{
			SQL: "SELECT at FROM events WHERE at >= {from:UInt64} AND at < {to:UInt64} AND bitAnd(at, {imported:UInt64}) != 0 " +
				"GROUP BY at HAVING count() > 1 ORDER BY at LIMIT " + strconv.Itoa(w.cluster.MostNamed(mostDoubled, positionBytes)),
			Parameters: map[string]any{"from": positionOf(from.UnixMilli()), "to": positionOf(to.UnixMilli()), "imported": uint64(schema.Imported)},
		})
		if err != nil || len(doubled) == 0 {
			return err
		}
		once, err := clickhouse.Select[rows.Event](ctx, w.client, clickhouse.Query{
			SQL: "SELECT * FROM events WHERE at IN " + list(doubled) + " ORDER BY at LIMIT 1 BY at", Settings: longStatement(),
		})
		if err != nil {
			return err
		}
		if err := w.mutate(ctx, month, "DELETE", "at IN "+list(doubled)); err != nil {
			return err
		}
		if err := clickhouse.Insert(ctx, w.client, schema.Events, once, ""); err != nil {
			return err
		}
	}
}

// mutate changes rows of a month, and returns when that is done. Projections are made anew with it.
func (w *writer) mutate(ctx context.Context, month int, what, where string) error {
	settings := longStatement()
	settings["mutations_sync"] = 2
	return w.client.Exec(ctx, clickhouse.Query{
		SQL: w.cluster.Alter(schema.Events) + " " + what + " IN PARTITION " + strconv.Itoa(month) + " WHERE " + where, Settings: settings,
	})
}

// changed is a row that says something else of where its visitor comes from than the rows before it do.
type changed struct {
	At     uint64 `ch:"at"`
	Origin string `ch:"origin"`
	Age    uint32 `ch:"age"`
}

// differences are those of a month. A visitor's rows are followed from a lookback before it, in several parts where they are many.
const differences = `SELECT at, origin, age FROM (
	SELECT at, known, known_age, if(passed > {lookback:UInt64}, '', latest) AS origin, toUInt32(if(passed > {lookback:UInt64}, 0, passed)) AS age FROM (
		SELECT at, toString(events.origin) AS known, events.origin_age AS known_age,
			argMaxIf(toString(touch), at, touch != '') OVER visits AS latest,
			bitShiftRight(at, 20) - bitShiftRight(maxIf(at, touch != '') OVER visits, 20) AS passed
		FROM events
		WHERE visitor != 0 AND visitor % {parts:UInt64} = {part:UInt64} AND at >= {earlier:UInt64} AND at < {to:UInt64} AND visitor IN (
			SELECT visitor FROM events WHERE at >= {earlier:UInt64} AND at < {to:UInt64} AND bitAnd(at, {imported:UInt64}) != 0)
		WINDOW visits AS (PARTITION BY visitor ORDER BY at ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)
	) WHERE at >= {from:UInt64}
) WHERE known != origin OR known_age != age
ORDER BY at`

// mendOrigins writes anew where the visitors of a month's rows come from, of those who have imported events.
func (w *writer) mendOrigins(ctx context.Context, month int) error {
	from, to := boundsOf(month)
	parameters := map[string]any{
		"from": positionOf(from.UnixMilli()), "to": positionOf(to.UnixMilli()), "earlier": positionOf(from.Add(-analytics.TouchLookback).UnixMilli()),
		"lookback": uint64(analytics.TouchLookback.Milliseconds()), "imported": uint64(schema.Imported),
	}
	count, err := clickhouse.One[uint64](ctx, w.client, clickhouse.Query{
		SQL: "SELECT count() FROM events WHERE at >= {earlier:UInt64} AND at < {to:UInt64}", Parameters: parameters,
	})
	if err != nil || count == 0 {
		return err
	}
	parts := 1 + count/mostWindowed
	parameters["parts"] = parts
	for part := range parts {
		parameters["part"] = part
		list, err := clickhouse.Select[changed](ctx, w.client, clickhouse.Query{SQL: differences, Parameters: parameters})
		if err != nil {
			return err
		}
		for some := range slices.Chunk(list, w.cluster.MostNamed(mostChanged, changeBytes)) {
			if err := w.mutate(ctx, month, "UPDATE "+assignments(some), "at IN "+listOf(some)); err != nil {
				return err
			}
			w.report.Origins += int64(len(some))
		}
	}
	return nil
}

func listOf(some []changed) string {
	positions := make([]uint64, len(some))
	for i := range some {
		positions[i] = some[i].At
	}
	return list(positions)
}

// assignments are those of a mutation that changes rows. Touches are whatever somebody wrote behind utm_source: as hexadecimal
// digits they are nothing but text, and a mutation is read again later, without its parameters.
func assignments(some []changed) string {
	var at, place, age, texts strings.Builder
	places := map[string]int{}
	for i, row := range some {
		number, known := places[row.Origin]
		if !known {
			number = len(places) + 1
			places[row.Origin] = number
			if number > 1 {
				texts.WriteByte(',')
			}
			texts.WriteString("unhex('" + hex.EncodeToString([]byte(row.Origin)) + "')")
		}
		if i > 0 {
			at.WriteByte(',')
			place.WriteByte(',')
			age.WriteByte(',')
		}
		at.WriteString(strconv.FormatUint(row.At, 10))
		place.WriteString(strconv.Itoa(number))
		age.WriteString(strconv.FormatUint(uint64(row.Age), 10))
	}
	return fmt.Sprintf("origin = arrayElement([%s], transform(at, [%s], [%s], 1)), origin_age = toUInt32(transform(at, [%s], [%s], 0))",
		texts.String(), at.String(), place.String(), at.String(), age.String())
}
