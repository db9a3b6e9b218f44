package analytics

import (
	"cmp"
	"math/big"
	"slices"
	"time"

	"github.com/weir-dev/weir/collector/analytics/columns"
	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/stream"
)

// keep returns the events that a filter keeps.
func (o *oracle) keep(events []*oracleEvent, filter Filter) []*oracleEvent {
	var kept []*oracleEvent
	for _, e := range events {
		isKept := true
		for by, values := range filter {
			found := slices.ContainsFunc(values, func(value string) bool {
				return slices.Contains(valuesOf(e, by), value)
			})
			isKept = isKept && (found || len(values) == 0)
		}
		if isKept {
			kept = append(kept, e)
		}
	}
	return kept
}

// trace notes the touch that each event comes from. It is called before what asks for filters and dimensions.
func (o *oracle) trace() {
	histories := map[string][]*oracleEvent{}
	for _, e := range o.events {
		if e.visitor != "" && e.Class == event.Human {
			histories[e.visitor] = append(histories[e.visitor], e)
		}
	}
	origins := map[stream.Position]*columns.Touch{}
	for _, history := range histories {
		for i, e := range history {
			for _, before := range history[:i+1] {
				if before.touch != nil && !before.at().Before(e.at().Add(-30*24*time.Hour)) {
					origins[e.position] = before.touch
				}
			}
		}
	}
	for i := range o.events {
		o.events[i].origin = origins[o.events[i].position]
	}
}

// valuesOf returns what an event has in a dimension.
func valuesOf(e *oracleEvent, by Dimension) []string {
	var name string
	origin := e.origin
	switch {
	case by == ByEvent:
		return []string{e.Name}
	case by == ByPage:
		name = e.page
	case by == ByProduct:
		ids := sortedKeys(oracleProducts(e))
		if len(ids) == 0 {
			return []string{"(none)"}
		}
		return ids
	case origin == nil:
		return []string{map[Dimension]string{"channel": "Direct", "source": "(direct)", "medium": "(none)", "campaign": "(none)"}[by]}
	default:
		name = map[Dimension]string{"channel": origin.Channel, "source": origin.Source, "medium": origin.Medium, "campaign": origin.Campaign}[by]
	}
	if name == "" {
		name = "(none)"
	}
	return []string{name}
}

// oracleProduct is a product of one event.
type oracleProduct struct {
	quantity event.Amount
	// amount is nil where the event does not say.
	amount *event.Amount
}

func oracleProducts(e *oracleEvent) map[string]oracleProduct {
	products := map[string]oracleProduct{}
	for _, item := range e.Contents {
		if item.ID == "" {
			continue
		}
		quantity, amount := event.Amount(10_000), event.Amount(0)
		if item.Quantity != nil {
			quantity = *item.Quantity
		}
		if item.Price != nil {
			amount = event.Amount(roundRat(new(big.Rat).SetFrac64(int64(*item.Price)*int64(quantity), 10_000)))
		}
		if before, known := products[item.ID]; known {
			quantity, amount = quantity+before.quantity, amount+*before.amount
		}
		products[item.ID] = oracleProduct{quantity, &amount}
	}
	if len(products) == 0 && e.ContentID != "" {
		products[e.ContentID] = oracleProduct{10_000, e.Value}
	}
	return products
}

func (o *oracle) breakdown(q BreakdownQuery) Breakdown {
	kept := o.keep(o.within(q.Range), q.Filter)
	named, pieces := map[string][]*oracleEvent{}, map[string]*big.Int{}
	for _, e := range kept {
		for _, name := range valuesOf(e, q.By) {
			if pieces[name] == nil {
				pieces[name] = new(big.Int)
			}
			of := *e
			if product, isOne := oracleProducts(e)[name]; isOne && q.By == ByProduct {
				of.Value = product.amount
				switch e.Name {
				case "purchase":
					pieces[name].Add(pieces[name], big.NewInt(int64(product.quantity)))
				case "refund":
					pieces[name].Sub(pieces[name], big.NewInt(int64(product.quantity)))
				}
			}
			named[name] = append(named[name], &of)
		}
	}
	b := Breakdown{Totals: o.totals(kept)}
	for _, name := range sortedKeys(named) {
		b.Groups = append(b.Groups, Group{
			Name: name, Totals: o.totals(named[name]), Quantity: event.SumOf(pieces[name]), Share: ratio(len(named[name]), len(kept)),
		})
	}
	slices.SortStableFunc(b.Groups, func(a, b Group) int {
		switch q.Order {
		case OrderUniqueVisitors:
			return cmp.Compare(b.UniqueVisitors, a.UniqueVisitors)
		case OrderPurchases:
			return cmp.Compare(b.Purchases, a.Purchases)
		case OrderRevenue:
			return b.Revenue.Big().Cmp(a.Revenue.Big())
		default:
			return cmp.Compare(b.Events, a.Events)
		}
	})
	if q.Limit > 0 && len(b.Groups) > q.Limit {
		b.Others = &OtherGroups{Groups: len(b.Groups) - q.Limit}
		for _, g := range b.Groups[q.Limit:] {
			b.Others.Events += g.Events
			b.Others.Purchases += g.Purchases
			b.Others.Revenue.Merge(g.Revenue)
		}
		b.Groups = b.Groups[:q.Limit]
	}
	return b
}
