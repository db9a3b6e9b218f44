package ingest_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-dev/weir/collector/stream"
)

// refusals keeps what was rejected.
type refusals struct {
	mu   sync.Mutex
	list []stream.Rejection
}

func (r *refusals) Add(rejections ...stream.Rejection) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.list = append(r.list, rejections...)
}

// told returns each rejection as a line.
func (r *refusals) told(t *testing.T) (lines []string) {
	t.Helper()
	seen := map[string]bool{}
	for _, one := range r.list {
		if one.ID == "" || seen[one.ID] || !one.At.Equal(noon) {
			t.Errorf("rejection %q at %s, want an id of its own at %s", one.ID, one.At, noon)
		}
		seen[one.ID] = true
		if one.APIKey != "server" {
			t.Errorf("rejection %q came by API key %q, want server", one.ID, one.APIKey)
		}
		lines = append(lines, fmt.Sprintf("%s %q %q %s", one.Endpoint, one.Event, one.EventID, one.Answer))
	}
	return lines
}

func TestWhatIsRefusedIsListed(t *testing.T) {
	const (
		noValue  = `{"message":"The data.value field is required.","errors":{"data.value":["The data.value field is required."]}}`
		purchase = `{"event": "purchase", "event_id": "o-1", "data": {"currency": "EUR", "order_id": "1"}}`
	)
	for name, test := range map[string]struct {
		request request
		status  int
		want    []string
	}{
		"an invalid event": {request{body: []byte(purchase)}, 422, []string{`collect "purchase" "o-1" ` + noValue}},
		"a body that is no JSON": {
			request{body: []byte(`{"event"`)}, 400, []string{`collect "" "" {"message":"The request body must be valid JSON, but ends too early (at byte 8)."}`},
		},
		"a media type that is not ours": {
			request{body: []byte(purchase), contentType: "text/plain"}, 415,
			[]string{`collect "" "" {"message":"The Content-Type must be application/json in UTF-8."}`},
		},
		"a body that is too large": {
			request{body: []byte(strings.Repeat(" ", 70_000))}, 413,
			[]string{`collect "" "" {"message":"The request body must not be larger than 65536 bytes."}`},
		},
		"the invalid events of a batch, in order": {
			request{suffix: "/batch", body: []byte(`{"events": [{"event": "pageview"}, ` + purchase + `, 7, {"event_id": "o-2"}]}`)}, 202,
			[]string{
				`batch "purchase" "o-1" ` + noValue,
				`batch "" "" {"message":"The events.2 field must be an object.","errors":{"events.2":["The events.2 field must be an object."]}}`,
				`batch "" "o-2" {"message":"The event field is required.","errors":{"event":["The event field is required."]}}`,
			},
		},
		"a batch without events": {
			request{suffix: "/batch", body: []byte(`{}`)}, 422,
			[]string{`batch "" "" {"message":"The events field is required.","errors":{"events":["The events field is required."]}}`},
		},
		"not a valid event":                 {request{body: []byte(`{"event": "pageview"}`)}, 202, nil},
		"not a request without a valid key": {request{path: "/collect/wk_other", body: []byte(`{`)}, 401, nil},
	} {
		t.Run(name, func(t *testing.T) {
			tenant, _ := inMemory()
			kept := new(refusals)
			tenant.Rejections = kept
			if got := newSite(t, tenant).send(t, test.request); got.status != test.status {
				t.Errorf("got %d %s, want %d", got.status, got.body, test.status)
			}
			if diff := cmp.Diff(test.want, kept.told(t)); diff != "" {
				t.Errorf("rejections (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWhatIsToBeSentAgainIsNotListed(t *testing.T) {
	tenant, memory := inMemory()
	kept := new(refusals)
	tenant.Rejections, memory.fail = kept, stream.ErrUnavailable
	got := newSite(t, tenant).send(t, request{suffix: "/batch", body: []byte(`{"events": [{"event": "pageview"}, {}]}`)})
	if got.status != http.StatusServiceUnavailable || len(kept.list) != 0 {
		t.Errorf("got %d and %d rejections, want 503 and none", got.status, len(kept.list))
	}
}

func TestAListedEventHasItsFirstErrors(t *testing.T) {
	tenant, _ := inMemory()
	kept := new(refusals)
	tenant.Rejections = kept
	items := strings.TrimSuffix(strings.Repeat(`{"price": "x"},`, 100), ",")
	newSite(t, tenant).send(t, request{body: []byte(`{"event": "view_content", "data": {"contents": [` + items + `]}}`)})
	if len(kept.list) != 1 {
		t.Fatalf("got %d rejections, want one", len(kept.list))
	}
	answer := string(kept.list[0].Answer)
	if strings.Count(answer, ".price\":") != 20 || !strings.Contains(answer, "(and 99 more errors)") {
		t.Errorf("got %s, want 20 errors, and a message that counts all 100", answer)
	}
}
