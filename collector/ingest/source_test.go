package ingest_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stripe/stripe-go/v85/webhook"

	"github.com/weir-dev/weir/collector/auth"
	"github.com/weir-dev/weir/collector/config"
	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/ingest"
	"github.com/weir-dev/weir/collector/redisserver"
	"github.com/weir-dev/weir/collector/redisserver/redistest"
	"github.com/weir-dev/weir/collector/sources"
	"github.com/weir-dev/weir/collector/stream"
)

// signingSecret is every source's.
const signingSecret = "whsec_5WbX5kEWLlfzsGNjH64I8lOOqUB6e8FH"

// withSources gives a tenant a source of each type, and one without a secret.
func withSources(t ingest.Tenant) ingest.Tenant {
	t.Property.Sources = []sources.Source{
		{Name: "shopify", Type: sources.Shopify}, {Name: "woo", Type: sources.WooCommerce}, {Name: "stripe", Type: sources.Stripe},
		{Name: "new", Type: sources.Shopify},
	}
	t.SigningSecrets = map[string][]string{"shopify": {"the-next", signingSecret}, "woo": {signingSecret}, "stripe": {signingSecret}}
	return t
}

// fixture reads a document of a shop's, with parts of it replaced.
func fixture(t testing.TB, name string, replacements ...string) []byte {
	t.Helper()
	text, err := os.ReadFile("../sources/shop/testdata/" + name + ".json")
	if err != nil {
		t.Fatal(err)
	}
	return []byte(strings.NewReplacer(replacements...).Replace(string(text)))
}

// signed is the request in which a shop sends a document to its source.
func signed(source, topic string, body []byte, secret string) request {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write(body)
	signature := base64.StdEncoding.EncodeToString(mac.Sum(nil))
	r := request{path: "/sources/" + shopKey + "/" + source, body: body}
	switch source {
	case "woo":
		r.header = map[string]string{"X-WC-Webhook-Signature": signature, "X-WC-Webhook-Topic": topic, "X-WC-Webhook-Delivery-ID": "always-the-same"}
	case "stripe":
		payload := webhook.GenerateTestSignedPayload(&webhook.UnsignedPayload{Payload: body, Secret: secret, Timestamp: noon})
		r.contentType, r.header = "application/json; charset=utf-8", map[string]string{"Stripe-Signature": payload.Header}
	default:
		r.header = map[string]string{"X-Shopify-Hmac-Sha256": signature, "X-Shopify-Topic": topic, "X-Shopify-Event-Id": "98880550-7158-44d4-b7cd-2c97c8a091b5"}
	}
	return r
}

// reports reads the counter of what shops have reported, by outcome and source.
func (s *site) reports(t *testing.T) map[string]float64 {
	t.Helper()
	return s.counter(t, "weir_source_reports_total", "outcome", "source")
}

// told is what counts of an event, in a line.
func told(e event.Event) string {
	value := ""
	if e.Value != nil {
		value = e.Value.String()
	}
	return fmt.Sprint(e.Class, " ", e.Name, " ", e.ID, " ", value, " ", e.Currency)
}

func TestShopsReportTheirOrders(t *testing.T) {
	const order = "820982911946154508"
	tenant, kept := inMemory()
	s := newSite(t, withSources(tenant))
	for _, c := range []struct {
		says    string
		request request
		want    string
	}{
		{
			"an order of Shopify's", signed("shopify", "orders/paid", fixture(t, "shopify-order"), signingSecret),
			`{"ok":true,"event_ids":["purchase-` + order + `"]}`,
		},
		{
			"the same by another topic", signed("shopify", "orders/create", fixture(t, "shopify-order"), "the-next"),
			`{"ok":true,"event_ids":["purchase-` + order + `"]}`,
		},
		{
			"a refund of it", signed("shopify", "refunds/create", fixture(t, "shopify-refund"), signingSecret),
			`{"ok":true,"event_ids":["refund-` + order + `-890088186047892319"]}`,
		},
		{
			"a test order", signed("shopify", "orders/paid", fixture(t, "shopify-order", order, "77", `"test": false`, `"test": true`), signingSecret),
			`{"ok":true,"event_ids":["purchase-77"]}`,
		},
		{
			"one that is not paid", signed("shopify", "orders/create", fixture(t, "shopify-order", `"paid"`, `"pending"`), signingSecret),
			`{"ok":true,"ignored":"The order is not paid yet."}`,
		},
		{
			"an order of WooCommerce's with a refund", signed("woo", "order.updated", fixture(t, "woocommerce-order", `"refunds": []`, `"refunds": [{"id": 730, "total": "-10.00"}]`), signingSecret),
			`{"ok":true,"event_ids":["purchase-727","refund-727-730"]}`,
		},
		{
			"the same with one more", signed("woo", "order.updated", fixture(t, "woocommerce-order", `"refunds": []`, `"refunds": [{"id": 730, "total": "-10.00"}, {"id": 731, "total": "-0.01"}]`), signingSecret),
			`{"ok":true,"event_ids":["purchase-727","refund-727-730","refund-727-731"]}`,
		},
		{
			"an order long ago that is changed", signed("woo", "order.updated", fixture(t, "woocommerce-order", `727`, `5`, `2026-11-20T11:59:00`, `2026-11-13T11:58:59`), signingSecret),
			`{"ok":true,"ignored":"What happened longer ago than deduplication.windowHours may have been counted, and is not counted again."}`,
		},
		{"a session of Stripe's", signed("stripe", "", fixture(t, "stripe-session"), signingSecret), `{"ok":true,"event_ids":["purchase-pi_3QIntent"]}`},
		{"its payment", signed("stripe", "", fixture(t, "stripe-intent"), signingSecret), `{"ok":true,"ignored":"Events of this type make none of ours for this source."}`},
		{"a partial refund of it", signed("stripe", "", fixture(t, "stripe-refund"), signingSecret), `{"ok":true,"event_ids":["refund-pi_3QIntent-ch_3QCharge-3000"]}`},
		{"one in test mode", signed("stripe", "", fixture(t, "stripe-session", "pi_3QIntent", "pi_test", `"livemode": true`, `"livemode": false`), signingSecret), `{"ok":true,"event_ids":["purchase-pi_test"]}`},
		{"one of yen", signed("stripe", "", fixture(t, "stripe-session", "pi_3QIntent", "pi_jpy", `"eur"`, `"jpy"`), signingSecret), `{"ok":true,"event_ids":["purchase-pi_jpy"]}`},
		{"one of Kuwaiti dinars", signed("stripe", "", fixture(t, "stripe-session", "pi_3QIntent", "pi_kwd", `"eur"`, `"kwd"`), signingSecret), `{"ok":true,"event_ids":["purchase-pi_kwd"]}`},
	} {
		if got := s.send(t, c.request); got.status != http.StatusOK || got.body != c.want {
			t.Errorf("%s: got %d %s\nwant 200 %s", c.says, got.status, got.body, c.want)
		}
	}
	var got []string
	for _, e := range kept.stored(t) {
		got = append(got, told(e))
	}
	want := []string{
		"human purchase purchase-" + order + " 129.9 CHF", "human refund refund-" + order + "-890088186047892319 49.95 CHF",
		"test purchase purchase-77 129.9 CHF",
		"human purchase purchase-727 79.8 EUR", "human refund refund-727-730 10 EUR", "human refund refund-727-731 0.01 EUR",
		"human purchase purchase-pi_3QIntent 129.9 EUR", "human refund refund-pi_3QIntent-ch_3QCharge-3000 20 EUR", "test purchase purchase-pi_test 129.9 EUR",
		"human purchase purchase-pi_jpy 12990 JPY", "human purchase purchase-pi_kwd 12.99 KWD",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("stored (-want +got):\n%s", diff)
	}
	wantReports := map[string]float64{
		"stored shopify": 3, "duplicate shopify": 1, "ignored shopify": 1, "stored woo": 2, "ignored woo": 1, "stored stripe": 5, "ignored stripe": 1,
	}
	if diff := cmp.Diff(wantReports, s.reports(t)); diff != "" {
		t.Errorf("reports counted (-want +got):\n%s", diff)
	}
	first := kept.stored(t)[0]
	if first.User.Get(event.EmailLower) == (event.Hash{}) || first.ClientID != "1234567890.1700000000" || first.Context.IP != "203.0.113.7" {
		t.Errorf("the buyer is not known by e-mail, client id and address: %+v", first)
	}
	for _, personal := range []string{"jane", "Doe", "Bahnhofstrasse", "lacinia", "6681800"} {
		for _, addition := range kept.additions {
			if strings.Contains(strings.ToLower(string(addition.Entry)), strings.ToLower(personal)) {
				t.Errorf("what is stored holds %q", personal)
			}
		}
		if strings.Contains(s.log.String(), personal) {
			t.Errorf("the log holds %q", personal)
		}
	}
}

func TestWhoMayNotReportIsRefused(t *testing.T) {
	tenant, kept := inMemory()
	tenant = withSources(tenant)
	tenant.Keys = append(tenant.Keys, auth.Credential{Name: "web", Hash: auth.HashOf("wk_web_0123456789"), Publishable: &auth.Publishable{
		AllowedOrigins: []string{"https://shop.example"}, EventsPerSecond: 10, EventsPerSecondPerAddress: 10,
	}})
	s := newSite(t, tenant)
	order := fixture(t, "shopify-order")
	good := signed("shopify", "orders/paid", order, signingSecret)
	at := func(path string, r request) request { r.path = path; return r }
	old := webhook.GenerateTestSignedPayload(&webhook.UnsignedPayload{Payload: fixture(t, "stripe-session"), Secret: signingSecret, Timestamp: noon.Add(-6 * time.Minute)})
	for name, c := range map[string]struct {
		request request
		status  int
		want    string
	}{
		"a wrong secret":            {signed("shopify", "orders/paid", order, "another"), 401, `{"message":"The signature is missing, wrong or too old."}`},
		"no signature":              {request{path: good.path, body: order}, 401, `{"message":"The signature is missing, wrong or too old."}`},
		"another source's":          {at("/sources/"+shopKey+"/woo", good), 401, `{"message":"The signature is missing, wrong or too old."}`},
		"an old one of Stripe's":    {request{path: "/sources/" + shopKey + "/stripe", body: fixture(t, "stripe-session"), header: map[string]string{"Stripe-Signature": old.Header}}, 401, `{"message":"The signature is missing, wrong or too old."}`},
		"a wrong key":               {at("/sources/wk_wrong/shopify", good), 401, `{"message":"Invalid API key."}`},
		"a key of pages":            {at("/sources/wk_web_0123456789/shopify", good), 403, `{"message":"The API key is publishable, and no shop may use it: take a secret one."}`},
		"a source that is not":      {at("/sources/"+shopKey+"/ebay", good), 404, `{"message":"The property has no source of this name."}`},
		"a source without a secret": {signed("new", "orders/paid", order, ""), 503, `{"message":"The source has no signing secret yet. Please send the webhook again."}`},
		"what is signed but no JSON": {
			signed("shopify", "orders/paid", []byte("{"), signingSecret), 400, `{"message":"The request body must be the JSON object that the shop sends for this topic."}`,
		},
		"more than a webhook":           {signed("shopify", "orders/paid", make([]byte, 1<<20+1), signingSecret), 413, `{"message":"The request body must not be larger than 1048576 bytes."}`},
		"another media type":            {request{path: good.path, body: order, header: good.header, contentType: "text/xml"}, 415, `{"message":"The Content-Type must be application/json or application/x-www-form-urlencoded in UTF-8."}`},
		"a ping to one of another type": {request{path: good.path, body: []byte("webhook_id=42"), contentType: "application/x-www-form-urlencoded"}, 401, `{"message":"The signature is missing, wrong or too old."}`},
		"WooCommerce's ping":            {request{path: "/sources/" + shopKey + "/woo", body: []byte("webhook_id=42"), contentType: "application/x-www-form-urlencoded"}, 200, `{"ok":true}`},
		"its ping, a wrong key":         {request{path: "/sources/wk_wrong/woo", body: []byte("webhook_id=42"), contentType: "application/x-www-form-urlencoded"}, 401, `{"message":"Invalid API key."}`},
	} {
		t.Run(name, func(t *testing.T) {
			if got := s.send(t, c.request); got.status != c.status || got.body != c.want {
				t.Errorf("got %d %s\nwant %d %s", got.status, got.body, c.status, c.want)
			}
		})
	}
	if got := kept.stored(t); len(got) > 0 {
		t.Errorf("stored: %v", got)
	}
	for _, secret := range []string{shopKey, signingSecret, "wk_web_0123456789"} {
		if strings.Contains(s.log.String(), secret) {
			t.Errorf("the log holds %s", secret)
		}
	}
}

func TestAnOrderCountsWithoutWhatABuyerHasMistyped(t *testing.T) {
	tenant, kept := inMemory()
	tenant = withSources(tenant)
	list := new(refusals)
	tenant.Rejections = list
	s := newSite(t, tenant)
	send := func(topic string, replacements ...string) string {
		return s.send(t, signed("shopify", topic, fixture(t, "shopify-order", replacements...), signingSecret)).body
	}
	// A number without a country's code, an address that is none, a country that is none, a time that is over, a line that is no number.
	got := send("orders/paid", "+41 44 668 18 00", "044 668 18 00", "jane.doe@example.com", "jane.doe@", `"country_code": "CH"`, `"country_code": "Helvetia"`,
		`"processed_at": "2026-11-20`, `"processed_at": "2026-09-20`, `"quantity": 2`, `"quantity": "two"`)
	if want := `{"ok":true,"event_ids":["purchase-820982911946154508"]}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if stored := kept.stored(t); len(stored) != 1 || stored[0].User.Get(event.EmailLower) != (event.Hash{}) || stored[0].Contents != nil || !stored[0].OccurredAt.IsZero() {
		t.Errorf("stored %+v", stored)
	}
	// Without its currency it is no order: the shop is not asked to send it again, and the owner can read why.
	if got, want := send("orders/paid", "820982911946154508", "6", `"currency_code": "CHF"`, `"currency_code": "XXX"`), `{"ok":true,"rejected":1}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got, want := send("customers/redact"), `{"ok":true}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	var told []string
	for _, one := range list.list {
		told = append(told, fmt.Sprintf("%s %q %q %s", one.Endpoint, one.Event, one.EventID, one.Answer))
	}
	want := []string{
		`sources/shopify "purchase" "purchase-6" {"message":"The selected data.currency is invalid.","errors":{"data.currency":["The selected data.currency is invalid."]}}`,
		`sources/shopify "" "" {"message":"The shop asks by customers/redact that a person's data be handed out or erased. Weir does not do that by itself: see to it, at the platforms too."}`,
	}
	if diff := cmp.Diff(want, told); diff != "" {
		t.Errorf("rejections (-want +got):\n%s", diff)
	}
}

func TestAnOrderCountsWithoutLinesOfWhichNothingIsRight(t *testing.T) {
	const lines = `"line_items": [`
	for name, line := range map[string]string{
		"a number": `5,`, "null": `null,`, "a quantity that is none": `{"quantity": "x"},`, "a price that is none": `{"price": []},`,
		"all of them": `5, null, {"quantity": "x", "price": []}, {"sku": {}, "title": 7, "quantity": -1},`,
	} {
		t.Run(name, func(t *testing.T) {
			tenant, kept := inMemory()
			s := newSite(t, withSources(tenant))
			got := s.send(t, signed("shopify", "orders/paid", fixture(t, "shopify-order", lines, lines+line), signingSecret))
			if want := `{"ok":true,"event_ids":["purchase-820982911946154508"]}`; got.body != want {
				t.Errorf("got %s, want %s", got.body, want)
			}
			if stored := kept.stored(t); len(stored) != 1 || stored[0].Value == nil || stored[0].Value.String() != "129.9" {
				t.Errorf("stored %+v", stored)
			}
		})
	}
	// What an order needs is not made up for by what it does not.
	tenant, kept := inMemory()
	s := newSite(t, withSources(tenant))
	got := s.send(t, signed("shopify", "orders/paid", fixture(t, "shopify-order", lines, lines+`{"quantity": "x", "price": []},`, `"currency_code": "CHF"`, `"currency_code": "XXX"`), signingSecret))
	if want := `{"ok":true,"rejected":1}`; got.body != want || len(kept.stored(t)) > 0 {
		t.Errorf("without a currency: got %s, want %s", got.body, want)
	}
}

// TestAnOrderCountsOnce sends the same order by the shop's webhook and by the customer's server, in either order.
func TestAnOrderCountsOnce(t *testing.T) {
	const server = `{"event": "purchase", "event_id": "purchase-820982911946154508", "data": {"value": 129.90, "currency": "CHF", "order_id": "820982911946154508"}}`
	const byOrder = `{"event": "purchase", "event_id": "an-id-of-its-own", "data": {"value": 129.90, "currency": "CHF", "order_id": "820982911946154508"}}`
	client := newRedis(t)
	for name, bodies := range map[string][]string{
		"the shop first":                      {"", server},
		"the server first":                    {server, ""},
		"a server that has the order's alone": {byOrder, "", server},
		"all of them again and again":         {"", server, byOrder, "", server},
	} {
		t.Run(name, func(t *testing.T) {
			tenant, events := inRedis(t, client, property(strings.ReplaceAll(name, " ", "-")))
			s := newSite(t, withSources(tenant))
			for _, body := range bodies {
				r := request{body: []byte(body)}
				if body == "" {
					r = signed("shopify", "orders/paid", fixture(t, "shopify-order"), signingSecret)
				}
				if got := s.send(t, r); got.status/100 != 2 {
					t.Errorf("got %d %s", got.status, got.body)
				}
			}
			if got := len(storedNames(t, events)); got != 1 {
				t.Errorf("%d events are stored, want 1", got)
			}
		})
	}
}

func TestNothingOfAShopIsAcknowledgedWithoutRedis(t *testing.T) {
	redis := redistest.Start(t, redisserver.Options{Persist: true})
	tenant, events := inRedis(t, dial(t, redis.URL()), property("shop"))
	s := newSite(t, withSources(tenant))
	webhooks := []request{
		signed("shopify", "orders/paid", fixture(t, "shopify-order"), signingSecret),
		signed("woo", "order.created", fixture(t, "woocommerce-order"), signingSecret),
		signed("stripe", "", fixture(t, "stripe-session"), signingSecret),
	}
	if err := redis.Kill(); err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for _, webhook := range webhooks {
		all.Go(func() {
			start := time.Now()
			if got := s.send(t, webhook); got.status != http.StatusServiceUnavailable || got.body != unavailable {
				t.Errorf("%s: got %d %s, want 503", webhook.path, got.status, got.body)
			}
			if took := time.Since(start); took > 4500*time.Millisecond {
				t.Errorf("%s: took %s; Shopify waits for 5 s", webhook.path, took)
			}
		})
	}
	all.Wait()
	if err := redis.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, webhook := range slices.Concat(webhooks, webhooks) {
		if got := s.send(t, webhook); got.status != http.StatusOK {
			t.Errorf("%s, afterwards: got %d %s", webhook.path, got.status, got.body)
		}
	}
	if got := len(storedNames(t, events)); got != len(webhooks) {
		t.Errorf("%d events are stored, want %d", got, len(webhooks))
	}
}

// TestShopsMayAllReportAtOnce has a hundred orders under way at a time, of all shops: each is stored once, and none is
// put off. BenchmarkShops says how long they wait.
func TestShopsMayAllReportAtOnce(t *testing.T) {
	const parallel, each = 100, 6
	s, events := busySite(t, parallel)
	var all sync.WaitGroup
	for sender := range parallel {
		all.Go(func() {
			for n := range each {
				if got := s.send(t, orderOf(t, n, fmt.Sprintf("9%03d%03d", sender, n))); got.status != http.StatusOK {
					t.Errorf("got %d %s", got.status, got.body)
				}
			}
		})
	}
	all.Wait()
	const ofEach = parallel * each / 3
	want := map[string]float64{"stored shopify": ofEach, "stored woo": ofEach, "stored stripe": ofEach}
	if diff := cmp.Diff(want, s.reports(t)); diff != "" {
		t.Errorf("reports counted (-want +got):\n%s", diff)
	}
	if got := len(storedNames(t, events)); got != parallel*each {
		t.Errorf("%d events are stored, want %d", got, parallel*each)
	}
}

// BenchmarkShops says how long shops wait for an answer, a hundred at a time.
func BenchmarkShops(b *testing.B) {
	const parallel = 100
	s, _ := busySite(b, parallel)
	var mu sync.Mutex
	var took []time.Duration
	var next atomic.Int64
	var all sync.WaitGroup
	b.ResetTimer()
	for range parallel {
		all.Go(func() {
			for n := next.Add(1); n <= int64(b.N); n = next.Add(1) {
				webhook := orderOf(b, int(n), fmt.Sprintf("9%09d", n))
				start := time.Now()
				got := s.send(b, webhook)
				mu.Lock()
				took = append(took, time.Since(start))
				mu.Unlock()
				if got.status != http.StatusOK {
					b.Errorf("got %d %s", got.status, got.body)
				}
			}
		})
	}
	all.Wait()
	slices.Sort(took)
	for name, at := range map[string]int{"p50-ms": len(took) / 2, "p99-ms": len(took) * 99 / 100, "max-ms": len(took) - 1} {
		b.ReportMetric(float64(took[at])/float64(time.Millisecond), name)
	}
}

// busySite is a site with a source of each type and a Redis, to which so many send at a time.
func busySite(t testing.TB, parallel int) (*site, *stream.Stream) {
	t.Helper()
	p := property("busy")
	p.Limits = config.Limits{MaxBodyBytes: 64 << 10}
	tenant, events := inRedis(t, newRedis(t), p)
	s := newSite(t, withSources(tenant))
	s.Client().Transport.(*http.Transport).MaxIdleConnsPerHost = parallel
	return s, events
}

// orderOf is the webhook of an order of digits, of each shop in turn.
func orderOf(t testing.TB, turn int, id string) request {
	t.Helper()
	switch turn % 3 {
	case 0:
		return signed("shopify", "orders/paid", fixture(t, "shopify-order", "820982911946154508", id+"1"), signingSecret)
	case 1:
		return signed("woo", "order.created", fixture(t, "woocommerce-order", `"id": 727`, `"id": `+id+"2"), signingSecret)
	default:
		return signed("stripe", "", fixture(t, "stripe-session", "pi_3QIntent", id+"3"), signingSecret)
	}
}
