package analytics

import (
	"cmp"
	"math/big"
	"math/bits"
	"slices"
	"strings"

	"github.com/weir-dev/weir/collector/event"
)

const (
	// fewParts is into how many parts a conversion may be shared for its shares to be counted in fixed units: every
	// number up to it divides wholeUnits, the least number of which that is true.
	fewParts   = 36
	wholeUnits = 144_403_552_893_600
)

// units is a sum of shares in wholeUnits-ths. It has room for 2^30 of the largest values.
type units struct {
	high int64
	low  uint64
}

// add adds a count of wholes, each share units.
func (u *units) add(count event.Amount, share uint64) {
	high, low := bits.Mul64(uint64(count), share)
	if count < 0 {
		high -= share
	}
	u.merge(units{int64(high), low})
}

func (u *units) merge(o units) {
	var carry uint64
	u.low, carry = bits.Add64(u.low, o.low, 0)
	u.high += o.high + int64(carry)
}

func (u *units) subtract(o units) {
	var borrow uint64
	u.low, borrow = bits.Sub64(u.low, o.low, 0)
	u.high -= o.high + int64(borrow)
}

func (u units) big() *big.Int {
	n := new(big.Int).Lsh(big.NewInt(u.high), 64)
	return n.Add(n, new(big.Int).SetUint64(u.low))
}

// credit is of conversions, and of their revenue in ten-thousandths.
type credit struct{ conversions, revenue units }

// add adds a share of a conversion.
func (c *credit) add(share uint64, value event.Amount) {
	c.conversions.add(1, share)
	c.revenue.add(value, share)
}

func (c *credit) merge(o credit) {
	c.conversions.merge(o.conversions)
	c.revenue.merge(o.revenue)
}

func (c *credit) subtract(o credit) {
	c.conversions.subtract(o.conversions)
	c.revenue.subtract(o.revenue)
}

// exactCredit is a credit of any fineness. Whoever holds it knows what its units are parts of.
type exactCredit struct{ conversions, revenue *big.Int }

// namedCredit is the credit of one name.
type namedCredit struct {
	name string
	exactCredit
}

// exactResult is a result with its credit of conversions before rounding.
type exactResult struct {
	AttributionResult
	exact *big.Int
}

// resultsOf rounds the credits, which are in parts of whole, so that they add up to the total: conversions to millionths,
// money to the currency's minor unit.
func resultsOf(credits []namedCredit, whole *big.Int, total Attribution, minorUnit event.Amount) []exactResult {
	slices.SortFunc(credits, func(a, b namedCredit) int { return strings.Compare(a.name, b.name) })
	conversions, revenue := make([]*big.Int, len(credits)), make([]*big.Int, len(credits))
	for i, c := range credits {
		conversions[i] = new(big.Int).Mul(c.conversions, big.NewInt(creditUnit))
		revenue[i] = c.revenue
	}
	counts := apportion(conversions, whole, big.NewInt(int64(total.Conversions)*creditUnit))
	unit := unitFor(total.Revenue, minorUnit)
	money := apportion(revenue, new(big.Int).Mul(whole, unit), new(big.Int).Quo(total.Revenue.Big(), unit))
	all := new(big.Int).Mul(whole, big.NewInt(int64(total.Conversions)))

	results := make([]exactResult, len(credits))
	for i, c := range credits {
		results[i] = exactResult{AttributionResult{
			Name: c.name, Conversions: Credit(counts[i].Int64()),
			Revenue: event.SumOf(new(big.Int).Mul(money[i], unit)),
			Share:   exactRate(c.conversions, all),
		}, c.conversions}
	}
	slices.SortStableFunc(results, func(a, b exactResult) int {
		return cmp.Or(cmp.Compare(b.Conversions, a.Conversions), b.Revenue.Big().Cmp(a.Revenue.Big()))
	})
	return results
}

// unitFor returns, in ten-thousandths, what credits of a total are rounded to: the minor unit or, where callers have sent
// smaller fractions and the total has some, the decimal place that it ends in. Whole minor units cannot add up to it then.
func unitFor(total event.Sum, minorUnit event.Amount) *big.Int {
	for unit := int64(minorUnit); ; unit /= 10 {
		if divisor := big.NewInt(unit); new(big.Int).Rem(total.Big(), divisor).Sign() == 0 {
			return divisor
		}
	}
}

// apportion rounds amounts to counts of unit that add up to a total count, by largest remainder: each is rounded down, and
// the units that are then missing go to those with the largest remainders, the first of equals. The amounts add up to the
// total, except for what the smallest shares have lost to rounding.
func apportion(exact []*big.Int, unit, total *big.Int) []*big.Int {
	counts, remainders := make([]*big.Int, len(exact)), make([]*big.Int, len(exact))
	order := make([]int, len(exact))
	missing := new(big.Int).Set(total)
	for i, amount := range exact {
		counts[i], remainders[i] = new(big.Int).DivMod(amount, unit, new(big.Int))
		missing.Sub(missing, counts[i])
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return remainders[b].Cmp(remainders[a]) })
	for _, i := range order[:int(missing.Int64())] {
		counts[i].Add(counts[i], big.NewInt(1))
	}
	return counts
}
