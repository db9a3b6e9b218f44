package fetch_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-dev/weir/collector/auth"
	"github.com/weir-dev/weir/collector/config"
	"github.com/weir-dev/weir/collector/event/wire"
	"github.com/weir-dev/weir/collector/fetch"
	"github.com/weir-dev/weir/collector/ingest"
	"github.com/weir-dev/weir/collector/redisserver"
	"github.com/weir-dev/weir/collector/redisserver/redistest"
	"github.com/weir-dev/weir/collector/server"
	"github.com/weir-dev/weir/collector/sources"
	"github.com/weir-dev/weir/collector/sources/fakes"
	"github.com/weir-dev/weir/collector/stream"
)

const apiKey = "wk_0123456789abcdefghij"

// clock is a time that passes when somebody waits.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// property is a collector and a fetcher with a Redis and a shop.
type property struct {
	t       *testing.T
	clock   *clock
	redis   *redisserver.Server
	stream  *stream.Stream
	handler *ingest.Handler
	shop    *fakes.Shop
	config  config.Property
	// credentials are what the deliverer has of the source's Secrets.
	credentials map[string]string
	log         *bytes.Buffer
}

// newProperty starts all of it, with one source.
func newProperty(t *testing.T, kind sources.Type) *property {
	t.Helper()
	p := &property{t: t, clock: &clock{now: time.Now().UTC().Truncate(time.Second)}, credentials: fakes.Credentials[kind], log: new(bytes.Buffer)}
	p.redis = redistest.Start(t, redisserver.Options{Persist: true})
	client, err := stream.Dial(p.redis.URL(), stream.DialOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	if err := client.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	p.stream = client.Stream("default", "shop")
	p.config = config.Property{
		Namespace: "default", Name: "shop", Currency: "EUR", TimeZone: "UTC", DeduplicationWindowHours: 168,
		Retention: config.Retention{Days: 62, MaxEvents: 1_000_000}, Limits: config.Limits{MaxBodyBytes: 64 << 10},
		Sources: []sources.Source{{Name: "shop", Type: kind, ReadsOrders: true}},
	}
	registry := prometheus.NewRegistry()
	p.handler = ingest.New(ingest.Options{Now: p.clock.Now, Registerer: registry})
	router := server.NewRouter(server.NewObserver(slog.New(slog.DiscardHandler), registry))
	p.handler.Routes(router)
	collector := httptest.NewServer(router)
	t.Cleanup(collector.Close)
	p.shop = fakes.New(t, kind, collector.URL+"/sources/"+apiKey+"/shop", p.clock.Now)
	p.config.Sources[0].URL = p.shop.URL
	appender := stream.NewAppender(p.stream, stream.AppenderOptions{Window: p.config.DeduplicationWindow()})
	t.Cleanup(func() { _ = appender.Close(context.Background()) })
	p.handler.Serve([]ingest.Tenant{{
		Property: p.config, Keys: []auth.Credential{{Name: "server", Hash: auth.HashOf(apiKey)}}, Appender: appender,
		SigningSecrets: map[string][]string{"shop": {fakes.Secret}},
	}})
	return p
}

// restart starts Redis again, and waits until its clients have noticed.
func (p *property) restart() {
	p.t.Helper()
	if err := p.redis.Restart(p.t.Context()); err != nil {
		p.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(p.t.Context(), 30*time.Second)
	defer cancel()
	for {
		_, err := p.stream.SourcePosition(ctx, "shop")
		if err == nil {
			return
		}
		if ctx.Err() != nil {
			p.t.Fatal(err)
		}
	}
}

// run lets the fetcher look so often, a minute apart.
func (p *property) run(looks int) *fetch.Fetcher {
	f := fetch.New(fetch.Options{
		Property: p.config, Positions: p.stream, Taker: p.handler, Doer: http.DefaultClient, Now: p.clock.Now,
		Credentials: func(string) (map[string]string, error) { return p.credentials, nil },
		Logger:      slog.New(slog.NewTextHandler(p.log, nil)),
		Pause: func(_ context.Context, d time.Duration) bool {
			p.clock.pass(d)
			looks--
			return looks > 0
		},
	})
	f.Run(p.t.Context())
	return f
}

// order is what the shop has of an order that was paid just now, with refunds.
func (p *property) order(id int, refunds ...string) []byte {
	at := p.clock.Now()
	switch p.config.Sources[0].Type {
	case sources.Shopify:
		return fmt.Appendf(nil, `{"id": %d, "financial_status": "paid", "processed_at": %q, "updated_at": %q, "total_price": "10.00", "currency": "EUR", "email": "jane@example.com", "refunds": [%s]}`,
			id, at.Format(time.RFC3339), at.Format(time.RFC3339), strings.Join(refunds, ","))
	case sources.WooCommerce:
		gmt := at.Format("2006-01-02T15:04:05")
		return fmt.Appendf(nil, `{"id": %d, "status": "processing", "date_created_gmt": %q, "date_paid_gmt": %q, "date_modified_gmt": %q, "total": "10.00", "currency": "EUR", "billing": {"email": "jane@example.com"}, "refunds": [%s]}`,
			id, gmt, gmt, gmt, strings.Join(refunds, ","))
	default:
		return fmt.Appendf(nil, `{"id": "evt_%d", "type": "checkout.session.completed", "created": %d, "livemode": true, "data": {"object": {"id": "cs_%d", "payment_intent": "%d", "payment_status": "paid", "amount_total": 1000, "currency": "eur", "customer_details": {"email": "jane@example.com"}}}}`,
			id, at.Unix(), id, id)
	}
}

// documentID is what the shop's API calls an order.
func (p *property) documentID(id int) string {
	if p.config.Sources[0].Type == sources.Stripe {
		return fmt.Sprintf("evt_%d", id)
	}
	return fmt.Sprint(id)
}

// topics are what the shops call an order that was paid.
var topics = map[sources.Type]string{sources.Shopify: "orders/paid", sources.WooCommerce: "order.created"}

// pay has an order paid, and returns what the webhook was answered.
func (p *property) pay(id int) int {
	return p.shop.Put(p.t.Context(), p.t, topics[p.config.Sources[0].Type], p.documentID(id), p.order(id))
}

// stored returns the ids of the events in the stream, sorted.
func (p *property) stored() []string {
	p.t.Helper()
	entries, err := p.stream.ReadEvents(p.t.Context(), 0, 10_000, -1)
	if err != nil {
		p.t.Fatal(err)
	}
	var ids []string
	for _, entry := range entries {
		e, err := wire.Decode(entry.Data)
		if err != nil {
			p.t.Fatal(err)
		}
		ids = append(ids, e.ID)
	}
	slices.Sort(ids)
	return ids
}

// each runs a test for each type of shop.
func each(t *testing.T, test func(*testing.T, sources.Type)) {
	for _, kind := range sources.Types() {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			test(t, kind)
		})
	}
}

// TestAfterAnOutageAllOrdersAreThereOnce has 130 orders paid during a minute in which Redis is away: two pages and some.
func TestAfterAnOutageAllOrdersAreThereOnce(t *testing.T) {
	each(t, func(t *testing.T, kind sources.Type) {
		p := newProperty(t, kind)
		var want []string
		expect := func(id int) { want = append(want, fmt.Sprintf("purchase-%d", id)) }
		p.run(1)
		for id := 1000; id < 1003; id++ {
			if got := p.pay(id); got != http.StatusOK {
				t.Fatalf("an order before: %d", got)
			}
			expect(id)
		}
		if err := p.redis.Kill(); err != nil {
			t.Fatal(err)
		}
		answers := map[int]int{}
		var mu sync.Mutex
		var all sync.WaitGroup
		for id := 1003; id < 1133; id++ {
			// WooCommerce counts failures in a row: the first six wait for Redis one after the other.
			send := func() {
				status := p.pay(id)
				mu.Lock()
				answers[status]++
				mu.Unlock()
			}
			if id < 1009 && kind == sources.WooCommerce {
				send()
			} else {
				all.Go(send)
			}
			if id%2 == 0 {
				p.clock.pass(time.Second)
			}
			expect(id)
		}
		all.Wait()
		for status := range answers {
			if status != http.StatusServiceUnavailable && status != 0 {
				t.Errorf("while Redis is away a webhook is answered %d", status)
			}
		}
		if p.shop.Disabled() != (kind == sources.WooCommerce) {
			t.Errorf("the webhook is disabled: %t", p.shop.Disabled())
		}
		p.run(1) // cannot store either
		p.restart()
		back := p.clock.Now()
		p.run(2)
		if p.shop.Disabled() {
			t.Error("the webhook is still disabled")
		}
		if took := p.clock.Now().Sub(back); took > 5*time.Minute {
			t.Errorf("it took %s", took)
		}
		if got := p.pay(1133); got != http.StatusOK {
			t.Errorf("an order afterwards: %d", got)
		}
		expect(1133)
		p.run(3)
		slices.Sort(want)
		if diff := cmp.Diff(want, p.stored()); diff != "" {
			t.Errorf("stored (-want +got):\n%s", diff)
		}
		if wrong := p.shop.Wrong(); len(wrong) > 0 {
			t.Errorf("the shop refuses %q", wrong)
		}
		if strings.Contains(p.log.String(), "jane") {
			t.Errorf("the log holds personal data: %s", p.log)
		}
	})
}

func TestASourceBeginsWithWhatChangesFromThenOn(t *testing.T) {
	each(t, func(t *testing.T, kind sources.Type) {
		p := newProperty(t, kind)
		if err := p.redis.Kill(); err != nil {
			t.Fatal(err)
		}
		p.pay(1) // nobody knows of it
		p.restart()
		p.clock.pass(6 * time.Minute)
		p.run(2)
		if got := p.stored(); len(got) > 0 {
			t.Errorf("stored %q", got)
		}
	})
}

// TestARefundIsDatedByTheShop has an order of long ago refunded: a webhook cannot tell when, the API can.
func TestARefundIsDatedByTheShop(t *testing.T) {
	p := newProperty(t, sources.WooCommerce)
	old := p.order(1)
	p.clock.pass(30 * 24 * time.Hour)
	p.run(1)
	now := p.clock.Now().Format("2006-01-02T15:04:05")
	refunded := bytes.Replace(old, []byte(`"refunds": []`), fmt.Appendf(nil, `"refunds": [{"id": 2, "total": "-4.00", "date_created_gmt": %q}]`, now), 1)
	if got := p.shop.Put(t.Context(), t, "order.updated", "1", refunded); got != http.StatusOK {
		t.Fatalf("the webhook: %d", got)
	}
	if got := p.stored(); len(got) > 0 {
		t.Errorf("by the webhook: %q", got)
	}
	p.run(2)
	if diff := cmp.Diff([]string{"refund-1-2"}, p.stored()); diff != "" {
		t.Errorf("stored (-want +got):\n%s", diff)
	}
}

func TestWhatAPersonHasToMend(t *testing.T) {
	each(t, func(t *testing.T, kind sources.Type) {
		for name, c := range map[string]struct {
			change func(*property)
			want   map[string]fetch.Problem
		}{
			"nothing":                  {func(*property) {}, map[string]fetch.Problem{}},
			"a Secret without its key": {func(p *property) { p.credentials = nil }, map[string]fetch.Problem{"shop": fetch.SecretInvalid}},
			"credentials that are wrong": {func(p *property) {
				p.credentials = map[string]string{"accessToken": "x", "consumerKey": "x", "consumerSecret": "x", "restrictedKey": "x"}
			}, map[string]fetch.Problem{"shop": fetch.CredentialsRejected}},
			"a URL where there is no API": {func(p *property) { p.config.Sources[0].URL += "/elsewhere" }, map[string]fetch.Problem{"shop": fetch.ConfigurationRejected}},
			"not a shop that is away":     {func(p *property) { p.shop.Close() }, map[string]fetch.Problem{}},
		} {
			t.Run(name, func(t *testing.T) {
				p := newProperty(t, kind)
				c.change(p)
				if diff := cmp.Diff(c.want, p.run(1).Problems()); diff != "" {
					t.Errorf("problems (-want +got):\n%s", diff)
				}
				for _, secret := range fakes.Credentials[kind] {
					if strings.Contains(p.log.String(), secret) {
						t.Errorf("the log holds a credential: %s", p.log)
					}
				}
			})
		}
	})
}
