package quality

import (
	"flag"
	"testing"
	"time"
)

// simulated is when the thirty days begin that are judged. In March the clocks change in them, and within the weeks before.
var simulated = time.Date(2026, 3, 10, 0, 0, 0, 0, time.UTC)

var seeds = flag.Uint64("seeds", 1, "how many pasts of each shop are judged")

// TestCleanTrafficRaisesNothing judges thirty days of traffic in which nothing is wrong, every five minutes.
func TestCleanTrafficRaisesNothing(t *testing.T) {
	t.Parallel()
	berlin := zone(t, "Europe/Berlin")
	mixed := products(60)
	for i := range mixed[1:] {
		mixed[i+1].currencies = map[string]float64{"EUR": .55, "CHF": .3, "GBP": .12}
		mixed[i+1].night = map[string]float64{"EUR": .2, "CHF": .1, "USD": .6}
	}
	cases := map[string]shop{
		"a large shop by day and night, at the weekend too":               {zone: berlin, products: products(400), noise: .08},
		"a shop of 60 purchases an hour that grows by 5 % a week":         {zone: zone(t, "America/New_York"), products: products(60), growth: .05, noise: .1},
		"a shop of 60 purchases an hour that shrinks by 5 % a week":       {zone: zone(t, "America/New_York"), products: products(60), growth: -.05, noise: .1},
		"a shop with a sale on a Thursday, which doubles its traffic":     {zone: berlin, products: products(60), noise: .1, sale: simulated.Add(9 * 24 * time.Hour)},
		"a shop on a public holiday, with seven tenths of its traffic":    {zone: berlin, products: products(60), noise: .08, holiday: time.Date(2026, 4, 3, 12, 0, 0, 0, berlin)},
		"a shop that buys in other currencies by night":                   {zone: zone(t, "Asia/Kolkata"), products: mixed, noise: .1},
		"a small shop of 3 purchases an hour":                             {zone: berlin, products: products(3), noise: .15},
		"a shop of 3 purchases a day":                                     {zone: zone(t, "Australia/Lord_Howe"), products: products(.12), noise: .2},
		"a shop of 20 purchases an hour that is closed by night":          {zone: berlin, products: products(20), noise: .1, opens: 6 * 60},
		"a large shop that opens at twenty to seven":                      {zone: berlin, products: products(400), noise: .08, opens: 6*60 + 40},
		"a sender that sends half of five minutes' events a second time":  {zone: berlin, products: products(60), noise: .1, burst: simulated.Add(100 * time.Hour)},
		"a Redis that was away for ten minutes, whose events come later":  {zone: berlin, products: products(60), noise: .1, away: simulated.Add(100 * time.Hour), lasts: 2},
		"collectors that were away for two hours":                         {zone: berlin, products: products(60), noise: .1, down: simulated.Add(100 * time.Hour), lasts: 24},
		"a shop that is new: it began to count ten days before":           {zone: berlin, products: products(60), noise: .1, began: simulated.Add(-10 * 24 * time.Hour)},
		"a shop that counts for the first time while this one is watched": {zone: berlin, products: products(60), noise: .1, began: simulated.Add(24 * time.Hour)},
	}
	for name, made := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for seed := range *seeds {
				one := made
				one.seed = 100*seed + uint64(len(name))
				if one.began.IsZero() {
					one.began = simulated.Add(-5 * 7 * 24 * time.Hour)
				}
				judgeClean(t, &one)
			}
		})
	}
}

func judgeClean(t *testing.T, s *shop) {
	t.Helper()
	judge := NewJudge(newRecord(s), s.zone)
	watched := 0
	for at := simulated; at.Before(simulated.Add(30 * 24 * time.Hour)); at = at.Add(SlotLength) {
		report, err := judge.At(t.Context(), at.Add(30*time.Second))
		if err != nil {
			t.Fatal(err)
		}
		if report.State == Watching {
			watched++
		}
		for _, f := range report.Findings {
			t.Errorf("seed %d, %s: %+v", s.seed, at.Format(time.RFC3339), f)
		}
		if t.Failed() {
			return
		}
	}
	if watched < 10*24*12 {
		t.Errorf("watched %d times", watched)
	}
}
