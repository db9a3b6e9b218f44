package analytics

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/event/wire"
	"github.com/weir-dev/weir/collector/stream"
)

// shape is what the events of a hostile sender look like: the nth of count.
type shape struct {
	count int
	event func(n int) event.Event
}

var shapes = map[string]shape{
	"one visitor of 75,000 campaigns": {75_000, func(n int) event.Event {
		e := event.Event{Name: "pageview", ClientID: "c", Context: event.Context{UTMSource: "s", UTMCampaign: fmt.Sprint("campaign ", n)}}
		if n >= 74_990 {
			value := event.Amount(10_000)
			e.Name, e.Value, e.Currency = "purchase", &value, "EUR"
		}
		return e
	}},
	"one visitor who buys after each of 20,000 campaigns": {40_000, func(n int) event.Event {
		if n%2 == 0 {
			return event.Event{Name: "pageview", ClientID: "c", Context: event.Context{UTMSource: "s", UTMCampaign: fmt.Sprint("campaign ", n)}}
		}
		value := event.Amount(10_000 * n)
		return event.Event{Name: "purchase", ClientID: "c", Value: &value, Currency: "EUR"}
	}},
	"150,000 names": {150_000, func(n int) event.Event {
		return event.Event{Name: fmt.Sprint("name ", n), ClientID: fmt.Sprint(n % 100), Platforms: []string{"crm"}}
	}},
	"200,000 visitors with an event each": {200_000, func(n int) event.Event {
		value := event.Amount(10_000)
		return event.Event{Name: "purchase", ClientID: fmt.Sprint("visitor ", n), Value: &value, Currency: "EUR", Platforms: []string{"crm"}}
	}},
	"200,000 pages and products": {200_000, func(n int) event.Event {
		value := event.Amount(10_000)
		return event.Event{
			Name: "purchase", ClientID: fmt.Sprint("visitor ", n%50_000), Value: &value, Currency: "EUR",
			Context:  event.Context{PageURL: fmt.Sprint("https://shop.example/", n)},
			Contents: []event.Item{{ID: fmt.Sprint("product ", n), Price: &value}, {ID: "another", Price: &value}},
		}
	}},
	"one visitor with 200,000 events": {200_000, func(int) event.Event {
		return event.Event{Name: "purchase", ClientID: "c", Context: event.Context{UTMSource: "s"}}
	}},
}

// view returns a view of the shape's events, a second apart.
func (s shape) view(t testing.TB, o Options) *View {
	t.Helper()
	o.Property, o.Currency, o.Logger = testProperty, "EUR", slog.New(slog.DiscardHandler)
	v := NewView(o)
	s.fill(t, v)
	return v
}

func (s shape) fill(t testing.TB, v *View) {
	t.Helper()
	var batch []stream.Entry
	for n := range s.count {
		e := s.event(n)
		e.ID, e.DeliveryID = fmt.Sprint(n), uuid.UUID{6: 0x70, 8: 0x80}
		batch = append(batch, stream.Entry{Position: stream.At(begin.Add(time.Duration(n) * time.Second)), Data: wire.Encode(&e)})
		if len(batch) == readCount || n == s.count-1 {
			mustNot(t, v.AddEvents(batch))
			batch = batch[:0]
		}
	}
}

// everything is a range of all events of a shape.
var everything = Range{begin, begin.AddDate(1, 0, 0)}

// allocated returns how many bytes a call allocates in all.
func allocated(call func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	call()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// query is asked of a view; it returns how many rows its answer has, and fails where the answer is not exact.
type query func(t *testing.T, v *View) (rows int)

var queries = map[string]query{
	"event statistics": func(t *testing.T, v *View) int {
		all := v.Status(t.Context()).Events
		stats, err := v.EventStats(t.Context(), StatsQuery{Range: everything, Limit: 1000})
		mustNot(t, err)
		counted := 0
		for _, s := range stats.Events {
			counted += s.Count
		}
		if counted+stats.OtherCount != all {
			t.Errorf("%d events on the page and %d of %d other names; the view has %d", counted, stats.OtherCount, stats.OtherNames, all)
		}
		return len(stats.Events)
	},
	"linear attribution by campaign": attributed(Linear, ByCampaign), "last touch by campaign": attributed(LastTouch, ByCampaign),
	"first touch by source": attributed(FirstTouch, BySource),
	"pages by visitors":     brokenDown(ByPage, OrderUniqueVisitors, nil), "products by revenue": brokenDown(ByProduct, OrderRevenue, nil),
	"campaigns by events": brokenDown(ByCampaign, OrderEvents, nil), "names by purchases": brokenDown(ByEvent, OrderPurchases, nil),
	"a campaign's pages": brokenDown(ByPage, OrderEvents, Filter{BySource: {"s"}, ByCampaign: {"campaign 7", "(none)"}}),
	"a funnel of 16 steps of one name": func(t *testing.T, v *View) int {
		steps := make([]string, 16)
		for i := range steps {
			steps[i] = "purchase"
		}
		funnel, err := v.Funnel(t.Context(), funnelOf(everything, steps, time.Hour))
		mustNot(t, err)
		return len(funnel.Steps)
	},
	"a filtered funnel of alternatives": func(t *testing.T, v *View) int {
		funnel, err := v.Funnel(t.Context(), FunnelQuery{
			Range: everything, Window: time.Hour, Steps: [][]string{{"pageview", "purchase"}, {"purchase", "name 7"}},
			Filter: Filter{BySource: {"s", "(direct)"}},
		})
		mustNot(t, err)
		return len(funnel.Steps)
	},
	"a visitor's events": func(t *testing.T, v *View) int {
		anyone, err := v.Listing(t.Context(), ListingQuery{Range: everything, Limit: 1})
		mustNot(t, err)
		who := anyone.Records[0].Visitor
		page, err := v.Listing(t.Context(), ListingQuery{Range: everything, Limit: 1000, Visitors: []string{who}, Ascending: true, Count: true})
		mustNot(t, err)
		for _, r := range page.Records {
			if r.Visitor != who {
				t.Fatalf("a record of %q, want %q's alone", r.Visitor, who)
			}
		}
		if *page.Total < len(page.Records) {
			t.Errorf("%d records of %d", len(page.Records), *page.Total)
		}
		return len(page.Records)
	},
	"deliveries by day": func(t *testing.T, v *View) int {
		d, err := v.Deliveries(t.Context(), DeliveriesQuery{Ranges: daysOf(everything)})
		mustNot(t, err)
		counted := make([]int, 2)
		for i, lists := range [][][]DeliveryStats{d.Ranges, {d.Totals}} {
			for _, list := range lists {
				for _, platform := range list {
					counted[i] += platform.Counts[stream.Pending]
				}
			}
		}
		if counted[0] != counted[1] {
			t.Errorf("the days have %d deliveries, their total is %d", counted[0], counted[1])
		}
		return len(d.Ranges)
	},
	"days": func(t *testing.T, v *View) int {
		days, err := v.Series(t.Context(), daysOf(everything), nil)
		mustNot(t, err)
		counted := 0
		for _, day := range days.Totals {
			counted += day.Events
		}
		if counted != v.Status(t.Context()).Events {
			t.Errorf("the days have %d events, the view %d", counted, v.Status(t.Context()).Events)
		}
		return len(days.Totals)
	},
}

// daysOf returns the days of a range.
func daysOf(r Range) (days []Range) {
	for from := r.From; from.Before(r.To); from = from.AddDate(0, 0, 1) {
		days = append(days, Range{from, from.AddDate(0, 0, 1)})
	}
	return days
}

// brokenDown asks for a breakdown and adds it up.
func brokenDown(by Dimension, order Measure, filter Filter) query {
	return func(t *testing.T, v *View) int {
		b, err := v.Breakdown(t.Context(), BreakdownQuery{Range: everything, By: by, Order: order, Filter: filter, Limit: 1000})
		mustNot(t, err)
		counted := 0
		for i := range b.Groups {
			counted += b.Groups[i].Events
		}
		if b.Others != nil {
			counted += b.Others.Events
		}
		if counted < b.Totals.Events || by != ByProduct && counted != b.Totals.Events {
			t.Errorf("the groups have %d events, all together %d", counted, b.Totals.Events)
		}
		return len(b.Groups)
	}
}

// attributed asks for an attribution and adds it up.
func attributed(model Model, by Dimension) query {
	return func(t *testing.T, v *View) int {
		a, err := v.Attribution(t.Context(), AttributionQuery{
			Range: everything, Model: model, ConversionEvent: "purchase", GroupBy: by, Limit: 1000,
		})
		mustNot(t, err)
		credits := creditsOf(a)
		var revenue event.Sum
		for i := range a.Results {
			revenue.Merge(a.Results[i].Revenue)
		}
		if a.Others != nil {
			credits += a.Others.Conversions
			revenue.Merge(a.Others.Revenue)
		}
		sameAs(t, "credits of results and others", credits, Credit(a.Conversions)*creditUnit)
		sameAs(t, "their revenue", revenue, a.Revenue)
		return len(a.Results)
	}
}

func TestCosts(t *testing.T) {
	// What a query allocates for each event there is, garbage included, and how many rows an answer has, at most.
	const perEvent, beside, rows = 2000, 8 << 20, 1000
	for name, shape := range shapes {
		t.Run(name, func(t *testing.T) {
			view := shape.view(t, Options{})
			for name, ask := range queries {
				t.Run(name, func(t *testing.T) {
					var got int
					bytes := allocated(func() { got = ask(t, view) })
					if most := uint64(perEvent*shape.count + beside); bytes > most {
						t.Errorf("%d bytes allocated, want at most %d", bytes, most)
					}
					if got > rows {
						t.Errorf("the answer has %d rows, want at most %d", got, rows)
					}
				})
			}
		})
	}
}

func TestALinearAttributionTakesTimeInProportionToTouches(t *testing.T) {
	// Sharing is counted rather than timed: what it allocates would grow with the square if its numbers did.
	ask := attributed(Linear, ByCampaign)
	measure := func(count int) uint64 {
		s := shapes["one visitor who buys after each of 20,000 campaigns"]
		s.count = count
		view := s.view(t, Options{})
		return allocated(func() { ask(t, view) })
	}
	small, large := measure(8_000), measure(32_000)
	if large > 6*small {
		t.Errorf("four times the touches take %d bytes instead of %d", large, small)
	}
}

func TestAQueryKeepsToItsBudget(t *testing.T) {
	budget := NewBudget(4 << 20)
	view, paged := shapes["200,000 visitors with an event each"].view(t, Options{Budget: budget}), shapes["200,000 pages and products"].view(t, Options{Budget: budget})
	for name, test := range map[string]struct {
		ask  func() error
		want error
	}{
		"one that takes little is answered": {func() error { _, err := view.Summary(t.Context(), everything, nil); return err }, nil},
		"a funnel of many visitors takes too much": {func() error {
			_, err := view.Funnel(t.Context(), funnelOf(everything, []string{"purchase", "purchase"}, time.Hour))
			return err
		}, ErrTooCostly},
		"so does an attribution of many conversions": {func() error {
			_, err := view.Attribution(t.Context(), AttributionQuery{Range: everything, Model: Linear, ConversionEvent: "purchase", GroupBy: ByChannel})
			return err
		}, ErrTooCostly},
		"a breakdown into few groups takes little": {func() error {
			_, err := view.Breakdown(t.Context(), BreakdownQuery{Range: everything, By: ByEvent, Order: OrderUniqueVisitors})
			return err
		}, nil},
		"one into many pages takes too much": {func() error {
			_, err := paged.Breakdown(t.Context(), BreakdownQuery{Range: everything, By: ByPage, Order: OrderUniqueVisitors})
			return err
		}, ErrTooCostly},
		"but not an attribution of a shorter period": {func() error {
			r := Range{begin, begin.Add(time.Minute)}
			_, err := view.Attribution(t.Context(), AttributionQuery{Range: r, Model: LastTouch, ConversionEvent: "purchase", Lookback: time.Hour, GroupBy: ByChannel})
			return err
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			if err := test.ask(); !errors.Is(err, test.want) {
				t.Errorf("got %v, want %v", err, test.want)
			}
			if held := budget.held; held != 0 {
				t.Errorf("%d bytes were not given back", held)
			}
		})
	}
}

func TestQueriesTogetherKeepToTheBudget(t *testing.T) {
	budget := NewBudget(1000)
	first, err := budget.Hold(500)
	mustNot(t, err)
	second, err := budget.Hold(400)
	mustNot(t, err)
	if _, err := budget.Hold(200); !errors.Is(err, ErrBusy) {
		t.Errorf("got %v for more than is left, want %v", err, ErrBusy)
	}
	if _, err := budget.Hold(501); !errors.Is(err, ErrTooCostly) {
		t.Errorf("got %v for more than half, want %v", err, ErrTooCostly)
	}
	first()
	third, err := budget.Hold(500)
	mustNot(t, err)
	second()
	third()
	if budget.held != 0 {
		t.Errorf("%d bytes are held by nobody", budget.held)
	}
	view := shapes["150,000 names"].view(t, Options{Budget: NewBudget(32 << 20)})
	var all sync.WaitGroup
	for range 100 {
		all.Go(func() {
			if _, err := view.EventStats(t.Context(), StatsQuery{Range: everything, Limit: 100}); err != nil && !errors.Is(err, ErrBusy) {
				t.Errorf("got %v, want an answer or %v", err, ErrBusy)
			}
		})
	}
	all.Wait()
	if view.budget.held != 0 {
		t.Errorf("%d bytes are held by nobody after 100 queries", view.budget.held)
	}
}

func TestAttributionOfManyTouchesEndsWithItsContext(t *testing.T) {
	view := shapes["one visitor who buys after each of 20,000 campaigns"].view(t, Options{})
	for _, model := range []Model{FirstTouch, LastTouch, Linear} {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		q := AttributionQuery{Range: everything, Model: model, ConversionEvent: "purchase", GroupBy: ByCampaign}
		if _, err := view.Attribution(ctx, q); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: got %v, want %v", model, err, context.Canceled)
		}
	}
}

func TestAViewStaysAsSmallAsItMay(t *testing.T) {
	const most = 24 << 20
	for name, shape := range map[string]shape{
		"a name for each event": {400_000, func(n int) event.Event { return event.Event{Name: fmt.Sprint("name ", n), ClientID: "c"} }},
		"a campaign for each event": {200_000, func(n int) event.Event {
			return event.Event{Name: "pageview", ClientID: "c", Context: event.Context{UTMSource: fmt.Sprint("source ", n), UTMCampaign: fmt.Sprint("campaign ", n)}}
		}},
		"a visitor for each event": {400_000, func(n int) event.Event { return event.Event{Name: "pageview", ClientID: fmt.Sprint("visitor ", n)} }},
		"currencies that are none": {100_000, func(n int) event.Event {
			value := event.Amount(1)
			return event.Event{Name: "purchase", Value: &value, Currency: fmt.Sprint("C", n)}
		}},
		"pages and products for each event": {200_000, func(n int) event.Event {
			var items []event.Item
			for i := range 5 {
				items = append(items, event.Item{ID: fmt.Sprint("product ", n, " ", i)})
			}
			return event.Event{Name: "purchase", Contents: items, Context: event.Context{PageURL: fmt.Sprint("https://shop.example/", n, "?", strings.Repeat("x", 500))}}
		}},
		"the same products for each event": {100_000, func(int) event.Event {
			return event.Event{Name: "purchase", Contents: []event.Item{{ID: "a"}, {ID: "b"}, {ID: "c"}, {ID: "d"}, {ID: "e"}}}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			v := NewView(Options{Property: testProperty, Currency: "EUR", Logger: slog.New(slog.DiscardHandler), MaxBytes: most})
			shape.fillLoosely(v)
			before := heap()
			status := v.Status(t.Context())
			if status.Bytes > most {
				t.Errorf("the view says that it takes %d bytes, want at most %d", status.Bytes, most)
			}
			if status.Events == 0 {
				t.Error("the view is empty")
			}
			all := Range{begin, begin.AddDate(1, 0, 0)}
			page, err := v.Listing(t.Context(), ListingQuery{Range: all, Limit: 1})
			mustNot(t, err)
			stats, err := v.EventStats(t.Context(), StatsQuery{Range: all, Limit: 1})
			mustNot(t, err)
			if got := stats.Events[0].Count + stats.OtherCount; got != status.Events {
				t.Errorf("statistics count %d events, the view has %d", got, status.Events)
			}
			if left := shape.count - status.Unreadable - status.Events; left > 0 && !page.CompleteFrom.After(begin.Add(time.Duration(left-1)*time.Second)) {
				t.Errorf("%d events were left out, and the answer says that it is complete from %s", left, page.CompleteFrom)
			}
			runtime.KeepAlive(v)
			v.Reset()
			if took := before - heap(); took > 2*most {
				t.Errorf("the view took %.0f bytes, want about %d", took, most)
			}
		})
	}
}

// ordinary are events as a shop has them, of a few pages, products and visitors.
func ordinary(n int) event.Event {
	value := event.Amount(1)
	return event.Event{
		Name: "purchase", ClientID: fmt.Sprint("visitor ", n%500), Value: &value, Currency: "EUR", Platforms: []string{"meta", "crm"},
		ContentID: fmt.Sprint("product ", n%1000), Context: event.Context{PageURL: fmt.Sprint("https://shop.example/", n%200), UTMSource: fmt.Sprint("source ", n%20)},
	}
}

func TestAViewHoldsAsManyEventsAfterAFloodAsBefore(t *testing.T) {
	const most, usual, flood = 32 << 20, 320_000, 30_000
	long := strings.Repeat("x", 200)
	calm := NewView(Options{Property: testProperty, Currency: "EUR", Logger: slog.New(slog.DiscardHandler), MaxBytes: most})
	shape{flood + usual, ordinary}.fillLoosely(calm)
	want, answers := calm.Status(t.Context()).Events, answersOfTheNewest(t, calm, flood+usual)
	calm.Reset()
	for name, odd := range map[string]func(n int) event.Event{
		"forty long product ids in each event": func(n int) event.Event {
			e := event.Event{Name: "purchase"}
			for i := range 40 {
				e.Contents = append(e.Contents, event.Item{ID: fmt.Sprint(long, n, " ", i)})
			}
			return e
		},
		"forty short product ids in each event": func(n int) event.Event {
			e := event.Event{Name: "purchase"}
			for i := range 40 {
				e.Contents = append(e.Contents, event.Item{ID: fmt.Sprint(n, " ", i)})
			}
			return e
		},
		"a page, a name, a campaign and a visitor of its own in each event": func(n int) event.Event {
			return event.Event{
				Name: fmt.Sprint("name ", n), ClientID: fmt.Sprint(long, n),
				Context: event.Context{PageURL: fmt.Sprint("https://shop.example/", long, n), UTMSource: fmt.Sprint(long, n), UTMCampaign: fmt.Sprint(long, n)},
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			v := NewView(Options{Property: testProperty, Currency: "EUR", Logger: slog.New(slog.DiscardHandler), MaxBytes: most})
			shape{flood + usual, func(n int) event.Event {
				if n == flood-1 {
					wantBounded(t, v, most)
				}
				if n < flood {
					return odd(n)
				}
				return ordinary(n)
			}}.fillLoosely(v)
			if diff := cmp.Diff(answers, answersOfTheNewest(t, v, flood+usual)); diff != "" {
				t.Errorf("answers without the flood and after it (-without +after):\n%s", diff)
			}
			before := heap()
			status := v.Status(t.Context())
			if status.Bytes > most || status.Events < want*8/10 {
				t.Errorf("the view has %d events in %d bytes, want about %d in at most %d", status.Events, status.Bytes, want, most)
			}
			runtime.KeepAlive(v)
			v.Reset()
			wantAbout(t, before-heap(), status.Bytes)
		})
	}
}

// answersOfTheNewest are some answers of a view about the newest hundred thousand of a number of events.
func answersOfTheNewest(t *testing.T, v *View, count int) []string {
	t.Helper()
	var answers []string
	r := Range{begin.Add(time.Duration(count-100_000) * time.Second), begin.Add(time.Duration(count) * time.Second)}
	for _, by := range []Dimension{ByEvent, ByPage, ByProduct, BySource} {
		answer, err := v.Breakdown(t.Context(), BreakdownQuery{Range: r, By: by})
		mustNot(t, err)
		for _, group := range answer.Groups {
			answers = append(answers, fmt.Sprintf("%+v", group))
		}
	}
	return answers
}

// wantBounded fails where a view that is being flooded is larger than it may be, or nearly empty.
func wantBounded(t *testing.T, v *View, most int64) {
	t.Helper()
	if status := v.Status(t.Context()); status.Bytes > most || status.Bytes < most/2 {
		t.Errorf("in the flood the view has %d events in %d bytes, want a bit less than %d", status.Events, status.Bytes, most)
	}
}

// wantAbout fails where what a view took is more than a quarter off what it says.
func wantAbout(t *testing.T, took float64, said int64) {
	t.Helper()
	if ratio := took / float64(said); ratio < 0.75 || ratio > 1.25 {
		t.Errorf("the view took %.0f bytes and said %d, want no more than a quarter off", took, said)
	}
}

// fillLoosely is fill where entries may be refused.
func (s shape) fillLoosely(v *View) {
	var batch []stream.Entry
	for n := range s.count {
		e := s.event(n)
		e.ID, e.DeliveryID = fmt.Sprint(n), uuid.UUID{6: 0x70, 8: 0x80}
		batch = append(batch, stream.Entry{Position: stream.At(begin.Add(time.Duration(n) * time.Second)), Data: wire.Encode(&e)})
		if len(batch) == readCount || n == s.count-1 {
			_ = v.AddEvents(batch) // what is refused is counted
			batch = batch[:0]
		}
	}
}
