package analytics

import (
	"context"
	"math/big"

	"github.com/weir-dev/weir/collector/analytics/columns"
	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/stream"
)

// Crediting credits conversions that are in no view as [View.Attribution] does, to the last digit. It is for one goroutine.
type Crediting struct {
	creditor
	query AttributionQuery
	// groupOf has the group of each touch, by the touch's number. 0 is no touch.
	groupOf []uint32
	// touches and conversions are those of a journey, kept for the next one.
	touches     []touchpoint
	conversions []conversion
}

// NewCrediting returns what credits the conversions that a query asks for; its range and filter are not looked at.
func NewCrediting(q AttributionQuery) *Crediting {
	c := &Crediting{creditor: newCreditor(q.GroupBy), query: q}
	c.groupOf = []uint32{c.direct}
	return c
}

// Touch returns the number of a touch. Touches that differ need numbers that differ: it is asked for each once.
func (c *Crediting) Touch(t columns.Touch) uint32 {
	c.groupOf = append(c.groupOf, c.groups.number(groupName(t, c.query.GroupBy)))
	return uint32(len(c.groupOf) - 1)
}

// Whole gives conversions to a touch, or where that is 0 to none. revenue is in the property's currency.
func (c *Crediting) Whole(touch uint32, conversions int, revenue event.Sum) {
	if conversions != 0 {
		c.ledger.of(c.groupOf[touch]).merge(wholes(conversions, revenue))
	}
}

// Step is an event of a [Crediting.Journey].
type Step struct {
	At stream.Position
	// Touch is the number of the event's own touch; 0 for none.
	Touch uint32
	// Converts says that the event is a conversion. Value is its value in the property's currency.
	Converts bool
	Value    event.Amount
}

// Journey credits the conversions of one visitor, of whose events it has all touches and conversions in order, with the touches
// before the range that are within the lookback. The error is that of the context.
func (c *Crediting) Journey(ctx context.Context, steps []Step) error {
	c.touches, c.conversions = c.touches[:0], append(c.conversions[:0], conversion{})
	oldest, lookback := 0, c.query.Lookback.Milliseconds()
	for i := range steps {
		step := &steps[i]
		if step.Touch != 0 {
			c.touches = append(c.touches, touchpoint{uint32(i), step.Touch})
		}
		if !step.Converts {
			continue
		}
		for c.query.Lookback > 0 && steps[oldest].At.Milliseconds() < step.At.Milliseconds()-lookback {
			oldest++
		}
		number := uint32(len(c.conversions))
		c.conversions[number-1].next = number
		c.conversions = append(c.conversions, conversion{value: step.Value, at: uint32(i), oldest: uint32(oldest)})
	}
	if len(c.conversions) == 1 {
		return ctx.Err()
	}
	if c.query.Model == Linear {
		return c.follow(ctx, c.touches, c.conversions, 1, func(touch uint32) uint32 { return c.groupOf[touch] })
	}
	c.single()
	return ctx.Err()
}

// single gives each conversion of a journey to the first or the last touch in its window.
func (c *Crediting) single() {
	window := lookbackWindow{touches: c.touches}
	for i := range c.conversions[1:] {
		one, touch := &c.conversions[i+1], uint32(0)
		window.reach(one)
		switch {
		case window.first == window.end:
		case c.query.Model == FirstTouch:
			touch = c.touches[window.first].touch
		default:
			touch = c.touches[window.end-1].touch
		}
		c.ledger.give(c.groupOf[touch], one.value)
	}
}

// Attribution returns whom the conversions were credited to, which add up to the totals. currency is the property's.
func (c *Crediting) Attribution(totals Attribution, currency string) Attribution {
	return c.result(totals, c.query.Limit, event.MinorUnit(currency))
}

// wholes returns the credit for whole conversions.
func wholes(conversions int, revenue event.Sum) (all credit) {
	all.conversions.add(event.Amount(conversions), wholeUnits)
	money := new(big.Int).Mul(revenue.Big(), big.NewInt(wholeUnits))
	all.revenue.high = new(big.Int).Rsh(money, 64).Int64()
	all.revenue.low = new(big.Int).And(money, new(big.Int).SetUint64(1<<64-1)).Uint64()
	return all
}
