package analytics

import (
	"cmp"
	"fmt"
	"math/big"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/weir-dev/weir/collector/analytics/columns"
	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/stream"
)

// oracle computes every number by the definitions alone, slowly and in the plainest way: lists, loops and
// rational numbers. It shares nothing with the view but the types of its answers.
type oracle struct {
	currency string
	events   []*oracleEvent
	// records holds each event's records in the order in which they came.
	records map[stream.Position][]stream.Record
}

// oracleEvent is an event with what the definitions derive from it.
type oracleEvent struct {
	event.Event
	position stream.Position
	visitor  string
	touch    *columns.Touch
	page     string
	// origin is set by [oracle.trace].
	origin *columns.Touch
	// anonymous says that it is nobody's because it is old.
	anonymous bool
}

func (e *oracleEvent) at() time.Time { return e.position.Time() }

// within returns the events that count.
func (o *oracle) within(r Range) []*oracleEvent { return o.of(event.Human, r) }

func (o *oracle) of(class event.Class, r Range) []*oracleEvent {
	var found []*oracleEvent
	for _, e := range o.events {
		if e.Class == class && !e.at().Before(r.From) && e.at().Before(r.To) {
			found = append(found, e)
		}
	}
	return found
}

func (o *oracle) forget(before stream.Position) {
	o.events = slices.DeleteFunc(o.events, func(e *oracleEvent) bool { return e.position < before })
}

// erase takes events out as though there had never been any.
func (o *oracle) erase(positions []stream.Position) {
	o.events = slices.DeleteFunc(o.events, func(e *oracleEvent) bool { return slices.Contains(positions, e.position) })
}

// anonymize makes nobody's the events before a position.
func (o *oracle) anonymize(before stream.Position) {
	for _, e := range o.events {
		if e.position < before {
			e.visitor, e.ClientID, e.anonymous = "", "", true
		}
	}
}

func countNamed(events []*oracleEvent, name string) int {
	count := 0
	for _, e := range events {
		if e.Name == name {
			count++
		}
	}
	return count
}

func visitorsOf(events []*oracleEvent, name string) int {
	seen := map[string]bool{}
	for _, e := range events {
		if e.visitor != "" && (name == "" || e.Name == name) {
			seen[e.visitor] = true
		}
	}
	return len(seen)
}

func (o *oracle) money(events []*oracleEvent, name, currency string) *big.Int {
	sum := new(big.Int)
	for _, e := range events {
		if e.Name == name && e.Value != nil && e.Currency == currency {
			sum.Add(sum, big.NewInt(int64(*e.Value)))
		}
	}
	return sum
}

// roundRat rounds half to even.
func roundRat(r *big.Rat) int64 {
	floor := new(big.Int).Div(r.Num(), r.Denom())
	rest := new(big.Rat).Sub(r, new(big.Rat).SetInt(floor))
	half := rest.Cmp(big.NewRat(1, 2))
	if half > 0 || half == 0 && floor.Bit(0) == 1 {
		floor.Add(floor, big.NewInt(1))
	}
	return floor.Int64()
}

func ratio(part, whole int) Rate {
	if whole == 0 {
		return 0
	}
	return Rate(roundRat(big.NewRat(int64(part)*10_000, int64(whole))))
}

func (o *oracle) summary(r Range, filter Filter) Summary {
	s := Summary{Totals: o.totals(o.keep(o.within(r), filter))}
	for class := range s.EventsByClass {
		s.EventsByClass[class] = len(o.keep(o.of(event.Class(class), r), filter))
	}
	return s
}

// totals are the figures of some events.
func (o *oracle) totals(events []*oracleEvent) Totals {
	currencies := map[string]bool{}
	for _, e := range events {
		if e.Name == "purchase" || e.Name == "refund" {
			currencies[e.Currency] = true
		}
	}
	gross, refunded := o.money(events, "purchase", o.currency), o.money(events, "refund", o.currency)
	t := Totals{
		Events:    len(events),
		Purchases: countNamed(events, "purchase"), AddToCarts: countNamed(events, "add_to_cart"),
		Pageviews: countNamed(events, "pageview"), Refunds: countNamed(events, "refund"),
		GrossRevenue: event.SumOf(gross), Refunded: event.SumOf(refunded), Revenue: event.SumOf(new(big.Int).Sub(gross, refunded)),
		UniqueVisitors: visitorsOf(events, ""), ConversionRate: ratio(visitorsOf(events, "purchase"), visitorsOf(events, "")),
	}
	paid := 0
	for _, e := range events {
		if e.Name == "purchase" && e.Value != nil && e.Currency == o.currency {
			paid++
		}
	}
	if unit := int64(tenThousandths(o.decimals())); paid > 0 {
		t.AverageOrderValue = event.Amount(unit * roundRat(new(big.Rat).SetFrac(gross, big.NewInt(unit*int64(paid)))))
	}
	for _, currency := range sortedKeys(currencies) {
		gross, refunded := o.money(events, "purchase", currency), o.money(events, "refund", currency)
		t.RevenueByCurrency = append(t.RevenueByCurrency, CurrencyRevenue{
			currency, event.SumOf(gross), event.SumOf(refunded), event.SumOf(new(big.Int).Sub(gross, refunded)),
		})
	}
	return t
}

// decimals are how many a price has in the oracle's currency.
func (o *oracle) decimals() int {
	return map[string]int{"EUR": 2, "USD": 2, "JPY": 0, "KWD": 3, "CLF": 4}[o.currency]
}

// tenThousandths are those of the last of some decimals.
func tenThousandths(decimals int) int { return []int{10_000, 1000, 100, 10, 1}[decimals] }

func sortedKeys[V any](m map[string]V) []string {
	var keys []string
	for key := range m {
		keys = append(keys, key)
	}
	sort.Strings(keys)
	return keys
}

func (o *oracle) series(ranges []Range, filter Filter) []Totals {
	result := []Totals{}
	for _, r := range ranges {
		result = append(result, o.summary(r, filter).Totals)
	}
	return result
}

// delivery folds an event's records for one platform in the order in which they came.
func (o *oracle) delivery(e *oracleEvent, platform string) Delivery {
	d := Delivery{Platform: platform, UpdatedAt: e.at()}
	recorded := false
	for _, r := range o.records[e.position] {
		if r.Platform != platform {
			continue
		}
		isLater := r.At.After(d.UpdatedAt)
		holds := !recorded
		switch {
		case !recorded:
		case d.Status == stream.Delivered:
		case r.Status == stream.Delivered:
			holds = true
		case d.Status.Final() && r.Status.Final(), !d.Status.Final() && !r.Status.Final():
			holds = isLater || r.At.Equal(d.UpdatedAt)
		case r.Status.Final():
			holds = true
		default:
			holds = isLater
		}
		if !holds {
			continue
		}
		recorded = true
		d = Delivery{Platform: platform, Status: r.Status, Attempts: r.Attempts, UpdatedAt: r.At, Reason: r.Reason}
		if r.Attempts > 0 {
			latency := r.Latency
			d.Latency = &latency
		}
	}
	return d
}

func (o *oracle) eventStats(class event.Class, r Range) []EventStats {
	events := o.of(class, r)
	named := map[string][]*oracleEvent{}
	for _, e := range events {
		named[e.Name] = append(named[e.Name], e)
	}
	var result []EventStats
	for _, name := range sortedKeys(named) {
		own := named[name]
		s := EventStats{
			Event: name, Count: len(own), UniqueVisitors: visitorsOf(own, ""), Value: event.SumOf(o.money(own, name, o.currency)),
			Share: ratio(len(own), len(events)), FirstReceivedAt: own[0].at(), LastReceivedAt: own[len(own)-1].at(),
		}
		currencies := map[string]bool{}
		for _, e := range own {
			if e.Value != nil && e.Currency != "" {
				currencies[e.Currency] = true
			}
		}
		for _, currency := range sortedKeys(currencies) {
			s.ValueByCurrency = append(s.ValueByCurrency, CurrencySum{currency, event.SumOf(o.money(own, name, currency))})
		}
		deliveries := map[string][]Delivery{}
		for _, e := range own {
			for _, platform := range e.Platforms {
				deliveries[platform] = append(deliveries[platform], o.delivery(e, platform))
			}
		}
		s.Deliveries = statsByPlatform(deliveries)
		result = append(result, s)
	}
	slices.SortStableFunc(result, func(a, b EventStats) int { return b.Count - a.Count })
	return result
}

func (o *oracle) attribution(q AttributionQuery) Attribution {
	var a Attribution
	byCurrency := map[string]bool{}
	conversions := slices.DeleteFunc(o.keep(o.within(q.Range), q.Filter), func(e *oracleEvent) bool { return e.Name != q.ConversionEvent })
	credit, revenue := map[string]*big.Rat{}, map[string]*big.Rat{}
	histories := map[string][]*oracleEvent{}
	for _, e := range o.events {
		if e.Class != event.Human {
			continue
		}
		histories[e.visitor] = append(histories[e.visitor], e)
	}
	for _, c := range conversions {
		value := new(big.Rat)
		if c.Value != nil && c.Currency != "" {
			byCurrency[c.Currency] = true
			if c.Currency == o.currency {
				value.SetInt64(int64(*c.Value))
			}
		}
		names := o.credited(c, histories[c.visitor], q)
		for _, name := range names {
			if credit[name] == nil {
				credit[name], revenue[name] = new(big.Rat), new(big.Rat)
			}
			part := big.NewRat(1, int64(len(names)))
			credit[name].Add(credit[name], part)
			revenue[name].Add(revenue[name], new(big.Rat).Mul(part, value))
		}
	}
	a.Conversions = len(conversions)
	a.Revenue = event.SumOf(o.money(conversions, q.ConversionEvent, o.currency))
	for _, currency := range sortedKeys(byCurrency) {
		a.RevenueByCurrency = append(a.RevenueByCurrency, CurrencySum{currency, event.SumOf(o.money(conversions, q.ConversionEvent, currency))})
	}
	decimals := o.decimals()
	for new(big.Int).Mod(a.Revenue.Big(), big.NewInt(int64(tenThousandths(decimals)))).Sign() != 0 {
		decimals++
	}
	unit := int64(tenThousandths(decimals))
	credits, money := largestRemainder(credit, big.NewRat(1, 1_000_000)), largestRemainder(revenue, big.NewRat(unit, 1))
	for _, name := range sortedKeys(credit) {
		a.Results = append(a.Results, AttributionResult{
			Name: name, Conversions: Credit(credits[name]), Revenue: event.SumOf(big.NewInt(money[name] * unit)),
			Share: Rate(roundRat(new(big.Rat).Mul(credit[name], big.NewRat(10_000, int64(a.Conversions))))),
		})
	}
	slices.SortStableFunc(a.Results, func(a, b AttributionResult) int {
		return cmp.Or(cmp.Compare(b.Conversions, a.Conversions), b.Revenue.Big().Cmp(a.Revenue.Big()))
	})
	if q.Limit > 0 && len(a.Results) > q.Limit {
		exact, rest := new(big.Rat), a.Results[q.Limit:]
		a.Others = &AttributionOthers{Groups: len(rest)}
		for _, r := range rest {
			a.Others.Conversions += r.Conversions
			a.Others.Revenue.Merge(r.Revenue)
			exact.Add(exact, credit[r.Name])
		}
		a.Others.Share = Rate(roundRat(exact.Mul(exact, big.NewRat(10_000, int64(a.Conversions)))))
		a.Results = a.Results[:q.Limit]
	}
	return a
}

// credited lists what a conversion is credited to, once per equal part.
func (o *oracle) credited(conversion *oracleEvent, history []*oracleEvent, q AttributionQuery) []string {
	var merged []columns.Touch
	for _, e := range history {
		old := q.Lookback > 0 && e.at().Before(conversion.at().Add(-q.Lookback))
		if e.touch == nil || e.visitor == "" || old || e.position > conversion.position {
			continue
		}
		if len(merged) == 0 || sourceText(merged[len(merged)-1]) != sourceText(*e.touch) {
			merged = append(merged, *e.touch)
		}
	}
	if len(merged) == 0 {
		return []string{map[Dimension]string{"channel": "Direct", "source": "(direct)", "medium": "(none)", "campaign": "(none)"}[q.GroupBy]}
	}
	var names []string
	for i, t := range merged {
		if q.Model == "linear" || q.Model == "first_touch" && i == 0 || q.Model == "last_touch" && i == len(merged)-1 {
			name := map[Dimension]string{"channel": t.Channel, "source": t.Source, "medium": t.Medium, "campaign": t.Campaign}[q.GroupBy]
			if name == "" {
				name = "(none)"
			}
			names = append(names, name)
		}
	}
	return names
}

func sourceText(t columns.Touch) string {
	return strings.Join([]string{t.Source, t.Medium, t.Campaign}, "|")
}

// largestRemainder hands out the missing units one by one.
func largestRemainder(exact map[string]*big.Rat, unit *big.Rat) map[string]int64 {
	units := map[string]int64{}
	total, given := new(big.Rat), int64(0)
	for name, amount := range exact {
		whole := new(big.Rat).Quo(amount, unit)
		total.Add(total, whole)
		units[name] = new(big.Int).Div(whole.Num(), whole.Denom()).Int64()
		given += units[name]
	}
	if !total.IsInt() {
		panic(fmt.Sprintf("total %s is no whole number of units", total))
	}
	served := map[string]bool{}
	for ; given < total.Num().Int64(); given++ {
		best, bestRest := "", big.NewRat(-1, 1)
		for _, name := range sortedKeys(exact) {
			rest := new(big.Rat).Sub(new(big.Rat).Quo(exact[name], unit), new(big.Rat).SetInt64(units[name]))
			if !served[name] && rest.Cmp(bestRest) > 0 {
				best, bestRest = name, rest
			}
		}
		served[best] = true
		units[best]++
	}
	return units
}
