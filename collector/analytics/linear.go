package analytics

import (
	"context"

	"github.com/weir-dev/weir/collector/analytics/columns"
	"github.com/weir-dev/weir/collector/event"
)

// ledger keeps the credits of whole conversions and of those shared into at most [fewParts] parts. Of what one
// visitor's touches have in common it only keeps total, what each of them would have got if it had been
// there for every conversion so far: the credit of a touch is what total has grown by while it was in the window. So a
// conversion costs the same however many touches share it.
type ledger struct {
	// credits is by group.
	credits []credit
	total   credit
}

// give gives a whole conversion to a group.
func (l *ledger) give(group uint32, value event.Amount) {
	l.of(group).add(wholeUnits, value)
}

func (l *ledger) of(group uint32) *credit {
	for int(group) >= len(l.credits) {
		l.credits = append(l.credits, credit{})
	}
	return &l.credits[group]
}

func (l *ledger) enter(group uint32) { l.of(group).subtract(l.total) }

func (l *ledger) leave(group uint32) { l.of(group).merge(l.total) }

func (l *ledger) share(parts int, value event.Amount) { l.total.add(uint64(wholeUnits/parts), value) }

// wideLedger is a ledger for conversions that are shared into any number of parts, in units so small that rounding each
// share to them does not show: see [wide].
type wideLedger struct {
	// credits is by group.
	credits []wideCredit
	total   wideCredit
}

// wideCredit is a [credit] in the units of [wide].
type wideCredit struct{ conversions, revenue wide }

func (l *wideLedger) of(group uint32) *wideCredit {
	if int(group) >= len(l.credits) {
		l.credits = append(l.credits, make([]wideCredit, int(group)+1-len(l.credits))...)
	}
	return &l.credits[group]
}

func (l *wideLedger) enter(group uint32) {
	c := l.of(group)
	c.conversions.subtract(&l.total.conversions)
	c.revenue.subtract(&l.total.revenue)
}

func (l *wideLedger) leave(group uint32) {
	c := l.of(group)
	c.conversions.add(&l.total.conversions)
	c.revenue.add(&l.total.revenue)
}

func (l *wideLedger) share(parts int, value event.Amount) {
	part := wideShare(uint64(parts))
	l.total.conversions.add(&part)
	part.multiply(int64(value))
	l.total.revenue.add(&part)
}

// sharedLedger is where the shares of one visitor's conversions are kept.
type sharedLedger interface {
	// enter and leave say that a touch is in the window from now on, or no longer.
	enter(group uint32)
	leave(group uint32)
	// share gives equal parts of a conversion to the touches in the window.
	share(parts int, value event.Amount)
}

// creditLinear shares each conversion among the touches in its window.
func (w *attributor) creditLinear(ctx context.Context, conversions []conversion) error {
	if err := w.snapshot.reservation.grow(int64(journeyBytes*len(w.snapshot.VisitorKeys) + conversionBytes*len(conversions))); err != nil {
		return err
	}
	j := newJourneys(len(w.snapshot.VisitorKeys), len(conversions))
	j.reservation = w.snapshot.reservation
	for n, c := range conversions {
		if n%columns.ChunkRows == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		if c.visitor == 0 {
			w.ledger.give(w.direct, c.value)
		} else {
			j.convert(c)
		}
	}
	var buffer columns.TouchRows
	if err := w.rows.Each(ctx, func(c columns.ChunkRange) { j.choose(c.Touches(&buffer), c.Offset(&w.rows)) }); err != nil {
		return err
	}
	if err := j.sort(ctx); err != nil {
		return err
	}
	for customer := 1; customer < len(j.customers); customer++ {
		if customer%columns.ChunkRows == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		if err := w.follow(ctx, j.of(customer), j.conversions, j.customers[customer].first, w.group); err != nil {
			return err
		}
	}
	return nil
}
