package analytics

import (
	"math/big"
	"slices"
	"strings"

	"github.com/weir-dev/weir/collector/event"
)

// Counted is what the figures of some events are made of.
type Counted struct {
	// Events are those of humans, and of these are all others.
	Events, Purchases, AddToCarts, Pageviews, Refunds int
	// Visitors are the persons whose events they are, Buyers those of them who have a purchase.
	Visitors, Buyers int
	// Bought and Refunded are the values of purchases and refunds, one element for each currency.
	Bought, Refunded []Money
}

// Money is what values in one currency add up to, and how many they are.
type Money struct {
	Currency string
	Count    int
	Total    event.Sum
}

// Totals returns the figures, in a reporting currency.
func (c *Counted) Totals(currency string) Totals {
	revenue := c.revenueIn(currency)
	return Totals{
		Events:    c.Events,
		Purchases: c.Purchases, AddToCarts: c.AddToCarts, Pageviews: c.Pageviews, Refunds: c.Refunds,
		GrossRevenue: revenue.GrossRevenue, Refunded: revenue.Refunded, Revenue: revenue.Revenue,
		AverageOrderValue: averageOf(moneyIn(c.Bought, currency), event.MinorUnit(currency)),
		UniqueVisitors:    c.Visitors, ConversionRate: RateOf(int64(c.Buyers), int64(c.Visitors)),
		RevenueByCurrency: c.revenueByCurrency(),
	}
}

// revenueIn returns the revenue in one currency.
func (c *Counted) revenueIn(currency string) CurrencyRevenue {
	bought, refunded := moneyIn(c.Bought, currency).Total, moneyIn(c.Refunded, currency).Total
	return CurrencyRevenue{Currency: currency, GrossRevenue: bought, Refunded: refunded, Revenue: bought.Minus(refunded)}
}

// revenueByCurrency returns the revenue in each currency, by code.
func (c *Counted) revenueByCurrency() []CurrencyRevenue {
	var list []CurrencyRevenue
	for _, money := range slices.Concat(c.Bought, c.Refunded) {
		if !slices.ContainsFunc(list, func(known CurrencyRevenue) bool { return known.Currency == money.Currency }) {
			list = append(list, c.revenueIn(money.Currency))
		}
	}
	slices.SortFunc(list, func(a, b CurrencyRevenue) int { return strings.Compare(a.Currency, b.Currency) })
	return list
}

// moneyIn returns the money in one currency, the zero value where there is none.
func moneyIn(list []Money, currency string) Money {
	at := slices.IndexFunc(list, func(m Money) bool { return m.Currency == currency })
	if at < 0 {
		return Money{}
	}
	return list[at]
}

// averageOf returns the average of what was added up, rounded to a unit, half to even; of nothing it is 0.
func averageOf(money Money, unit event.Amount) event.Amount {
	if money.Count == 0 {
		return 0
	}
	units := divideHalfEven(money.Total.Big(), big.NewInt(int64(money.Count)*int64(unit)))
	return event.Amount(units.Int64()) * unit
}
