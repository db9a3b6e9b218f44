package analytics

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/weir-dev/weir/collector/analytics/columns"
	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/event/wire"
	"github.com/weir-dev/weir/collector/stream"
)

const testProperty = "default/shop"

// begin is when random streams begin.
var begin = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// origin is where an event says that it comes from, and what that must be taken for.
type origin struct {
	context event.Context
	want    *columns.Touch
}

func origins() []origin {
	utm := func(source, medium, campaign string) event.Context {
		return event.Context{UTMSource: source, UTMMedium: medium, UTMCampaign: campaign}
	}
	return []origin{
		{}, {}, {},
		{event.Context{PageURL: "https://shop.example/a", Referrer: "https://www.shop.example/b"}, nil},
		{utm("google", "cpc", "spring"), &columns.Touch{Source: "google", Medium: "cpc", Campaign: "spring", Channel: "Paid Search"}},
		{utm("google", "cpc", "summer"), &columns.Touch{Source: "google", Medium: "cpc", Campaign: "summer", Channel: "Paid Search"}},
		{event.Context{ClickIDs: map[string]string{"gclid": "x"}}, &columns.Touch{Source: "google", Medium: "cpc", Channel: "Paid Search"}},
		{utm("newsletter", "email", ""), &columns.Touch{Source: "newsletter", Medium: "email", Channel: "Email"}},
		{utm("partner", "", "spring"), &columns.Touch{Source: "partner", Campaign: "spring", Channel: "Referral"}},
		{event.Context{PageURL: "https://shop.example", Referrer: "https://l.facebook.com/"}, &columns.Touch{Source: "l.facebook.com", Medium: "social", Channel: "Organic Social"}},
	}
}

// world makes up a stream and gives it to an oracle and a view alike.
type world struct {
	*rand.Rand
	oracle *oracle
	view   *View
	// visitors and pace bound how many visitors there are and the milliseconds between events; grain is what values are
	// multiples of.
	visitors int
	pace     int64
	grain    event.Amount
	last     stream.Position
	// pages is how many pages there are; 0 for a few.
	pages int
	// erases says that some events are erased before they come.
	erases bool
}

func newWorld(seed uint64) *world {
	r := rand.New(rand.NewPCG(seed, 7))
	currency := pick(r, "EUR", "EUR", "JPY", "KWD", "CLF")
	w := &world{
		Rand: r, oracle: &oracle{currency: currency, records: map[stream.Position][]stream.Record{}},
		visitors: 1 + r.IntN(6), pace: []int64{1, 1000, 600_000, 3 * 24 * 3_600_000}[r.IntN(4)],
		view: NewView(Options{Property: testProperty, Currency: currency, Logger: slog.New(slog.DiscardHandler)}),
		last: stream.At(begin),
	}
	w.grain = event.Amount(tenThousandths(w.oracle.decimals()))
	if r.IntN(4) == 0 { // some callers send fractions of what can be paid
		w.grain = event.Amount(tenThousandths(r.IntN(5)))
	}
	return w
}

func pick[T any](r *rand.Rand, from ...T) T { return from[r.IntN(len(from))] }

// visitorID is the opaque id as documented.
func visitorID(kind string, identity []byte) string {
	sum := sha256.Sum256(append([]byte("weir person\x00"+testProperty+"\x00"+kind+"\x00"), identity...))
	return base64.RawURLEncoding.EncodeToString(sum[:8])
}

// event makes up the next event.
func (w *world) event() *oracleEvent {
	if w.IntN(5) > 0 {
		w.last = stream.At(w.last.Time().Add(time.Duration(w.Int64N(w.pace)+1) * time.Millisecond))
	} else {
		w.last++
	}
	e := &oracleEvent{position: w.last}
	e.DeliveryID = uuid.UUID{15: byte(w.IntN(256)), 6: 0x70, 8: 0x80, 0: byte(len(w.oracle.events)), 1: byte(len(w.oracle.events) >> 8)}
	e.ID = e.DeliveryID.String()
	if w.IntN(3) == 0 {
		e.ID = fmt.Sprintf("Order %d", len(w.oracle.events))
	} else if w.IntN(10) == 0 && len(w.oracle.events) > 0 { // repeated when it was no longer remembered
		e.ID = pick(w.Rand, strings.ToUpper(e.ID), pick(w.Rand, w.oracle.events...).ID)
	}
	e.Name = pick(w.Rand, "pageview", "pageview", "add_to_cart", "purchase", "purchase", "refund", "lead")
	if e.Name == "purchase" || e.Name == "refund" || w.IntN(4) == 0 {
		value := event.Amount(w.Int64N(1000)) * w.grain
		e.Value = &value
		e.Currency = pick(w.Rand, w.oracle.currency, w.oracle.currency, w.oracle.currency, "USD")
		if e.Name != "purchase" && e.Name != "refund" && w.IntN(3) == 0 {
			e.Currency = ""
		}
	}
	if e.Name == "purchase" {
		e.OrderID = fmt.Sprint(w.IntN(1000))
	}
	if w.IntN(5) == 0 {
		e.Class = event.Class(w.IntN(event.Classes))
	}
	if w.identify(e); e.Class != event.Human {
		e.visitor = "" // who is there all the same in the event
	}
	o := pick(w.Rand, origins()...)
	e.Context, e.touch = o.context, o.want
	w.subject(e)
	for _, platform := range []string{"meta", "crm", "console"} {
		if w.IntN(3) > 0 {
			e.Platforms = append(e.Platforms, platform)
		}
	}
	return e
}

// subject makes up what an event is about.
func (w *world) subject(e *oracleEvent) {
	pages := map[string]string{
		"": "", "https://shop.example": "/", "https://shop.example/?utm_source=a": "/", "https://shop.example/a": "/a",
		"https://shop.example/a?b=/c#d": "/a", "https://shop.example/%C3%A4//b#x?y": "/%C3%A4//b", "https://shop.example/a/": "/a/",
	}
	if e.Context.Referrer == "" { // else the page tells whether it is another's
		e.Context.PageURL = pick(w.Rand, sortedKeys(pages)...)
	}
	e.page = pages[e.Context.PageURL]
	if w.pages > 0 && e.Context.Referrer == "" {
		e.page = fmt.Sprint("/pages/", w.IntN(w.pages))
		e.Context.PageURL = "https://shop.example" + e.page
	}
	amount := func(grain event.Amount, most int64) *event.Amount {
		a := event.Amount(w.Int64N(most)) * grain
		return pick(w.Rand, nil, &a, &a, &a)
	}
	if w.IntN(3) == 0 {
		for range w.IntN(4) {
			e.Contents = append(e.Contents, event.Item{
				ID: pick(w.Rand, "p1", "p1", "p2", "p3", fmt.Sprint("p", w.IntN(30)), ""), Price: amount(w.grain, 1000),
				Quantity: amount(pick[event.Amount](w.Rand, 10_000, 1), 20_000/2),
			})
		}
	}
	if w.IntN(3) == 0 {
		e.ContentID = pick(w.Rand, "p1", "p4")
	}
}

// someFilter makes up a filter.
func (w *world) someFilter() Filter {
	values := map[Dimension][]string{
		ByEvent: {"purchase", "pageview", "lead", "refund", "unknown"}, ByPage: {"/", "/a", "(none)", "/unknown"},
		ByProduct: {"p1", "p2", "p4", "(none)", "unknown"}, ByChannel: {"Direct", "Email", "Paid Search", "unknown"},
		BySource: {"google", "(direct)", "newsletter", "l.facebook.com"}, ByMedium: {"cpc", "(none)", "social"}, ByCampaign: {"spring", "(none)", "summer"},
	}
	filter := Filter{}
	for _, by := range slices.Sorted(maps.Keys(values)) {
		if w.IntN(6) == 0 {
			w.Shuffle(len(values[by]), func(i, j int) { values[by][i], values[by][j] = values[by][j], values[by][i] })
			filter[by] = values[by][:w.IntN(4)]
		}
	}
	return filter
}

// identify makes up whose event it is.
func (w *world) identify(e *oracleEvent) {
	who := w.IntN(w.visitors)
	hash := event.Hash(sha256.Sum256([]byte{byte(who), byte(who >> 8)}))
	switch w.IntN(10) {
	case 0:
	case 8:
		e.UserID, e.User[event.EmailLower] = fmt.Sprint("u", who), hash
		e.visitor = visitorID("user", []byte(e.UserID))
	case 9:
		e.UserID, e.ClientID = fmt.Sprint("u", who), fmt.Sprint("c", who)
		e.visitor = visitorID("client", []byte(e.ClientID))
	case 1:
		e.User[event.EmailLower] = hash
		e.visitor = visitorID("email", hash[:])
	case 2:
		e.User[event.PhoneDigits] = hash
		e.visitor = visitorID("phone", hash[:])
	case 3:
		e.ClientID, e.User[event.EmailLower] = hash.String(), hash
		e.visitor = visitorID("client", []byte(hash.String()))
	default:
		e.ClientID = fmt.Sprint("c", who)
		e.visitor = visitorID("client", []byte(e.ClientID))
	}
	if w.IntN(4) == 0 && e.visitor != "" { // they were seen with somebody before
		e.visitor = visitorID("client", fmt.Appendf(nil, "c%d", w.IntN(w.visitors)))
		person, err := base64.RawURLEncoding.DecodeString(e.visitor)
		if err != nil {
			panic(err)
		}
		e.Person = event.Person(person)
	}
}

// record makes up what became of an event on a platform.
func (w *world) record(e *oracleEvent) stream.Record {
	r := stream.Record{
		Event: e.position, Platform: pick(w.Rand, "meta", "crm", "console", "removed"), Status: stream.Status(w.IntN(6)),
		Attempts: w.IntN(4), At: e.at().Add(time.Duration(w.IntN(40)-3) * 100 * time.Millisecond),
		Reason: pick(w.Rand, "", "http_500", "timeout"),
	}
	if r.Attempts > 0 {
		r.Latency = time.Duration(w.IntN(3)*w.IntN(700)) * time.Millisecond
	}
	return r
}

// grow adds events and records, some of these before their event.
func (w *world) grow(t testing.TB, count int) {
	t.Helper()
	var entries []stream.Entry
	var records []stream.Record
	for range count {
		e := w.event()
		w.oracle.events = append(w.oracle.events, e)
		entries = append(entries, stream.Entry{Position: e.position, Data: wire.Encode(&e.Event)})
		for range w.IntN(5) {
			records = append(records, w.record(pick(w.Rand, e, w.oracle.events[w.IntN(len(w.oracle.events))])))
		}
	}
	for _, r := range records {
		w.oracle.records[r.Event] = append(w.oracle.records[r.Event], r)
	}
	w.announce(t, entries)
	early := 0
	if len(records) > 0 {
		early = w.IntN(len(records))
	}
	w.view.AddRecords(records[:early])
	if err := w.view.AddEvents(entries); err != nil {
		t.Fatal(err)
	}
	w.view.AddRecords(records[early:])
}

// announce has the view hear that some events are erased before they come, where the world is one in which that happens.
func (w *world) announce(t testing.TB, entries []stream.Entry) {
	t.Helper()
	if !w.erases {
		return
	}
	var early []stream.Position
	for _, entry := range entries {
		if w.IntN(20) == 0 {
			early = append(early, entry.Position)
		}
	}
	mustNot(t, w.view.Erase(early))
	w.oracle.erase(early)
}

// erase takes a visitor's events out, or some at random, with positions of which there is no event.
func (w *world) erase(t testing.TB) {
	t.Helper()
	positions, some := []stream.Position{1, w.last + 1<<40}, 1+w.IntN(10)
	who := ""
	if len(w.oracle.events) > 0 {
		who = pick(w.Rand, w.oracle.events...).visitor
	}
	for _, e := range w.oracle.events {
		if who != "" && some > 5 && e.visitor == who || some <= 5 && w.IntN(10) < some {
			positions = append(positions, e.position)
		}
	}
	w.Shuffle(len(positions), func(i, j int) { positions[i], positions[j] = positions[j], positions[i] })
	mustNot(t, w.view.Erase(append(positions, positions...)))
	w.oracle.erase(positions)
}

// anonymize makes some of the oldest events nobody's.
func (w *world) anonymize() {
	before := w.last
	if len(w.oracle.events) > 0 {
		before = pick(w.Rand, w.oracle.events...).position
	}
	w.view.Anonymize(before)
	w.oracle.anonymize(before)
}

// forget drops some of the oldest events.
func (w *world) forget() {
	if len(w.oracle.events) == 0 {
		return
	}
	before := w.oracle.events[w.IntN(len(w.oracle.events))].position
	w.view.Forget(before)
	w.oracle.forget(before)
}

// someRange is a range somewhere about the stream.
func (w *world) someRange() Range {
	length := w.last.Time().Sub(begin).Milliseconds() + 2
	from, to := w.Int64N(length)-1, w.Int64N(length)+1
	if w.IntN(3) == 0 {
		from, to = 0, length
	}
	return Range{begin.Add(time.Duration(min(from, to)) * time.Millisecond), begin.Add(time.Duration(max(from, to)) * time.Millisecond)}
}

// sameAs compares answers; an empty list is as good as none.
func sameAs(t testing.TB, what string, got, want any) {
	t.Helper()
	if diff := cmp.Diff(want, got, cmp.Comparer(func(a, b event.Sum) bool { return a == b })); diff != "" {
		t.Fatalf("%s differs from the definitions (-want +got):\n%s", what, diff)
	}
}

// check compares every number of the view with the oracle's.
func (w *world) check(t testing.TB) {
	t.Helper()
	ctx := t.Context()
	r := w.someRange()
	complete := w.view.Status(t.Context()).CompleteFrom
	w.oracle.trace()
	var days []Range
	for from := r.From; from.Before(r.To); from = from.Add(r.To.Sub(r.From)/3 + 1) {
		days = append(days, Range{from, from.Add(r.To.Sub(r.From)/3 + 1)})
	}
	for _, filter := range []Filter{nil, w.someFilter(), w.someFilter()} {
		summary, err := w.view.Summary(ctx, r, filter)
		mustNot(t, err)
		wantSummary := w.oracle.summary(r, filter)
		wantSummary.CompleteFrom = complete
		sameAs(t, fmt.Sprint("summary of ", filter), summary, wantSummary)
		daily, err := w.view.Series(ctx, days, filter)
		mustNot(t, err)
		sameAs(t, fmt.Sprint("daily of ", filter), daily, Series{w.oracle.series(days, filter), complete})
	}
	w.checkBreakdown(t, r)
	w.checkStats(t, r)
	w.checkFunnel(t, r)
	w.checkDeliveries(t, r)

	q := AttributionQuery{
		Range: r, Model: pick(w.Rand, FirstTouch, LastTouch, Linear, Linear), ConversionEvent: pick(w.Rand, "purchase", "purchase", "lead"),
		Lookback: time.Duration(w.Int64N(20*w.pace)) * time.Millisecond * time.Duration(min(1, w.IntN(4))), GroupBy: pick(w.Rand, ByChannel, BySource, ByMedium, ByCampaign),
	}
	if q.Limit = w.IntN(4); w.IntN(2) == 0 {
		q.Filter = w.someFilter()
	}
	wantAttribution := w.oracle.attribution(q)
	wantAttribution.CompleteFrom = complete
	attribution, err := w.view.Attribution(ctx, q)
	mustNot(t, err)
	sameAs(t, fmt.Sprintf("attribution %+v", q), attribution, wantAttribution)
	wantExactCredits(t, attribution, w.oracle.decimals())
	w.checkListing(t, r)
}

// checkBreakdown compares the groups of some dimension.
func (w *world) checkBreakdown(t testing.TB, r Range) {
	t.Helper()
	q := BreakdownQuery{
		Range: r, By: pick(w.Rand, ByEvent, ByChannel, BySource, ByMedium, ByCampaign, ByPage, ByProduct, ByProduct),
		Order: pick(w.Rand, OrderEvents, OrderUniqueVisitors, OrderPurchases, OrderRevenue), Limit: w.IntN(5),
	}
	if w.pages > 0 {
		q.By = ByPage
	}
	if w.IntN(2) == 0 {
		q.Filter = w.someFilter()
	}
	want := w.oracle.breakdown(q)
	want.CompleteFrom = w.view.Status(t.Context()).CompleteFrom
	got, err := w.view.Breakdown(t.Context(), q)
	mustNot(t, err)
	sameAs(t, fmt.Sprintf("breakdown %+v", q), got, want)
}

// checkStats walks through all pages of event statistics.
func (w *world) checkStats(t testing.TB, r Range) {
	t.Helper()
	q := StatsQuery{Range: r, Class: pick(w.Rand, event.Human, event.Human, event.Bot), Limit: 1 + w.IntN(6)}
	all := w.oracle.eventStats(q.Class, r)
	want := Stats{CompleteFrom: w.view.Status(t.Context()).CompleteFrom}
	for from := 0; from == 0 || from < len(all); from += q.Limit {
		to := min(len(all), from+q.Limit)
		want.Events, want.Next, want.OtherNames, want.OtherCount = all[from:to], StatsPlace{}, len(all)-to, 0
		for i := range all[to:] {
			want.OtherCount += all[to+i].Count
		}
		if to < len(all) {
			want.Next = StatsPlace{all[to-1].Count, all[to-1].Event}
		}
		page, err := w.view.EventStats(t.Context(), q)
		mustNot(t, err)
		sameAs(t, fmt.Sprintf("event statistics %+v", q), page, want)
		q.After = page.Next
	}
}

// checkListing walks through all pages of a listing.
func (w *world) checkListing(t testing.TB, r Range) {
	t.Helper()
	q := ListingQuery{Range: r, Class: pick(w.Rand, event.Human, event.Human, event.Bot, event.Test), Limit: 1 + w.IntN(20)}
	q.Platforms = pick(w.Rand, nil, nil, []string{"meta"}, []string{"removed"}, []string{"crm", "meta"})
	if w.IntN(2) == 0 {
		q.Events = []string{"purchase", "unknown", "lead"}[:1+w.IntN(3)]
	}
	if w.IntN(2) == 0 {
		q.Statuses = []stream.Status{stream.Status(w.IntN(6)), stream.Status(w.IntN(6))}[:1+w.IntN(2)]
	}
	q.AnyClass, q.Ascending = w.IntN(3) == 0, w.IntN(2) == 0
	w.lookUp(&q)
	for range 3 {
		q.Count = w.IntN(2) == 0
		want := w.oracle.listing(q)
		want.CompleteFrom = w.view.Status(t.Context()).CompleteFrom
		page, err := w.view.Listing(t.Context(), q)
		mustNot(t, err)
		sameAs(t, fmt.Sprintf("listing %+v", q), page, want)
		if q.After = page.Next; q.After == 0 {
			return
		}
	}
}

func mustNot(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestNumbersAreThoseOfTheDefinitionsOnSmallStreams(t *testing.T) {
	for seed := range uint64(1000) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			w := newWorld(seed)
			for range 1 + w.IntN(3) {
				w.grow(t, w.IntN(30))
				if w.IntN(4) == 0 {
					w.forget()
				}
				w.check(t)
			}
		})
	}
}

func TestNumbersAreThoseOfTheDefinitionsOnLongStreams(t *testing.T) {
	w := newWorld(1)
	w.visitors, w.pages = 2000, 9000 // so many that visitors are counted after the groups
	for range 4 {
		w.grow(t, columns.ChunkRows*3/4)
		w.forget()
		w.check(t)
	}
	w.check(t)
}

func TestNumbersAreThoseOfTheDefinitionsForBusyVisitors(t *testing.T) {
	for seed := range uint64(10) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			w := newWorld(seed)
			w.visitors = 3
			for range 3 {
				w.grow(t, 200)
				w.check(t)
			}
		})
	}
}
