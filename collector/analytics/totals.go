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

// bit is 1 where n is in the set, which must have room for it.
func (s numberSet) bit(n uint32) int { return int(s[n>>6] >> (n & 63) & 1) }

// totals are the numbers of a span that summary and daily are made of.
type totals struct {
	purchases, addToCarts, pageviews, refunds int
	visitors, buyers                          int
	// revenue is by the numbers of currencies.
	revenue map[uint16]*turnover
}

// turnover is money of one currency that came in and went out again.
type turnover struct{ bought, refunded currencySum }

// revenue is what stayed.
func (t turnover) revenue() event.Sum { return t.bought.sum.Minus(t.refunded.sum) }

// totalNames are the names whose numbers totalsOf expects, in this order.
func totalNames() []string {
	return []string{purchaseEvent, addToCartEvent, pageviewEvent, refundEvent}
}

// totalsOf counts the rows of a span.
func (s *snapshot) totalsOf(ctx context.Context, rows span) (totals, error) {
	purchase, addToCart, pageview, refund := s.numbers[0], s.numbers[1], s.numbers[2], s.numbers[3]
	t := totals{revenue: map[uint16]*turnover{}}
	var buyers numberSet
	buffer := make([]uint16, 0, chunkRows)
	err := rows.each(ctx, func(c stretch) {
		t.visitors += c.visitorsSince(uint32(c.ordinal - rows.first))
		purchases := c.named(purchase, buffer)
		t.purchases += len(purchases)
		for _, row := range purchases {
			if visitor := c.visitor[row]; visitor != 0 && buyers.add(visitor) {
				t.buyers++
			}
		}
		t.turnOver(c, purchase, purchases, func(sums *turnover) *currencySum { return &sums.bought })
		refunds := c.named(refund, buffer)
		t.refunds += len(refunds)
		t.turnOver(c, refund, refunds, func(sums *turnover) *currencySum { return &sums.refunded })
		t.pageviews += len(c.named(pageview, buffer))
		t.addToCarts += len(c.named(addToCart, buffer))
	})
	return t, err
}

// visitorsSince counts the rows that are the first of their visitor since the row that lies distance rows before
// the stretch: those whose visitor's previous event lies further back.
func (c *stretch) visitorsSince(distance uint32) int {
	count := 0
	for _, back := range c.back[c.from:c.to] {
		if back > distance {
			count++
		}
		distance++
	}
	return count
}

// turnOver adds the values of a name's rows to one of the sums of their currency.
func (t *totals) turnOver(c stretch, name uint32, rows []uint16, sum func(*turnover) *currencySum) {
	if c.whole() {
		for _, v := range c.sealed.of(name).values {
			sum(t.turnover(v.currency)).merge(v)
		}
		return
	}
	for _, row := range rows {
		if currency := c.currency[row]; currency != 0 && c.value[row] != noValue {
			sum(t.turnover(currency)).add(c.value[row])
		}
	}
}

// turnover returns the sums of a currency.
func (t *totals) turnover(currency uint16) *turnover {
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

// Summary returns the KPIs of a range. It fails with [ErrReplaying], [ErrTooCostly], [ErrBusy] or where the context ends.
func (v *View) Summary(ctx context.Context, r Range) (Summary, error) {
	return ask(ctx, v, totalNames(), func(ctx context.Context, s *snapshot) (Summary, error) { return s.summary(ctx, r) })
}

// totalBytes is about what a currency takes in totals.
const totalBytes = 160

func (s *snapshot) summary(ctx context.Context, r Range) (Summary, error) {
	if err := s.account.take(int64(len(s.keys)/4 + totalBytes*len(s.currencies))); err != nil {
		return Summary{}, err
	}
	t, err := s.totalsOf(ctx, s.in(r))
	if err != nil {
		return Summary{}, err
	}
	own := t.in(s.reporting)
	summary := Summary{
		Purchases: t.purchases, AddToCarts: t.addToCarts, Pageviews: t.pageviews, Refunds: t.refunds,
		GrossRevenue: own.bought.sum, Refunded: own.refunded.sum, Revenue: own.revenue(),
		AverageOrderValue: averageOf(own.bought, s.minorUnit),
		UniqueVisitors:    t.visitors, ConversionRate: rateOf(int64(t.buyers), int64(t.visitors)),
	}
	summary.RevenueByCurrency, summary.CompleteFrom = t.byCurrency(s.currencies), s.completeFrom
	return summary, nil
}

// byCurrency returns the turnover in each currency, by code.
func (t *totals) byCurrency(codes []string) []CurrencyRevenue {
	var list []CurrencyRevenue
	for currency, sums := range t.revenue {
		list = append(list, CurrencyRevenue{
			Currency: codes[currency], GrossRevenue: sums.bought.sum, Refunded: sums.refunded.sum, Revenue: sums.revenue(),
		})
	}
	slices.SortFunc(list, func(a, b CurrencyRevenue) int { return strings.Compare(a.Currency, b.Currency) })
	return list
}

// averageOf returns the average of what was added up, rounded to a unit, half to even; of nothing it is 0.
func averageOf(sum currencySum, unit event.Amount) event.Amount {
	if sum.count == 0 {
		return 0
	}
	units := divideHalfEven(sum.sum.Big(), big.NewInt(int64(sum.count)*int64(unit)))
	return event.Amount(units.Int64()) * unit
}

// Daily returns the numbers of each of the days, in the order given. It fails with [ErrReplaying], [ErrTooCostly],
// [ErrBusy] or where the context ends.
func (v *View) Daily(ctx context.Context, days []Day) (Days, error) {
	return ask(ctx, v, totalNames(), func(ctx context.Context, s *snapshot) (Days, error) { return s.daily(ctx, days) })
}

func (s *snapshot) daily(ctx context.Context, days []Day) (Days, error) {
	if err := s.account.take(int64(len(s.keys)/4 + totalBytes*len(s.currencies)*(len(days)+1))); err != nil {
		return Days{}, err
	}
	result := Days{Totals: make([]DayTotals, len(days)), CompleteFrom: s.completeFrom}
	for i, day := range days {
		rows := s.in(day.Range)
		t, err := s.totalsOf(ctx, rows)
		if err != nil {
			return Days{}, err
		}
		own := t.in(s.reporting)
		result.Totals[i] = DayTotals{
			Date: day.Date, Purchases: t.purchases, AddToCarts: t.addToCarts, Pageviews: t.pageviews, Refunds: t.refunds,
			Revenue: own.revenue(), UniqueVisitors: t.visitors, Events: rows.len(),
			RevenueByCurrency: t.byCurrency(s.currencies),
		}
	}
	return result, nil
}
