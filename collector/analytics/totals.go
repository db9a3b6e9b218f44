package analytics

import (
	"context"
	"math/big"
	"slices"
	"strings"

	"github.com/weir-dev/weir/collector/event"
)

// numberSet is a set of numbers such as visitors have.
type numberSet []uint64

// add puts n into the set and says whether it was not in it before.
func (s *numberSet) add(n uint32) bool {
	word, bit := int(n>>6), uint64(1)<<(n&63)
	if word >= len(*s) {
		*s = append(*s, make([]uint64, word+1-len(*s))...)
	}
	if (*s)[word]&bit != 0 {
		return false
	}
	(*s)[word] |= bit
	return true
}

// has says whether n is in the set.
func (s numberSet) has(n uint32) bool {
	word := int(n >> 6)
	return word < len(s) && s[word]&(1<<(n&63)) != 0
}

// totals are the numbers of a span that summary and daily are made of.
type totals struct {
	purchases, addToCarts, pageviews, refunds int
	visitors, buyers                          int
	// revenue is by the numbers of currencies.
	revenue map[uint16]*turnover
}

// turnover is money that came in and went out again.
type turnover struct{ gross, refunded event.Sum }

// totalNames are the names whose numbers totalsOf expects, in this order.
func totalNames() []string {
	return []string{purchaseEvent, addToCartEvent, pageviewEvent, refundEvent}
}

// totalsOf counts the rows of a span.
func (s *snapshot) totalsOf(ctx context.Context, rows span) (totals, error) {
	purchase, addToCart, pageview, refund := s.numbers[0], s.numbers[1], s.numbers[2], s.numbers[3]
	t := totals{revenue: map[uint16]*turnover{}}
	var buyers numberSet
	err := rows.each(ctx, func(c stretch) {
		// A visitor's first event of the span is the one whose previous event lies before the span.
		since := uint32(c.ordinal - rows.first)
		for i := c.from; i < c.to; i, since = i+1, since+1 {
			if c.back[i] > since {
				t.visitors++
			}
			switch c.name[i] {
			case pageview:
				t.pageviews++
			case addToCart:
				t.addToCarts++
			case purchase:
				t.purchases++
				if sums := t.turnover(c, i); sums != nil {
					sums.gross.Add(c.value[i])
				}
				if c.visitor[i] != 0 && buyers.add(c.visitor[i]) {
					t.buyers++
				}
			case refund:
				t.refunds++
				if sums := t.turnover(c, i); sums != nil {
					sums.refunded.Add(c.value[i])
				}
			}
		}
	})
	return t, err
}

// turnover returns the sums to which a row's value belongs, nil where it has no value or no currency.
func (t *totals) turnover(c stretch, row int) *turnover {
	currency := c.currency[row]
	if c.value[row] == noValue || currency == 0 {
		return nil
	}
	if t.revenue[currency] == nil {
		t.revenue[currency] = &turnover{}
	}
	return t.revenue[currency]
}

// in returns the turnover in one currency.
func (t *totals) in(currency uint32) turnover {
	if sums := t.revenue[uint16(currency)]; sums != nil && currency != noName {
		return *sums
	}
	return turnover{}
}

// Summary returns the KPIs of a range. It fails only where the context ends.
func (v *View) Summary(ctx context.Context, r Range) (Summary, error) {
	s, done := v.read(totalNames()...)
	defer done()
	t, err := s.totalsOf(ctx, s.in(r))
	if err != nil {
		return Summary{}, err
	}
	own := t.in(s.reporting)
	summary := Summary{
		Purchases: t.purchases, AddToCarts: t.addToCarts, Pageviews: t.pageviews, Refunds: t.refunds,
		GrossRevenue: own.gross, Refunded: own.refunded, Revenue: own.gross.Minus(own.refunded),
		AverageOrderValue: averageOf(own.gross, t.purchases),
		UniqueVisitors:    t.visitors, ConversionRate: rateOf(int64(t.buyers), int64(t.visitors)),
	}
	for currency, sums := range t.revenue {
		summary.RevenueByCurrency = append(summary.RevenueByCurrency, CurrencyRevenue{
			Currency: s.currencies[currency], GrossRevenue: sums.gross, Refunded: sums.refunded, Revenue: sums.gross.Minus(sums.refunded),
		})
	}
	slices.SortFunc(summary.RevenueByCurrency, func(a, b CurrencyRevenue) int { return strings.Compare(a.Currency, b.Currency) })
	return summary, nil
}

// cent is one cent in ten-thousandths.
const cent = 100

// averageOf returns a sum by a count to the cent, half to even; of nothing it is 0.
func averageOf(sum event.Sum, count int) event.Amount {
	if count == 0 {
		return 0
	}
	cents := divideHalfEven(sum.Big(), big.NewInt(int64(count)*cent))
	return event.Amount(cents.Int64() * cent)
}

// Daily returns the numbers of each of the days, in the order given. It fails only where the context ends.
func (v *View) Daily(ctx context.Context, days []Day) ([]DayTotals, error) {
	s, done := v.read(totalNames()...)
	defer done()
	result := make([]DayTotals, len(days))
	for i, day := range days {
		rows := s.in(day.Range)
		t, err := s.totalsOf(ctx, rows)
		if err != nil {
			return nil, err
		}
		own := t.in(s.reporting)
		result[i] = DayTotals{
			Date: day.Date, Purchases: t.purchases, AddToCarts: t.addToCarts, Pageviews: t.pageviews, Refunds: t.refunds,
			Revenue: own.gross.Minus(own.refunded), UniqueVisitors: t.visitors, Events: rows.len(),
		}
	}
	return result, nil
}
