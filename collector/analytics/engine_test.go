package analytics

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/weir-dev/weir/collector/analytics/columns"
	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/event/wire"
	"github.com/weir-dev/weir/collector/stream"
)

func TestSelectRankFindsWhatSortingWould(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for name, draw := range map[string]func() int64{
		"spread over a year": func() int64 { return r.Int64N(366 * 24 * 3600 * 1000) },
		"nearly all small":   func() int64 { return r.Int64N(3) + r.Int64N(1000)/999*1_000_000_000 },
		"all the same":       func() int64 { return 42 },
		"all zero":           func() int64 { return 0 },
	} {
		for _, count := range []int{1, 2, fewSorted, fewSorted + 1, 20_000} {
			t.Run(fmt.Sprint(name, ", ", count, " of them"), func(t *testing.T) {
				numbers := make([]int64, count)
				for i := range numbers {
					numbers[i] = draw()
				}
				sorted := slices.Sorted(slices.Values(numbers))
				for _, rank := range []int{0, count / 3, count / 2, count - 1} {
					if got := selectRank(numbers, rank); got != sorted[rank] {
						t.Errorf("rank %d is %d, want %d", rank, got, sorted[rank])
					}
				}
			})
		}
	}
}

func TestEveryNumberOfFewPartsDividesTheWhole(t *testing.T) {
	for parts := int64(1); parts <= fewParts; parts++ {
		if wholeUnits%parts != 0 {
			t.Errorf("%d does not divide %d", parts, int64(wholeUnits))
		}
	}
}

// touchAndBuy lets one visitor come from another campaign before each of a number of purchases.
func touchAndBuy(t *testing.T, w *world, count int) {
	t.Helper()
	var entries []stream.Entry
	for i := range 2 * count {
		w.last = stream.At(w.last.Time().Add(time.Second))
		e := &oracleEvent{position: w.last, visitor: visitorID("client", []byte("c"))}
		e.ID, e.DeliveryID, e.ClientID = fmt.Sprint(i), uuid.UUID{6: 0x70, 8: 0x80}, "c"
		if e.Name = "pageview"; i%2 == 1 {
			value := event.Amount(100 * (i + 1))
			e.Name, e.Value, e.Currency = "purchase", &value, "EUR"
		} else {
			campaign := fmt.Sprint("campaign ", i/2)
			e.Context = event.Context{UTMSource: "s", UTMCampaign: campaign}
			e.touch = &columns.Touch{Source: "s", Campaign: campaign, Channel: "Referral"}
		}
		w.oracle.events = append(w.oracle.events, e)
		entries = append(entries, stream.Entry{Position: e.position, Data: wire.Encode(&e.Event)})
	}
	mustNot(t, w.view.AddEvents(entries))
}

func TestAConversionMayBeSharedIntoManyParts(t *testing.T) {
	for _, lookback := range []time.Duration{0, 50 * time.Second, 90 * time.Second} {
		t.Run(fmt.Sprint("lookback ", lookback), func(t *testing.T) {
			w := newWorld(1)
			touchAndBuy(t, w, 2*fewParts)
			q := AttributionQuery{
				Range: Range{To: begin.Add(time.Hour)}, Model: Linear, ConversionEvent: "purchase", Lookback: lookback, GroupBy: ByCampaign,
			}
			got, err := w.view.Attribution(t.Context(), q)
			mustNot(t, err)
			sameAs(t, "attribution", got, w.oracle.attribution(q))
		})
	}
}

func TestAVisitorOfManyCampaignsCostsNoMoreThanTheirNumber(t *testing.T) {
	const count = 3000 // if each purchase were shared out one by one, there would be 4.5 million shares
	w := newWorld(1)
	touchAndBuy(t, w, count)
	got, err := w.view.Attribution(t.Context(), AttributionQuery{
		Range: Range{To: begin.Add(3 * time.Hour)}, Model: Linear, ConversionEvent: "purchase", GroupBy: ByCampaign,
	})
	mustNot(t, err)
	if len(got.Results) != count || got.Conversions != count || creditsOf(got) != count*creditUnit {
		t.Errorf("%d results with %s credits for %d conversions, want %d of each", len(got.Results), creditsOf(got), got.Conversions, count)
	}
	var revenue event.Sum
	for _, r := range got.Results {
		revenue.Merge(r.Revenue)
	}
	sameAs(t, "revenue of all results", revenue, got.Revenue)
	// The first campaign has a share in every purchase, the last in one alone.
	if first, last := got.Results[0].Name, got.Results[count-1].Name; first != "campaign 0" || last != fmt.Sprint("campaign ", count-1) {
		t.Errorf("the results begin with %q and end with %q", first, last)
	}
}
