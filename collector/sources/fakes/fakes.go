// Package fakes imitates the APIs of shop systems for tests, as strictly as their documentation has them: what the
// originals would refuse is refused, and noted. A shop keeps its orders and sends webhooks as the original would.
package fakes

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weir-dev/weir/collector/sources"
)

// Secret signs the webhooks of every shop.
const Secret = "whsec_of-the-shop"

// Credentials are those that each shop's API takes.
var Credentials = map[sources.Type]map[string]string{
	sources.Shopify:     {"accessToken": "shpat_0123456789"},
	sources.WooCommerce: {"consumerKey": "ck_0123456789", "consumerSecret": "cs_0123456789"},
	sources.Stripe:      {"restrictedKey": "rk_live_0123456789"},
}

// maxFailures is after how many failures in a row WooCommerce disables a webhook.
const maxFailures = 5

// Shop is a shop with its API and one webhook.
type Shop struct {
	*httptest.Server
	kind sources.Type
	now  func() time.Time

	mu        sync.Mutex
	documents []document
	target    string
	disabled  bool
	failures  int
	wrong     []string
}

// document is an order, or an event of Stripe's, as the API has it.
type document struct {
	id      string
	text    map[string]any
	changed time.Time
}

// New starts a shop that sends its webhooks to a target, until the test ends.
func New(t testing.TB, kind sources.Type, target string, now func() time.Time) *Shop {
	t.Helper()
	s := &Shop{kind: kind, now: now, target: target}
	mux := http.NewServeMux()
	for pattern, serve := range map[sources.Type]map[string]func(*http.Request, url.Values) (any, http.Header, string){
		sources.Shopify: {"GET /admin/api/{version}/orders.json": s.shopifyOrders},
		sources.Stripe:  {"GET /v1/events": s.stripeEvents},
		sources.WooCommerce: {
			"GET /wp-json/wc/v3/orders": s.wooOrders, "GET /wp-json/wc/v3/orders/{id}/refunds": s.wooRefunds,
			"GET /wp-json/wc/v3/webhooks": s.wooWebhooks, "PUT /wp-json/wc/v3/webhooks/7": s.wooSwitch,
		},
	}[kind] {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) { s.serve(w, r, serve) })
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		s.note("there is no " + r.Method + " " + r.URL.Path)
		w.WriteHeader(http.StatusNotFound)
	})
	s.Server = httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s
}

// Put stores an order, or changes it, at a time, and sends the webhook: it returns its status, 0 where none is sent.
func (s *Shop) Put(ctx context.Context, t testing.TB, topic, id string, text []byte) int {
	t.Helper()
	parsed := map[string]any{}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	if err := decoder.Decode(&parsed); err != nil {
		t.Fatal(err)
	}
	s.mu.Lock()
	s.documents = slices.DeleteFunc(s.documents, func(d document) bool { return d.id == id })
	s.documents = append(s.documents, document{id, parsed, s.now()})
	disabled := s.disabled
	s.mu.Unlock()
	if disabled {
		return 0
	}
	if s.kind == sources.WooCommerce {
		var err error
		if text, err = json.Marshal(brief(parsed)); err != nil {
			t.Fatal(err)
		}
	}
	status := s.send(ctx, t, topic, text)
	s.mu.Lock()
	defer s.mu.Unlock()
	if status/100 == 2 {
		s.failures = 0
	} else if s.failures++; s.failures > maxFailures && s.kind == sources.WooCommerce {
		s.disabled = true
	}
	return status
}

// send makes the request of a webhook.
func (s *Shop) send(ctx context.Context, t testing.TB, topic string, body []byte) int {
	t.Helper()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, s.target, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	sign := func(parts ...[]byte) []byte {
		mac := hmac.New(sha256.New, []byte(Secret))
		for _, part := range parts {
			mac.Write(part)
		}
		return mac.Sum(nil)
	}
	request.Header.Set("Content-Type", "application/json")
	switch s.kind {
	case sources.Shopify:
		request.Header.Set("X-Shopify-Topic", topic)
		request.Header.Set("X-Shopify-Hmac-Sha256", base64.StdEncoding.EncodeToString(sign(body)))
	case sources.WooCommerce:
		request.Header.Set("X-WC-Webhook-Topic", topic)
		request.Header.Set("X-WC-Webhook-Signature", base64.StdEncoding.EncodeToString(sign(body)))
	default:
		at := strconv.FormatInt(s.now().Unix(), 10)
		request.Header.Set("Stripe-Signature", "t="+at+",v1="+hex.EncodeToString(sign([]byte(at+"."), body)))
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return http.StatusBadGateway
	}
	defer response.Body.Close()
	return response.StatusCode
}

// Disabled says whether the shop has given its webhook up.
func (s *Shop) Disabled() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.disabled
}

// Wrong returns what was wrong with requests to the API.
func (s *Shop) Wrong() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.wrong)
}

func (s *Shop) note(what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wrong = append(s.wrong, what)
}

// authorized says whether a request shows the credentials.
func (s *Shop) authorized(r *http.Request) bool {
	want := Credentials[s.kind]
	switch s.kind {
	case sources.Shopify:
		return r.Header.Get("X-Shopify-Access-Token") == want["accessToken"]
	case sources.Stripe:
		return r.Header.Get("Authorization") == "Bearer "+want["restrictedKey"]
	default:
		key, secret, _ := r.BasicAuth()
		return key == want["consumerKey"] && secret == want["consumerSecret"]
	}
}

// serve answers a request of the API; a call's text says what is wrong with it.
func (s *Shop) serve(w http.ResponseWriter, r *http.Request, call func(*http.Request, url.Values) (any, http.Header, string)) {
	if !s.authorized(r) {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	answer, header, wrong := call(r, r.URL.Query())
	if wrong != "" {
		s.note(r.URL.Path + ": " + wrong)
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	maps.Copy(w.Header(), header)
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(answer)
}

// changedSince are the documents that have changed, the longest unchanged first.
func (s *Shop) changedSince(since time.Time) []document {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := slices.DeleteFunc(slices.Clone(s.documents), func(d document) bool { return d.changed.Before(since) })
	slices.SortStableFunc(list, func(a, b document) int { return a.changed.Compare(b.changed) })
	return list
}

// page cuts out what is on a page.
func page(list []document, from, size int) []map[string]any {
	texts := []map[string]any{}
	for _, d := range list[min(from, len(list)):min(from+size, len(list))] {
		texts = append(texts, d.text)
	}
	return texts
}

// expect says which parameters are other than these; "*" stands for any value.
func expect(query url.Values, want map[string]string) string {
	for name := range query {
		if _, known := want[name]; !known {
			return "there is no parameter " + name
		}
	}
	for name, value := range want {
		if got := query.Get(name); value != "*" && got != value {
			return fmt.Sprintf("%s is %q, want %q", name, got, value)
		}
	}
	return ""
}

// size reads how many are asked for.
func size(query url.Values, name string, most int) (int, string) {
	n, err := strconv.Atoi(query.Get(name))
	if err != nil || n < 1 || n > most {
		return 0, name + " is not from 1 to " + strconv.Itoa(most)
	}
	return n, ""
}

// shopifyOrders pages by a cursor, beside which no other parameter than limit may stand.
func (s *Shop) shopifyOrders(r *http.Request, query url.Values) (any, http.Header, string) {
	limit, wrong := size(query, "limit", 250)
	if wrong != "" {
		return nil, nil, wrong
	}
	from, since := 0, query.Get("updated_at_min")
	if cursor := query.Get("page_info"); cursor != "" {
		if wrong := expect(query, map[string]string{"limit": "*", "page_info": "*"}); wrong != "" {
			return nil, nil, wrong
		}
		place, rest, _ := strings.Cut(cursor, "~")
		from, _ = strconv.Atoi(place)
		since = rest
	} else if wrong := expect(query, map[string]string{"limit": "*", "status": "any", "order": "updated_at asc", "updated_at_min": "*"}); wrong != "" {
		return nil, nil, wrong
	}
	at, err := time.Parse(time.RFC3339, since)
	if err != nil {
		return nil, nil, "updated_at_min is no time"
	}
	list := s.changedSince(at)
	header := http.Header{}
	if from+limit < len(list) {
		next := url.Values{"limit": {strconv.Itoa(limit)}, "page_info": {strconv.Itoa(from+limit) + "~" + since}}
		header.Set("Link", `<`+s.URL+r.URL.Path+`?limit=1&page_info=0~x>; rel="previous", <`+s.URL+r.URL.Path+`?`+next.Encode()+`>; rel="next"`)
	}
	return map[string]any{"orders": page(list, from, limit)}, header, ""
}

func (s *Shop) wooOrders(_ *http.Request, query url.Values) (any, http.Header, string) {
	wrong := expect(query, map[string]string{"modified_after": "*", "dates_are_gmt": "true", "orderby": "modified", "order": "asc", "per_page": "*", "page": "*"})
	limit, tooMany := size(query, "per_page", 100)
	number, notOne := size(query, "page", 1<<30)
	at, err := time.Parse("2006-01-02T15:04:05", query.Get("modified_after"))
	if wrong += tooMany + notOne; wrong != "" || err != nil {
		return nil, nil, "wrong: " + wrong
	}
	list := page(s.changedSince(at), (number-1)*limit, limit)
	for i, order := range list {
		list[i] = brief(order)
	}
	return list, nil, ""
}

// brief is an order of WooCommerce's as webhooks and lists have it: without the dates of its refunds.
func brief(order map[string]any) map[string]any {
	shown, refunds := maps.Clone(order), []any{}
	given, _ := order["refunds"].([]any)
	for _, one := range given {
		refund := one.(map[string]any)
		refunds = append(refunds, map[string]any{"id": refund["id"], "reason": "", "total": refund["total"]})
	}
	shown["refunds"] = refunds
	return shown
}

func (s *Shop) wooRefunds(r *http.Request, query url.Values) (any, http.Header, string) {
	for _, d := range s.changedSince(time.Time{}) {
		if d.id != r.PathValue("id") {
			continue
		}
		refunds := []any{}
		given, _ := d.text["refunds"].([]any)
		for _, one := range given {
			refund := one.(map[string]any)
			refunds = append(refunds, map[string]any{
				"id": refund["id"], "date_created_gmt": refund["date_created_gmt"], "amount": strings.TrimPrefix(refund["total"].(string), "-"),
			})
		}
		return refunds, nil, expect(query, map[string]string{"per_page": "100"})
	}
	return nil, nil, "there is no such order"
}

func (s *Shop) wooWebhooks(_ *http.Request, query url.Values) (any, http.Header, string) {
	list := []any{map[string]any{"id": 6, "status": "disabled", "delivery_url": "https://elsewhere.example/sources/key/" + "other"}}
	if s.Disabled() {
		list = append(list, map[string]any{"id": 7, "status": "disabled", "delivery_url": s.target})
	}
	return list, nil, expect(query, map[string]string{"status": "disabled", "per_page": "100"})
}

func (s *Shop) wooSwitch(r *http.Request, _ url.Values) (any, http.Header, string) {
	var change map[string]any
	if err := json.NewDecoder(r.Body).Decode(&change); err != nil || len(change) != 1 || change["status"] != "active" {
		return nil, nil, "nothing but the status is to be changed, to active"
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.disabled, s.failures = false, 0
	return map[string]any{"id": 7, "status": "active"}, nil, ""
}

// stripeEvents lists the newest first, and goes on behind the id of the last one.
func (s *Shop) stripeEvents(_ *http.Request, query url.Values) (any, http.Header, string) {
	wrong := expect(query, map[string]string{"created[gte]": "*", "limit": "*", "types[]": "*", "starting_after": "*"})
	limit, tooMany := size(query, "limit", 100)
	at, err := strconv.ParseInt(query.Get("created[gte]"), 10, 64)
	if wrong += tooMany; wrong != "" || err != nil || len(query["types[]"]) > 20 {
		return nil, nil, "wrong: " + wrong
	}
	list := slices.DeleteFunc(s.changedSince(time.Unix(at, 0)), func(d document) bool { return !slices.Contains(query["types[]"], d.text["type"].(string)) })
	slices.Reverse(list)
	from := 0
	if after := query.Get("starting_after"); after != "" {
		if from = 1 + slices.IndexFunc(list, func(d document) bool { return d.id == after }); from == 0 {
			return nil, nil, "there is no event " + after
		}
	}
	return map[string]any{"object": "list", "data": page(list, from, limit), "has_more": from+limit < len(list)}, nil, ""
}
