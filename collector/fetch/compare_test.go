package fetch_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-dev/weir/collector/fetch"
	"github.com/weir-dev/weir/collector/server"
	"github.com/weir-dev/weir/collector/sources"
	"github.com/weir-dev/weir/collector/stream"
)

// atNoon gives a property a time zone in which it is noon: no test runs into another day.
func (p *property) atNoon() {
	offset := 12 - p.clock.Now().Hour()
	p.config.TimeZone = fmt.Sprintf("Etc/GMT%+d", -offset)
}

// day is the local date of the property's clock.
func (p *property) day(ahead int) string {
	location, err := time.LoadLocation(p.config.TimeZone)
	if err != nil {
		p.t.Fatal(err)
	}
	return p.clock.Now().In(location).AddDate(0, 0, ahead).Format(time.DateOnly)
}

// compared runs the fetcher once and returns what it has kept.
func (p *property) compared() (c stream.OrderComparison, found bool) {
	p.t.Helper()
	fetch.New(fetch.Options{
		Property: p.config, Positions: p.stream, Taker: p.handler, Orders: p.stream, Doer: http.DefaultClient, Now: p.clock.Now,
		Credentials: func(string) (map[string]string, error) { return p.credentials, nil },
		Logger:      slog.New(slog.NewTextHandler(p.log, nil)), Pause: func(context.Context, time.Duration) bool { return false },
	}).Run(p.t.Context())
	c, found, err := p.stream.OrderComparison(p.t.Context(), "shop")
	if err != nil {
		p.t.Fatal(err)
	}
	return c, found
}

// TestADaysOrdersAreComparedWithWhatIsStored has a shop with orders that are stored, that were refused, whose amounts have changed
// since, and a purchase that somebody else has sent.
func TestADaysOrdersAreComparedWithWhatIsStored(t *testing.T) {
	t.Parallel()
	type edit struct{ from, to string }
	for kind, test := range map[sources.Type]struct {
		changed, refused edit
		// worth is what is said of the order that was refused: nothing where its amount is beyond any.
		worth string
	}{
		sources.Shopify:     {edit{`"10.00"`, `"12.50"`}, edit{`"currency": "EUR"`, `"currency": ""`}, "10 "},
		sources.WooCommerce: {edit{`"10.00"`, `"12.50"`}, edit{`"currency": "EUR"`, `"currency": ""`}, "10 "},
		sources.Stripe:      {edit{`"amount_total": 1000`, `"amount_total": 1250`}, edit{`"amount_total": 1000`, `"amount_total": 1000000000000000000`}, "EUR"},
	} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			p := newProperty(t, kind)
			p.atNoon()
			today := p.day(0)
			before := stream.OrderComparison{Source: "shop", Day: p.day(-1), Skipped: true}
			if err := p.stream.KeepOrderComparison(t.Context(), before); err != nil {
				t.Fatal(err)
			}
			for id := range 3 {
				if got := p.pay(id + 1); got != http.StatusOK {
					t.Fatalf("order %d: %d", id+1, got)
				}
			}
			put := func(id int, made edit) {
				changed := bytes.Replace(p.order(id), []byte(made.from), []byte(made.to), 1)
				p.shop.Put(t.Context(), t, topics[kind], p.documentID(id), changed)
			}
			put(3, test.changed) // is changed when it was counted
			put(4, test.refused) // is refused
			p.collect(`{"event":"purchase","event_id":"purchase-99","data":{"value":5,"currency":"EUR","order_id":"99"}}`)
			p.collect(`{"event":"purchase","event_id":"of the till","data":{"value":5,"currency":"EUR","order_id":"till"}}`)
			p.clock.pass(16 * time.Hour) // four in the morning
			got, found := p.compared()
			if !found {
				t.Fatal("nothing is compared")
			}
			want := stream.OrderComparison{
				Source: "shop", Day: today, At: p.clock.Now(), Orders: 4,
				Missing:   stream.OrderList{Count: 1, Orders: []stream.ComparedOrder{{OrderID: "4", Shop: test.worth}}},
				Different: stream.OrderList{Count: 1, Orders: []stream.ComparedOrder{{OrderID: "3", Shop: "12.5 EUR", Stored: "10 EUR"}}},
				Extra:     stream.OrderList{Count: 1, Orders: []stream.ComparedOrder{{OrderID: "99", Stored: "5 EUR"}}},
			}
			if diff := cmp.Diff(want, got, cmpopts.EquateApproxTime(2*time.Second)); diff != "" {
				t.Errorf("comparison (-want +got):\n%s\n%s", diff, p.log)
			}
			if strings.Contains(p.log.String(), "order_id") {
				t.Errorf("the log has orders: %s", p.log)
			}
		})
	}
}

func TestOfWhatWasBeforeTheSourceNothingIsMissing(t *testing.T) {
	t.Parallel()
	p := newProperty(t, sources.Shopify)
	p.atNoon()
	got, found := p.compared()
	if want := (stream.OrderComparison{Source: "shop", Day: p.day(0), At: p.clock.Now(), Skipped: true}); !found || !cmp.Equal(want, got) {
		t.Errorf("compared %v: %s", found, cmp.Diff(want, got))
	}
	p.clock.pass(16 * time.Hour) // the day on which it began is no whole one
	if again, _ := p.compared(); !cmp.Equal(got, again) {
		t.Errorf("it is compared: %s", cmp.Diff(got, again))
	}
	p.clock.pass(24 * time.Hour)
	if next, _ := p.compared(); next.Skipped || next.Day != p.day(-1) {
		t.Errorf("the first whole day is not compared: %+v", next)
	}
}

// TestADayThatRetentionHasCutIsNotCompared pays orders, and has what was stored first removed before they are compared.
func TestADayThatRetentionHasCutIsNotCompared(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		kept int64
		want stream.OrderComparison
	}{
		"some are left": {kept: 1, want: stream.OrderComparison{Skipped: true}},
		"all are left":  {kept: 10, want: stream.OrderComparison{Orders: 3}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newProperty(t, sources.Shopify)
			p.atNoon()
			test.want.Source, test.want.Day = "shop", p.day(0)
			if err := p.stream.KeepOrderComparison(t.Context(), stream.OrderComparison{Source: "shop", Day: p.day(-1), Skipped: true}); err != nil {
				t.Fatal(err)
			}
			for id := range 3 {
				if got := p.pay(id + 1); got != http.StatusOK {
					t.Fatalf("order %d: %d", id+1, got)
				}
			}
			if _, err := p.stream.Trim(t.Context(), stream.TrimPolicy{MaxEvents: test.kept}); err != nil {
				t.Fatal(err)
			}
			p.clock.pass(16 * time.Hour)
			got, _ := p.compared()
			if diff := cmp.Diff(test.want, got, cmpopts.IgnoreFields(stream.OrderComparison{}, "At")); diff != "" {
				t.Errorf("comparison (-want +got):\n%s", diff)
			}
			if said := strings.Contains(p.log.String(), "orders are not compared"); said != test.want.Skipped {
				t.Errorf("the log says %v that the day is not compared:\n%s", said, p.log)
			}
		})
	}
}

// collect sends an event as a customer's server does.
func (p *property) collect(body string) {
	p.t.Helper()
	router := server.NewRouter(server.NewObserver(slog.New(slog.DiscardHandler), prometheus.NewRegistry()))
	p.handler.Routes(router)
	request := httptest.NewRequestWithContext(p.t.Context(), http.MethodPost, "/collect/"+apiKey, strings.NewReader(body))
	request.Header.Set("Content-Type", "application/json")
	answer := httptest.NewRecorder()
	router.ServeHTTP(answer, request)
	if answer.Code != http.StatusAccepted {
		p.t.Fatalf("%s: %d %s", body, answer.Code, answer.Body)
	}
}
