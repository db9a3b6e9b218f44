package columns

import (
	"slices"

	"github.com/weir-dev/weir/collector/event"
)

// Sums add up money by the numbers of currencies. There are few of them, so they are a list.
type Sums []Sum

// Sum is money of one currency.
type Sum struct {
	// Currency is the currency's number.
	Currency uint16
	// Count is how many values were added.
	Count uint32
	Total event.Sum
}

// Add adds a value.
func (c *Sum) Add(value event.Amount) {
	c.Count++
	c.Total.Add(value)
}

// Merge adds another sum in the same currency.
func (c *Sum) Merge(other Sum) {
	c.Count += other.Count
	c.Total.Merge(other.Total)
}

// Of returns the sum in a currency, to be added to before another is asked for.
func (s *Sums) Of(currency uint16) *Sum {
	i := slices.IndexFunc(*s, func(c Sum) bool { return c.Currency == currency })
	if i < 0 {
		i = len(*s)
		*s = append(*s, Sum{Currency: currency})
	}
	return &(*s)[i]
}

// Money is the value of a row, NoValue for none, and the number of its currency, 0 for none.
type Money struct {
	Value    event.Amount
	Currency uint16
}

// Add adds what a row is worth.
func (s *Sums) Add(m Money) {
	if m.Currency != 0 && m.Value != NoValue {
		s.Of(m.Currency).Add(m.Value)
	}
}

// Merge adds other sums.
func (s *Sums) Merge(others Sums) {
	for _, o := range others {
		s.Of(o.Currency).Merge(o)
	}
}

// In returns the sum in a currency, nothing where it is none of them.
func (s Sums) In(currency uint32) Sum {
	for _, c := range s {
		if uint32(c.Currency) == currency {
			return c
		}
	}
	return Sum{}
}
