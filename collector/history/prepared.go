package history

import (
	"context"
	"maps"
	"math"
	"math/big"
	"slices"
	"strconv"

	"github.com/weir-dev/weir/collector/analytics"
	"github.com/weir-dev/weir/collector/analytics/columns"
	"github.com/weir-dev/weir/collector/clickhouse"
	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/history/schema"
)

// quarter is how many positions a quarter of an hour has, by which much is prepared.
const quarter = uint64(15*60*1000) << 20

const (
	// inQuarters keeps what is prepared of the quarters of an hour that lie in a range wholly, inEdges the rows of the rest of it.
	inQuarters = schema.Quarter + " >= {first:UInt64} AND " + schema.Quarter + " < {last:UInt64}"
	inEdges    = inRange + " AND (at < {whole:UInt64} OR at >= {rest:UInt64})"
	// quarterAt is the position at which a quarter of an hour begins.
	quarterAt = "bitShiftLeft(toUInt64(" + schema.Quarter + ") * 900000, 20)"
)

// quarters adds the parameters of [inQuarters] and [inEdges] for positions from one up to before another. Where nothing that is
// prepared may be used all rows are at the edges.
func quarters(parameters map[string]any, from, end uint64, prepared bool) {
	first, last := (from+quarter-1)/quarter, end/quarter
	whole, rest := first*quarter, last*quarter
	if !prepared || first >= last {
		first, last, whole, rest = 0, 0, math.MaxUint64, math.MaxUint64
	}
	maps.Copy(parameters, map[string]any{"first": first, "last": last, "whole": whole, "rest": rest})
}

// isPrepared says whether what is prepared tells of the buckets: all but the first begin at quarters of an hour, as those of a
// calendar do in every time zone of today.
func (b *buckets) isPrepared() bool {
	return !slices.ContainsFunc(b.begins[1:], func(at uint64) bool { return at%quarter != 0 })
}

// totalsSQL adds up events by bucket, class, name where that is one of the KPIs', and currency of purchases and refunds that have an
// amount.
func totalsSQL(b *buckets) string {
	return `SELECT bucket, class, if(name IN ('purchase', 'add_to_cart', 'pageview', 'refund'), toString(name), '') AS kind,
	if(kind IN ('purchase', 'refund') AND amounts > 0, toString(currency), '') AS money, sum(events) AS count, sum(amounts) AS sums, sum(total) AS amount
FROM (
	SELECT ` + b.key(quarterAt) + ` AS bucket, class, name, currency, ` + sums + `
	FROM events WHERE ` + inQuarters + ` GROUP BY bucket, class, name, currency
	UNION ALL
	SELECT ` + b.key("at") + ` AS bucket, class, name, currency, ` + sums + `
	FROM events WHERE ` + inEdges + ` GROUP BY bucket, class, name, currency
) GROUP BY bucket, class, kind, money`
}

// visitorsSQL counts visitors by bucket: of the quarters of an hour by what is prepared, the visitors of those events before which the
// bucket is not known to have another one of theirs.
func visitorsSQL(b *buckets) string {
	positions := strconv.FormatUint(quarter, 10)
	first := "intDiv(greatest(" + b.key(quarterAt) + ", {known:UInt64}) + " + positions + " - 1, " + positions + ")"
	return b.distinctSQL(schema.Arrivals, schema.Before+" < "+first, "visitor != 0")
}

// buyersSQL counts those who have bought by bucket.
func buyersSQL(b *buckets) string {
	return b.distinctSQL(schema.Buyers, "name = 'purchase'", "visitor != 0 AND name = 'purchase'")
}

// manyBuckets is from how many buckets on each one's visitors are gathered before they are counted: that is quicker than to have so many
// sets at a time, where a few are filled from all sides.
const manyBuckets = 8

// distinctSQL counts visitors by bucket: those that are prepared of some quarters of an hour, and those of some rows at the edges.
func (b *buckets) distinctSQL(prepared, ofQuarters, ofRows string) string {
	count, gathered := "uniqExactArray(who)", "bucket, "+schema.Quarter
	if len(b.begins) >= manyBuckets {
		count, gathered = "toUInt64(arrayUniq(groupArrayArray(who)))", "bucket"
	}
	return `SELECT bucket, ` + count + ` AS visitors FROM (
	SELECT ` + b.key(quarterAt) + ` AS bucket, ` + prepared + ` AS who FROM events WHERE ` + inQuarters + ` AND ` + ofQuarters + ` GROUP BY ` + gathered + `
	UNION ALL
	SELECT ` + b.key("at") + ` AS bucket, groupUniqArray(visitor) FROM events WHERE ` + inEdges + ` AND ` + ofRows + ` GROUP BY bucket
) GROUP BY bucket`
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

// distinctRow is how many visitors a bucket has.
type distinctRow struct {
	Bucket   uint64 `ch:"bucket"`
	Visitors uint64 `ch:"visitors"`
}

// countPrepared counts all events of buckets, by what is prepared.
func (e *Engine) countPrepared(ctx context.Context, m moment, b *buckets, counted []analytics.Counted, classes []columns.ClassCounts) error {
	parameters := b.parameters(m)
	totals, err := all[totalsRow](ctx, e, clickhouse.Query{SQL: totalsSQL(b), Parameters: parameters})
	if err != nil {
		return err
	}
	for i := range totals {
		place := b.places[totals[i].Bucket]
		totals[i].addTo(&counted[place], &classes[place])
	}
	// Of what is nobody's by now there are no visitors.
	from := max(b.begins[0], m.anonymous)
	if parameters["from"] = from; from >= b.end {
		return nil
	}
	// In the quarter of an hour in which the history begins a visitor may have been before, of which there is no row any more.
	quarters(parameters, max(from, m.first), b.end, true)
	visitors, err := all[distinctRow](ctx, e, clickhouse.Query{SQL: visitorsSQL(b), Parameters: parameters})
	if err != nil {
		return err
	}
	for _, row := range visitors {
		counted[b.places[row.Bucket]].Visitors = int(row.Visitors)
	}
	buyers, err := all[distinctRow](ctx, e, clickhouse.Query{SQL: buyersSQL(b), Parameters: parameters})
	for _, row := range buyers {
		counted[b.places[row.Bucket]].Buyers = int(row.Visitors)
	}
	return err
}
