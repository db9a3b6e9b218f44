package quality

import (
	"math/rand/v2"
	"testing"
	"time"
)

// keep leaves a part of what was stored.
func keep(r *rand.Rand, c *Counts, part float64) {
	stored := binomial(r, c.Stored, part)
	left := c.Stored
	c.Client, c.Email, c.Click = c.Client*stored/max(left, 1), c.Email*stored/max(left, 1), c.Click*stored/max(left, 1)
	c.Duplicates = binomial(r, c.Duplicates, part)
	for i := range c.Currencies {
		c.Currencies[i].Count = c.Currencies[i].Count * stored / max(left, 1)
	}
	c.Stored = stored
}

// turn gives a part of the events another currency, "" for none.
func turn(r *rand.Rand, c *Counts, part float64, code string) {
	turned := binomial(r, c.Stored, part)
	c.Currencies = nil
	if c.Stored > turned {
		c.addCurrency("EUR", c.Stored-turned)
	}
	if code != "" && turned > 0 {
		c.addCurrency(code, turned)
	}
}

// TestFaultsAreRaisedWithinHalfAnHour puts a fault into a shop of 100 purchases and 6,000 page views an hour on a working day, whose traffic
// is otherwise the clean one.
func TestFaultsAreRaisedWithinHalfAnHour(t *testing.T) {
	t.Parallel()
	type fault = func(c *Counts, r *rand.Rand)
	cases := map[string]struct {
		event  string
		signal Signal
		inject fault
	}{
		"a deploy has lost the tag of all page views":                           {"pageview", Volume, func(c *Counts, r *rand.Rand) { keep(r, c, 0) }},
		"the tag is only on a third of the pages":                               {"pageview", Volume, func(c *Counts, r *rand.Rand) { keep(r, c, .33) }},
		"a banner of consent holds up three fifths of the page views":           {"pageview", Volume, func(c *Counts, r *rand.Rand) { keep(r, c, .4) }},
		"the button of the basket tells nobody":                                 {"add_to_cart", Volume, func(c *Counts, r *rand.Rand) { keep(r, c, 0) }},
		"one of two shops' baskets and half of the other's are not reported":    {"add_to_cart", Volume, func(c *Counts, r *rand.Rand) { keep(r, c, .25) }},
		"the shop's webhook of purchases was deleted":                           {"purchase", Volume, func(c *Counts, r *rand.Rand) { keep(r, c, 0) }},
		"the payment provider sends nobody back to the page of thanks":          {"purchase", Volume, func(c *Counts, r *rand.Rand) { keep(r, c, .05) }},
		"purchases are sent under another name":                                 {"purchase", Volume, func(c *Counts, r *rand.Rand) { keep(r, c, 0) }},
		"no page view has a client id any more":                                 {"pageview", ClientID, func(c *Counts, _ *rand.Rand) { c.Client = 0 }},
		"half of the page views have lost their client id":                      {"pageview", ClientID, func(c *Counts, r *rand.Rand) { c.Client = binomial(r, c.Client, .5) }},
		"no purchase has a client id any more":                                  {"purchase", ClientID, func(c *Counts, _ *rand.Rand) { c.Client = 0 }},
		"purchases come without an e-mail address":                              {"purchase", Email, func(c *Counts, _ *rand.Rand) { c.Email = 0 }},
		"seven in ten purchases come without an e-mail address":                 {"purchase", Email, func(c *Counts, r *rand.Rand) { c.Email = binomial(r, c.Email, .3) }},
		"page views of people who are signed in come without an e-mail address": {"pageview", Email, func(c *Counts, _ *rand.Rand) { c.Email = 0 }},
		"a redirect drops the click ids of all pages":                           {"pageview", ClickID, func(c *Counts, _ *rand.Rand) { c.Click = 0 }},
		"a redirect drops four in five click ids":                               {"pageview", ClickID, func(c *Counts, r *rand.Rand) { c.Click = binomial(r, c.Click, .2) }},
		"baskets lose the click ids":                                            {"add_to_cart", ClickID, func(c *Counts, _ *rand.Rand) { c.Click = 0 }},
		"a tag that is there twice sends every page view a second time":         {"pageview", Duplicates, func(c *Counts, _ *rand.Rand) { c.Duplicates += c.Stored }},
		"a queue sends a fifth of the page views again and again":               {"pageview", Duplicates, func(c *Counts, r *rand.Rand) { c.Duplicates += binomial(r, c.Stored, .2) }},
		"the page of thanks is loaded again, and sends the purchase again":      {"purchase", Duplicates, func(c *Counts, r *rand.Rand) { c.Duplicates += binomial(r, c.Stored, .9) }},
		"a plugin's new version sends the value as a text in local spelling":    {"purchase", Refused, func(c *Counts, r *rand.Rand) { c.Refused += c.Stored; keep(r, c, 0) }},
		"two in five purchases are refused, as they have no order's currency":   {"purchase", Refused, func(c *Counts, r *rand.Rand) { n := c.Stored; keep(r, c, .6); c.Refused += n - c.Stored }},
		"a tenth of the page views is refused":                                  {"pageview", Refused, func(c *Counts, r *rand.Rand) { n := c.Stored; keep(r, c, .9); c.Refused += n - c.Stored }},
		"all purchases come in dollars":                                         {"purchase", Currency, func(c *Counts, r *rand.Rand) { turn(r, c, 1, "USD") }},
		"half of the purchases come in dollars":                                 {"purchase", Currency, func(c *Counts, r *rand.Rand) { turn(r, c, .5, "USD") }},
		"a fifth of the baskets comes in a currency that was never there":       {"add_to_cart", Currency, func(c *Counts, r *rand.Rand) { turn(r, c, .2, "GBP") }},
		"purchases come without a currency":                                     {"purchase", Currency, func(c *Counts, r *rand.Rand) { turn(r, c, 1, "") }},
		"three in five baskets come without a currency":                         {"add_to_cart", Currency, func(c *Counts, r *rand.Rand) { turn(r, c, .6, "") }},
	}
	if len(cases) < 20 {
		t.Fatalf("%d faults", len(cases))
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			// Not at a slot's beginning: the worst case is a fault just behind one.
			for seed, since := range []time.Time{
				time.Date(2026, 3, 31, 9, 0, 1, 0, time.UTC), time.Date(2026, 3, 31, 12, 31, 0, 0, time.UTC), time.Date(2026, 4, 1, 17, 14, 0, 0, time.UTC),
			} {
				s := &shop{
					seed: uint64(seed), zone: zone(t, "Europe/Berlin"), products: products(100), noise: .1, began: simulated.Add(-5 * 7 * 24 * time.Hour),
					since: since.Truncate(SlotLength).Add(SlotLength), // the slot in which it begins is left clean
					fault: func(event string, c *Counts, r *rand.Rand) {
						if event == test.event {
							test.inject(c, r)
						}
					},
				}
				raisedWithin(t, s, since, test.event, test.signal)
			}
		})
	}
}

// raisedWithin looks for a finding from a fault's beginning on, for half an hour.
func raisedWithin(t *testing.T, s *shop, since time.Time, event string, signal Signal) {
	t.Helper()
	judge := NewJudge(newRecord(s), s.zone)
	const delay = 30 * time.Second // after a slot's end
	var last Report
	for at := since.Truncate(SlotLength).Add(delay); !at.After(since.Add(30 * time.Minute)); at = at.Add(SlotLength) {
		report, err := judge.At(t.Context(), at)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range report.Findings {
			if at.Before(since) {
				t.Errorf("found before the fault: %+v", f)
			}
			if f.Event == event && f.Signal == signal {
				return
			}
		}
		last = report
	}
	t.Errorf("seed %d: not found within half an hour of %s; there is %+v", s.seed, since, last)
}
