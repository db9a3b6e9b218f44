package analytics

import (
	"slices"
	"strings"

	"github.com/weir-dev/weir/collector/event"
)

// currencySums add up money by the numbers of currencies. There are few of them, so they are a list.
type currencySums []currencySum

type currencySum struct {
	currency uint16
	// count is how many values were added.
	count uint32
	sum   event.Sum
}

// add adds a value.
func (c *currencySum) add(value event.Amount) {
	c.count++
	c.sum.Add(value)
}

// merge adds another sum in the same currency.
func (c *currencySum) merge(other currencySum) {
	c.count += other.count
	c.sum.Merge(other.sum)
}

// of returns the sum in a currency, to be added to before another is asked for.
func (s *currencySums) of(currency uint16) *currencySum {
	i := slices.IndexFunc(*s, func(c currencySum) bool { return c.currency == currency })
	if i < 0 {
		i = len(*s)
		*s = append(*s, currencySum{currency: currency})
	}
	return &(*s)[i]
}

// merge adds other sums.
func (s *currencySums) merge(others currencySums) {
	for _, o := range others {
		s.of(o.currency).merge(o)
	}
}

// in returns the sum in a currency, nothing where it is none of them.
func (s currencySums) in(currency uint32) event.Sum {
	for _, c := range s {
		if uint32(c.currency) == currency {
			return c.sum
		}
	}
	return event.Sum{}
}

// byCode returns the sums in the order of their currencies' codes.
func (s currencySums) byCode(codes []string) []CurrencySum {
	var list []CurrencySum
	for _, c := range s {
		list = append(list, CurrencySum{codes[c.currency], c.sum})
	}
	slices.SortFunc(list, func(a, b CurrencySum) int { return strings.Compare(a.Currency, b.Currency) })
	return list
}
