package history

import (
	"context"
	"math"
	"math/big"
	"slices"

	"github.com/weir-dev/weir/collector/analytics"
	"github.com/weir-dev/weir/collector/analytics/columns"
	"github.com/weir-dev/weir/collector/clickhouse"
	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/history/schema"
)

// quarter is how many positions a quarter of an hour has, by which totals are prepared.
const quarter = uint64(15*60*1000) << 20

// isPrepared says whether what is prepared tells of the buckets: all but the first begin at quarters of an hour, as those of a
// calendar do in every time zone of today. The rest of the first quarter and of the last one is counted row by row.
func (b *buckets) isPrepared() bool {
	return !slices.ContainsFunc(b.begins[1:], func(at uint64) bool { return at%quarter != 0 })
}

// quarters adds to the parameters of buckets which quarters of an hour lie in them wholly, and between which positions these lie.
func (b *buckets) quarters(parameters map[string]any) {
	first, last := (b.begins[0]+quarter-1)/quarter, b.end/quarter
	parameters["first"], parameters["last"] = first, last
	parameters["whole"], parameters["rest"] = first*quarter, last*quarter
	if first >= last {
		parameters["whole"], parameters["rest"] = uint64(math.MaxUint64), uint64(math.MaxUint64)
	}
}

// totalsSQL adds up events by bucket, class, name where that is one of the KPIs', and currency of purchases and refunds that have an
// amount: of the quarters of an hour from what is prepared.
func totalsSQL(bucket string) string {
	return `SELECT ` + bucket + ` AS bucket, class, if(name IN ('purchase', 'add_to_cart', 'pageview', 'refund'), toString(name), '') AS kind,
	if(kind IN ('purchase', 'refund') AND amounts > 0, toString(currency), '') AS money, sum(events) AS count, sum(amounts) AS sums, sum(total) AS amount
FROM (
	SELECT bitShiftLeft(toUInt64(quarter) * 900000, 20) AS at, class, name, currency, events, amounts, total FROM (
		SELECT ` + schema.Quarter + ` AS quarter, class, name, currency, count() AS events, count(value) AS amounts, sum(toInt128(ifNull(value, 0))) AS total
		FROM events WHERE quarter >= {first:UInt64} AND quarter < {last:UInt64} GROUP BY quarter, class, name, currency)
	UNION ALL
	SELECT at, class, name, currency, toUInt64(1), toUInt64(isNotNull(value)), toInt128(ifNull(value, 0)) FROM events
	WHERE ` + inRange + ` AND (at < {whole:UInt64} OR at >= {rest:UInt64})
) GROUP BY bucket, class, kind, money`
}

// visitorsSQL counts visitors and buyers by bucket. Of a visitor's events only those are looked at before which the bucket is not
// known to have another one, which are few.
func visitorsSQL(bucket string) string {
	const isFirst = "(since = 0 OR bitShiftRight(at, 20) + 1 < since + greatest(bitShiftRight(bucket, 20), bitShiftRight({known:UInt64} + 1048575, 20)))"
	return `SELECT bucket, uniqExactIf(visitor, ` + isFirst + `) AS visitors, uniqExactIf(visitor, name = 'purchase') AS buyers
FROM (SELECT ` + bucket + ` AS bucket, at, since, name, visitor FROM events WHERE ` + inRange + ` AND at >= {anonymous:UInt64} AND visitor != 0)
WHERE ` + isFirst + ` OR name = 'purchase' GROUP BY bucket`
}

// totalsRow is what was added up of events of a kind.
type totalsRow struct {
	Bucket   uint64 `ch:"bucket"`
	Class    uint8  `ch:"class"`
	Kind     string `ch:"kind"`
	Currency string `ch:"money"`
	Count    uint64 `ch:"count"`
	// Sums is how many of them have an amount, and Total what these add up to.
	Sums  uint64  `ch:"sums"`
	Total big.Int `ch:"amount"`
}

// addTo adds it to what was counted of its bucket.
func (r *totalsRow) addTo(counted *analytics.Counted, classes *columns.ClassCounts) {
	count := int(r.Count)
	classes[r.Class] += count
	if event.Class(r.Class) != event.Human {
		return
	}
	counted.Events += count
	bought := analytics.Money{Currency: r.Currency, Count: int(r.Sums), Total: event.SumOf(&r.Total)}
	switch r.Kind {
	case "purchase":
		if counted.Purchases += count; r.Currency != "" {
			counted.Bought = append(counted.Bought, bought)
		}
	case "refund":
		if counted.Refunds += count; r.Currency != "" {
			counted.Refunded = append(counted.Refunded, bought)
		}
	case "add_to_cart":
		counted.AddToCarts += count
	case "pageview":
		counted.Pageviews += count
	}
}

// visitorsRow is how many visitors a bucket has.
type visitorsRow struct {
	Bucket   uint64 `ch:"bucket"`
	Visitors uint64 `ch:"visitors"`
	Buyers   uint64 `ch:"buyers"`
}

// countPrepared counts all events of buckets, by what is prepared.
func (e *Engine) countPrepared(ctx context.Context, b *buckets, parameters map[string]any, counted []analytics.Counted, classes []columns.ClassCounts) error {
	b.quarters(parameters)
	totals, err := all[totalsRow](ctx, e, clickhouse.Query{SQL: totalsSQL(b.key()), Parameters: parameters})
	if err != nil {
		return err
	}
	for i := range totals {
		place := b.places[totals[i].Bucket]
		totals[i].addTo(&counted[place], &classes[place])
	}
	visitors, err := all[visitorsRow](ctx, e, clickhouse.Query{SQL: visitorsSQL(b.key()), Parameters: parameters})
	for _, row := range visitors {
		place := b.places[row.Bucket]
		counted[place].Visitors, counted[place].Buyers = int(row.Visitors), int(row.Buyers)
	}
	return err
}
