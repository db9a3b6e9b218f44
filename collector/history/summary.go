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
	counted, _, err := e.countEach(ctx, m, ranges, filter)
	if err != nil {
		return analytics.Series{}, err
	}
	for i := range counted {
		series.Totals[i] = counted[i].Totals(e.currency)
	}
	series.CompleteFrom, err = e.completeFrom(ctx)
	return series, err
}

// counts are the numbers of a bucket in one row.
type counts struct {
	Bucket uint64 `ch:"bucket"`
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
func countsSQL(bucket, kept string) string {
	return `SELECT bucket,
	[countIf(class = 0), countIf(class = 1), countIf(class = 2), countIf(class = 3)] AS classes,
	countIf(class = 0 AND name = 'purchase') AS purchases, countIf(class = 0 AND name = 'add_to_cart') AS add_to_carts,
	countIf(class = 0 AND name = 'pageview') AS pageviews, countIf(class = 0 AND name = 'refund') AS refunds,
	uniqExactIf(who, who != 0) AS visitors, uniqExactIf(who, who != 0 AND name = 'purchase') AS buyers
FROM (SELECT ` + bucket + ` AS bucket, class, name, ` + visitorSQL + ` AS who FROM events WHERE ` + inRange + ` AND ` + kept + `) GROUP BY bucket`
}

// money is what purchases or refunds of one currency add up to.
type money struct {
	Refund   uint8   `ch:"refund"`
	Currency string  `ch:"currency"`
	Count    uint64  `ch:"count"`
	Total    big.Int `ch:"total"`
}

// addTo adds it to what was counted.
func (m *money) addTo(counted *analytics.Counted) {
	of := &counted.Bought
	if m.Refund == 1 {
		of = &counted.Refunded
	}
	*of = append(*of, analytics.Money{Currency: m.Currency, Count: int(m.Count), Total: event.SumOf(&m.Total)})
}

// bucketMoney is the money of a bucket.
type bucketMoney struct {
	Bucket uint64 `ch:"bucket"`
	money
}

func moneySQL(bucket, kept string) string {
	return `SELECT ` + bucket + ` AS bucket, toUInt8(name = 'refund') AS refund, toString(currency) AS currency,
	count() AS count, sum(toInt128(assumeNotNull(value))) AS total
FROM events WHERE class = 0 AND name IN ('purchase', 'refund') AND currency != '' AND isNotNull(value)
	AND ` + inRange + ` AND ` + kept + ` GROUP BY bucket, refund, currency`
}

// count counts those events of a range that a filter keeps.
func (e *Engine) count(ctx context.Context, m moment, r analytics.Range, filter analytics.Filter) (analytics.Counted, columns.ClassCounts, error) {
	counted, classes, err := e.countEach(ctx, m, []analytics.Range{r}, filter)
	if err != nil {
		return analytics.Counted{}, columns.ClassCounts{}, err
	}
	return counted[0], classes[0], nil
}

// countEach counts those events of each of the ranges that a filter keeps.
func (e *Engine) countEach(ctx context.Context, m moment, ranges []analytics.Range, filter analytics.Filter) ([]analytics.Counted, []columns.ClassCounts, error) {
	counted, classes := make([]analytics.Counted, len(ranges)), make([]columns.ClassCounts, len(ranges))
	for _, b := range m.bucketsOf(ranges) {
		kept, values := m.filterSQL(filter, b.span())
		var err error
		if kept == everything && !m.hidden && b.isPrepared() {
			err = e.countPrepared(ctx, m, &b, counted, classes)
		} else {
			parameters := b.parameters(m)
			maps.Copy(parameters, values)
			err = e.countRows(ctx, &b, kept, parameters, counted, classes)
		}
		if err != nil {
			return nil, nil, err
		}
	}
	return counted, classes, nil
}

// countRows counts events one by one.
func (e *Engine) countRows(ctx context.Context, b *buckets, kept string, parameters map[string]any, counted []analytics.Counted, classes []columns.ClassCounts) error {
	found, err := all[counts](ctx, e, clickhouse.Query{SQL: countsSQL(b.key("at"), kept), Parameters: parameters})
	if err != nil {
		return err
	}
	for i := range found {
		row, place := &found[i], b.places[found[i].Bucket]
		for class := range classes[place] {
			classes[place][class] = int(row.Classes[class])
		}
		counted[place] = analytics.Counted{
			Events: classes[place][event.Human], Purchases: int(row.Purchases), AddToCarts: int(row.AddToCarts), Pageviews: int(row.Pageviews),
			Refunds: int(row.Refunds), Visitors: int(row.Visitors), Buyers: int(row.Buyers),
		}
	}
	sums, err := all[bucketMoney](ctx, e, clickhouse.Query{SQL: moneySQL(b.key("at"), kept), Parameters: parameters})
	if err != nil {
		return err
	}
	for i := range sums {
		sums[i].addTo(&counted[b.places[sums[i].Bucket]])
	}
	return nil
}
