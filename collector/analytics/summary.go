package analytics

import (
	"context"

	"github.com/weir-dev/weir/collector/analytics/columns"
	"github.com/weir-dev/weir/collector/event"
)

// totals are the numbers of a row range that summary and daily are made of.
type totals struct {
	purchases, addToCarts, pageviews, refunds int
	visitors, buyers                          int
	// classes are the numbers of all events.
	classes columns.ClassCounts
	// bought and refunded are the values of purchases and refunds.
	bought, refunded columns.Sums
}

// totalNames are the names whose numbers totalsOf expects, in this order.
func totalNames() []columns.Name {
	return namesOf(event.Human, purchaseEvent, addToCartEvent, pageviewEvent, refundEvent)
}

// totalsOf counts the rows of a range. buyers has room for all visitors; what is in it is lost.
func (s *snapshot) totalsOf(ctx context.Context, rows columns.RowRange, buyers bitset) (totals, error) {
	purchase, addToCart, pageview, refund := s.numbers[0], s.numbers[1], s.numbers[2], s.numbers[3]
	var t totals
	clear(buyers)
	buffer := make([]uint16, 0, columns.ChunkRows)
	err := rows.Each(ctx, func(c columns.ChunkRange) {
		c.CountClasses(s.Names, &t.classes)
		t.visitors += c.FirstSince(uint32(c.Ordinal - max(rows.First, s.Anonymous)))
		purchases := c.Named(purchase, buffer)
		t.purchases += len(purchases)
		for _, row := range purchases {
			if visitor := c.Visitor[row]; visitor != 0 && buyers.add(visitor) {
				t.buyers++
			}
		}
		c.AddValues(purchase, purchases, &t.bought)
		refunds := c.Named(refund, buffer)
		t.refunds += len(refunds)
		c.AddValues(refund, refunds, &t.refunded)
		t.pageviews += len(c.Named(pageview, buffer))
		t.addToCarts += len(c.Named(addToCart, buffer))
	})
	return t, err
}

// Summary returns the KPIs of those events of a range that a filter keeps. It fails with [ErrReplaying], [ErrTooCostly],
// [ErrBusy] or where the context ends.
func (v *View) Summary(ctx context.Context, r Range, filter Filter) (Summary, error) {
	return runQuery(ctx, v, totalNames(), func(ctx context.Context, s *snapshot) (Summary, error) { return s.summary(ctx, r, filter) })
}

// totalBytes is about what a currency takes in totals.
const totalBytes = 160

func (s *snapshot) summary(ctx context.Context, r Range, filter Filter) (Summary, error) {
	f, err := s.selecting(filter)
	if err != nil {
		return Summary{}, err
	}
	counter, err := s.newTotaller(&f)
	if err != nil {
		return Summary{}, err
	}
	t, err := counter.count(ctx, s.in(r))
	if err != nil {
		return Summary{}, err
	}
	return Summary{Totals: s.figures(&t), EventsByClass: t.classes, CompleteFrom: s.completeFrom}, nil
}

// figures returns the totals as they are answered.
func (s *snapshot) figures(t *totals) Totals {
	counted := Counted{
		Events: t.classes[event.Human], Purchases: t.purchases, AddToCarts: t.addToCarts, Pageviews: t.pageviews, Refunds: t.refunds,
		Visitors: t.visitors, Buyers: t.buyers, Bought: s.money(t.bought), Refunded: s.money(t.refunded),
	}
	return counted.Totals(s.currency)
}

// money returns sums by the codes of their currencies.
func (s *snapshot) money(sums columns.Sums) []Money {
	list := make([]Money, len(sums))
	for i, sum := range sums {
		list[i] = Money{Currency: s.Currencies[sum.Currency], Count: int(sum.Count), Total: sum.Total}
	}
	return list
}

// Series returns the figures of those events that a filter keeps of each of the ranges, in the order given. It fails with
// [ErrReplaying], [ErrTooCostly], [ErrBusy] or where the context ends.
func (v *View) Series(ctx context.Context, ranges []Range, filter Filter) (Series, error) {
	return runQuery(ctx, v, totalNames(), func(ctx context.Context, s *snapshot) (Series, error) { return s.series(ctx, ranges, filter) })
}

func (s *snapshot) series(ctx context.Context, ranges []Range, filter Filter) (Series, error) {
	if err := s.reservation.growFor(len(ranges), totalBytes*(len(s.Currencies)+1)); err != nil {
		return Series{}, err
	}
	f, err := s.selecting(filter)
	if err != nil {
		return Series{}, err
	}
	counter, err := s.newTotaller(&f)
	if err != nil {
		return Series{}, err
	}
	result := Series{Totals: make([]Totals, len(ranges)), CompleteFrom: s.completeFrom}
	for i, r := range ranges {
		t, err := counter.count(ctx, s.in(r))
		if err != nil {
			return Series{}, err
		}
		result.Totals[i] = s.figures(&t)
	}
	return result, nil
}
