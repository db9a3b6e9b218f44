package history

import (
	"context"
	"maps"
	"math/big"

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
	result := analytics.Breakdown{Totals: whole.Totals(e.currency)}
	ranks, err := e.ranks(ctx, m, q)
	if err != nil {
		return analytics.Breakdown{}, err
	}
	groups, err := e.groups(ctx, m, q, ranks)
	if err != nil {
		return analytics.Breakdown{}, err
	}
	for i := range ranks {
		g, found := groups[ranks[i].Name]
		if !found { // its events were erased meanwhile
			continue
		}
		result.Groups = append(result.Groups, g.group(q.By, e.currency, whole.Events))
	}
	result.Others = othersOf(ranks)
	result.CompleteFrom, err = e.completeFrom(ctx)
	return result, err
}

// rank is a group of those that come first, with what there is of all groups.
type rank struct {
	Name      string  `ch:"group"`
	Events    int64   `ch:"rows"`
	Purchases int64   `ch:"purchases"`
	Revenue   big.Int `ch:"earned"`

	Groups       uint64  `ch:"all_groups"`
	AllEvents    int64   `ch:"all_rows"`
	AllPurchases int64   `ch:"all_purchases"`
	AllRevenue   big.Int `ch:"all_earned"`
}

// othersOf takes the groups together that the first ones leave; nil where they leave none.
func othersOf(ranks []rank) *analytics.OtherGroups {
	if len(ranks) == 0 || int(ranks[0].Groups) == len(ranks) {
		return nil
	}
	all := &ranks[0]
	events, purchases, revenue := all.AllEvents, all.AllPurchases, new(big.Int).Set(&all.AllRevenue)
	for i := range ranks {
		events, purchases = events-ranks[i].Events, purchases-ranks[i].Purchases
		revenue.Sub(revenue, &ranks[i].Revenue)
	}
	return &analytics.OtherGroups{Groups: int(all.Groups) - len(ranks), Events: int(events), Purchases: int(purchases), Revenue: event.SumOf(revenue)}
}

// measures are what groups are ordered by, as SQL.
var measures = map[analytics.Measure]string{
	analytics.OrderUniqueVisitors: "uniqExactIf(who, who != 0)", analytics.OrderPurchases: "purchases", analytics.OrderRevenue: "earned",
}

// rankSQL is the groups with what they are ordered by. There may be a million, so that what it takes of each is little.
func rankSQL(q analytics.BreakdownQuery, parted string) string {
	measure, known := measures[q.Order]
	if !known {
		measure = "rows"
	}
	return `SELECT group, toInt64(count()) AS rows, toInt64(countIf(name = 'purchase')) AS purchases,
		sum(toInt128(multiIf(money != {currency:String} OR isNull(amount), 0, name = 'purchase', assumeNotNull(amount), name = 'refund', -assumeNotNull(amount), 0))) AS earned,
		` + measure + ` AS measure FROM ` + parted + ` GROUP BY group`
}

// inOrder puts the largest group first, equal ones by name. The parts of touches are in the order of what they stand for.
const inOrder = " ORDER BY measure DESC, group"

// ranks returns the groups of an answer in their order.
func (e *Engine) ranks(ctx context.Context, m moment, q analytics.BreakdownQuery) ([]rank, error) {
	parted, parameters := e.parted(m, q)
	limit := ""
	if q.Limit > 0 {
		limit = " LIMIT {limit:UInt64}"
	}
	return all[rank](ctx, e, clickhouse.Query{
		SQL: `SELECT group, rows, purchases, earned, all_groups, all_rows, all_purchases, all_earned FROM (
			SELECT *, count() OVER () AS all_groups, sum(rows) OVER () AS all_rows, sum(purchases) OVER () AS all_purchases, sum(earned) OVER () AS all_earned
			FROM (` + rankSQL(q, parted) + `))` + inOrder + limit,
		Parameters: parameters,
	})
}

// parted are the events of a breakdown by group, and the parameters of that, of [rankSQL] and of a limit.
func (e *Engine) parted(m moment, q analytics.BreakdownQuery) (sql string, parameters map[string]any) {
	kept, parameters := filterSQL(q.Filter)
	maps.Copy(parameters, m.bounds(q.Range))
	parameters["currency"], parameters["limit"] = e.currency, q.Limit
	return partedSQL(q.By, kept), parameters
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
	// Bought and Refunded are the money of purchases and refunds.
	Bought   currencySums `ch:"bought"`
	Refunded currencySums `ch:"refunded"`
}

// group returns the figures of a group of a dimension, of events of which there are a number in all.
func (g *groupCounts) group(by analytics.Dimension, currency string, all int) analytics.Group {
	counted := analytics.Counted{
		Events: int(g.Events), Purchases: int(g.Purchases), AddToCarts: int(g.AddToCarts), Pageviews: int(g.Pageviews), Refunds: int(g.Refunds),
		Visitors: int(g.Visitors), Buyers: int(g.Buyers), Bought: g.Bought.money(), Refunded: g.Refunded.money(),
	}
	name := g.Name
	if _, isTouch := touchParts[by]; isTouch {
		name = rows.PlainPart(name)
	}
	return analytics.Group{
		Name: name, Totals: counted.Totals(currency), Quantity: event.SumOf(&g.Quantity), Share: analytics.RateOf(int64(g.Events), int64(all)),
	}
}

// money returns the sums with how many values they have.
func (s *currencySums) money() (list []analytics.Money) {
	for i, code := range s.Currencies {
		list = append(list, analytics.Money{Currency: code, Count: int(s.Counts[i]), Total: event.SumOf(&s.Totals[i])})
	}
	return list
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

// groupsAtOnce is how many groups a statement lists at most, for each row is compared with them one by one, and groupBytes how long their
// names may be together: a parameter has room for four times as much (see [clickhouse.Query]), as where all has to be escaped.
const (
	groupsAtOnce = 200
	groupBytes   = 32 << 10
)

// groups counts those groups of a breakdown that are in its answer.
func (e *Engine) groups(ctx context.Context, m moment, q analytics.BreakdownQuery, ranks []rank) (map[string]*groupCounts, error) {
	if len(ranks) == 0 {
		return nil, nil
	}
	parted, parameters := e.parted(m, q)
	names, bytes := make([]string, len(ranks)), 0
	for i := range ranks {
		names[i] = ranks[i].Name
		bytes += len(names[i])
	}
	shown := "1"
	switch {
	case int(ranks[0].Groups) == len(ranks):
	case len(names) <= groupsAtOnce && bytes <= groupBytes:
		shown, parameters["groups"] = "has({groups:Array(String)}, group)", names
	default:
		shown = "group IN (SELECT group FROM (" + rankSQL(q, parted) + ")" + inOrder + " LIMIT {limit:UInt64})"
	}
	const sum = "sumMapIf([money], [toInt128(assumeNotNull(amount))], [toUInt64(1)], money != '' AND isNotNull(amount) AND name = "
	found, err := all[groupCounts](ctx, e, clickhouse.Query{
		SQL: `SELECT group, count() AS events, countIf(name = 'purchase') AS purchases, countIf(name = 'add_to_cart') AS add_to_carts,
			countIf(name = 'pageview') AS pageviews, countIf(name = 'refund') AS refunds, uniqExactIf(who, who != 0) AS visitors,
			uniqExactIf(who, who != 0 AND name = 'purchase') AS buyers,
			sum(toInt128(multiIf(name = 'purchase', quantity, name = 'refund', -quantity, 0))) AS pieces,
			` + sum + `'purchase') AS bought, ` + sum + `'refund') AS refunded FROM ` + parted + ` WHERE ` + shown + ` GROUP BY group`,
		Parameters: parameters,
	})
	groups := make(map[string]*groupCounts, len(found))
	for i := range found {
		groups[found[i].Name] = &found[i]
	}
	return groups, err
}
