package ingest_test

import (
	"bytes"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/event/wire"
	"github.com/weir-dev/weir/collector/ingest"
	"github.com/weir-dev/weir/collector/platforms"
	"github.com/weir-dev/weir/collector/stream"
)

// exchange is a request of the contract with its answer.
type exchange struct {
	request
	json   string // the body, where request has none
	status int
	want   string
	// header are fields of the answer, "*" for any value.
	header map[string]string
}

const purchase = `{"event": "purchase", "data": {"value": 49.9, "currency": "eur"}}`

// made is the delivery id that the nth event of a test gets.
func made(n int) string { return fmt.Sprintf("00000000-0000-7000-8000-%012x", n) }

// accepted is the answer to an event that is stored.
func accepted(id string) string { return `{"ok":true,"event_id":"` + id + `"}` }

// duplicate is the answer to an event that is not, because the one with this id was stored before.
func duplicate(id string) string { return `{"ok":true,"event_id":"` + id + `","duplicate":true}` }

const (
	invalidKey     = `{"message":"Invalid API key."}`
	moneyRequired  = `{"message":"The data.value field is required. (and 1 more error)","errors":{"data.value":["The data.value field is required."],"data.currency":["The data.currency field is required."]}}`
	wrongType      = `{"message":"The Content-Type must be application/json in UTF-8."}`
	wrongEncoding  = `{"message":"The Content-Encoding must be gzip or zstd, or absent."}`
	bodyTooLarge   = `{"message":"The request body must not be larger than 65536 bytes."}`
	notInEncoding  = `{"message":"The request body is not in the encoding that Content-Encoding names."}`
	notFound       = `{"message":"Not found."}`
	notAllowed     = `{"message":"Method not allowed."}`
	eventsRequired = `{"message":"The events field is required.","errors":{"events":["The events field is required."]}}`
)

// padded is a valid event whose JSON is exactly size bytes.
func padded(size int) []byte {
	const frame = `{"event": "pageview", "padding": ""}`
	return []byte(strings.Replace(frame, `""}`, `"`+strings.Repeat("x", size-len(frame))+`"}`, 1))
}

// section1 is the collect API, row by row. Each row has a property of its own; stored are the names of the events
// that its stream holds in the end.
func section1(t *testing.T) map[string]struct {
	exchanges []exchange
	stored    []string
} {
	type row = struct {
		exchanges []exchange
		stored    []string
	}
	return map[string]row{
		"an event_id is answered verbatim": {[]exchange{
			{json: `{"event": "pageview", "event_id": " Ä/\"1\" "}`, status: 202, want: `{"ok":true,"event_id":" Ä/\"1\" "}`},
		}, []string{"pageview"}},
		"without an event_id, or with one that is null or empty, the answer has a new one": {[]exchange{
			{json: purchase, status: 202, want: accepted(made(1))},
			{json: `{"event": "pageview", "event_id": null}`, status: 202, want: accepted(made(2))},
			{json: `{"event": "pageview", "event_id": ""}`, status: 202, want: accepted(made(3))},
		}, []string{"purchase", "pageview", "pageview"}},
		"a repeated event_id is a duplicate, whatever the event's name": {[]exchange{
			{json: `{"event": "pageview", "event_id": "e-1"}`, status: 202, want: accepted("e-1")},
			{json: `{"event": "pageview", "event_id": "e-1"}`, status: 202, want: duplicate("e-1")},
			{json: `{"event": "add_to_cart", "event_id": "e-1"}`, status: 202, want: duplicate("e-1")},
		}, []string{"pageview"}},
		"a purchase of a repeated order_id is a duplicate and answers the first event's id": {[]exchange{
			{json: `{"event": "purchase", "event_id": "e-1", "data": {"value": 1, "currency": "EUR", "order_id": "o-1"}}`, status: 202, want: accepted("e-1")},
			{json: `{"event": "purchase", "event_id": "e-2", "data": {"value": 1, "currency": "EUR", "order_id": "o-1"}}`, status: 202, want: duplicate("e-1")},
			{json: `{"event": "purchase", "data": {"value": 2, "currency": "EUR", "order_id": "o-1"}}`, status: 202, want: duplicate("e-1")},
		}, []string{"purchase"}},
		"an order_id counts for purchases alone": {[]exchange{
			{json: `{"event": "add_to_cart", "event_id": "e-1", "data": {"order_id": "o-1"}}`, status: 202, want: accepted("e-1")},
			{json: `{"event": "refund", "event_id": "e-2", "data": {"value": 1, "currency": "EUR", "order_id": "o-1"}}`, status: 202, want: accepted("e-2")},
			{json: `{"event": "purchase", "event_id": "e-3", "data": {"value": 1, "currency": "EUR", "order_id": "o-1"}}`, status: 202, want: accepted("e-3")},
			{json: `{"event": "refund", "event_id": "e-4", "data": {"value": 1, "currency": "EUR", "order_id": "o-1"}}`, status: 202, want: accepted("e-4")},
		}, []string{"add_to_cart", "refund", "purchase", "refund"}},
		"where both ids match different events, event_id wins": {[]exchange{
			{json: `{"event": "pageview", "event_id": "e-1"}`, status: 202, want: accepted("e-1")},
			{json: `{"event": "purchase", "event_id": "e-2", "data": {"value": 1, "currency": "EUR", "order_id": "o-1"}}`, status: 202, want: accepted("e-2")},
			{json: `{"event": "purchase", "event_id": "e-1", "data": {"value": 1, "currency": "EUR", "order_id": "o-1"}}`, status: 202, want: duplicate("e-1")},
		}, []string{"pageview", "purchase"}},
		"an order_id may be a number and is then its text": {[]exchange{
			{json: `{"event": "purchase", "event_id": "e-1", "data": {"value": 1, "currency": "EUR", "order_id": 4711}}`, status: 202, want: accepted("e-1")},
			{json: `{"event": "purchase", "event_id": "e-2", "data": {"value": 1, "currency": "EUR", "order_id": "4711"}}`, status: 202, want: duplicate("e-1")},
		}, []string{"purchase"}},
		"event names are the customer's own, trimmed, and mapped by the Property's aliases": {[]exchange{
			{json: `{"event": " Newsletter-Anmeldung "}`, status: 202, want: accepted(made(1))},
			{json: `{"event": "page_view"}`, status: 202, want: accepted(made(2))},
			{json: `{"event": "Purchase"}`, status: 202, want: accepted(made(3))},
		}, []string{"Newsletter-Anmeldung", "pageview", "Purchase"}},
		"a lookalike of purchase is no purchase, whose order_id it neither has nor takes": {[]exchange{
			{json: `{"event": "Purchase", "event_id": "e-1", "data": {"value": 1, "currency": "EUR", "order_id": "o-1"}}`, status: 202, want: accepted("e-1")},
			{json: `{"event": "purchase", "event_id": "e-2", "data": {"value": 1, "currency": "EUR", "order_id": "o-1"}}`, status: 202, want: accepted("e-2")},
			{json: `{"event": "pur\u200bchase", "event_id": "e-3", "data": {"value": 1, "currency": "EUR", "order_id": "o-1"}}`, status: 202, want: accepted("e-3")},
			{json: `{"event": "purchase\u200b", "event_id": "e-4", "data": {"value": 1, "currency": "EUR", "order_id": "o-1"}}`, status: 202, want: duplicate("e-2")},
			{json: `{"event": "\u3000purchase ", "event_id": "e-5", "data": {"value": 1, "currency": "EUR", "order_id": "o-1"}}`, status: 202, want: duplicate("e-2")},
		}, []string{"Purchase", "purchase", "pur\u200bchase"}},
		"event is required": {[]exchange{
			{json: `{}`, status: 422, want: `{"message":"The event field is required.","errors":{"event":["The event field is required."]}}`},
			{json: `{"event": 1}`, status: 422, want: `{"message":"The event field must be a string.","errors":{"event":["The event field must be a string."]}}`},
		}, nil},
		"a purchase and a refund need money in data": {[]exchange{
			{json: `{"event": "purchase", "data": {}}`, status: 422, want: moneyRequired},
			{json: `{"event": "refund"}`, status: 422, want: moneyRequired},
			{json: `{"event": "purchase", "value": 1, "currency": "EUR"}`, status: 422, want: moneyRequired},
			{json: `{"event": "purchase", "value": "x", "currency": 7, "data": {"value": 1, "currency": "EUR"}}`, status: 202, want: accepted(made(1))},
		}, []string{"purchase"}},
		"money may be a decimal text, and nothing else": {[]exchange{
			{json: `{"event": "purchase", "data": {"value": "12.50", "currency": "EUR"}}`, status: 202, want: accepted(made(1))},
			{
				json: `{"event": "purchase", "data": {"value": "12,50", "currency": "EUR"}}`, status: 422,
				want: `{"message":"The data.value field must be a number.","errors":{"data.value":["The data.value field must be a number."]}}`,
			},
			{
				json: `{"event": "purchase", "data": {"value": 1, "currency": "XYZ"}}`, status: 422,
				want: `{"message":"The selected data.currency is invalid.","errors":{"data.currency":["The selected data.currency is invalid."]}}`,
			},
		}, []string{"purchase"}},
		"a malformed e-mail address or phone number is refused and not repeated": {[]exchange{
			{
				json: `{"event": "pageview", "user": {"email": "jane at example", "phone": "0170 1234567"}}`, status: 422,
				want: `{"message":"The user.email field must be a valid email address. (and 1 more error)","errors":{"user.email":["The user.email field must be a valid email address."],"user.phone":["The user.phone field format is invalid."]}}`,
			},
		}, nil},
		"members that mean nothing are ignored": {[]exchange{
			{json: `{"event": "pageview", "colour": ["red"], "data": {"shape": {}}}`, status: 202, want: accepted(made(1))},
		}, []string{"pageview"}},
		"a timestamp lies in the last seven days": {[]exchange{
			{json: `{"event": "pageview", "timestamp": "2026-11-20T11:00:00Z"}`, status: 202, want: accepted(made(1))},
			{
				json: `{"event": "pageview", "timestamp": "2026-11-13T11:59:59Z"}`, status: 422,
				want: `{"message":"The timestamp field must be a date after or equal to 2026-11-13T12:00:00Z.","errors":{"timestamp":["The timestamp field must be a date after or equal to 2026-11-13T12:00:00Z."]}}`,
			},
		}, []string{"pageview"}},
		"an unknown key is refused, whatever stands in it and in the body": {[]exchange{
			{request: request{path: "/collect/" + shopKey[:len(shopKey)-1]}, json: purchase, status: 401, want: invalidKey},
			{request: request{path: "/collect/nobody"}, json: purchase, status: 401, want: invalidKey},
			{request: request{path: "/collect/a%2Fb"}, json: purchase, status: 401, want: invalidKey},
			{request: request{path: "/collect/nobody/batch"}, json: `{"events": []}`, status: 401, want: invalidKey},
			{request: request{path: "/collect/nobody", contentType: "text/plain"}, json: `nonsense`, status: 401, want: invalidKey},
			{request: request{path: "/collect/nobody", body: padded(100_000)}, status: 401, want: invalidKey},
		}, nil},
		"the key may be escaped in the path": {[]exchange{
			{request: request{path: "/collect/%77" + shopKey[1:]}, json: purchase, status: 202, want: accepted(made(1))},
			{request: request{path: "/collect/%77k%5F" + shopKey[3:]}, json: purchase, status: 202, want: accepted(made(2))},
		}, []string{"purchase", "purchase"}},
		"the content type is JSON, with a charset of UTF-8 or none": {[]exchange{
			{request: request{contentType: "application/json; charset=utf-8"}, json: purchase, status: 202, want: accepted(made(1))},
			{request: request{contentType: `Application/JSON;Charset="UTF-8"`}, json: purchase, status: 202, want: accepted(made(2))},
			{request: request{contentType: "application/json; charset=iso-8859-1"}, json: purchase, status: 415, want: wrongType},
			{request: request{contentType: "text/plain"}, json: purchase, status: 415, want: wrongType},
			{request: request{contentType: "application/x-www-form-urlencoded"}, json: purchase, status: 415, want: wrongType},
			{request: request{contentType: "application/json, text/plain"}, json: purchase, status: 415, want: wrongType},
			{request: request{contentType: "-"}, json: purchase, status: 415, want: wrongType},
		}, []string{"purchase", "purchase"}},
		"gzip and zstd are understood, other encodings are not": {[]exchange{
			{request: request{header: map[string]string{"Content-Encoding": "gzip"}, body: gzipped(t, []byte(purchase))}, status: 202, want: accepted(made(1))},
			{request: request{header: map[string]string{"Content-Encoding": "zstd"}, body: zstandard(t, []byte(purchase))}, status: 202, want: accepted(made(2))},
			{request: request{header: map[string]string{"Content-Encoding": "identity"}}, json: purchase, status: 202, want: accepted(made(3))},
			{request: request{header: map[string]string{"Content-Encoding": "GZIP"}, body: gzipped(t, []byte(purchase)), chunked: true}, status: 202, want: accepted(made(4))},
			{
				request: request{header: map[string]string{"Content-Encoding": "br"}}, json: purchase, status: 415, want: wrongEncoding,
				header: map[string]string{"Accept-Encoding": "gzip, zstd"},
			},
			{request: request{header: map[string]string{"Content-Encoding": "gzip, zstd"}}, json: purchase, status: 415, want: wrongEncoding},
			{request: request{header: map[string]string{"Content-Encoding": "gzip"}}, json: purchase, status: 400, want: notInEncoding},
			{request: request{header: map[string]string{"Content-Encoding": "zstd"}}, json: purchase, status: 400, want: notInEncoding},
			{request: request{header: map[string]string{"Content-Encoding": "gzip"}, body: gzipped(t, []byte(purchase))[:40]}, status: 400, want: notInEncoding},
			{request: request{header: map[string]string{"Content-Encoding": "zstd"}, body: zstandard(t, []byte(purchase))[:40]}, status: 400, want: notInEncoding},
		}, []string{"purchase", "purchase", "purchase", "purchase"}},
		"a body may have 64 KiB, inflated": {[]exchange{
			{request: request{body: padded(65536)}, status: 202, want: accepted(made(1))},
			{request: request{body: padded(65537)}, status: 413, want: bodyTooLarge},
			{request: request{body: padded(65536), chunked: true}, status: 202, want: accepted(made(2))},
			{request: request{body: padded(65537), chunked: true}, status: 413, want: bodyTooLarge},
			{request: request{header: map[string]string{"Content-Encoding": "gzip"}, body: gzipped(t, padded(65536))}, status: 202, want: accepted(made(3))},
			{request: request{header: map[string]string{"Content-Encoding": "gzip"}, body: gzipped(t, padded(65537))}, status: 413, want: bodyTooLarge},
			{request: request{header: map[string]string{"Content-Encoding": "zstd"}, body: zstandard(t, padded(65536))}, status: 202, want: accepted(made(4))},
			{request: request{header: map[string]string{"Content-Encoding": "zstd"}, body: zstandard(t, padded(65537))}, status: 413, want: bodyTooLarge},
		}, []string{"pageview", "pageview", "pageview", "pageview"}},
		"what is no JSON object is refused without being repeated": {[]exchange{
			{json: ``, status: 400, want: `{"message":"The request body must not be empty (at byte 0)."}`},
			{json: `[]`, status: 400, want: `{"message":"The request body must be a JSON object (at byte 0)."}`},
			{json: `{"event": "page`, status: 400, want: `{"message":"The request body must be valid JSON, but ends too early (at byte 15)."}`},
			{json: `{"event": "a", "event": "b"}`, status: 400, want: `{"message":"The request body must be valid JSON, but names a member twice (at byte 15)."}`},
			{json: `{"event": "a"} {}`, status: 400, want: `{"message":"The request body must be valid JSON (at byte 15)."}`},
			{json: `event=pageview`, status: 400, want: `{"message":"The request body must be valid JSON (at byte 0)."}`},
		}, nil},
		"a batch answers each event by itself, in order": {[]exchange{
			{
				request: request{suffix: "/batch"}, status: 202,
				json: `{"events": [{"event": "pageview", "event_id": "a"}, {"event": "purchase"}, 7, {"event": "pageview"}, {"event": "pageview", "event_id": "a"}]}`,
				want: `{"ok":true,"accepted":2,"duplicates":1,"rejected":2,"results":[` + accepted("a") + `,{"ok":false,` + moneyRequired[1:] +
					`,{"ok":false,"message":"The events.2 field must be an object.","errors":{"events.2":["The events.2 field must be an object."]}},` +
					accepted(made(2)) + `,` + duplicate("a") + `]}`,
			},
			{
				request: request{suffix: "/batch"}, status: 202, json: `{"events": [{}]}`,
				want: `{"ok":true,"accepted":0,"duplicates":0,"rejected":1,"results":[{"ok":false,"message":"The event field is required.","errors":{"event":["The event field is required."]}}]}`,
			},
			{
				request: request{suffix: "/batch", header: map[string]string{"Content-Encoding": "zstd"}, body: zstandard(t, []byte(`{"events": [{"event": "refund", "data": {"value": 1, "currency": "EUR"}}]}`))},
				status:  202, want: `{"ok":true,"accepted":1,"duplicates":0,"rejected":0,"results":[` + accepted(made(4)) + `]}`,
			},
		}, []string{"pageview", "pageview", "refund"}},
		"a batch that is malformed itself is refused as a whole": {[]exchange{
			{request: request{suffix: "/batch"}, json: `{"events": {}}`, status: 422, want: `{"message":"The events field must be an array.","errors":{"events":["The events field must be an array."]}}`},
			{request: request{suffix: "/batch"}, json: `{"events": []}`, status: 422, want: eventsRequired},
			{request: request{suffix: "/batch"}, json: purchase, status: 422, want: eventsRequired},
			{request: request{suffix: "/batch"}, json: `[]`, status: 400, want: `{"message":"The request body must be a JSON object (at byte 0)."}`},
			{
				request: request{suffix: "/batch"}, json: `{"events": [` + strings.Repeat(`{},`, 500) + `{}]}`, status: 422,
				want: `{"message":"The events field must not have more than 500 items.","errors":{"events":["The events field must not have more than 500 items."]}}`,
			},
			{
				request: request{suffix: "/batch", body: bytes.Repeat([]byte(" "), 1<<20+1)}, status: 413,
				want: `{"message":"The request body must not be larger than 1048576 bytes."}`,
			},
		}, nil},
		"an event in a batch has the limit of a single one": {[]exchange{{
			request: request{suffix: "/batch", body: []byte(`{"events": [` + string(padded(65537)) + `,` + string(padded(65536)) + `]}`)},
			status:  202,
			want: `{"ok":true,"accepted":1,"duplicates":0,"rejected":1,"results":[` +
				`{"ok":false,"message":"The events.0 field must not be larger than 65536 bytes.","errors":{"events.0":["The events.0 field must not be larger than 65536 bytes."]}},` +
				accepted(made(1)) + `]}`,
		}}, []string{"pageview"}},
		"other paths and methods do not exist": {[]exchange{
			{request: request{path: "/collect"}, json: purchase, status: 404, want: notFound},
			{request: request{path: "/collect/"}, json: purchase, status: 404, want: notFound},
			{request: request{suffix: "/"}, json: purchase, status: 404, want: notFound},
			{request: request{suffix: "/batch/more"}, json: purchase, status: 404, want: notFound},
			{request: request{method: "GET"}, status: 405, want: notAllowed, header: map[string]string{"Allow": "POST, OPTIONS"}},
			{request: request{method: "PUT", suffix: "/batch"}, json: purchase, status: 405, want: notAllowed, header: map[string]string{"Allow": "POST, OPTIONS"}},
			{request: request{method: "GET", path: "/collect/nobody"}, status: 405, want: notAllowed, header: map[string]string{"Allow": "POST, OPTIONS"}},
		}, nil},
	}
}

func TestCollectAPI(t *testing.T) {
	client := newRedis(t)
	number := 0
	for name, row := range section1(t) {
		number++
		p := property("shop-" + strconv.Itoa(number))
		t.Run(name, func(t *testing.T) {
			tenant, events := inRedis(t, client, p)
			s := newSite(t, tenant)
			for i, x := range row.exchanges {
				s.check(t, i, x)
			}
			if diff := cmp.Diff(row.stored, storedNames(t, events)); diff != "" {
				t.Errorf("stored:\n%s", diff)
			}
		})
	}
}

// check sends a request and compares the answer.
func (s *site) check(t *testing.T, i int, x exchange) {
	t.Helper()
	if x.body == nil {
		x.body = []byte(x.json)
	}
	got := s.send(t, x.request)
	if got.status != x.status || got.body != x.want {
		t.Errorf("request %d: got  %d %s\nwant %d %s", i, got.status, got.body, x.status, x.want)
	}
	if kind := got.header.Get("Content-Type"); kind != "application/json" {
		t.Errorf("request %d: Content-Type: got %q", i, kind)
	}
	for field, want := range x.header {
		if value := got.header.Get(field); value != want && (want != "*" || value == "") {
			t.Errorf("request %d: %s: got %q, want %q", i, field, value, want)
		}
	}
}

// storedNames reads the names of the events in a stream.
func storedNames(t *testing.T, s *stream.Stream) []string {
	t.Helper()
	entries, err := s.ReadEvents(t.Context(), 0, 1000, -1)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, entry := range entries {
		e, err := wire.Decode(entry.Data)
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, e.Name)
	}
	return names
}

func TestEventsBeyondTheRateAreRefused(t *testing.T) {
	p := property("shop")
	p.Limits.EventsPerSecond = 5
	tenant, events := inRedis(t, newRedis(t), p)
	s := newSite(t, tenant)
	status := map[int]int{}
	for range 20 {
		got := s.send(t, request{body: []byte(purchase)})
		status[got.status]++
		if got.header.Get("X-RateLimit-Limit") != "5" {
			t.Errorf("X-RateLimit-Limit: got %q, want 5", got.header.Get("X-RateLimit-Limit"))
		}
		remaining, err := strconv.Atoi(got.header.Get("X-RateLimit-Remaining"))
		if err != nil || remaining < 0 || remaining > 5 {
			t.Errorf("X-RateLimit-Remaining: got %q, want 0 to 5", got.header.Get("X-RateLimit-Remaining"))
		}
		if got.status != http.StatusTooManyRequests {
			continue
		}
		if got.header.Get("Retry-After") == "" || got.body != `{"message":"Too many requests."}` {
			t.Errorf("got %s with Retry-After %q", got.body, got.header.Get("Retry-After"))
		}
	}
	if status[202] < 5 || status[429] == 0 || status[202]+status[429] != 20 {
		t.Errorf("got %v, want at least 5 accepted and the rest refused", status)
	}
	if got := len(storedNames(t, events)); got != status[202] {
		t.Errorf("%d stored, want the %d accepted", got, status[202])
	}
	// A batch counts its events.
	if got := s.send(t, request{suffix: "/batch", body: []byte(`{"events": [{}, {}, {}, {}, {}]}`)}); got.status != http.StatusTooManyRequests {
		t.Errorf("a batch of five directly after: got %d, want 429", got.status)
	}
}

func TestTheKeyDecidesWhoseAnEventIs(t *testing.T) {
	shop, inShop := inMemory()
	blog, inBlog := inMemory()
	blog.Property.Name, blog.Keys = "blog", keysOf("blog-secret-of-its-own")
	s := newSite(t, shop, blog)
	send := func(key string) int {
		return s.send(t, request{path: "/collect/" + key, body: []byte(purchase)}).status
	}
	if got := []int{send(shopKey), send("blog-secret-of-its-own"), send("blog-secret-of-its-own"), send("other")}; !cmp.Equal(got, []int{202, 202, 202, 401}) {
		t.Errorf("got %v", got)
	}
	if len(inShop.stored(t)) != 1 || len(inBlog.stored(t)) != 2 {
		t.Errorf("got %d events in the shop and %d in the blog, want 1 and 2", len(inShop.stored(t)), len(inBlog.stored(t)))
	}

	// The shop's key is replaced and the blog goes.
	shop.Keys = keysOf("the-new-secret")
	s.handler.Serve([]ingest.Tenant{shop})
	if got := []int{send(shopKey), send("blog-secret-of-its-own"), send("the-new-secret")}; !cmp.Equal(got, []int{401, 401, 202}) {
		t.Errorf("after the change: got %v", got)
	}
}

func TestAKeyThatHasExpiredIsNoKey(t *testing.T) {
	tenant, _ := inMemory()
	over := noon
	tenant.Keys[0].ExpirationTime = &over
	if got := newSite(t, tenant).send(t, request{body: []byte(purchase)}); got.status != 401 || got.body != invalidKey {
		t.Errorf("got %d %s", got.status, got.body)
	}
}

func TestPlatformsInForceAreStoredWithTheEvent(t *testing.T) {
	tenant, kept := inMemory()
	tenant.Property.Platforms = append(tenant.Property.Platforms, platforms.Platform{
		Name: "meta", Type: platforms.TypeMeta, Settings: platforms.Settings{Meta: &platforms.Meta{PixelID: "1"}}, Suspend: true,
	})
	s := newSite(t, tenant)
	s.send(t, request{body: []byte(`{"event": "pageview", "user": {"email": "Jane@Example.com", "first_name": "Jane"}}`)})
	stored := kept.stored(t)
	if len(stored) != 1 {
		t.Fatalf("got %d events, want 1", len(stored))
	}
	if diff := cmp.Diff([]string{"console", "crm", "meta"}, stored[0].Platforms); diff != "" {
		t.Error(diff)
	}
	for _, variant := range []event.Variant{event.EmailLower, event.FirstNameLower, event.FirstNameMeta} {
		if stored[0].User.Get(variant).IsZero() {
			t.Errorf("the hash %d that a platform needs is missing", variant)
		}
	}
	if !stored[0].User.Get(event.EmailGoogle).IsZero() {
		t.Error("a hash that no platform needs is stored")
	}
}
