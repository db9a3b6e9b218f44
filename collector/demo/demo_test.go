package demo

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"

	"github.com/weir-dev/weir/collector/config"
	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/event/envelope"
	"github.com/weir-dev/weir/collector/event/wire"
	"github.com/weir-dev/weir/collector/platforms"
	"github.com/weir-dev/weir/collector/stream"
)

var testEnd = time.Date(2026, time.November, 20, 14, 30, 0, 0, time.UTC)

func testProperty() *config.Property {
	return &config.Property{
		Namespace: "default", Name: "shop", Currency: "EUR", TimeZone: "Europe/Berlin",
		Platforms: []platforms.Platform{
			{Name: "console", Type: platforms.TypeLog},
			{Name: "crm", Type: platforms.TypeWebhook, Events: []string{event.Purchase, event.Refund}},
			{Name: "meta", Type: platforms.TypeMeta},
		},
	}
}

func newPast(t testing.TB, o Options) *Past {
	t.Helper()
	if o.Property == nil {
		o.Property = testProperty()
	}
	if o.End.IsZero() {
		o.End = testEnd
	}
	past, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return past
}

// digest stands for everything in a past, however it is encoded.
func digest(past *Past) string {
	sum := sha256.New()
	for batch := range past.Batches() {
		for i, e := range batch.Events {
			value := ""
			if e.Value != nil {
				value = e.Value.String()
			}
			fmt.Fprintln(sum, batch.Entries[i].Position, e.ID, e.Name, value, e.Currency, e.OrderID, e.ContentID, e.ContentName, e.ClientID,
				e.User.Get(event.EmailLower), e.User.Get(event.PhoneDigits), e.User.Get(event.FirstNameLower), e.Platforms)
			c := &e.Context
			fmt.Fprintln(sum, c.PageURL, c.Referrer, c.IP, c.UserAgent, c.UTMSource, c.UTMMedium, c.UTMCampaign, c.UTMTerm, c.UTMContent,
				c.ClickIDs, e.Consent.AdUserData, e.Consent.AdPersonalization)
			for _, item := range e.Contents {
				fmt.Fprintln(sum, item.ID, item.Name, item.Category, *item.Quantity, *item.Price)
			}
		}
		for _, r := range batch.Records {
			fmt.Fprintln(sum, r.Event, r.Platform, r.Status, r.Attempts, r.Latency, r.Reason, r.At.UnixMilli())
		}
	}
	return hex.EncodeToString(sum.Sum(nil))
}

func TestTheSameSeedMakesTheSamePast(t *testing.T) {
	options := Options{Events: 5000, Days: 20, Seed: 7}
	first := digest(newPast(t, options))
	if again := digest(newPast(t, options)); again != first {
		t.Errorf("the second telling differs: %s, %s", first, again)
	}
	// The same on every machine and with every version of Go; it changes only where the generator is changed.
	const want = "f2dd43ec2bfdff3e0b9378bb0a8519adb01357cc07567d8295f53032a665445b"
	if first != want {
		t.Errorf("got the digest %s, want %s", first, want)
	}
	options.Seed = 8
	if other := digest(newPast(t, options)); other == first {
		t.Error("another seed makes the same past")
	}
}

func TestAPastIsWhole(t *testing.T) {
	for name, o := range map[string]Options{
		"a single event":                 {Events: 1, Days: 1},
		"fewer events than hours":        {Events: 100, Days: 30},
		"an hour's worth in a long year": {Events: 3000, Days: 366, Seed: 3},
		"a busy day":                     {Events: 6000, Days: 1, Seed: 4},
		"a month":                        {Events: 10_000, Days: 30, Seed: 5},
	} {
		t.Run(name, func(t *testing.T) {
			from := testEnd.Add(-time.Duration(o.Days) * 24 * time.Hour)
			events := map[stream.Position]*event.Event{}
			ids := map[string]bool{}
			final := map[string]int{}
			var last stream.Position
			var decided time.Time
			for batch := range newPast(t, o).Batches() {
				for i, entry := range batch.Entries {
					at := entry.Position.Time()
					if entry.Position <= last || at.Before(from) || !at.Before(testEnd) {
						t.Fatalf("event at %s after %s is out of order or out of the past", entry.Position, last)
					}
					last = entry.Position
					decoded, err := wire.Decode(entry.Data)
					if err != nil {
						t.Fatal(err)
					}
					if !reflect.DeepEqual(batch.Events[i], decoded) {
						t.Fatalf("the entry is another event (-Events +Entries):\n%s", cmp.Diff(batch.Events[i], decoded))
					}
					if ids[decoded.ID] {
						t.Errorf("the event id %s is there twice", decoded.ID)
					}
					ids[decoded.ID] = true
					events[entry.Position] = &decoded
				}
				for _, r := range batch.Records {
					e, known := events[r.Event]
					switch {
					case !known:
						t.Fatalf("record of an event that was not: %+v", r)
					case !r.Status.Final():
						t.Errorf("the record is open: %+v", r)
					case r.At.Before(decided) || r.At.Before(r.Event.Time()) || r.At.After(testEnd):
						t.Errorf("the record's time is out of order: %+v after %s", r, decided)
					case (r.Status == stream.Skipped) != (r.Attempts == 0):
						t.Errorf("attempts and status disagree: %+v", r)
					case r.Platform == "crm" && (r.Status == stream.Skipped) == (e.Name == event.Purchase || e.Name == event.Refund):
						t.Errorf("the platform takes purchases and refunds alone: %s %+v", e.Name, r)
					}
					decided = r.At
					final[r.Event.String()+r.Platform]++
				}
			}
			if len(events) != o.Events {
				t.Errorf("got %d events, want %d", len(events), o.Events)
			}
			for position := range events {
				for _, platform := range []string{"console", "crm", "meta"} {
					if n := final[position.String()+platform]; n != 1 {
						t.Fatalf("%s has %d records on %s, want 1", position, n, platform)
					}
				}
			}
		})
	}
}

// TestAPastIsBelievable counts what a newcomer looks at first.
func TestAPastIsBelievable(t *testing.T) {
	names, currencies, statuses := map[string]int{}, map[string]int{}, map[string]int{}
	visitors, buyers := map[string]bool{}, map[string]bool{}
	touches, night, evening := 0, 0, 0
	orders := map[string]event.Amount{}
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	const count = 30_000
	for batch := range newPast(t, Options{Events: count, Days: 30, Seed: 1}).Batches() {
		for i, e := range batch.Events {
			names[e.Name]++
			if e.Currency != "" {
				currencies[e.Currency]++
			}
			visitors[e.ClientID] = true
			if c := e.Context; c.UTMSource != "" || c.Referrer != "" || len(c.ClickIDs) > 0 {
				touches++
			}
			switch hour := batch.Entries[i].Position.Time().In(berlin).Hour(); {
			case hour >= 2 && hour < 5:
				night++
			case hour >= 19 && hour < 22:
				evening++
			}
			switch e.Name {
			case event.Purchase:
				orders[e.OrderID] = *e.Value
				buyers[e.ClientID] = true
				if e.User == (event.Hashes{}) && e.ClientID != "" {
					t.Errorf("order %s has no customer", e.OrderID)
				}
			case event.Refund:
				if paid, known := orders[e.OrderID]; !known || *e.Value > paid || *e.Value <= 0 {
					t.Errorf("refund of %s for order %s, which was paid with %s", *e.Value, e.OrderID, paid)
				}
			}
		}
		for _, r := range batch.Records {
			statuses[r.Platform+" "+r.Status.String()]++
		}
	}
	for name, between := range map[string]struct{ got, low, high int }{
		"page views":             {names[event.Pageview], count * 40 / 100, count * 75 / 100},
		"baskets":                {names[event.AddToCart], count / 50, count / 8},
		"purchases":              {names[event.Purchase], count / 250, count / 50},
		"refunds":                {names[event.Refund], names[event.Purchase] / 100, names[event.Purchase] / 12},
		"visitors":               {len(visitors), count / 40, count / 10},
		"buyers":                 {len(buyers), names[event.Purchase] / 3, names[event.Purchase]},
		"own currency":           {currencies["EUR"], names[event.Purchase] * 2, count / 5},
		"another currency":       {currencies["CHF"], 10, currencies["EUR"] / 20},
		"touches":                {touches, count / 15, count / 3},
		"nights":                 {night, 50, evening / 8},
		"delivered to Meta":      {statuses["meta delivered"], count * 70 / 100, count},
		"refused by Meta":        {statuses["meta failed"], count / 1000, count / 50},
		"given up on Meta":       {statuses["meta expired"], 5, count / 200},
		"skipped by the webhook": {statuses["crm skipped"], count * 90 / 100, count},
	} {
		if between.got < between.low || between.got > between.high {
			t.Errorf("%s: got %d, want %d to %d", name, between.got, between.low, between.high)
		}
	}
}

// asSent is what a customer's server would have sent for a step.
func asSent(s *step, e *event.Event) map[string]any {
	email, phone, firstName := s.visit.person.identity()
	if e.User == (event.Hashes{}) {
		email, phone, firstName = "", "", ""
	}
	decisions := map[event.Decision]string{event.Granted: "granted", event.Denied: "denied"}
	sent := map[string]any{
		"event": e.Name, "client_id": e.ClientID,
		"user": map[string]any{"email": email, "phone": phone, "first_name": firstName},
		"context": map[string]any{
			"page_url": e.Context.PageURL, "referrer": e.Context.Referrer, "ip": e.Context.IP, "user_agent": e.Context.UserAgent,
			"utm_source": e.Context.UTMSource, "utm_medium": e.Context.UTMMedium, "utm_campaign": e.Context.UTMCampaign,
			"click_ids": e.Context.ClickIDs,
		},
		"consent": map[string]any{"ad_user_data": decisions[e.Consent.AdUserData], "ad_personalization": decisions[e.Consent.AdPersonalization]},
	}
	data := map[string]any{"order_id": e.OrderID, "content_id": e.ContentID, "content_name": e.ContentName}
	if e.Value != nil {
		data["value"], data["currency"] = e.Value.String(), e.Currency
	}
	var contents []any
	for _, item := range e.Contents {
		contents = append(contents, map[string]any{
			"id": item.ID, "name": item.Name, "category": item.Category, "quantity": item.Quantity.String(), "price": item.Price.String(),
		})
	}
	if contents != nil {
		data["contents"] = contents
	}
	sent["data"] = data
	if e.ID != e.DeliveryID.String() {
		sent["event_id"] = e.ID
	}
	return sent
}

func TestEventsAreWhatTheCollectorWouldHaveStored(t *testing.T) {
	property := testProperty()
	property.Platforms = nil
	for _, kind := range platforms.Types() { // so that every hash is needed
		property.Platforms = append(property.Platforms, platforms.Platform{Name: strings.ToLower(string(kind)), Type: kind})
	}
	past := newPast(t, Options{Property: property, Events: 12_000, Days: 21, Seed: 2})
	g := newGenerator(past.options, past.location)
	names := map[string]int{}
	for i, slot := range g.slots {
		g.plan(slot, i == len(g.slots)-1)
	}
	for i := range g.ahead {
		s := &g.ahead[i]
		e := g.eventOf(s)
		body, err := json.Marshal(asSent(s, &e))
		if err != nil {
			t.Fatal(err)
		}
		decoded := new(envelope.Envelope)
		if err := decoded.Decode(body); err != nil {
			t.Fatal(err)
		}
		valid, errs := decoded.Validate(time.UnixMilli(s.at), nil)
		if len(errs) > 0 {
			t.Fatalf("%s: %v", body, errs)
		}
		want := envelope.Pseudonymise(valid, envelope.Acceptance{
			DeliveryID: e.DeliveryID, Variants: property.Variants(), Platforms: property.PlatformNames(),
		})
		if !reflect.DeepEqual(want, e) {
			t.Fatalf("%s (-collector +demo):\n%s", body, cmp.Diff(want, e))
		}
		names[e.Name]++
	}
	for _, name := range []string{event.Pageview, viewContent, search, event.AddToCart, beginCheckout, addPaymentInfo, event.Purchase, event.Refund, signUp, lead} {
		if names[name] == 0 {
			t.Errorf("no %s among %v", name, names)
		}
	}
}

func TestOptionsHaveBounds(t *testing.T) {
	unknown := testProperty()
	unknown.TimeZone = "Atlantis/Capital"
	for name, test := range map[string]struct {
		options Options
		want    string
	}{
		"no events":           {Options{Property: testProperty(), Events: 0, Days: 1}, "1 to 100000000 events, not 0"},
		"too many events":     {Options{Property: testProperty(), Events: MaxEvents + 1, Days: 1}, "events"},
		"no days":             {Options{Property: testProperty(), Events: 1, Days: 0}, "1 to 366 days, not 0"},
		"too many days":       {Options{Property: testProperty(), Events: 1, Days: 367}, "days"},
		"an unknown timezone": {Options{Property: unknown, Events: 1, Days: 1}, "Atlantis/Capital"},
	} {
		if _, err := New(test.options); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got %v, want %q", name, err, test.want)
		}
	}
}

func BenchmarkBatches(b *testing.B) {
	past := newPast(b, Options{Events: 1_000_000, Days: 30, Seed: 1})
	b.ReportAllocs()
	events := 0
	for b.Loop() {
		for batch := range past.Batches() {
			events += len(batch.Events)
		}
	}
	b.ReportMetric(float64(events)/b.Elapsed().Seconds(), "events/s")
}

func TestPricesCanBePaid(t *testing.T) {
	for _, currency := range []string{"EUR", "JPY", "KWD", "CLF"} {
		t.Run(currency, func(t *testing.T) {
			property := testProperty()
			property.Currency = currency
			paid := 0
			for batch := range newPast(t, Options{Events: 5000, Days: 20, Seed: 3, Property: property}).Batches() {
				for _, e := range batch.Events {
					if e.Value == nil {
						continue
					}
					paid++
					unit := event.MinorUnit(e.Currency)
					if *e.Value%unit != 0 {
						t.Errorf("a %s of %s %s cannot be paid", e.Name, *e.Value, e.Currency)
					}
					for _, item := range e.Contents {
						if *item.Price%unit != 0 || *item.Price < 1000*unit {
							t.Errorf("the price %s %s cannot be asked", *item.Price, e.Currency)
						}
					}
				}
			}
			if paid < 100 {
				t.Errorf("%d events have a value", paid)
			}
		})
	}
}
