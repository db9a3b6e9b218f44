package ingest_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// errors reads the counter of errors by field.
func (s *site) errs(t *testing.T) map[string]float64 {
	t.Helper()
	return s.counter(t, "weir_collect_field_errors_total", "field")
}

func TestErrorsAreCountedByField(t *testing.T) {
	for name, c := range map[string]struct {
		suffix, body string
		status       int
		// want are the fields with one error each, parted by spaces.
		want string
	}{
		"of the envelope": {
			"", `{"event": 1, "event_id": 1, "client_id": [], "timestamp": 1, "user": 1, "data": 1, "context": 1, "consent": 1}`, 422,
			"event event_id client_id timestamp user data context consent",
		},
		"of the objects in it": {
			"", `{"event": "x", "user": {"email": 1, "phone": 1, "first_name": 1}, "consent": {"ad_user_data": 1, "ad_personalization": 1},
				"data": {"value": "x", "currency": 1, "order_id": [], "content_id": [], "content_name": 1, "contents": 1}}`, 422,
			"user.email user.phone user.first_name consent.ad_user_data consent.ad_personalization " +
				"data.value data.currency data.order_id data.content_id data.content_name data.contents",
		},
		"of the older flat form": {
			"", `{"event": "x", "value": "x", "currency": 1, "order_id": [], "content_id": [], "content_name": 1, "contents": [1]}`, 422,
			"value currency order_id content_id content_name contents.*",
		},
		"of the context": {
			"", `{"event": "x", "context": {"page_url": 1, "referrer": 1, "ip": 1, "user_agent": 1, "utm_source": 1, "utm_medium": 1,
				"utm_campaign": 1, "utm_term": 1, "utm_content": 1, "click_ids": {"gclid": 1, "fbc": 1}}}`, 422,
			"context.page_url context.referrer context.ip context.user_agent context.utm_source context.utm_medium context.utm_campaign " +
				"context.utm_term context.utm_content context.click_ids.gclid context.click_ids.fbc",
		},
		"of items, whichever they are": {
			"", `{"event": "x", "data": {"contents": [{"id": []}, {"name": 1, "category": 1}, {"quantity": "x", "price": "x"}, {"sku": []}, {"content_id": []}]}}`, 422,
			"data.contents.*.id data.contents.*.name data.contents.*.category data.contents.*.quantity data.contents.*.price data.contents.*.sku data.contents.*.content_id",
		},
		"of the events of a batch": {
			"/batch", `{"events": [1, {"event": ""}, {"event": "x"}]}`, 202, "events.* event",
		},
	} {
		t.Run(name, func(t *testing.T) {
			tenant, _ := inMemory()
			s := newSite(t, tenant)
			if got := s.send(t, request{suffix: c.suffix, body: []byte(c.body)}); got.status != c.status {
				t.Fatalf("got %d %s, want %d", got.status, got.body, c.status)
			}
			want := map[string]float64{}
			for field := range strings.FieldsSeq(c.want) {
				want[field] = 1
			}
			if diff := cmp.Diff(want, s.errs(t)); diff != "" {
				t.Errorf("errors (-want +got):\n%s", diff)
			}
		})
	}
}

func TestServedRequestsAreSampledInTheLog(t *testing.T) {
	for name, r := range map[string]struct {
		request
		want string
	}{
		"an event": {request{body: []byte(`{"event": "pageview"}`)}, `"status":202`},
		"a batch":  {request{suffix: "/batch", body: []byte(`{"events": [{"event": "pageview"}, {}]}`)}, `"events":2,"stored":1`},
	} {
		t.Run(name, func(t *testing.T) {
			tenant, _ := inMemory()
			s := newSite(t, tenant)
			if got := s.send(t, r.request); got.status != http.StatusAccepted {
				t.Fatalf("got %d %s", got.status, got.body)
			}
			s.Close() // which waits for the handler, and with it for the line
			for _, want := range []string{`"msg":"request served"`, `"property":"shop"`, r.want} {
				if !strings.Contains(s.log.String(), want) {
					t.Errorf("the log lacks %s: %s", want, s.log)
				}
			}
		})
	}
}
