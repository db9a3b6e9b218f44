package quality

import (
	"math"
	"slices"
)

// Signal is what of an event has changed.
type Signal string

// The signals.
const (
	Volume     Signal = "volume"
	ClientID   Signal = "client_id"
	Email      Signal = "email"
	ClickID    Signal = "click_id"
	Duplicates Signal = "duplicates"
	Refused    Signal = "refused"
	Currency   Signal = "currency"
)

// What the rules go by. Each finding takes both: a difference that matters, and one that chance does not make.
const (
	// surely is the logarithm of how likely what is found may be at most where nothing is wrong: one in a million.
	surely = -13.8
	// volumeKept is below which part of the median the volume is wrong; volumeDoubt is which part of it traffic is taken to fall to
	// by itself, as on a holiday.
	volumeKept, volumeDoubt = 0.5, 0.7
	// identifiersKept is below which part of the usual one a share of events with a client id or an e-mail address is wrong, and
	// clicksKept one with a click id, which campaigns move.
	identifiersKept, clicksKept = 0.75, 0.4
	// leastShare is the smallest usual share that can fall.
	leastShare = 0.05
	// tripled is how much a share of duplicates or refusals has to grow, and leastDuplicates and leastRefused what it has to reach.
	tripled, leastDuplicates, leastRefused = 3, 0.1, 0.05
	// newCurrency is the part of the events that a currency has to take over which was hardly there, foreignShare what hardly is;
	// more what another one has to gain. usualCurrency is the share from which a currency is a usual one, which is gone below half.
	newCurrency, foreignShare, more = 0.1, 0.01, 0.2
	usualCurrency, currencyKept     = 0.3, 0.5
	// leastExpected is how many events have to be expected, or seen, for a window to say that nothing is wrong.
	leastExpected = 8
	// leastPast is how many events the weeks before need for a share to be known.
	leastPast = 30
)

// verdict is what one window says of one signal.
type verdict struct {
	// wrong says that there is a difference that matters, sure that chance does not make it. fine says that there is none by far:
	// what was wrong before is over.
	wrong, sure, fine bool
	// actual and expected are counts of the volume, else shares. of is how many events there were.
	actual, expected float64
	of               int64
	currency         string
}

// compared are the counts of an event in a window, and what they are compared with.
type compared struct {
	now Counts
	// median is how many are stored in such a time.
	median float64
	// past are the counts of the hours of the weeks before, each as many times as the window has spans in it; times is how often
	// it was counted so. before and after are the same of the hours before and after these.
	past, before, after Counts
	times               float64
	// spans are the counts of the parts of the window.
	spans []*Counts
}

// usual is how large a part of the events was in the weeks before, at this hour and between the hour before and the one behind it: where
// it changes within an hour nobody knows when. least and most are without what may be chance.
type usual struct{ share, low, high, least, most float64 }

// usual returns that of a part of a number; known is false where there are too few to tell.
func (c *compared) usual(part, number func(*Counts) int64) (u usual, known bool) {
	for i, past := range [...]*Counts{&c.past, &c.before, &c.after} {
		n := float64(number(past)) / c.times
		if n < leastPast {
			if i == 0 {
				return u, false
			}
			continue
		}
		share, margin := estimate(float64(part(past))/c.times, n)
		if i == 0 {
			u = usual{share, share, share, share - margin, share + margin}
			continue
		}
		u.low, u.high = min(u.low, share), max(u.high, share)
		u.least, u.most = min(u.least, share-margin), max(u.most, share+margin)
	}
	return u, true
}

// stored is how many are stored.
func stored(c *Counts) int64 { return c.Stored }

// judgeVolume says whether there are too few.
func judgeVolume(c *compared) verdict {
	n := float64(c.now.Stored)
	// The median of four counts is itself a matter of chance.
	least := volumeDoubt * (c.median - math.Sqrt(c.median))
	return verdict{
		wrong: n < volumeKept*c.median, sure: poissonAtMost(n, least) < surely,
		fine:   c.median >= leastExpected && n > middle(volumeKept)*c.median,
		actual: n, expected: c.median, of: c.now.Stored,
	}
}

// seesLossOf says whether the loss of all events would be found where a number is expected.
func seesLossOf(median float64) bool {
	return poissonAtMost(0, volumeDoubt*(median-math.Sqrt(median))) < surely
}

// middle is half-way between a part and the whole.
func middle(part float64) float64 { return (1 + part) / 2 } //nolint:mnd // a half

// judgeFall says whether a share has fallen below a part of what it was.
func judgeFall(part func(*Counts) int64, c *compared, kept float64) verdict {
	x, n := float64(part(&c.now)), float64(c.now.Stored)
	u, known := c.usual(part, stored)
	v := verdict{expected: u.share, of: c.now.Stored}
	if n == 0 || !known || u.low < leastShare {
		return v
	}
	v.actual = x / n
	v.wrong = v.actual < kept*u.low
	v.sure = binomialAtMost(x, n, middle(kept)*u.least) < surely
	v.fine = n*u.low >= leastExpected && v.actual > middle(kept)*u.low
	return v
}

// judgeRise says whether a share has grown, and not in one part of the window alone: a request that is repeated is over when it
// is.
func judgeRise(part, number func(*Counts) int64, c *compared, least float64) verdict {
	x, n := part(&c.now), number(&c.now)
	u, known := c.usual(part, number)
	v := verdict{expected: u.share, of: n}
	if n == 0 || !known {
		return v
	}
	v.actual = float64(x) / float64(n)
	limit := max(tripled*u.high, least)
	rest, restOf := x, n
	if at := largest(c.spans, part); at >= 0 {
		rest -= part(c.spans[at])
		restOf -= number(c.spans[at])
	}
	spread := float64(rest) > limit*float64(max(restOf, 1)) && rest*3 > x //nolint:mnd // a third
	doubt := max(middle(1/float64(tripled))*limit, u.most)
	v.wrong = v.actual > limit && spread
	v.sure = doubt < 1 && binomialAtLeast(float64(x), float64(n), doubt) < surely && binomialAtLeast(float64(rest), float64(restOf), doubt) < surely/2
	v.fine = n >= leastExpected && v.actual < middle(1/float64(tripled))*limit
	return v
}

// largest returns the place of the span that has the most, -1 where there is none.
func largest(spans []*Counts, part func(*Counts) int64) int {
	at := -1
	for i, span := range spans {
		if at < 0 || part(span) > part(spans[at]) {
			at = i
		}
	}
	return at
}

// judgeCurrency says whether the mix of currencies is another: the currency that has changed the most.
func judgeCurrency(c *compared) verdict {
	best := verdict{of: c.now.Stored}
	if c.now.Stored == 0 || c.past.In("")*2 > c.past.Stored { // an event that has no currency as a rule
		return best
	}
	best.fine = c.now.Stored >= leastExpected
	for _, code := range codes(c) {
		v := judgeShareOf(code, c)
		best.fine = best.fine && v.fine
		better := v.wrong && (!best.wrong || v.sure && !best.sure)
		if better || v.wrong && v.sure == best.sure && math.Abs(v.actual-v.expected) > math.Abs(best.actual-best.expected) {
			v.fine, v.of = best.fine, best.of
			best = v
		}
	}
	best.fine = best.fine && !best.wrong
	return best
}

// codes are all currencies of now and of the past, and none.
func codes(c *compared) []string {
	list := []string{""}
	for _, of := range [][]CurrencyCount{c.past.Currencies, c.now.Currencies} {
		for _, currency := range of {
			if !slices.Contains(list, currency.Code) {
				list = append(list, currency.Code)
			}
		}
	}
	return list
}

// judgeShareOf says whether the share of a currency is another.
func judgeShareOf(code string, c *compared) verdict {
	n, x := float64(c.now.Stored), float64(c.now.In(code))
	u, known := c.usual(func(c *Counts) int64 { return c.In(code) }, stored)
	v := verdict{actual: x / n, expected: u.share, currency: code}
	if !known {
		return v
	}
	gained, doubt := more, u.most+more/2
	if u.most < foreignShare || u.high < foreignShare/2 {
		gained, doubt = newCurrency-u.high, max(u.most, newCurrency/2)
	}
	switch {
	case v.actual > u.high+gained:
		v.wrong, v.sure = true, doubt < 1 && binomialAtLeast(x, n, doubt) < surely
	case u.low >= usualCurrency && v.actual < currencyKept*u.low:
		v.wrong, v.sure = true, binomialAtMost(x, n, middle(currencyKept)*u.least) < surely
	}
	v.fine = v.actual < u.high+gained/2 && v.actual > u.low-gained/2
	return v
}
