package analytics

import (
	"context"
	"math/big"

	"github.com/weir-dev/weir/collector/event"
)

// Attribution returns what the conversions of a range are owed to. A conversion's touches are its visitor's
// from Lookback before it up to and including it; consecutive ones with the same source, medium and campaign
// are one. It fails with [ErrReplaying] or where the context ends.
func (v *View) Attribution(ctx context.Context, q AttributionQuery) (Attribution, error) {
	s, done, err := v.read(q.ConversionEvent)
	if err != nil {
		return Attribution{}, err
	}
	defer done()
	w := newCreditWalk(s, q)
	if err := w.findConversions(ctx); err != nil {
		return Attribution{}, err
	}
	if err := w.findTouches(ctx); err != nil {
		return Attribution{}, err
	}
	if err := w.journeys.sort(ctx); err != nil {
		return Attribution{}, err
	}
	for number := 1; number < len(w.journeys.customers); number++ {
		if number%chunkRows == 0 && ctx.Err() != nil {
			return Attribution{}, ctx.Err()
		}
		if err := w.follow(ctx, number); err != nil {
			return Attribution{}, err
		}
	}
	return w.result()
}

// creditWalk goes through the visitors with a conversion.
type creditWalk struct {
	snapshot *snapshot
	query    AttributionQuery
	name     uint32
	// rows are those whose touches may count; conversions before the ordinal from are not of the range.
	rows span
	from uint64

	journeys *journeys
	// count and revenue are of all conversions, those of nobody too.
	count   int
	revenue currencySums

	// groups numbers what credit is given to; groupOf holds the number for each touch, by the touch's number.
	groups  *dictionary[string]
	groupOf []uint32
	// direct is the group of conversions without a touch.
	direct uint32
	// ledger has the credits of whole conversions and of those that are shared into few parts; fine has those that
	// are shared into more.
	ledger ledger
	fine   map[int]*fineLedger
}

func newCreditWalk(s *snapshot, q AttributionQuery) *creditWalk {
	conversions := s.in(q.Range)
	touches := Range{From: q.Range.From.Add(-q.Lookback), To: q.Range.To}
	rows := s.in(touches)
	if q.Lookback == 0 {
		rows.first = s.first
	}
	w := &creditWalk{
		snapshot: s, query: q, name: s.numbers[0], rows: rows, from: conversions.first,
		journeys: newJourneys(len(s.keys)),
		groups:   newDictionary[string](), groupOf: make([]uint32, len(s.touches)), fine: map[int]*fineLedger{},
	}
	w.direct = w.groups.acquire(untouched(q.GroupBy))
	return w
}

// findConversions counts the conversions and notes who had one. Those of nobody have no touches.
func (w *creditWalk) findConversions(ctx context.Context) error {
	conversions, oldest := w.rows, newTrail(w.rows)
	conversions.first = w.from
	buffer := make([]uint16, 0, chunkRows)
	expected := 0
	if err := conversions.each(ctx, func(c stretch) { expected += len(c.named(w.name, buffer)) }); err != nil {
		return err
	}
	w.journeys.expect(expected)
	return conversions.each(ctx, func(c stretch) {
		rows := c.named(w.name, buffer)
		w.count += len(rows)
		w.addRevenue(c, rows)
		offset := c.offset(&w.rows)
		for _, row := range rows {
			value := w.value(c.chunk, row)
			visitor := c.visitor[row]
			if visitor == 0 {
				w.ledger.give(w.direct, value)
				continue
			}
			found := conversion{value: value, at: offset + uint32(row)}
			if w.query.Lookback > 0 {
				found.oldest = oldest.to(c.position[row].Milliseconds() - w.query.Lookback.Milliseconds())
			}
			w.journeys.convert(visitor, found)
		}
	})
}

// addRevenue adds the values of the stretch's conversions by currency.
func (w *creditWalk) addRevenue(c stretch, rows []uint16) {
	if c.whole() {
		w.revenue.merge(c.sealed.of(w.name).values)
		return
	}
	for _, row := range rows {
		if currency := c.currency[row]; currency != 0 && c.value[row] != noValue {
			w.revenue.of(currency).Add(c.value[row])
		}
	}
}

// value is a conversion's value in the property's currency.
func (w *creditWalk) value(c *chunk, row uint16) event.Amount {
	if uint32(c.currency[row]) != w.snapshot.reporting || c.value[row] == noValue {
		return 0
	}
	return c.value[row]
}

// findTouches chooses the touches of those who had a conversion.
func (w *creditWalk) findTouches(ctx context.Context) error {
	var buffer touched
	return w.rows.each(ctx, func(c stretch) { w.journeys.choose(c.touched(&buffer), c.offset(&w.rows)) })
}

// group returns the number of what a touch's credit goes to.
func (w *creditWalk) group(touch uint32) uint32 {
	// Group 0 is what untouched conversions go to, so that 0 can stand for "not looked up yet": a touch that
	// belongs to it is merely looked up again.
	if w.groupOf[touch] == 0 {
		w.groupOf[touch] = w.groups.acquire(groupName(w.snapshot.touches[touch], w.query.GroupBy))
	}
	return w.groupOf[touch]
}

// none is the name of a medium or campaign that is not there.
const none = "(none)"

// untouched is what conversions without a touch are owed to.
func untouched(by GroupBy) string {
	switch by {
	case BySource:
		return "(direct)"
	case ByMedium, ByCampaign:
		return none
	default:
		return Direct
	}
}

func groupName(t Touch, by GroupBy) string {
	switch by {
	case BySource:
		return t.Source
	case ByMedium:
		return firstOf(t.Medium, none)
	case ByCampaign:
		return firstOf(t.Campaign, none)
	default:
		return t.Channel
	}
}

// result rounds the credits and returns them in order.
func (w *creditWalk) result() (Attribution, error) {
	result := Attribution{
		Conversions: w.count, Revenue: w.revenue.in(w.snapshot.reporting), RevenueByCurrency: w.revenue.byCode(w.snapshot.currencies),
	}
	credits, whole := w.credits()
	result.Results = resultsOf(credits, whole, result)
	return result, nil
}

// credits returns what each group is owed, in parts of whole.
func (w *creditWalk) credits() (credits []namedCredit, whole *big.Int) {
	finest := fewParts
	for parts := range w.fine {
		finest = max(finest, parts)
	}
	whole = leastMultiple(finest)
	byGroup := make([]exactCredit, len(w.groups.values))
	times := new(big.Int).Quo(whole, big.NewInt(wholeUnits))
	for group, c := range w.ledger.credits {
		byGroup[group] = newExactCredit()
		byGroup[group].add(exactCredit{c.conversions.big(), c.revenue.big()}, times)
	}
	for _, l := range w.fine {
		times.Quo(whole, l.whole)
		for group, c := range l.credits {
			if byGroup[group].conversions == nil {
				byGroup[group] = newExactCredit()
			}
			byGroup[group].add(c, times)
		}
	}
	for group, c := range byGroup {
		if c.conversions != nil && c.conversions.Sign() != 0 {
			credits = append(credits, namedCredit{w.groups.values[group], c})
		}
	}
	return credits, whole
}
