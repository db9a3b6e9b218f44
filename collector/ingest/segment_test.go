package ingest_test

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-dev/weir/collector/ingest"
	"github.com/weir-dev/weir/collector/stream"
)

// writeKey is the header field by which clients of Segment's API show their key.
func writeKey(key string) map[string]string {
	return map[string]string{"Authorization": "Basic " + base64.StdEncoding.EncodeToString([]byte(key+":"))}
}

// rejected keeps rejections.
type rejected struct{ list []stream.Rejection }

func (r *rejected) Add(some ...stream.Rejection) { r.list = append(r.list, some...) }

// segmentSuccess is what is answered where something was taken.
const segmentSuccess = `{"success": true}`

func TestSegmentsCallsAreTakenByAllTheirPaths(t *testing.T) {
	for path, want := range map[string]string{
		"/v1/track": "lead", "/v1/t": "lead", "/v1/page": "pageview", "/v1/p": "pageview", "/v1/screen": "screen_view", "/v1/s": "screen_view",
		"/v1/identify": "", "/v1/i": "", "/v1/group": "", "/v1/g": "", "/v1/alias": "", "/v1/a": "",
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
	refused := new(rejected)
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
