package analytics

import (
	"context"
	"maps"
	"math/big"
	"slices"
	"strings"

	"github.com/weir-dev/weir/collector/event"
)

// Attribution returns what the conversions of a range are owed to. A conversion's touches are its visitor's
// from Lookback before it up to and including it; consecutive ones with the same source, medium and campaign
// are one. It fails only where the context ends.
func (v *View) Attribution(ctx context.Context, q AttributionQuery) (Attribution, error) {
	s, done := v.read(q.ConversionEvent)
	defer done()
	w := newCreditWalk(s, q)
	if err := w.findConversions(ctx); err != nil {
		return Attribution{}, err
	}
	chosen, err := w.choose(ctx)
	if err != nil {
		return Attribution{}, err
	}
	chosen.sort()
	for visitor := range chosen.count {
		if visitor%chunkRows == 0 && ctx.Err() != nil {
			return Attribution{}, ctx.Err()
		}
		if rows := chosen.of(visitor); len(rows) > 0 {
			if err := w.follow(ctx, rows); err != nil {
				return Attribution{}, err
			}
		}
	}
	return w.result(ctx)
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

	// groups numbers what credit is given to; groupOf holds the number for each touch, by the touch's number.
	groups  *dictionary[string]
	groupOf []uint32
	credits map[creditKey]*credit

	// of one visitor
	touches touchWindow
}

// creditKey says to which group credits are given and into how many equal parts each conversion is shared.
type creditKey struct {
	group uint32
	parts int
}

// credit is a number of parts, and the revenue of which they are that part.
type credit struct {
	parts   int64
	revenue event.Sum
}

func newCreditWalk(s *snapshot, q AttributionQuery) *creditWalk {
	conversions := s.in(q.Range)
	touches := Range{From: q.Range.From.Add(-q.Lookback), To: q.Range.To}
	rows := s.in(touches)
	if q.Lookback == 0 {
		rows.first = s.first
	}
	return &creditWalk{
		snapshot: s, query: q, name: s.numbers[0], rows: rows, from: conversions.first,
		revenue: map[uint16]*event.Sum{}, groups: newDictionary[string](), groupOf: make([]uint32, len(s.touches)),
		credits: map[creditKey]*credit{},
	}
}

// findConversions counts the conversions and notes who had one. Those of nobody have no touches.
func (w *creditWalk) findConversions(ctx context.Context) error {
	conversions := w.rows
	conversions.first = w.from
	direct := w.groups.acquire(untouched(w.query.GroupBy))
	return conversions.each(ctx, func(c stretch) {
		for i := c.from; i < c.to; i++ {
			if c.name[i] != w.name {
				continue
			}
			w.count++
			if currency := c.currency[i]; currency != 0 && c.value[i] != noValue {
				if w.revenue[currency] == nil {
					w.revenue[currency] = &event.Sum{}
				}
				w.revenue[currency].Add(c.value[i])
			}
			if visitor := c.visitor[i]; visitor != 0 {
				w.converted.add(visitor)
			} else {
				w.give(direct, 1, 1, w.value(c.chunk, i))
			}
		}
	})
}

// value is a conversion's value in the property's currency.
func (w *creditWalk) value(c *chunk, row int) event.Amount {
	if uint32(c.currency[row]) != w.snapshot.reporting || c.value[row] == noValue {
		return 0
	}
	return c.value[row]
}

// choose returns the touches and conversions of those who had a conversion.
func (w *creditWalk) choose(ctx context.Context) (*visits, error) {
	chosen := newVisits(len(w.snapshot.keys))
	err := w.rows.each(ctx, func(c stretch) {
		for i := c.from; i < c.to; i++ {
			isConversion := c.name[i] == w.name && c.ordinal+uint64(i-c.from) >= w.from
			if (c.touch[i] != 0 || isConversion) && c.visitor[i] != 0 && w.converted.has(c.visitor[i]) {
				chosen.add(c.visitor[i], uint32(c.ordinal-w.rows.first)+uint32(i-c.from))
			}
		}
	})
	return chosen, err
}

// follow gives the credit for a visitor's conversions.
func (w *creditWalk) follow(ctx context.Context, offsets []uint32) error {
	w.touches.clear()
	for i, offset := range offsets {
		if i%chunkRows == chunkRows-1 && ctx.Err() != nil {
			return ctx.Err()
		}
		ordinal := w.rows.first + uint64(offset)
		c, row := w.rows.at(ordinal)
		at := c.position[row].Time()
		if number := c.touch[row]; number != 0 {
			w.touches.enter(windowTouch{at: at, number: number, group: w.group(number)})
		}
		if c.name[row] != w.name || ordinal < w.from {
			continue
		}
		if w.query.Lookback > 0 {
			w.touches.leaveBefore(at.Add(-w.query.Lookback))
		}
		w.share(w.value(c, row))
	}
	return nil
}

// share gives the credit for one conversion to the touches in the window.
func (w *creditWalk) share(value event.Amount) {
	first, last, some := w.touches.ends()
	switch {
	case !some:
		w.give(w.groups.acquire(untouched(w.query.GroupBy)), 1, 1, value)
	case w.query.Model == FirstTouch:
		w.give(first, 1, 1, value)
	case w.query.Model == LastTouch:
		w.give(last, 1, 1, value)
	default:
		parts := w.touches.len()
		for group, count := range w.touches.counts {
			w.give(group, count, parts, value)
		}
	}
}

// give adds count of a conversion's equal parts to a group's credit.
func (w *creditWalk) give(group uint32, count, parts int, value event.Amount) {
	key := creditKey{group, parts}
	c := w.credits[key]
	if c == nil {
		c = &credit{}
		w.credits[key] = c
	}
	c.parts += int64(count)
	if count == 1 {
		c.revenue.Add(value)
		return
	}
	product := new(big.Int).Mul(big.NewInt(int64(value)), big.NewInt(int64(count)))
	c.revenue.Merge(event.SumOf(product))
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
func (w *creditWalk) result(ctx context.Context) (Attribution, error) {
	result := Attribution{Conversions: w.count}
	for currency, sum := range w.revenue {
		result.RevenueByCurrency = append(result.RevenueByCurrency, CurrencySum{w.snapshot.currencies[currency], *sum})
		if uint32(currency) == w.snapshot.reporting {
			result.Revenue = *sum
		}
	}
	slices.SortFunc(result.RevenueByCurrency, func(a, b CurrencySum) int { return strings.Compare(a.Currency, b.Currency) })

	shares := map[string]*share{}
	for _, key := range slices.SortedFunc(maps.Keys(w.credits), compareCreditKeys) {
		if err := ctx.Err(); err != nil {
			return Attribution{}, err
		}
		name, c := w.groups.values[key.group], w.credits[key]
		if shares[name] == nil {
			shares[name] = newShare(name)
		}
		shares[name].add(c, key.parts)
	}
	result.Results = resultsOf(slices.Collect(maps.Values(shares)), result)
	return result, nil
}
