package ingest_test

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-dev/weir/collector/auth"
	"github.com/weir-dev/weir/collector/bots"
	"github.com/weir-dev/weir/collector/config"
	"github.com/weir-dev/weir/collector/ingest"
	"github.com/weir-dev/weir/collector/stream"
)

// writeKey is the header field by which clients of Segment's API show their key.
func writeKey(key string) map[string]string {
	return map[string]string{"Authorization": "Basic " + base64.StdEncoding.EncodeToString([]byte(key+":"))}
}

// segmentSuccess is what is answered where something was taken.
const segmentSuccess = `{"success": true}`

func TestSegmentsCallsAreTakenByAllTheirPaths(t *testing.T) {
	for path, want := range map[string]string{
		"/v1/track": "lead", "/v1/t": "lead", "/v1/page": "pageview", "/v1/p": "pageview", "/v1/screen": "screen_view", "/v1/s": "screen_view",
		"/v1/identify": "", "/v1/i": "", "/v1/group": "", "/v1/g": "", "/v1/alias": "", "/v1/a": "", "/v1/track/": "lead",
	} {
		t.Run(path, func(t *testing.T) {
			tenant, kept := inMemory()
			s := newSite(t, tenant)
			const message = `{"event": "lead", "messageId": "m", "anonymousId": "a", "userId": "u", "traits": {"email": "jane@example.com"}%s}`
			for name, r := range map[string]request{
				"key in the header": {path: path, header: writeKey(shopKey), body: fmt.Appendf(nil, message, "")},
				"key in the body":   {path: path, contentType: "text/plain", body: fmt.Appendf(nil, message, `, "writeKey": "`+shopKey+`"`)},
			} {
				if got := s.send(t, r); got.status != http.StatusOK || got.body != segmentSuccess {
					t.Errorf("%s: got %d %s", name, got.status, got.body)
				}
			}
			var got []string
			for _, e := range kept.stored(t) {
				got = append(got, e.ID+" "+e.Name)
			}
			stored := []string{"m " + want}
			outcomes := map[string]float64{"accepted": 1, "duplicate": 1}
			if want == "" {
				stored, outcomes = nil, map[string]float64{"ignored": 2}
			}
			if diff := cmp.Diff(stored, got); diff != "" {
				t.Errorf("stored (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(outcomes, s.outcomes(t)); diff != "" {
				t.Errorf("outcomes (-want +got):\n%s", diff)
			}
		})
	}
}

func TestABatchOfManyWithSomeInvalidEventsIsTaken(t *testing.T) {
	tenant, events := inRedis(t, newRedis(t), property("shop"))
	refused := new(refusals)
	tenant.Rejections = refused
	s := newSite(t, tenant)
	invalid := map[int]string{
		17:   `{"type":"track","event":"Order Completed","messageId":"bad-17","properties":{"total":5,"currency":"EURO","order_id":"x"}}`,
		1200: `{"type":"track","messageId":"bad-1200"}`,
		2499: `{"type":"track","event":"Order Completed","messageId":"bad-2499","properties":{"total":5,"currency":"EUR","products":[{"product_id":"a"},{"product_id":"b","price":"free"}]}}`,
	}
	var messages []string
	for i := range 2500 {
		message := fmt.Sprintf(`{"type":"track","event":"Product Added","messageId":"m-%d","anonymousId":"a-%d","properties":{"product_id":"p","price":1}}`, i, i)
		if bad := invalid[i]; bad != "" {
			message = bad
		}
		messages = append(messages, message)
	}
	body := []byte(`{"sentAt":"2026-11-20T12:00:00.000Z","batch":[` + strings.Join(messages, ",") + `]}`)
	got := s.send(t, request{path: "/v1/batch", header: map[string]string{
		"Authorization": writeKey(shopKey)["Authorization"], "Content-Encoding": "gzip",
	}, body: gzipped(t, body)})
	if got.status != http.StatusOK || got.body != segmentSuccess {
		t.Fatalf("got %d %s", got.status, got.body)
	}
	entries, err := events.ReadEvents(t.Context(), 0, 5000, -1)
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) != 2497 {
		t.Errorf("%d events are stored, want 2497", len(entries))
	}
	if diff := cmp.Diff(map[string]float64{"accepted": 2497, "rejected": 3}, s.outcomes(t)); diff != "" {
		t.Errorf("outcomes (-want +got):\n%s", diff)
	}
	var listed []string
	for _, r := range refused.list {
		listed = append(listed, fmt.Sprintf("%s %s %s %s", r.Endpoint, r.Event, r.EventID, r.Answer))
	}
	want := []string{
		`segment purchase bad-17 {"message":"The batch[17].properties.currency field must be 3 characters.","errors":{"batch[17].properties.currency":["The batch[17].properties.currency field must be 3 characters."]}}`,
		`segment  bad-1200 {"message":"The batch[1200].event field is required.","errors":{"batch[1200].event":["The batch[1200].event field is required."]}}`,
		`segment purchase bad-2499 {"message":"The batch[2499].properties.products[1].price field must be a number.","errors":{"batch[2499].properties.products[1].price":["The batch[2499].properties.products[1].price field must be a number."]}}`,
	}
	if diff := cmp.Diff(want, listed); diff != "" {
		t.Errorf("rejections (-want +got):\n%s", diff)
	}
}

func TestWhatSegmentsAPIRefuses(t *testing.T) {
	tenant, _ := inMemory()
	full, unlucky := inMemory()
	full.Keys, unlucky.fail = keysOf("wk_unlucky"), stream.ErrUnavailable
	const event = `{"type":"track","event":"x","messageId":"m"}`
	for name, test := range map[string]struct {
		path, key, body string
		want            answer
	}{
		"no key": {"/v1/batch", "", `{"batch":[` + event + `]}`,
			answer{status: 401, body: `{"success":false,"code":"unauthorized","message":"Invalid API key."}`}},
		"another key": {"/v1/track", "wk_other", event,
			answer{status: 401, body: `{"success":false,"code":"unauthorized","message":"Invalid API key."}`}},
		"no JSON": {"/v1/batch", shopKey, `{"batch":[`,
			answer{status: 400, body: `{"success":false,"code":"invalid_request","message":"The request body must be valid JSON, but ends too early (at byte 10)."}`}},
		"no JSON from nobody": {"/v1/t", "", `x`,
			answer{status: 400, body: `{"success":false,"code":"invalid_request","message":"The request body must be valid JSON (at byte 0)."}`}},
		"no batch": {"/v1/batch", shopKey, `{}`,
			answer{status: 400, body: `{"success":false,"code":"invalid_request","message":"The batch field is required.","errors":{"batch":["The batch field is required."]}}`}},
		"too many events": {"/v1/batch", shopKey, `{"batch":[` + strings.Repeat("{},", 2500) + `{}]}`,
			answer{status: 400, body: `{"success":false,"code":"invalid_request","message":"The batch field must not have more than 2500 items.","errors":{"batch":["The batch field must not have more than 2500 items."]}}`}},
		"another encoding": {"/v1/batch", shopKey, "br",
			answer{status: 415, body: `{"success":false,"code":"invalid_request","message":"The Content-Encoding must be gzip or zstd, or absent."}`}},
		"too large a batch": {"/v1/batch", shopKey, `{"batch":["` + strings.Repeat("x", 500<<10) + `"]}`,
			answer{status: 413, body: `{"success":false,"code":"payload_too_large","message":"The request body must not be larger than 512000 bytes."}`}},
		"too large an event": {"/v1/track", shopKey, `{"event":"` + strings.Repeat("x", 32<<10) + `"}`,
			answer{status: 413, body: `{"success":false,"code":"payload_too_large","message":"The request body must not be larger than 32768 bytes."}`}},
		"one event that is invalid": {"/v1/track", shopKey, `{"event":"Order Completed","properties":{"total":3}}`,
			answer{status: 400, body: `{"success":false,"code":"invalid_request","message":"The properties.currency field is required.","errors":{"properties.currency":["The properties.currency field is required."]}}`}},
		"Redis away": {"/v1/batch", "wk_unlucky", `{"batch":[` + event + `]}`,
			answer{status: 503, header: http.Header{"Retry-After": {"2"}}, body: `{"success":false,"code":"unavailable","message":"Events cannot be stored at the moment. Please send them again."}`}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, []ingest.Tenant{tenant, full}...)
			r := request{path: test.path, body: []byte(test.body)}
			if test.key != "" {
				r.header = writeKey(test.key)
			}
			if test.want.status == http.StatusUnsupportedMediaType {
				r.header["Content-Encoding"] = test.body
			}
			got := s.send(t, r)
			want := test.want.header
			test.want.header, got.header = nil, got.header.Clone()
			if want != nil && got.header.Get("Retry-After") != want.Get("Retry-After") {
				t.Errorf("Retry-After is %q", got.header.Get("Retry-After"))
			}
			got.header = nil
			if diff := cmp.Diff(test.want, got, cmp.AllowUnexported(answer{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if strings.Contains(s.log.String(), "wk_") || strings.Contains(s.log.String(), "d2tf") {
				t.Errorf("a key stands in the log:\n%s", s.log.String())
			}
		})
	}
}

func TestWhatHappenedLongAgoIsStoredWithItsTime(t *testing.T) {
	tenant, kept := inMemory()
	s := newSite(t, tenant)
	body := []byte(`{"type":"track","event":"lead","messageId":"m","timestamp":"2019-01-02T03:04:05.678Z","sentAt":"2026-11-20T12:00:00Z"}`)
	if got := s.send(t, request{path: "/v1/track", header: writeKey(shopKey), body: body}); got.body != segmentSuccess {
		t.Fatalf("got %d %s", got.status, got.body)
	}
	want := time.Date(2019, 1, 2, 3, 4, 5, 678e6, time.UTC)
	if events := kept.stored(t); len(events) != 1 || !events[0].OccurredAt.Equal(want) {
		t.Errorf("stored %+v, want one event at %s", events, want)
	}
}

func TestWhomEventsOfSegmentsClientsCountFor(t *testing.T) {
	tenant, kept := inMemory()
	tenant.Property.Exclude = config.Exclude{Hosts: []string{"staging.shop.example"}}
	detector, err := bots.New()
	if err != nil {
		t.Fatal(err)
	}
	s := newSiteWith(t, ingest.Options{Bots: detector}, tenant)
	for id, context := range map[string]string{
		"human":    `{"userAgent":"Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"}`,
		"bot":      `{"userAgent":"Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)"}`,
		"internal": `{"page":{"url":"https://staging.shop.example/"}}`,
	} {
		body := fmt.Appendf(nil, `{"event":"lead","messageId":%q,"context":%s}`, id, context)
		s.send(t, request{path: "/v1/track", header: writeKey(shopKey), body: body})
	}
	for _, e := range kept.stored(t) {
		if e.Class.String() != e.ID {
			t.Errorf("%s counts as %s", e.ID, e.Class)
		}
	}
}

func TestSegmentsBatchesAreTakenByAllTheirPaths(t *testing.T) {
	tenant, kept := inMemory()
	s := newSite(t, tenant)
	for _, path := range []string{"/v1/batch", "/v1/b", "/v1/import", "/v1/import/"} {
		body := fmt.Appendf(nil, `{"batch":[{"type":"track","event":"lead","messageId":%q}]}`, path)
		// RudderStack's client for Node calls its JSON a form.
		if got := s.send(t, request{path: path, contentType: "application/x-www-form-urlencoded", header: writeKey(shopKey), body: body}); got.body != segmentSuccess {
			t.Errorf("%s: got %d %s", path, got.status, got.body)
		}
	}
	if n := len(kept.stored(t)); n != 4 {
		t.Errorf("%d events are stored, want 4", n)
	}
}

func TestWhatAPageMaySendByAPublishableKey(t *testing.T) {
	tenant, kept := inMemory()
	tenant.Keys = []auth.Credential{{Name: "page", Hash: auth.HashOf("wp_page"), Publishable: &auth.Publishable{
		AllowedOrigins: []string{"https://shop.example"}, EventsPerSecond: 100, EventsPerSecondPerAddress: 100,
	}}}
	tenant.Limiter = new(generous)
	s := newSite(t, tenant)
	page := func(origin, event string) request {
		return request{path: "/v1/t", contentType: "text/plain", header: map[string]string{"Origin": origin, "User-Agent": "Mozilla/5.0 (X11)"},
			body: fmt.Appendf(nil, `{"event":%q,"messageId":%q,"writeKey":"wp_page","context":{"ip":"203.0.113.7","userAgent":"said"},"properties":{"total":1,"currency":"EUR"}}`, event, event)}
	}
	if got := s.send(t, page("https://shop.example", "lead")); got.body != segmentSuccess || got.header.Get("Access-Control-Allow-Origin") != "https://shop.example" {
		t.Errorf("got %d %s %v", got.status, got.body, got.header)
	}
	if got, want := s.send(t, page("https://evil.example", "lead")),
		`{"success":false,"code":"forbidden","message":"The page's origin is not among the API key's allowed origins."}`; got.status != http.StatusForbidden || got.body != want {
		t.Errorf("another origin got %d %s", got.status, got.body)
	}
	if got := s.send(t, page("https://shop.example", "Order Completed")); got.status != http.StatusBadRequest || !strings.Contains(got.body, "publishable") {
		t.Errorf("a purchase got %d %s", got.status, got.body)
	}
	events := kept.stored(t)
	if len(events) != 1 || events[0].Context.IP != "" || events[0].Context.UserAgent != "Mozilla/5.0 (X11)" {
		t.Errorf("stored %+v, want one event with what the connection tells alone", events)
	}
	for origin, want := range map[string]int{"https://shop.example": http.StatusNoContent, "https://evil.example": http.StatusForbidden} {
		got := s.send(t, request{method: http.MethodOptions, path: "/v1/t", header: map[string]string{"Origin": origin, "Access-Control-Request-Method": "POST"}})
		if got.status != want || want == http.StatusNoContent != (got.header.Get("Access-Control-Allow-Origin") == origin) {
			t.Errorf("a preflight of %s got %d %v", origin, got.status, got.header)
		}
	}
}

// TestStrangersLeaveServersRoom holds that bodies in which the key may stand take no more than half of the memory, before it
// is known whose they are.
func TestStrangersLeaveServersRoom(t *testing.T) {
	tenant, _ := inMemory()
	const body = 32<<10 + 4*(500<<10) // what a batch of unknown length takes
	s := newSiteWith(t, ingest.Options{MaxInFlightBytes: body * 3 / 2}, tenant)
	batch := []byte(`{"writeKey":"` + shopKey + `","batch":[{"type":"track","event":"lead"}]}`)
	for name, test := range map[string]struct {
		header map[string]string
		want   int
	}{
		"a server that shows its key at once": {writeKey(shopKey), http.StatusOK},
		"a stranger":                          {nil, http.StatusServiceUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			if got := s.send(t, request{path: "/v1/batch", header: test.header, body: batch, chunked: true}); got.status != test.want {
				t.Errorf("got %d %s, want %d", got.status, got.body, test.want)
			}
		})
	}
}

func TestAnalyticsJSGetsItsSettings(t *testing.T) {
	const settings = `{"integrations":{"Segment.io":{"apiKey":"` + webKey + `","apiHost":"HOST/v1","protocol":"https","deliveryStrategy":{"config":{"keepalive":true}}}},"metrics":{"sampleRate":0}}`
	for name, c := range map[string]struct {
		key, host, origin string
		status            int
		want              string
	}{
		"for a page of the shop":                    {webKey, "collect.shop.example", shopPage, 200, settings},
		"for what has no origin":                    {webKey, "collect.shop.example", "", 200, settings},
		"on the machine of whoever tries it":        {webKey, "127.0.0.1:8080", shopPage, 200, strings.Replace(settings, `"https"`, `"http"`, 1)},
		"on that machine by another name":           {webKey, "collect.localhost:8080", shopPage, 200, strings.Replace(settings, `"https"`, `"http"`, 1)},
		"on that machine by its address of IPv6":    {webKey, "[::1]:8080", shopPage, 200, strings.Replace(settings, `"https"`, `"http"`, 1)},
		"for a host whose name is no text to trust": {webKey, `x"</script>`, shopPage, 200, settings},
		"not for another's page":                    {webKey, "collect.shop.example", "https://evil.example", 403, `{"success":false,"code":"forbidden","message":"The page's origin is not among the API key's allowed origins."}`},
		"not with a secret key":                     {shopKey, "collect.shop.example", shopPage, 403, `{"success":false,"code":"forbidden","message":"The API key is secret, and no page may use it: take a publishable one."}`},
		"not with a wrong key":                      {"wp_other", "collect.shop.example", shopPage, 401, `{"success":false,"code":"unauthorized","message":"Invalid API key."}`},
	} {
		t.Run(name, func(t *testing.T) {
			r := httptest.NewRequest(http.MethodGet, "/v1/projects/"+c.key+"/settings", nil)
			r.Host = c.host
			if c.origin != "" {
				r.Header.Set("Origin", c.origin)
			}
			w := httptest.NewRecorder()
			newPage(ingest.Options{}).handler.ServeHTTP(w, r)
			host, err := json.Marshal(c.host + "/v1")
			if err != nil {
				t.Fatal(err)
			}
			got, want := map[string]any{}, map[string]any{}
			if err := errors.Join(json.Unmarshal(w.Body.Bytes(), &got), json.Unmarshal([]byte(strings.Replace(c.want, `"HOST/v1"`, string(host), 1)), &want)); err != nil {
				t.Fatalf("%v in %s", err, w.Body)
			}
			if diff := cmp.Diff(want, got); w.Code != c.status || diff != "" {
				t.Errorf("got %d, want %d; (-want +got):\n%s", w.Code, c.status, diff)
			}
			if shared := w.Header().Get("Access-Control-Allow-Origin"); c.status == http.StatusOK && shared != c.origin || c.status != http.StatusOK && shared != "" {
				t.Errorf("%q may read it", shared)
			}
		})
	}
}
