package analytics

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/weir-dev/weir/collector/analytics/columns"
	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/stream"
)

// live lets something happen to the world.
func (w *world) live(t testing.TB, most int) {
	t.Helper()
	switch w.IntN(7) {
	case 0, 1, 2:
		w.grow(t, w.IntN(most))
	case 3:
		w.forget()
	case 4:
		w.anonymize()
	default:
		w.erase(t)
	}
}

// checkAll is check with how many events there are.
func (w *world) checkAll(t testing.TB) {
	t.Helper()
	w.check(t)
	if got, want := w.view.Status(t.Context()).Events, len(w.oracle.events); got != want {
		t.Fatalf("the view holds %d events, want %d", got, want)
	}
}

func TestNumbersAfterErasuresAreThoseOfTheRest(t *testing.T) {
	for seed := range uint64(400) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			w := newWorld(seed)
			w.erases = true
			w.grow(t, w.IntN(40))
			for range 1 + w.IntN(8) {
				w.live(t, 30)
				w.checkAll(t)
			}
		})
	}
}

func TestNumbersAfterErasuresAreThoseOfTheRestOnLongStreams(t *testing.T) {
	for seed := range uint64(3) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			w := newWorld(seed)
			w.visitors, w.erases = 2000, true
			w.grow(t, columns.ChunkRows*5/4)
			for range 5 {
				w.live(t, columns.ChunkRows)
				w.live(t, columns.ChunkRows)
				w.checkAll(t)
			}
		})
	}
}

func TestQueriesRunWhilePersonsAreForgotten(t *testing.T) {
	w := newWorld(1)
	w.visitors, w.erases = 500, true
	w.grow(t, columns.ChunkRows*3/2)
	ctx, cancel := context.WithCancel(t.Context())
	var readers sync.WaitGroup
	for seed := range uint64(3) {
		readers.Go(func() { askAnything(ctx, t, w.view, rand.New(rand.NewPCG(seed, 1))) })
	}
	for range 12 {
		w.live(t, columns.ChunkRows/2)
		w.checkAll(t)
	}
	cancel()
	readers.Wait()
}

// askAnything asks until the context ends, and looks whether each answer is of one piece.
func askAnything(ctx context.Context, t *testing.T, v *View, r *rand.Rand) {
	all := Range{begin, begin.AddDate(10, 0, 0)}
	for ctx.Err() == nil {
		var err error
		switch r.IntN(9) {
		case 0:
			var s Summary
			if s, err = v.Summary(ctx, all, nil); err == nil && s.Purchases+s.Refunds+s.AddToCarts+s.Pageviews > s.EventsByClass[event.Human] {
				t.Errorf("%d events of humans, and more with names: %+v", s.EventsByClass[event.Human], s)
			}
		case 1:
			var s Stats
			if s, err = v.EventStats(ctx, StatsQuery{Range: all, Limit: 100}); err == nil {
				for _, e := range s.Events {
					if e.UniqueVisitors > e.Count {
						t.Errorf("%d visitors of %d events", e.UniqueVisitors, e.Count)
					}
				}
			}
		case 2:
			_, err = v.Funnel(ctx, funnelOf(all, []string{"pageview", "purchase", "refund"}, time.Duration(r.IntN(2))*time.Hour))
		case 3:
			q := AttributionQuery{Range: all, Model: pick(r, FirstTouch, LastTouch, Linear), ConversionEvent: "purchase", GroupBy: ByChannel}
			var a Attribution
			if a, err = v.Attribution(ctx, q); err == nil && creditsOf(a) != Credit(a.Conversions)*creditUnit {
				t.Errorf("%d conversions have credits of %s", a.Conversions, creditsOf(a))
			}
		case 4:
			_, err = v.Deliveries(ctx, DeliveriesQuery{Ranges: []Range{all}})
		case 5:
			var page Page
			q := ListingQuery{Range: all, Limit: 500, Visitors: []string{visitorID("client", fmt.Appendf(nil, "c%d", r.IntN(500)))}, Count: true}
			if page, err = v.Listing(ctx, q); err == nil && *page.Total != len(page.Records) && page.Next == 0 {
				t.Errorf("%d records of %d, and no more pages", len(page.Records), *page.Total)
			}
			for _, record := range page.Records {
				if record.Visitor != q.Visitors[0] {
					t.Errorf("an event of %q, want %q's alone", record.Visitor, q.Visitors[0])
				}
			}
		case 6, 7:
			q := BreakdownQuery{Range: all, By: pick(r, ByEvent, BySource, ByPage, ByProduct), Order: pick(r, OrderEvents, OrderUniqueVisitors)}
			q.Filter = pick(r, nil, Filter{ByChannel: {Direct, "Email"}}, Filter{ByProduct: {"p1", none}}, Filter{ByPage: {"/a"}, ByEvent: {"purchase"}})
			var b Breakdown
			if b, err = v.Breakdown(ctx, q); err == nil {
				counted := 0
				for i := range b.Groups {
					counted += b.Groups[i].Events
				}
				if q.By != ByProduct && counted != b.Totals.Events {
					t.Errorf("the groups of %+v have %d events, all together %d", q, counted, b.Totals.Events)
				}
			}
		default:
			_, err = v.Listing(ctx, ListingQuery{Range: all, Limit: 500, After: stream.Position(r.Uint64()), Ascending: r.IntN(2) == 0})
		}
		if err != nil && ctx.Err() == nil {
			t.Error(err)
		}
	}
}
