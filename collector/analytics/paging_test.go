package analytics

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/weir-dev/weir/collector/analytics/columns"
	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/event/wire"
	"github.com/weir-dev/weir/collector/stream"
)

// turnPages walks through a listing and returns the positions in the order in which they came.
func turnPages(t *testing.T, v *View, q ListingQuery, between func()) []stream.Position {
	t.Helper()
	var seen []stream.Position
	for {
		page, err := v.Listing(t.Context(), q)
		mustNot(t, err)
		for _, r := range page.Records {
			seen = append(seen, r.Position)
		}
		if q.After = page.Next; q.After == 0 {
			return seen
		}
		between()
	}
}

// newestFirst lists what a listing must show of the oracle's events.
func (o *oracle) newestFirst(names []string) []stream.Position {
	var positions []stream.Position
	for _, e := range slices.Backward(o.events) {
		if e.Class == event.Human && (len(names) == 0 || slices.Contains(names, e.Name)) {
			positions = append(positions, e.position)
		}
	}
	return positions
}

func TestPagingWhileEventsArriveShowsEachEventOnce(t *testing.T) {
	for seed := range uint64(100) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			w := newWorld(seed)
			w.grow(t, 1+w.IntN(60))
			q := ListingQuery{Range: Range{To: begin.AddDate(1, 0, 0)}, Limit: 1 + w.IntN(7)}
			if w.IntN(2) == 0 {
				q.Events = []string{"purchase", "lead"}
			}
			want := w.oracle.newestFirst(q.Events)
			got := turnPages(t, w.view, q, func() { w.grow(t, w.IntN(5)) })
			sameAs(t, "what the pages show", got, want)
		})
	}
}

func TestPagingBesideAFollowerShowsEachEventOnce(t *testing.T) {
	w := newWorld(3)
	w.grow(t, columns.ChunkRows+columns.ChunkRows/2)
	want := w.oracle.newestFirst(nil)
	var arriving []stream.Entry
	for range 2 * columns.ChunkRows {
		e := w.event()
		arriving = append(arriving, stream.Entry{Position: e.position, Data: wire.Encode(&e.Event)})
	}
	var follower sync.WaitGroup
	follower.Go(func() {
		for batch := range slices.Chunk(arriving, 100) {
			if err := w.view.AddEvents(batch); err != nil {
				t.Error(err)
			}
		}
	})
	q := ListingQuery{Range: Range{To: w.last.Time().Add(time.Hour)}, Limit: 97, After: want[0] + 1}
	got := turnPages(t, w.view, q, func() {})
	follower.Wait()
	sameAs(t, "what the pages show", got, want)
}

func TestQueriesBesideAFollowerSeeOneMoment(t *testing.T) {
	w := newWorld(5)
	var follower sync.WaitGroup
	var entries []stream.Entry
	for range 3 * columns.ChunkRows {
		e := w.event()
		entries = append(entries, stream.Entry{Position: e.position, Data: wire.Encode(&e.Event)})
	}
	follower.Go(func() {
		for batch := range slices.Chunk(entries, 500) {
			if err := w.view.AddEvents(batch); err != nil {
				t.Error(err)
			}
			w.view.Forget(batch[0].Position - 1000)
		}
	})
	everything := Range{To: w.last.Time().Add(time.Hour)}
	for range 20 {
		stats, err := w.view.EventStats(t.Context(), StatsQuery{Range: everything, Limit: 1000})
		mustNot(t, err)
		sum := Rate(0)
		for _, s := range stats.Events {
			sum += s.Share
		}
		if len(stats.Events) > 0 && (sum < 9_990 || sum > 10_010) {
			t.Errorf("the shares of all names add up to %s", sum)
		}
		funnel, err := w.view.Funnel(t.Context(), funnelOf(everything, []string{"pageview", "purchase"}, time.Hour))
		mustNot(t, err)
		if funnel.Steps[0].Visitors < funnel.Steps[1].Visitors {
			t.Errorf("%d visitors came from %d", funnel.Steps[1].Visitors, funnel.Steps[0].Visitors)
		}
		attribution, err := w.view.Attribution(t.Context(), AttributionQuery{
			Range: everything, Model: Linear, ConversionEvent: "purchase", Lookback: time.Hour, GroupBy: ByCampaign,
		})
		mustNot(t, err)
		sameAs(t, "credits of all results", creditsOf(attribution), Credit(attribution.Conversions*creditUnit))
	}
	follower.Wait()
}

func creditsOf(a Attribution) Credit {
	sum := Credit(0)
	for _, r := range a.Results {
		sum += r.Conversions
	}
	return sum
}
