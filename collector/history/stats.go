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
	Name     string       `ch:"event"`
	Count    int64        `ch:"rows"`
	Visitors uint64       `ch:"visitors"`
	First    uint64       `ch:"first"`
	Last     uint64       `ch:"newest"`
	Values   currencySums `ch:"sums"`
	// All is how many events there are of all names. Left is how many names follow the place that was asked for, LeftCount how
	// many events these have.
	All       int64  `ch:"all_rows"`
	Left      uint64 `ch:"left_names"`
	LeftCount int64  `ch:"left_rows"`
}

// currencySums are sums side by side with their currencies, in the order of these, and with how many values they have: without
// that ClickHouse leaves out the sums that are zero.
type currencySums struct {
	Currencies []string
	Totals     []big.Int
	Counts     []uint64
}

// namesAtOnce is how many names a statement lists at most, so that its address does not get too long for servers.
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
	return all[nameCounts](ctx, e, clickhouse.Query{
		SQL: `SELECT event, rows, visitors, first, newest, sums, all_rows, left_names, left_rows FROM (
			SELECT *, sum(rows) OVER () AS all_rows, countIf(` + follows + `) OVER () AS left_names, sumIf(rows, ` + follows + `) OVER () AS left_rows
			FROM (SELECT event, toInt64(count()) AS rows, uniqExactIf(who, who != 0) AS visitors, min(at) AS first, max(at) AS newest,
				sumMapIf([money], [toInt128(assumeNotNull(amount))], [toUInt64(1)], money != '' AND isNotNull(amount)) AS sums
				FROM (SELECT toString(name) AS event, at, toString(currency) AS money, value AS amount, ` + visitorSQL + ` AS who
					FROM events WHERE class = {class:UInt8} AND ` + inRange + `) GROUP BY event))
			WHERE ` + follows + ` ORDER BY rows DESC, event LIMIT {limit:UInt64}`,
		Parameters: parameters,
	})
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
		if err := e.tally(ctx, m, "toString(name)", inRange+" AND has({names:Array(String)}, name)", parameters, found); err != nil {
			return nil, err
		}
	}
	return found, nil
}
