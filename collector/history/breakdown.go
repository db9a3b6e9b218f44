package history

import (
	"cmp"
	"context"
	"maps"
	"math/big"
	"slices"
	"strings"

	"github.com/weir-dev/weir/collector/analytics"
	"github.com/weir-dev/weir/collector/clickhouse"
	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/history/rows"
)

// Breakdown returns the figures of each value of a dimension.
func (e *Engine) Breakdown(ctx context.Context, q analytics.BreakdownQuery) (analytics.Breakdown, error) {
	m, err := e.now(ctx)
	if err != nil {
		return analytics.Breakdown{}, err
	}
	whole, _, err := e.count(ctx, m, q.Range, q.Filter)
	if err != nil {
		return analytics.Breakdown{}, err
	}
	groups, err := e.groups(ctx, m, q)
	if err != nil {
		return analytics.Breakdown{}, err
	}
	result := analytics.Breakdown{Totals: whole.Totals(e.currency)}
	for _, g := range groups {
		result.Groups = append(result.Groups, analytics.Group{
			Name: g.name, Totals: g.counted.Totals(e.currency), Quantity: g.quantity, Share: analytics.RateOf(int64(g.counted.Events), int64(whole.Events)),
		})
	}
	sortGroups(result.Groups, q.Order)
	if q.Limit > 0 && len(result.Groups) > q.Limit {
		result.Others = othersOf(result.Groups[q.Limit:])
		result.Groups = result.Groups[:q.Limit:q.Limit]
	}
	result.CompleteFrom, err = e.completeFrom(ctx)
	return result, err
}

// sortGroups puts groups in order: the largest first, equal ones by name.
func sortGroups(groups []analytics.Group, by analytics.Measure) {
	slices.SortFunc(groups, func(a, b analytics.Group) int {
		var order int
		switch by {
		case analytics.OrderUniqueVisitors:
			order = cmp.Compare(b.UniqueVisitors, a.UniqueVisitors)
		case analytics.OrderPurchases:
			order = cmp.Compare(b.Purchases, a.Purchases)
		case analytics.OrderRevenue:
			order = b.Revenue.Compare(a.Revenue)
		default:
			order = cmp.Compare(b.Events, a.Events)
		}
		return cmp.Or(order, strings.Compare(a.Name, b.Name))
	})
}

// othersOf takes groups together.
func othersOf(groups []analytics.Group) *analytics.OtherGroups {
	others := &analytics.OtherGroups{Groups: len(groups)}
	for i := range groups {
		others.Events += groups[i].Events
		others.Purchases += groups[i].Purchases
		others.Revenue.Merge(groups[i].Revenue)
	}
	return others
}

// group is what was counted of one.
type group struct {
	name     string
	counted  analytics.Counted
	quantity event.Sum
}

// groupCounts are a group's numbers in one row.
type groupCounts struct {
	Name       string `ch:"group"`
	Events     uint64 `ch:"events"`
	Purchases  uint64 `ch:"purchases"`
	AddToCarts uint64 `ch:"add_to_carts"`
	Pageviews  uint64 `ch:"pageviews"`
	Refunds    uint64 `ch:"refunds"`
	Visitors   uint64 `ch:"visitors"`
	Buyers     uint64 `ch:"buyers"`
	// Quantity is signed: pieces of purchases less those of refunds.
	Quantity big.Int `ch:"pieces"`
}

// groupMoney is the money of a group.
type groupMoney struct {
	Name string `ch:"group"`
	money
}

// partedSQL is a row for each group that an event is in, with the group's part of the event's money. An event that has products
// is in the group of each, and each has an amount and a quantity of its own.
func partedSQL(by analytics.Dimension, kept string) string {
	from := " FROM events WHERE class = 0 AND " + inRange + " AND " + kept
	if by != analytics.ByProduct {
		return "(SELECT name, toString(currency) AS money, value AS amount, toInt64(0) AS quantity, " + visitorSQL + " AS who, " + groupSQL(by) + " AS group" + from + ")"
	}
	return "(SELECT name, toString(currency) AS money, part.1 AS group, part.2 AS amount, part.3 AS quantity, who FROM (SELECT name, currency, " +
		visitorSQL + " AS who, arrayJoin(if(empty(products.id), [tuple('" + none + "', value, toInt64(0))], " +
		"arrayMap((id, amount, quantity) -> tuple(toString(id), amount, quantity), products.id, products.amount, products.quantity))) AS part" + from + "))"
}

// groups counts the groups of a breakdown.
func (e *Engine) groups(ctx context.Context, m moment, q analytics.BreakdownQuery) (map[string]*group, error) {
	kept, parameters := filterSQL(q.Filter)
	maps.Copy(parameters, m.bounds(q.Range))
	parted := partedSQL(q.By, kept)
	found, err := all[groupCounts](ctx, e, clickhouse.Query{
		SQL: `SELECT group, count() AS events, countIf(name = 'purchase') AS purchases, countIf(name = 'add_to_cart') AS add_to_carts,
			countIf(name = 'pageview') AS pageviews, countIf(name = 'refund') AS refunds, uniqExactIf(who, who != 0) AS visitors,
			uniqExactIf(who, who != 0 AND name = 'purchase') AS buyers,
			sum(toInt128(multiIf(name = 'purchase', quantity, name = 'refund', -quantity, 0))) AS pieces FROM ` + parted + ` GROUP BY group`,
		Parameters: parameters,
	})
	if err != nil {
		return nil, err
	}
	groups := make(map[string]*group, len(found))
	for i := range found {
		g := &found[i]
		name := g.Name
		if _, isTouch := touchParts[q.By]; isTouch {
			name = rows.PlainPart(name)
		}
		groups[g.Name] = &group{name: name, quantity: event.SumOf(&g.Quantity), counted: analytics.Counted{
			Events: int(g.Events), Purchases: int(g.Purchases), AddToCarts: int(g.AddToCarts), Pageviews: int(g.Pageviews), Refunds: int(g.Refunds),
			Visitors: int(g.Visitors), Buyers: int(g.Buyers),
		}}
	}
	sums, err := all[groupMoney](ctx, e, clickhouse.Query{
		SQL: `SELECT group, toUInt8(name = 'refund') AS refund, money AS currency, count() AS count, sum(toInt128(assumeNotNull(amount))) AS total FROM ` + parted +
			` WHERE name IN ('purchase', 'refund') AND money != '' AND isNotNull(amount) GROUP BY group, refund, money`,
		Parameters: parameters,
	})
	if err != nil {
		return nil, err
	}
	for i := range sums {
		sums[i].addTo(&groups[sums[i].Name].counted)
	}
	return groups, nil
}
