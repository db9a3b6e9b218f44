package analytics

import (
	"cmp"
	"math/big"
	"slices"
	"strings"
	"time"

	"github.com/weir-dev/weir/collector/event"
)

// windowTouch is a touch in a [touchWindow].
type windowTouch struct {
	at time.Time
	// number is the touch's, equal for equal source, medium and campaign; group is what its credit goes to.
	number, group uint32
	// begins says that it differs from the touch before it, whether that is still in the window or not.
	begins bool
}

// touchWindow holds one visitor's touches within the lookback of one conversion and moves on to the next. It
// counts the merged touches: the first in the window, and each further one that differs from the one before.
type touchWindow struct {
	touches []windowTouch
	// first is where the window begins in touches.
	first int
	// counts holds the number of merged touches per group; merged is their sum.
	counts map[uint32]int
	merged int
}

func (w *touchWindow) clear() {
	w.touches, w.first, w.merged = w.touches[:0], 0, 0
	if w.counts == nil {
		w.counts = map[uint32]int{}
	}
	clear(w.counts)
}

// enter adds the newest touch.
func (w *touchWindow) enter(t windowTouch) {
	last := len(w.touches) - 1
	t.begins = last < 0 || w.touches[last].number != t.number
	w.touches = append(w.touches, t)
	if t.begins || w.first == last+1 {
		w.count(t.group, 1)
	}
}

// leaveBefore takes out the touches that are older than t.
func (w *touchWindow) leaveBefore(t time.Time) {
	for w.first < len(w.touches) && w.touches[w.first].at.Before(t) {
		w.count(w.touches[w.first].group, -1)
		w.first++
		// The touch that is now the first counts in any case; if it begins a run it has been counted.
		if w.first < len(w.touches) && !w.touches[w.first].begins {
			w.count(w.touches[w.first].group, 1)
		}
	}
}

func (w *touchWindow) count(group uint32, change int) {
	w.merged += change
	w.counts[group] += change
	if w.counts[group] == 0 {
		delete(w.counts, group)
	}
}

// len is the number of merged touches.
func (w *touchWindow) len() int { return w.merged }

// ends returns the groups of the first and the last touch; some is false where the window is empty.
func (w *touchWindow) ends() (first, last uint32, some bool) {
	if w.first == len(w.touches) {
		return 0, 0, false
	}
	return w.touches[w.first].group, w.touches[len(w.touches)-1].group, true
}

func compareCreditKeys(a, b creditKey) int {
	return cmp.Or(cmp.Compare(a.parts, b.parts), cmp.Compare(a.group, b.group))
}

// share is a name's exact part of the conversions and of their revenue, in ten-thousandths.
type share struct {
	name                 string
	conversions, revenue *big.Rat
}

func newShare(name string) *share {
	return &share{name: name, conversions: new(big.Rat), revenue: new(big.Rat)}
}

// add adds a credit that counts parts-th parts.
func (s *share) add(c *credit, parts int) {
	s.conversions.Add(s.conversions, big.NewRat(c.parts, int64(parts)))
	s.revenue.Add(s.revenue, new(big.Rat).SetFrac(c.revenue.Big(), big.NewInt(int64(parts))))
}

// resultsOf rounds the shares so that they add up to the total.
func resultsOf(shares []*share, total Attribution) []AttributionResult {
	if len(shares) == 0 {
		return nil
	}
	slices.SortFunc(shares, func(a, b *share) int { return strings.Compare(a.name, b.name) })
	conversions, revenue := make([]*big.Rat, len(shares)), make([]*big.Rat, len(shares))
	for i, s := range shares {
		conversions[i], revenue[i] = s.conversions, s.revenue
	}
	credits := apportion(conversions, big.NewRat(1, creditUnit))
	// Values are kept to a hundredth of a cent. Where such a total is not in whole cents, cents cannot add up to it.
	unit := int64(cent)
	if new(big.Int).Rem(total.Revenue.Big(), big.NewInt(cent)).Sign() != 0 {
		unit = 1
	}
	money := apportion(revenue, big.NewRat(unit, 1))

	results := make([]AttributionResult, len(shares))
	for i, s := range shares {
		results[i] = AttributionResult{
			Name: s.name, Conversions: Credit(credits[i].Int64()),
			Revenue: event.SumOf(new(big.Int).Mul(money[i], big.NewInt(unit))),
			Share:   rateOf(credits[i].Int64(), int64(total.Conversions)*creditUnit),
		}
	}
	slices.SortStableFunc(results, func(a, b AttributionResult) int {
		return cmp.Or(cmp.Compare(b.Conversions, a.Conversions), b.Revenue.Big().Cmp(a.Revenue.Big()))
	})
	return results
}

// apportion rounds amounts that add up to a whole number of units to whole units, by largest remainder: each is
// rounded down, and the units that are then missing go to those with the largest remainders, the first of
// equals. The result counts units.
func apportion(exact []*big.Rat, unit *big.Rat) []*big.Int {
	counts, remainders := make([]*big.Int, len(exact)), make([]*big.Rat, len(exact))
	order := make([]int, len(exact))
	missing := new(big.Rat)
	for i, amount := range exact {
		units := new(big.Rat).Quo(amount, unit)
		counts[i] = new(big.Int).Div(units.Num(), units.Denom())
		remainders[i] = units.Sub(units, new(big.Rat).SetInt(counts[i]))
		missing.Add(missing, remainders[i])
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return remainders[b].Cmp(remainders[a]) })
	for _, i := range order[:int(missing.Num().Int64())] {
		counts[i].Add(counts[i], big.NewInt(1))
	}
	return counts
}
