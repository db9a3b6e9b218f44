package analytics

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/weir-dev/weir/collector/analytics/columns"
	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/event/wire"
	"github.com/weir-dev/weir/collector/stream"
)

// hourly is a view of events that came an hour after another.
func hourly(t testing.TB, events ...event.Event) *View {
	t.Helper()
	v := NewView(Options{Property: testProperty, Currency: "EUR", Logger: slog.New(slog.DiscardHandler)})
	for i := range events {
		events[i].DeliveryID = uuid.UUID{15: byte(i), 6: 0x70, 8: 0x80}
		position := stream.At(begin.Add(time.Duration(i) * time.Hour))
		mustNot(t, v.AddEvents([]stream.Entry{{Position: position, Data: wire.Encode(&events[i])}}))
	}
	return v
}

// orders is a view whose events are told by the first letters of their ids.
func orders(t testing.TB) *View {
	return hourly(t,
		event.Event{ID: "a1b2c3d4-0000-4000-8000-000000000001", Name: "pageview", ClientID: "anna"},
		event.Event{ID: "bought", Name: "purchase", ClientID: "anna", OrderID: "7"},
		event.Event{ID: "crawled", Name: "pageview", ClientID: "anna", Class: event.Bot},
		event.Event{ID: "denied", Name: "pageview", ClientID: "carl", Anonymous: true},
		event.Event{ID: "e1b2c3d4-0000-4000-8000-000000000001", Name: "refund", OrderID: "7"},
		event.Event{ID: "found", Name: "purchase", ClientID: "ben", OrderID: "17"},
		event.Event{ID: "gone", Name: "pageview", ClientID: "anna", OrderID: "8"},
	)
}

// initials returns the first letters of the ids of a page's events.
func initials(page Page) string {
	var text strings.Builder
	for _, r := range page.Records {
		text.WriteByte(r.EventID[0])
	}
	return text.String()
}

func TestLookUps(t *testing.T) {
	anna, ben, carl := visitorID("client", []byte("anna")), visitorID("client", []byte("ben")), visitorID("client", []byte("carl"))
	for sentence, scene := range map[string]struct {
		query ListingQuery
		want  string
	}{
		"an event has the id that it was sent with":        {ListingQuery{EventIDs: []string{"bought"}}, "b"},
		"a UUID is an id like others":                      {ListingQuery{EventIDs: []string{"a1b2c3d4-0000-4000-8000-000000000001"}}, "a"},
		"written otherwise it is another id":               {ListingQuery{EventIDs: []string{"A1B2C3D4-0000-4000-8000-000000000001"}}, ""},
		"a part of an id is another id":                    {ListingQuery{EventIDs: []string{"ought", "b"}, AnyClass: true}, ""},
		"any of several ids will do":                       {ListingQuery{EventIDs: []string{"found", "unknown", "bought"}}, "fb"},
		"an order has all its events, the newest first":    {ListingQuery{OrderIDs: []string{"7"}}, "eb"},
		"the oldest comes first where that is asked for":   {ListingQuery{OrderIDs: []string{"7", "17"}, Ascending: true}, "bef"},
		"an event without an order has no order's id":      {ListingQuery{OrderIDs: []string{""}}, ""},
		"an event id and an order id are both to be there": {ListingQuery{OrderIDs: []string{"7"}, EventIDs: []string{"bought", "found"}}, "b"},
		"so are an order id and a name":                    {ListingQuery{OrderIDs: []string{"7"}, Events: []string{"refund"}}, "e"},
		"an event of another class is not found":           {ListingQuery{EventIDs: []string{"crawled"}}, ""},
		"save where the class is asked for":                {ListingQuery{EventIDs: []string{"crawled"}, Class: event.Bot}, "c"},
		"or any will do":                                   {ListingQuery{EventIDs: []string{"crawled", "bought"}, AnyClass: true}, "cb"},
		"a name is kept in any class as well":              {ListingQuery{Events: []string{"pageview"}, AnyClass: true}, "gdca"},
		"a visitor has events of humans":                   {ListingQuery{Visitors: []string{anna}, AnyClass: true}, "gba"},
		"the events of two visitors are in one order":      {ListingQuery{Visitors: []string{ben, anna}, Ascending: true}, "abfg"},
		"a visitor who is asked for twice has no more":     {ListingQuery{Visitors: []string{ben, ben}}, "f"},
		"a visitor's events may be asked for by name":      {ListingQuery{Visitors: []string{anna}, Events: []string{"purchase"}}, "b"},
		"or by an id":                                        {ListingQuery{Visitors: []string{anna}, EventIDs: []string{"found", "gone"}}, "g"},
		"who has denied analytics is no visitor":             {ListingQuery{Visitors: []string{carl}}, ""},
		"who has no events has none":                         {ListingQuery{Visitors: []string{visitorID("client", []byte("nobody"))}}, ""},
		"a text that no visitor can have finds nothing":      {ListingQuery{Visitors: []string{"anna", "", anna + "=", " " + anna}}, ""},
		"an event outside of the range is not found":         {ListingQuery{EventIDs: []string{"bought", "gone"}, Range: Range{begin, begin.Add(2 * time.Hour)}}, "b"},
		"nor is a visitor's":                                 {ListingQuery{Visitors: []string{anna}, Range: Range{begin.Add(time.Hour), begin.Add(6 * time.Hour)}}, "b"},
		"behind a cursor there are those that come later":    {ListingQuery{Visitors: []string{anna}, After: stream.At(begin.Add(6 * time.Hour))}, "ba"},
		"behind a cursor the other way those that are newer": {ListingQuery{Visitors: []string{anna}, After: stream.At(begin), Ascending: true}, "bg"},
	} {
		t.Run(sentence, func(t *testing.T) {
			q := scene.query
			q.Limit = 10
			if q.Range == (Range{}) {
				q.Range = afternoon()
			}
			page, err := orders(t).Listing(t.Context(), q)
			mustNot(t, err)
			if got := initials(page); got != scene.want || page.Next != 0 || page.Total != nil {
				t.Errorf("got %q, next %s, total %v, want %q alone", got, page.Next, page.Total, scene.want)
			}
		})
	}
}

func TestEveryPageSaysHowManyEventsMatch(t *testing.T) {
	v := orders(t)
	for _, ascending := range []bool{false, true} {
		q := ListingQuery{Range: afternoon(), Limit: 2, Ascending: ascending, Count: true}
		for page := 1; page == 1 || q.After != 0; page++ {
			got, err := v.Listing(t.Context(), q)
			mustNot(t, err)
			if got.Total == nil || *got.Total != 6 {
				t.Errorf("page %d, ascending %v: total %v, want 6", page, ascending, got.Total)
			}
			q.After = got.Next
		}
	}
}

func TestEventsThatAreNobodysAreNotFoundByTheirVisitor(t *testing.T) {
	at := func(hours int) stream.Position { return stream.At(begin.Add(time.Duration(hours) * time.Hour)) }
	for sentence, scene := range map[string]struct {
		change func(t *testing.T, v *View)
		want   string
	}{
		"trimmed events":                    {func(_ *testing.T, v *View) { v.Forget(at(1)) }, "gb"},
		"anonymised events":                 {func(_ *testing.T, v *View) { v.Anonymize(at(2)) }, "g"},
		"all that were anonymised":          {func(_ *testing.T, v *View) { v.Anonymize(at(7)) }, ""},
		"erased events between others":      {func(t *testing.T, v *View) { mustNot(t, v.Erase([]stream.Position{at(1)})) }, "ga"},
		"the newest event, which is erased": {func(t *testing.T, v *View) { mustNot(t, v.Erase([]stream.Position{at(6)})) }, "ba"},
		"all that were erased": {func(t *testing.T, v *View) {
			mustNot(t, v.Erase([]stream.Position{at(0), at(1), at(6)}))
		}, ""},
	} {
		t.Run(sentence, func(t *testing.T) {
			v := orders(t)
			scene.change(t, v)
			page, err := v.Listing(t.Context(), ListingQuery{Range: afternoon(), Visitors: []string{visitorID("client", []byte("anna"))}, Limit: 10})
			mustNot(t, err)
			if got := initials(page); got != scene.want {
				t.Errorf("the visitor has %q, want %q", got, scene.want)
			}
		})
	}
}

func TestAVisitorIsFoundBesideAFollower(t *testing.T) {
	w := newWorld(7)
	w.visitors = 6
	var entries []stream.Entry
	var events []*oracleEvent
	for range 3 * columns.ChunkRows {
		e := w.event()
		events = append(events, e)
		entries = append(entries, stream.Entry{Position: e.position, Data: wire.Encode(&e.Event)})
	}
	var follower sync.WaitGroup
	follower.Go(func() {
		for i, batch := range slices.Collect(slices.Chunk(entries, 500)) {
			if err := w.view.AddEvents(batch); err != nil {
				t.Error(err)
			}
			if i%7 == 6 { // so that numbers become free and are given to others
				w.view.Anonymize(batch[0].Position)
			}
		}
	})
	q := ListingQuery{Range: Range{To: w.last.Time().Add(time.Hour)}, Limit: len(entries), Visitors: []string{visitorID("client", []byte("c3"))}}
	look := func() {
		page, err := w.view.Listing(t.Context(), q)
		mustNot(t, err)
		for i, r := range page.Records {
			if r.Visitor != q.Visitors[0] {
				t.Fatalf("record %d of %d is of %q, want %q", i, len(page.Records), r.Visitor, q.Visitors[0])
			}
		}
	}
	for range 200 {
		look()
	}
	follower.Wait()
	look()
	const end = 49 * 500 // behind all that has been made nobody's
	w.oracle.events = events
	w.view.Anonymize(events[end].position)
	w.oracle.anonymize(events[end].position)
	page, err := w.view.Listing(t.Context(), q)
	mustNot(t, err)
	if want := w.oracle.matching(q); len(page.Records) != len(want) || len(want) == 0 {
		t.Errorf("the visitor has %d events in the end, want %d", len(page.Records), len(want))
	}
}

func TestALookUpKeepsToItsBudget(t *testing.T) {
	view := shapes["one visitor with 200,000 events"].view(t, Options{Budget: NewBudget(4 << 20)})
	anyone, err := view.Listing(t.Context(), ListingQuery{Range: everything, Limit: 1})
	mustNot(t, err)
	for sentence, scene := range map[string]struct {
		to   time.Time
		want error
	}{
		"200,000 events of a visitor are too many": {everything.To, ErrTooCostly},
		"those of an hour are not":                 {begin.Add(time.Hour), nil},
	} {
		t.Run(sentence, func(t *testing.T) {
			q := ListingQuery{Range: Range{begin, scene.to}, Limit: 1, Visitors: []string{anyone.Records[0].Visitor}}
			if _, err := view.Listing(t.Context(), q); !errors.Is(err, scene.want) {
				t.Errorf("got %v, want %v", err, scene.want)
			}
			if held := view.budget.held; held != 0 {
				t.Errorf("%d bytes were not given back", held)
			}
		})
	}
}

func TestWhatBecameOfDeliveries(t *testing.T) {
	page := func(platforms ...string) event.Event {
		return event.Event{ID: "e", Name: "pageview", Platforms: platforms}
	}
	v := hourly(t, page("crm", "meta"), page("crm"), page("meta"), page("crm"),
		event.Event{ID: "e", Name: "purchase", Platforms: []string{"crm"}},
		event.Event{ID: "e", Name: "pageview", Platforms: []string{"crm"}, Class: event.Bot})
	for hour, r := range []stream.Record{
		{Platform: "crm", Status: stream.Delivered, Attempts: 1, Latency: 40 * time.Millisecond},
		{Platform: "crm", Status: stream.Failed, Attempts: 3, Reason: "http_400"},
		{Platform: "meta", Status: stream.Skipped, Reason: "consent_absent"},
		{Platform: "crm", Status: stream.Delivered, Attempts: 2, Latency: 900 * time.Millisecond, Reason: "recovered"},
		{Platform: "crm", Status: stream.Failed, Attempts: 1, Reason: "http_401"},
		{Platform: "crm", Status: stream.Failed, Reason: "a bot's"},
	} {
		r.Event = stream.At(begin.Add(time.Duration(hour) * time.Hour))
		r.At = r.Event.Time()
		v.AddRecords([]stream.Record{r})
	}
	hours := func(from, to int) Range {
		return Range{begin.Add(time.Duration(from) * time.Hour), begin.Add(time.Duration(to) * time.Hour)}
	}
	for sentence, scene := range map[string]struct {
		query DeliveriesQuery
		want  string
	}{
		"each range has its own, and all together": {DeliveriesQuery{Ranges: []Range{hours(0, 1), hours(1, 3)}},
			"crm delivered 1 40/40, meta pending 1 | crm failed 1 (http_400 1), meta skipped 1 (consent_absent 1) | " +
				"crm delivered 1 failed 1 (http_400 1) 40/40, meta pending 1 skipped 1 (consent_absent 1)"},
		"latencies of all ranges are one list": {DeliveriesQuery{Ranges: []Range{hours(0, 1), hours(3, 4)}, Platforms: []string{"crm"}},
			"crm delivered 1 40/40 | crm delivered 1 (recovered 1) 900/900 | crm delivered 2 (recovered 1) 40/900"},
		"a range without events has nothing": {DeliveriesQuery{Ranges: []Range{hours(-2, 0), hours(2, 3)}}, " | meta skipped 1 (consent_absent 1) | meta skipped 1 (consent_absent 1)"},
		"a reason of one range is none of the next": {DeliveriesQuery{Ranges: []Range{hours(1, 2), hours(3, 4)}},
			"crm failed 1 (http_400 1) | crm delivered 1 (recovered 1) 900/900 | crm delivered 1 (recovered 1) failed 1 (http_400 1) 900/900"},
		"without ranges there is nothing":                {DeliveriesQuery{}, ""},
		"other platforms may be left out":                {DeliveriesQuery{Ranges: []Range{hours(0, 2)}, Platforms: []string{"meta", "unknown"}}, "meta pending 1 | meta pending 1"},
		"so may other events":                            {DeliveriesQuery{Ranges: []Range{hours(0, 12)}, Events: []string{"purchase"}}, "crm failed 1 (http_401 1) | crm failed 1 (http_401 1)"},
		"only events of humans count":                    {DeliveriesQuery{Ranges: []Range{hours(5, 12)}}, " | "},
		"events that nobody sent have delivered nothing": {DeliveriesQuery{Ranges: []Range{hours(0, 12)}, Events: []string{"unknown"}}, " | "},
	} {
		t.Run(sentence, func(t *testing.T) {
			d, err := v.Deliveries(t.Context(), scene.query)
			mustNot(t, err)
			var got []string
			for _, list := range append(slices.Clone(d.Ranges), d.Totals) {
				got = append(got, inWords(list))
			}
			if strings.Join(got, " | ") != scene.want {
				t.Errorf("got  %s\nwant %s", strings.Join(got, " | "), scene.want)
			}
		})
	}
}

// inWords says what the statistics of platforms are.
func inWords(list []DeliveryStats) string {
	var platforms []string
	for _, d := range list {
		words := []string{d.Platform}
		for status, count := range d.Counts {
			if count > 0 {
				words = append(words, stream.Status(status).String(), fmt.Sprint(count))
			}
			for _, reason := range sortedKeys(d.Reasons[status]) {
				words = append(words, fmt.Sprintf("(%s %d)", reason, d.Reasons[status][reason]))
			}
		}
		if d.LatencyP50 != nil {
			words = append(words, fmt.Sprintf("%d/%d", d.LatencyP50.Milliseconds(), d.LatencyP95.Milliseconds()))
		}
		platforms = append(platforms, strings.Join(words, " "))
	}
	return strings.Join(platforms, ", ")
}
