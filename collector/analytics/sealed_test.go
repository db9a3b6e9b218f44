package analytics

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/google/uuid"

	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/event/wire"
	"github.com/weir-dev/weir/collector/redisserver"
	"github.com/weir-dev/weir/collector/redisserver/redistest"
	"github.com/weir-dev/weir/collector/stream"
)

// sealedShop is a property whose identities are sealed, as a query pod reads it.
type sealedShop struct {
	*shop
	stored *stream.Stream
}

// follow starts a view of a query pod, that ends with the test.
func (s *sealedShop) follow() *View {
	view := NewView(Options{Property: "default/shop", Currency: "EUR", Logger: slog.New(slog.NewTextHandler(s.Output(), nil))})
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error)
	reading := s.stored.Opening(wire.Identity)
	go func() { ended <- view.Follow(ctx, reading) }()
	s.Cleanup(func() {
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			s.Errorf("Follow ended with %v", err)
		}
	})
	return view
}

// visits are a day's events of some visitors, each of whom came another way, looks around and buys.
func visits(day int) []event.Event {
	ways := []event.Context{
		{PageURL: "https://shop.example/?gclid=Cj0K&a=1", ClickIDs: map[string]string{"gclid": "Cj0K"}},
		{PageURL: "https://shop.example/", Referrer: "https://news.example/?fbclid=IwAR"},
		{UTMSource: "mail", UTMMedium: "email", UTMCampaign: "spring"},
		{PageURL: "https://shop.example/", ClickIDs: map[string]string{"ttclid": "E.C.P"}},
		{},
	}
	var events []event.Event
	for visitor, way := range ways {
		if (visitor+day)%4 == 3 {
			continue // not everybody comes every day
		}
		for _, name := range []string{event.Pageview, event.AddToCart, event.Purchase} {
			e := event.Event{
				ID: fmt.Sprint(name, day, "-", visitor), DeliveryID: uuid.New(), Name: name, ClientID: fmt.Sprint("client-", visitor),
				User: event.Hashes{event.EmailLower: event.Hash{byte(visitor + 1)}}, Context: way, Platforms: []string{"crm"},
			}
			if name == event.Purchase {
				value := event.Amount(10_0000 * (day + 1))
				e.Value, e.Currency, e.OrderID = &value, "EUR", e.ID
			}
			if name != event.Pageview {
				e.Context.ClickIDs, e.Context.PageURL = nil, "https://shop.example/p"
			}
			events = append(events, e)
		}
	}
	return events
}

// answersOf are a view's answers to one question of each kind.
func answersOf(t *testing.T, v *View, all Range) []any {
	t.Helper()
	var answers []any
	add := func(answer any, err error) {
		t.Helper()
		mustNot(t, err)
		answers = append(answers, answer)
	}
	page, err := v.Listing(t.Context(), ListingQuery{Range: all, Limit: 1000})
	mustNot(t, err)
	for i := range page.Records {
		page.Records[i].Position, page.Records[i].Anonymous = 0, false
	}
	answers = append(answers, page.Records)
	summary, err := v.Summary(t.Context(), all, nil)
	add(summary, err)
	funnel, err := v.Funnel(t.Context(), funnelOf(all, []string{event.Pageview, event.AddToCart, event.Purchase}, time.Hour))
	add(funnel, err)
	stats, err := v.EventStats(t.Context(), StatsQuery{Range: all, Limit: 100})
	add(stats, err)
	for _, model := range []Model{FirstTouch, LastTouch, Linear} {
		attribution, err := v.Attribution(t.Context(), AttributionQuery{Range: all, Model: model, ConversionEvent: event.Purchase})
		add(attribution, err)
	}
	return answers
}

// TestNumbersAreThoseOfEventsThatWereNobodysFromTheStart has two properties get the same events for a week. One seals what tells
// whose they are, and drops what is older than three days; those events come to the other as nobody's.
func TestNumbersAreThoseOfEventsThatWereNobodysFromTheStart(t *testing.T) {
	const days, kept = 7, 3
	const dayLong = 24 * time.Hour
	start := begin.Truncate(dayLong)
	build := func(t *testing.T, store func(day int, e event.Event) wire.Parts) *sealedShop {
		base := newShop(t, redistest.Start(t, redisserver.Options{}))
		s := &sealedShop{base, base.stream}
		appender := stream.NewAppender(s.stored, stream.AppenderOptions{Window: time.Hour, JoinedFor: kept * dayLong * 2 / 3})
		defer func() { mustNot(t, appender.Close(t.Context())) }()
		for day := range days {
			for i, e := range visits(day) {
				s.now = start.Add(time.Duration(day)*dayLong + 10*time.Hour + time.Duration(i)*time.Second)
				s.clock.Stop(s.now)
				parts := store(day, e)
				whose := e
				if parts.Sealed[wire.Identity] == nil && day < days-kept {
					whose.DropIdentity()
				}
				_, err := appender.Append(t.Context(), []stream.Addition{{
					Entry: parts.Entry, Sealed: parts.Sealed, EventID: e.ID, Identifiers: whose.Identifiers("default/shop", nil).Packed(),
				}})
				mustNot(t, err)
			}
		}
		return s
	}
	sealed := build(t, func(_ int, e event.Event) wire.Parts { return wire.Split(&e, true) })
	nobodys := build(t, func(day int, e event.Event) wire.Parts {
		if day < days-kept {
			e.DropIdentity()
		}
		return wire.Split(&e, false)
	})
	events := 0
	for day := range days {
		events += len(visits(day))
	}
	whole := func(s *sealedShop, v *View) {
		s.await("the view has all events", func() bool { return v.Status(t.Context()).Ready && v.Status(t.Context()).Events == events })
	}
	before := sealed.follow()
	whole(sealed, before)
	end := start.Add(days * dayLong)
	all := Range{From: start, To: end}
	somebodys := answersOf(t, before, all)

	sealed.clock.Stop(end)
	went, err := sealed.stored.DropKeys(t.Context(), dayLong, kept*dayLong)
	mustNot(t, err)
	if went == 0 {
		t.Fatal("no key was dropped")
	}
	sealed.await("the view that runs has made old events nobody's", func() bool {
		page, err := before.Listing(t.Context(), ListingQuery{Range: Range{From: start, To: start.Add(dayLong)}, Limit: 1})
		mustNot(t, err)
		return len(page.Records) == 1 && page.Records[0].Anonymous
	})
	reference := nobodys.follow()
	whole(nobodys, reference)
	want := answersOf(t, reference, all)
	equal := cmp.Options{cmpopts.EquateEmpty(), cmp.AllowUnexported(event.Sum{})}
	if diff := cmp.Diff(want, answersOf(t, before, all), equal); diff != "" {
		t.Errorf("the view that runs (-nobody's from the start +sealed and dropped):\n%s", diff)
	}
	after := sealed.follow()
	whole(sealed, after)
	if diff := cmp.Diff(want, answersOf(t, after, all), equal); diff != "" {
		t.Errorf("a view that reads the stream afterwards (-nobody's from the start +sealed and dropped):\n%s", diff)
	}
	if cmp.Equal(want, somebodys, equal) {
		t.Error("the numbers do not depend on whose the events are: the test shows nothing")
	}
}
