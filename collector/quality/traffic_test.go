package quality

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

// product is an event of a made-up shop: how often it comes at a usual hour of the day, and what it has.
type product struct {
	name                             string
	hourly                           float64
	client, email, click, duplicates float64
	refused                          float64
	// currencies are shares; what is left has none. night are those between midnight and six, where they differ.
	currencies, night map[string]float64
}

// shop makes up traffic: any slot of it can be made at any time, and is the same whenever it is made.
type shop struct {
	seed     uint64
	zone     *time.Location
	products []product
	// began is when it began to count, growth by which part it grows in a week, noise how far an hour is off by chance.
	began         time.Time
	growth, noise float64
	// sale is 24 hours of twice the traffic, holiday a local day of seven tenths of it, burst a slot in which everything is sent twice
	// to a third; zero for none.
	sale, holiday, burst time.Time
	// opens is the minute of the day before which nothing comes.
	opens int
	// away is a slot in which Redis was away, down one in which nobody counted, and how many slots that lasted.
	away, down time.Time
	lasts      int
	// fault changes what a slot would be, from since on; nil for nothing.
	fault func(event string, c *Counts, r *rand.Rand)
	since time.Time
}

// rate is how much comes at a time, 1 at a usual hour.
func (s *shop) rate(at time.Time) float64 {
	local := at.In(s.zone)
	hour := float64(local.Hour()) + float64(local.Minute())/60
	rate := 1 + .85*math.Sin((hour-9)/24*2*math.Pi)
	switch {
	case hour*60 < float64(s.opens):
		return 0
	case local.Weekday() == time.Saturday, local.Weekday() == time.Sunday:
		rate *= .65
	}
	if !s.sale.IsZero() && !at.Before(s.sale) && at.Before(s.sale.Add(24*time.Hour)) {
		rate *= 2
	}
	if !s.holiday.IsZero() && local.YearDay() == s.holiday.In(s.zone).YearDay() {
		rate *= .7
	}
	rate *= math.Pow(1+s.growth, at.Sub(s.began).Hours()/24/7)
	return rate * math.Exp(s.noise*(s.chance(at)+s.chance(at.Add(time.Hour)))/math.Sqrt2)
}

// chance is by how much an hour is off.
func (s *shop) chance(at time.Time) float64 {
	return rand.New(rand.NewPCG(s.seed, uint64(at.Truncate(time.Hour).Unix()))).NormFloat64()
}

// campaigns are by how much a day's campaigns change the share of clicks: by three eighths at most.
func (s *shop) campaigns(at time.Time) float64 {
	const most = .375
	return 1 + min(max(.15*s.chance(at.Truncate(24*time.Hour)), -most), most)
}

// slot makes up a slot.
func (s *shop) slot(start time.Time) Period {
	p := Period{Counted: !start.Before(s.began), Events: map[string]*Counts{}}
	within := func(at time.Time) bool {
		return !at.IsZero() && !start.Before(at) && start.Before(at.Add(time.Duration(s.lasts)*SlotLength))
	}
	switch {
	case !p.Counted || within(s.down):
		p.Counted = false
		return p
	case within(s.away):
		p.Lost = 50
		return p
	}
	r := rand.New(rand.NewPCG(s.seed+1, uint64(start.Unix())))
	rate := s.rate(start.Add(SlotLength/2)) / 12
	for i := range s.products {
		product := &s.products[i]
		c := &Counts{Stored: poisson(r, product.hourly*rate)}
		c.Client, c.Email, c.Click = binomial(r, c.Stored, product.client), binomial(r, c.Stored, product.email), binomial(r, c.Stored, product.click*s.campaigns(start))
		c.Duplicates, c.Refused = binomial(r, c.Stored, product.duplicates), binomial(r, c.Stored, product.refused)
		if !s.burst.IsZero() && start.Equal(s.burst) {
			c.Duplicates += c.Stored / 2
		}
		shares := product.currencies
		if product.night != nil && start.In(s.zone).Hour() < 6 {
			shares = product.night
		}
		left, rest := c.Stored, 1.0
		for _, code := range []string{"EUR", "CHF", "GBP", "USD"} {
			if shares[code] == 0 {
				continue
			}
			if n := binomial(r, left, min(1, shares[code]/rest)); n > 0 {
				c.addCurrency(code, n)
				left -= n
			}
			rest -= shares[code]
		}
		if s.fault != nil && !start.Before(s.since) {
			s.fault(product.name, c, r)
		}
		p.Events[product.name] = c
	}
	return p
}

// record is what a shop's collectors have kept: a [Source].
type record struct {
	shop  *shop
	slots map[int64]*Period
	hours map[int64]*Period
}

func newRecord(s *shop) *record { return &record{s, map[int64]*Period{}, map[int64]*Period{}} }

func (r *record) at(start time.Time) *Period {
	p := r.slots[start.Unix()]
	if p == nil {
		made := r.shop.slot(start)
		p = &made
		r.slots[start.Unix()] = p
	}
	return p
}

// Slots implements [Source].
func (r *record) Slots(_ context.Context, starts []time.Time) ([]Period, error) {
	list := make([]Period, len(starts))
	for i, start := range starts {
		list[i] = *r.at(start)
	}
	return list, nil
}

// Hours implements [Source].
func (r *record) Hours(_ context.Context, starts []time.Time) ([]Period, error) {
	list := make([]Period, len(starts))
	for i, start := range starts {
		list[i] = *r.hour(start)
	}
	return list, nil
}

func (r *record) hour(start time.Time) *Period {
	if p := r.hours[start.Unix()]; p != nil {
		return p
	}
	sum := &Period{Events: map[string]*Counts{}}
	for i := range 12 {
		p := r.at(start.Add(time.Duration(i) * SlotLength))
		sum.Counted = sum.Counted || p.Counted
		sum.Lost += p.Lost
		for name, c := range p.Events {
			if sum.Events[name] == nil {
				sum.Events[name] = &Counts{}
			}
			sum.Events[name].addTimes(c, 1)
			sum.Events[name].Quarters[i/3] += c.Stored
		}
	}
	r.hours[start.Unix()] = sum
	return sum
}

// poisson draws from Poisson's distribution.
func poisson(r *rand.Rand, mean float64) int64 {
	if mean > 60 {
		return max(0, int64(math.Round(mean+math.Sqrt(mean)*r.NormFloat64())))
	}
	n, left := int64(0), math.Exp(-mean)
	for p := r.Float64(); p > left; p *= r.Float64() {
		n++
	}
	return n
}

// binomial draws from the binomial distribution.
func binomial(r *rand.Rand, n int64, p float64) int64 {
	if n > 200 {
		mean := float64(n) * p
		return min(n, max(0, int64(math.Round(mean+math.Sqrt(mean*(1-p))*r.NormFloat64()))))
	}
	x := int64(0)
	for range n {
		if r.Float64() < p {
			x++
		}
	}
	return x
}

func zone(t testing.TB, name string) *time.Location {
	t.Helper()
	loc, err := time.LoadLocation(name)
	if err != nil {
		t.Fatal(err)
	}
	return loc
}

// products of a shop that has a number of purchases an hour.
func products(purchases float64) []product {
	euros := map[string]float64{"EUR": 1}
	return []product{
		{name: "pageview", hourly: 60 * purchases, client: .97, email: .08, click: .25, duplicates: .002},
		{name: "add_to_cart", hourly: 6 * purchases, client: .98, email: .15, click: .25, duplicates: .002, currencies: euros},
		{name: "purchase", hourly: purchases, client: .95, email: .99, click: .2, duplicates: .02, refused: .005, currencies: euros},
		{name: "refund", hourly: purchases / 20, email: .9, currencies: euros},
	}
}
