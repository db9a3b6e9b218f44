package history

import (
	"context"
	"maps"
	"math/big"

	"github.com/weir-dev/weir/collector/analytics"
	"github.com/weir-dev/weir/collector/analytics/columns"
	"github.com/weir-dev/weir/collector/clickhouse"
	"github.com/weir-dev/weir/collector/event"
)

// Summary returns the KPIs of those events of a range that a filter keeps.
func (e *Engine) Summary(ctx context.Context, r analytics.Range, filter analytics.Filter) (analytics.Summary, error) {
	m, err := e.now(ctx)
	if err != nil {
		return analytics.Summary{}, err
	}
	counted, classes, err := e.count(ctx, m, r, filter)
	if err != nil {
		return analytics.Summary{}, err
	}
	complete, err := e.completeFrom(ctx)
	return analytics.Summary{Totals: counted.Totals(e.currency), EventsByClass: classes, CompleteFrom: complete}, err
}

// Series returns the figures of those events that a filter keeps of each of the ranges, in the order given.
func (e *Engine) Series(ctx context.Context, ranges []analytics.Range, filter analytics.Filter) (analytics.Series, error) {
	m, err := e.now(ctx)
	if err != nil {
		return analytics.Series{}, err
	}
	series := analytics.Series{Totals: make([]analytics.Totals, len(ranges))}
	for i, r := range ranges {
		counted, _, err := e.count(ctx, m, r, filter)
		if err != nil {
			return analytics.Series{}, err
		}
		series.Totals[i] = counted.Totals(e.currency)
	}
	series.CompleteFrom, err = e.completeFrom(ctx)
	return series, err
}

// counts are the numbers of a range in one row.
type counts struct {
	// Classes counts the events of each class.
	Classes    []uint64 `ch:"classes"`
	Purchases  uint64   `ch:"purchases"`
	AddToCarts uint64   `ch:"add_to_carts"`
	Pageviews  uint64   `ch:"pageviews"`
	Refunds    uint64   `ch:"refunds"`
	Visitors   uint64   `ch:"visitors"`
	Buyers     uint64   `ch:"buyers"`
}

// countsSQL counts; the class 0 is that of humans.
const countsSQL = `SELECT
	[countIf(class = 0), countIf(class = 1), countIf(class = 2), countIf(class = 3)] AS classes,
	countIf(class = 0 AND name = 'purchase') AS purchases, countIf(class = 0 AND name = 'add_to_cart') AS add_to_carts,
	countIf(class = 0 AND name = 'pageview') AS pageviews, countIf(class = 0 AND name = 'refund') AS refunds,
	uniqExactIf(who, who != 0) AS visitors, uniqExactIf(who, who != 0 AND name = 'purchase') AS buyers
FROM (SELECT class, name, ` + visitorSQL + ` AS who FROM events WHERE ` + inRange + ` AND `

// money is what purchases or refunds of one currency add up to.
type money struct {
	Refund   uint8   `ch:"refund"`
	Currency string  `ch:"currency"`
	Count    uint64  `ch:"count"`
	Total    big.Int `ch:"total"`
}

const moneySQL = `SELECT toUInt8(name = 'refund') AS refund, toString(currency) AS currency, count() AS count, sum(toInt128(assumeNotNull(value))) AS total
FROM events WHERE class = 0 AND name IN ('purchase', 'refund') AND currency != '' AND isNotNull(value) AND ` + inRange + ` AND `

// count counts those events of a range that a filter keeps.
func (e *Engine) count(ctx context.Context, m moment, r analytics.Range, filter analytics.Filter) (analytics.Counted, columns.ClassCounts, error) {
	kept, parameters := filterSQL(filter)
	maps.Copy(parameters, m.bounds(r))
	found, err := one[counts](ctx, e, clickhouse.Query{SQL: countsSQL + kept + ")", Parameters: parameters})
	if err != nil {
		return analytics.Counted{}, columns.ClassCounts{}, err
	}
	sums, err := all[money](ctx, e, clickhouse.Query{SQL: moneySQL + kept + " GROUP BY refund, currency", Parameters: parameters})
	if err != nil {
		return analytics.Counted{}, columns.ClassCounts{}, err
	}
	var classes columns.ClassCounts
	for class := range classes {
		classes[class] = int(found.Classes[class])
	}
	counted := analytics.Counted{
		Events: classes[event.Human], Purchases: int(found.Purchases), AddToCarts: int(found.AddToCarts), Pageviews: int(found.Pageviews),
		Refunds: int(found.Refunds), Visitors: int(found.Visitors), Buyers: int(found.Buyers),
	}
	for i := range sums {
		sum := &sums[i]
		of := &counted.Bought
		if sum.Refund == 1 {
			of = &counted.Refunded
		}
		*of = append(*of, analytics.Money{Currency: sum.Currency, Count: int(sum.Count), Total: event.SumOf(&sum.Total)})
	}
	return counted, classes, nil
}
