package analytics

import (
	"context"
	"math/big"
	"slices"
	"strings"

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
	chosen, err := w.choose(ctx)
	if err != nil {
		return Attribution{}, err
	}
	if err := chosen.sort(ctx, w.rows); err != nil {
		return Attribution{}, err
	}
	for visitor := range chosen.ends {
		if visitor%chunkRows == 0 && ctx.Err() != nil {
			return Attribution{}, ctx.Err()
		}
		if events := chosen.of(visitor); len(events) > 0 {
			if err := w.follow(ctx, events); err != nil {
				return Attribution{}, err
			}
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

	converted numberSet
	count     int
	revenue   map[uint16]*event.Sum
	// values holds the values in the property's currency by the conversions' numbers, which begin with 1 and pass
	// over those of nobody.
	values []event.Amount

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
		revenue: map[uint16]*event.Sum{}, values: make([]event.Amount, 1),
		groups: newDictionary[string](), groupOf: make([]uint32, len(s.touches)), fine: map[int]*fineLedger{},
	}
	w.direct = w.groups.acquire(untouched(q.GroupBy))
	return w
}

// findConversions counts the conversions and notes who had one. Those of nobody have no touches.
func (w *creditWalk) findConversions(ctx context.Context) error {
	conversions := w.rows
	conversions.first = w.from
	buffer := make([]uint16, 0, chunkRows)
	return conversions.each(ctx, func(c stretch) {
		rows := c.named(w.name, buffer)
		w.count += len(rows)
		w.addRevenue(c, rows)
		for _, row := range rows {
			value := w.value(c.chunk, row)
			if visitor := c.visitor[row]; visitor != 0 {
				w.converted.add(visitor)
				w.values = append(w.values, value)
			} else {
				w.ledger.give(w.direct, value)
			}
		}
	})
}

// addRevenue adds the values of the stretch's conversions by currency.
func (w *creditWalk) addRevenue(c stretch, rows []uint16) {
	add := func(currency uint16) *event.Sum {
		if w.revenue[currency] == nil {
			w.revenue[currency] = &event.Sum{}
		}
		return w.revenue[currency]
	}
	if c.whole() {
		for _, v := range c.sealed.of(w.name).values {
			add(v.currency).Merge(v.sum)
		}
		return
	}
	for _, row := range rows {
		if currency := c.currency[row]; currency != 0 && c.value[row] != noValue {
			add(currency).Add(c.value[row])
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

// choose returns the touches and conversions of those who had a conversion.
func (w *creditWalk) choose(ctx context.Context) (*visits, error) {
	chosen := newVisits(len(w.snapshot.keys))
	namedBuffer, touchedBuffer := make([]uint16, 0, chunkRows), make([]uint16, 0, chunkRows)
	conversion := uint32(0)
	err := w.rows.each(ctx, func(c stretch) {
		offset := uint32(c.ordinal-w.rows.first) - uint32(c.from) // of the chunk's row 0
		touched := c.touched(touchedBuffer)
		for _, row := range c.named(w.name, namedBuffer) {
			if w.rows.first+uint64(offset+uint32(row)) < w.from || c.visitor[row] == 0 {
				continue
			}
			for len(touched) > 0 && touched[0] < row {
				w.chooseTouch(chosen, c.chunk, touched[0], offset)
				touched = touched[1:]
			}
			if len(touched) > 0 && touched[0] == row {
				touched = touched[1:] // the event is both
			}
			conversion++
			chosen.add(c.visitor[row], offset+uint32(row), conversion)
		}
		for _, row := range touched {
			w.chooseTouch(chosen, c.chunk, row, offset)
		}
	})
	return chosen, err
}

func (w *creditWalk) chooseTouch(chosen *visits, c *chunk, row uint16, offset uint32) {
	if visitor := c.visitor[row]; visitor != 0 && w.converted.has(visitor) {
		chosen.add(visitor, offset+uint32(row), 0)
	}
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
	result := Attribution{Conversions: w.count}
	for currency, sum := range w.revenue {
		result.RevenueByCurrency = append(result.RevenueByCurrency, CurrencySum{w.snapshot.currencies[currency], *sum})
		if uint32(currency) == w.snapshot.reporting {
			result.Revenue = *sum
		}
	}
	slices.SortFunc(result.RevenueByCurrency, func(a, b CurrencySum) int { return strings.Compare(a.Currency, b.Currency) })
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
