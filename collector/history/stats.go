package history

import (
	"context"
	"maps"
	"math/big"
	"slices"

	"github.com/weir-dev/weir/collector/analytics"
	"github.com/weir-dev/weir/collector/clickhouse"
	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/stream"
)

// nameCounts are an event name's numbers, and how many events and names there are beside.
type nameCounts struct {
	Name   string       `ch:"event"`
	Count  int64        `ch:"rows"`
	First  uint64       `ch:"oldest"`
	Last   uint64       `ch:"latest"`
	Values currencySums `ch:"sums"`
	// All is how many events there are of all names. Left is how many names follow the place that was asked for, LeftCount how
	// many events these have.
	All       int64  `ch:"all_rows"`
	Left      uint64 `ch:"left_names"`
	LeftCount int64  `ch:"left_rows"`

	// Visitors is counted when the names of a page are known.
	Visitors uint64
}

// currencySums are sums side by side with their currencies, in the order of these, and with how many values they have: without
// that ClickHouse leaves out the sums that are zero.
type currencySums struct {
	Currencies []string
	Totals     []big.Int
	Counts     []uint64
}

// namesAtOnce is how many names a statement lists at most: each row is compared with them, and a parameter has room for them.
const namesAtOnce = 200

// EventStats returns a page of the numbers of the event names of a range, the largest count first, ties by name.
func (e *Engine) EventStats(ctx context.Context, q analytics.StatsQuery) (analytics.Stats, error) {
	m, err := e.now(ctx)
	if err != nil {
		return analytics.Stats{}, err
	}
	page, err := e.statsPage(ctx, m, q)
	if err != nil {
		return analytics.Stats{}, err
	}
	deliveries, err := e.deliveriesByName(ctx, m, q, page)
	if err != nil {
		return analytics.Stats{}, err
	}
	var result analytics.Stats
	for i := range page {
		stats := page[i].stats(e.currency)
		stats.Deliveries = deliveries[stats.Event].stats(nil)
		result.Events = append(result.Events, stats)
	}
	if len(page) > 0 {
		result.OtherNames, result.OtherCount = int(page[0].Left)-len(page), int(page[0].LeftCount)
	}
	for i := range page {
		result.OtherCount -= int(page[i].Count)
	}
	if result.OtherNames > 0 {
		last := &page[len(page)-1]
		result.Next = analytics.StatsPlace{Count: int(last.Count), Event: last.Name}
	}
	result.CompleteFrom, err = e.completeFrom(ctx)
	return result, err
}

// stats returns the numbers as they are answered, but those of deliveries.
func (c *nameCounts) stats(currency string) analytics.EventStats {
	stats := analytics.EventStats{
		Event: c.Name, Count: int(c.Count), UniqueVisitors: int(c.Visitors), Share: analytics.RateOf(c.Count, c.All),
		FirstReceivedAt: stream.Position(c.First).Time(), LastReceivedAt: stream.Position(c.Last).Time(),
	}
	for i, code := range c.Values.Currencies {
		sum := analytics.CurrencySum{Currency: code, Sum: event.SumOf(&c.Values.Totals[i])}
		stats.ValueByCurrency = append(stats.ValueByCurrency, sum)
		if code == currency {
			stats.Value = sum.Sum
		}
	}
	return stats
}

// statsPage returns the names of a page, in their order.
func (e *Engine) statsPage(ctx context.Context, m moment, q analytics.StatsQuery) ([]nameCounts, error) {
	parameters := m.bounds(q.Range)
	maps.Copy(parameters, map[string]any{"class": int(q.Class), "limit": q.Limit})
	follows := "1"
	if q.After != (analytics.StatsPlace{}) {
		parameters["count"], parameters["after"] = q.After.Count, q.After.Event
		follows = "(rows < {count:Int64} OR rows = {count:Int64} AND event > {after:String})"
	}
	page, err := all[nameCounts](ctx, e, clickhouse.Query{
		SQL: `SELECT event, rows, oldest, latest, sums, all_rows, left_names, left_rows FROM (
			SELECT *, sum(rows) OVER () AS all_rows, countIf(` + follows + `) OVER () AS left_names, sumIf(rows, ` + follows + `) OVER () AS left_rows
			FROM (SELECT toString(label) AS event, toInt64(sum(events)) AS rows, min(first) AS oldest, max(newest) AS latest,
				sumMapIf([toString(currency)], [total], [amounts], currency != '' AND amounts > 0) AS sums
				FROM (` + figuresSQL("name", everything) + `) GROUP BY event))
			WHERE ` + follows + ` ORDER BY rows DESC, event LIMIT {limit:UInt64}`,
		Parameters: parameters,
	})
	if err != nil {
		return nil, err
	}
	names := make([][]string, len(page))
	for i := range page {
		names[i] = []string{page[i].Name}
	}
	visitors, err := e.visitorsOf(ctx, labelledSQL("name", everything), names, parameters)
	for i := range visitors {
		page[i].Visitors = visitors[i]
	}
	return page, err
}

// deliveriesByName counts the deliveries of a page's names.
func (e *Engine) deliveriesByName(ctx context.Context, m moment, q analytics.StatsQuery, page []nameCounts) (map[string]platformTallies, error) {
	found := map[string]platformTallies{}
	for listed := range slices.Chunk(page, namesAtOnce) {
		names := make([]string, len(listed))
		for i := range listed {
			names[i] = listed[i].Name
		}
		parameters := m.bounds(q.Range)
		parameters["names"], parameters["class"] = names, int(q.Class)
		if err := e.tally(ctx, m, func(string) string { return "toString(name)" }, "has({names:Array(String)}, name)", parameters, found); err != nil {
			return nil, err
		}
	}
	return found, nil
}
