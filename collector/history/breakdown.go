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
	groups, err := e.groups(ctx, newBreakdown(m, q, e.currency))
	if err != nil {
		return analytics.Breakdown{}, err
	}
	for i := range groups {
		result.Groups = append(result.Groups, groups[i].group(q.By, e.currency, whole.Events))
	}
	result.Others = othersOf(groups)
	result.CompleteFrom, err = e.completeFrom(ctx)
	return result, err
}

// breakdown is the SQL of an answer.
type breakdown struct {
	query analytics.BreakdownQuery
	// figures are added up by label as [figuresSQL] does, labelled the events with label and who.
	figures, labelled string
	parameters        map[string]any
}

func newBreakdown(m moment, q analytics.BreakdownQuery, currency string) *breakdown {
	kept, parameters := m.filterSQL(q.Filter, q.Range)
	maps.Copy(parameters, m.bounds(q.Range))
	parameters["class"], parameters["currency"], parameters["limit"] = int(event.Human), currency, q.Limit
	b := &breakdown{query: q, parameters: parameters}
	if q.By == analytics.ByProduct {
		b.figures, b.labelled = productsSQL(kept)
		return b
	}
	if _, isTouch := touchParts[q.By]; kept != everything || isTouch && !m.touchesAreKnown(q.Range) { // of which nothing is prepared
		quarters(parameters, 0, 0, false)
	}
	label := labelSQL(q.By, m.originIn(q.Range))
	b.figures, b.labelled = figuresSQL(label, kept), labelledSQL(label, kept)
	return b
}

// groupRow is a group of those that come first, with what there is of all groups.
type groupRow struct {
	Name       string `ch:"group"`
	Events     int64  `ch:"rows"`
	Purchases  int64  `ch:"purchases"`
	AddToCarts int64  `ch:"add_to_carts"`
	Pageviews  int64  `ch:"pageviews"`
	Refunds    int64  `ch:"refunds"`
	Visitors   uint64 `ch:"visitors"`
	Buyers     uint64 `ch:"buyers_count"`
	// Quantity is signed: pieces of purchases less those of refunds.
	Quantity big.Int `ch:"quantity"`
	// Bought and Refunded are the money of purchases and refunds, Revenue what they come to in the property's currency.
	Bought   currencySums `ch:"bought"`
	Refunded currencySums `ch:"refunded"`
	Revenue  big.Int      `ch:"earned"`

	Groups       uint64  `ch:"all_groups"`
	AllEvents    int64   `ch:"all_rows"`
	AllPurchases int64   `ch:"all_purchases"`
	AllRevenue   big.Int `ch:"all_earned"`
}

// othersOf takes the groups together that the first ones leave; nil where they leave none.
func othersOf(groups []groupRow) *analytics.OtherGroups {
	if len(groups) == 0 || int(groups[0].Groups) == len(groups) {
		return nil
	}
	all := &groups[0]
	events, purchases, revenue := all.AllEvents, all.AllPurchases, new(big.Int).Set(&all.AllRevenue)
	for i := range groups {
		events, purchases = events-groups[i].Events, purchases-groups[i].Purchases
		revenue.Sub(revenue, &groups[i].Revenue)
	}
	return &analytics.OtherGroups{Groups: int(all.Groups) - len(groups), Events: int(events), Purchases: int(purchases), Revenue: event.SumOf(revenue)}
}

// group returns the figures of a group of a dimension, of events of which there are a number in all.
func (g *groupRow) group(by analytics.Dimension, currency string, all int) analytics.Group {
	counted := analytics.Counted{
		Events: int(g.Events), Purchases: int(g.Purchases), AddToCarts: int(g.AddToCarts), Pageviews: int(g.Pageviews), Refunds: int(g.Refunds),
		Visitors: int(g.Visitors), Buyers: int(g.Buyers), Bought: g.Bought.money(), Refunded: g.Refunded.money(),
	}
	name := g.Name
	if _, isTouch := touchParts[by]; isTouch {
		name = rows.PlainPart(name)
	}
	return analytics.Group{
		Name: name, Totals: counted.Totals(currency), Quantity: event.SumOf(&g.Quantity), Share: analytics.RateOf(g.Events, int64(all)),
	}
}

// money returns the sums with how many values they have.
func (s *currencySums) money() (list []analytics.Money) {
	for i, code := range s.Currencies {
		list = append(list, analytics.Money{Currency: code, Count: int(s.Counts[i]), Total: event.SumOf(&s.Totals[i])})
	}
	return list
}

// productsSQL is [figuresSQL] and [labelledSQL] by product: an event that has products is in the group of each, and each has an amount
// and a quantity of its own.
func productsSQL(kept string) (figures, labelled string) {
	parted := "(SELECT name, currency, part.1 AS label, part.2 AS value, part.3 AS quantity, at, who AS visitor FROM (SELECT name, currency, at, " +
		visitorSQL + " AS who, arrayJoin(if(empty(products.id), [tuple('" + none + "', value, toInt64(0))], " +
		"arrayMap((id, amount, quantity) -> tuple(toString(id), amount, quantity), products.id, products.amount, products.quantity))) AS part " +
		"FROM events WHERE " + ofClass + " AND " + inRange + " AND " + kept + "))"
	return "SELECT label, name, currency, " + sums + ", " + times + ", " + buyersNow + " AS buyers, sum(toInt128(quantity)) AS pieces FROM " + parted + " GROUP BY label, name, currency",
		"SELECT label, visitor AS who FROM " + parted
}

// measures are what groups are ordered by, as SQL.
var measures = map[analytics.Measure]string{
	analytics.OrderUniqueVisitors: "visitors", analytics.OrderPurchases: "purchases", analytics.OrderRevenue: "earned",
}

// groupSQL is the name of a label's group.
func (b *breakdown) groupSQL() string {
	if b.query.By == analytics.ByProduct {
		return "label"
	}
	return "if(label = '', '" + lacking(b.query.By) + "', toString(label))"
}

// countsVisitors says whether the visitors of all groups are counted before the first ones are known, where these are ordered by that
// or are all. It takes a set of visitors for each group, of which there may be a million.
func (b *breakdown) countsVisitors() bool {
	return b.query.Order == analytics.OrderUniqueVisitors || b.query.Limit == 0
}

// String returns the statement. The largest group comes first, equal ones by name; the parts of touches are in the order of what they
// stand for.
func (b *breakdown) String() string {
	measure, known := measures[b.query.Order]
	if !known {
		measure = "rows"
	}
	const sold = "name IN ('purchase', 'refund')"
	ofMoney := func(name string) string {
		return "sumMapIf([toString(currency)], [total], [amounts], name = '" + name + "' AND currency != '' AND amounts > 0)"
	}
	groups := "SELECT " + b.groupSQL() + ` AS group, toInt64(sum(events)) AS rows, toInt64(sumIf(events, name = 'purchase')) AS purchases,
		toInt64(sumIf(events, name = 'add_to_cart')) AS add_to_carts, toInt64(sumIf(events, name = 'pageview')) AS pageviews,
		toInt64(sumIf(events, name = 'refund')) AS refunds, uniqExactArray(buyers) AS buyers_count,
		sumIf(if(name = 'refund', -pieces, pieces), ` + sold + `) AS quantity, sumIf(if(name = 'refund', -total, total), ` + sold + ` AND currency = {currency:String}) AS earned,
		` + ofMoney("purchase") + ` AS bought, ` + ofMoney("refund") + ` AS refunded FROM (` + b.figures + `) GROUP BY group`
	visitors := "toUInt64(0) AS visitors"
	if b.countsVisitors() {
		visitors = "visitors"
		groups = "SELECT * FROM (" + groups + ") AS f LEFT JOIN (SELECT " + b.groupSQL() + " AS group, uniqExactIf(who, who != 0) AS visitors FROM (" +
			b.labelled + ") GROUP BY group) AS v USING group"
	}
	limit := ""
	if b.query.Limit > 0 {
		limit = " LIMIT {limit:UInt64}"
	}
	return `SELECT group, rows, purchases, add_to_carts, pageviews, refunds, ` + visitors + `, buyers_count, quantity, bought, refunded, earned,
		count() OVER () AS all_groups, sum(rows) OVER () AS all_rows, sum(purchases) OVER () AS all_purchases, sum(earned) OVER () AS all_earned
	FROM (` + groups + `) ORDER BY ` + measure + " DESC, group" + limit
}

// groups returns the groups of an answer in their order.
func (e *Engine) groups(ctx context.Context, b *breakdown) ([]groupRow, error) {
	groups, err := all[groupRow](ctx, e, clickhouse.Query{SQL: b.String(), Parameters: b.parameters})
	if err != nil || b.countsVisitors() {
		return groups, err
	}
	labels := make([][]string, len(groups))
	for i := range groups {
		labels[i] = []string{groups[i].Name}
		if b.query.By != analytics.ByProduct && groups[i].Name == lacking(b.query.By) {
			labels[i] = append(labels[i], "")
		}
	}
	visitors, err := e.visitorsOf(ctx, b.labelled, labels, b.parameters)
	for i := range visitors {
		groups[i].Visitors = visitors[i]
	}
	return groups, err
}
