package deliver

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-dev/weir/collector/deliver/adapter"
	"github.com/weir-dev/weir/collector/platforms"
	"github.com/weir-dev/weir/collector/stream"
)

// shadowOf returns what is kept of the platform p.
func (h *harness) shadowOf(limit int) []stream.ShadowEntry {
	h.t.Helper()
	entries, err := h.stream.Shadow(h.t.Context(), "p", limit)
	if err != nil {
		h.t.Fatal(err)
	}
	return entries
}

// TestAPlatformInShadowIsSentNothingAndShowsWhatDeliverSends has each type get an event in either mode: without any credential in
// Shadow, and what is shown then is what is sent.
func TestAPlatformInShadowIsSentNothingAndShowsWhatDeliverSends(t *testing.T) {
	for kind := range subjects {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			s := newSite(t, kind)
			sent := &recorded{}
			if s.fake != nil {
				s.property.Platforms[0] = sent.serve(t, s.cfg)
			}
			s.property.Platforms[0].Mode = platforms.Shadow
			delete(s.credentials, "p")
			engine := s.launch()
			position, id := s.purchase("")
			s.eventually("p", map[stream.Position]record{position: {Status: "skipped", Reason: "shadow"}})
			engine.stop()
			if n := len(sent.requests()); n > 0 {
				t.Fatalf("%d requests were made", n)
			}
			if strings.Contains(s.log.String(), id) {
				t.Errorf("the log has the event:\n%s", s.log)
			}
			entries := s.shadowOf(10)
			if len(entries) != 1 || entries[0].EventID != id || entries[0].Event != position || entries[0].Name != "purchase" || entries[0].Request == nil {
				t.Fatalf("kept is %+v, want the event with its request", entries)
			}
			shown := entries[0].Request
			if s.fake == nil {
				if shown.URL != "" || !strings.Contains(string(shown.Body), id) {
					t.Errorf("shown is %+v, want the line of the log", shown)
				}
				return
			}
			s.property.Platforms[0].Mode = platforms.Deliver
			s.credentials["p"] = suiteCredentials
			s.launch()
			if n, err := s.stream.Replay(t.Context(), stream.ReplayRequest{
				Platform: "p", From: time.Now().Add(-time.Hour), To: time.Now().Add(time.Hour), Statuses: []stream.Status{stream.Skipped}, Now: s.now(),
			}); err != nil || n != 1 {
				t.Fatalf("%d were replayed, %v; want what was shadowed", n, err)
			}
			isToken := func(r recordedRequest) bool { return strings.HasSuffix(r.url, "/token") }
			s.await("the request", func() string { return cmp.Diff(1, len(slices.DeleteFunc(sent.requests(), isToken))) })
			made := slices.DeleteFunc(sent.requests(), isToken)[0]
			if shown.Method != made.method || !sameURL(shown.URL, made.url) {
				t.Errorf("shown is %s %s, sent %s %s", shown.Method, shown.URL, made.method, made.url)
			}
			if diff := cmp.Diff(valueOf(t, made.body), valueOf(t, shownBytes(t, shown)), cmp.Transformer("blind", blind)); diff != "" {
				t.Errorf("body (-sent +shown):\n%s", diff)
			}
			text := fmt.Sprint(*shown)
			for key, secret := range suiteCredentials {
				if strings.Contains(text, secret) {
					t.Errorf("the credential %s is shown", key)
				}
			}
		})
	}
}

// recorded are the requests to a server that takes all.
type recorded struct {
	mu   sync.Mutex
	list []recordedRequest
}

type recordedRequest struct {
	method, url string
	body        []byte
}

func (r *recorded) requests() []recordedRequest {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.list)
}

// serve starts the server and returns the platform with it as its address.
func (r *recorded) serve(t *testing.T, cfg platforms.Platform) platforms.Platform {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		if request.URL.Path == "/token" {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"access_token":"token-for-tests","expires_in":3600,"token_type":"Bearer"}`)
		}
		body := new(strings.Builder)
		if err := request.Write(body); err != nil {
			t.Error(err)
		}
		_, text, _ := strings.Cut(body.String(), "\r\n\r\n")
		r.mu.Lock()
		defer r.mu.Unlock()
		r.list = append(r.list, recordedRequest{request.Method, "http://" + request.Host + request.RequestURI, []byte(text)})
	}))
	t.Cleanup(server.Close)
	if cfg.Webhook != nil {
		cfg.Webhook = &platforms.Webhook{URL: server.URL + "/hook"}
	} else {
		cfg.Endpoint = server.URL
	}
	return cfg
}

// sameURL compares a URL that is shown with the one that was asked, in which there may be a credential.
func sameURL(shown, asked string) bool {
	head, tail, hidden := strings.Cut(shown, "…")
	return shown == asked || hidden && strings.HasPrefix(asked, head) && strings.HasSuffix(asked, tail)
}

// shownBytes returns the body.
func shownBytes(t *testing.T, request *stream.ShadowRequest) []byte {
	t.Helper()
	if request.Encoding != adapter.AsJSON {
		t.Fatalf("the body is shown as %s", request.Encoding)
	}
	return request.Body
}

// valueOf is a body as JSON has it.
func valueOf(t *testing.T, body []byte) any {
	t.Helper()
	var value any
	if err := json.Unmarshal(body, &value); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	return value
}

// blind leaves credentials out of a body.
func blind(members map[string]any) map[string]any {
	rest := map[string]any{}
	for name, value := range members {
		if text, isText := value.(string); isText {
			for _, secret := range suiteCredentials {
				if text == secret || text == "…" {
					value = "a credential"
				}
			}
		}
		if name == "sentAt" { // of the request, not of the event
			value = "the time of the request"
		}
		rest[name] = value
	}
	return rest
}

func shadowHarness(t *testing.T) *harness {
	h := newHarness(t, platforms.Platform{
		Name: "p", Type: platforms.TypeWebhook, Mode: platforms.Shadow, Events: []string{"purchase", "pageview"},
		Settings: platforms.Settings{Webhook: &platforms.Webhook{URL: "https://crm.example/hook"}},
	})
	return h
}

// kept are the ids of what is kept, the newest first, each with why it would not be sent.
func (h *harness) kept() []string {
	h.t.Helper()
	list := []string{}
	for _, entry := range h.shadowOf(stream.MaxShadow) {
		list = append(list, strings.TrimSuffix(entry.EventID+" "+entry.Reason, " "))
	}
	return list
}

func TestWhatIsKeptOfAPlatformInShadow(t *testing.T) {
	denied := `{"event":"pageview","event_id":"denied","consent":{"analytics_storage":"denied","ad_storage":"denied","ad_user_data":"denied","ad_personalization":"denied"}}`
	tests := map[string]struct {
		do   func(h *harness)
		want []string
	}{
		"the newest first, those that would not be sent with the reason": {func(h *harness) {
			h.property.Platforms[0].Type, h.property.Platforms[0].Settings = platforms.TypeMeta, platforms.Settings{Meta: &platforms.Meta{PixelID: "42"}}
			h.accept(`{"event":"pageview","event_id":"1","context":{"ip":"203.0.113.7"}}`)
			h.accept(`{"event":"pageview","event_id":"2"}`)
			h.accept(`{"event":"search","event_id":"excluded"}`)
			h.accept(denied)
			h.start("pod-1", nil)
			h.awaitFinal(4)
		}, []string{"denied consent_ad_storage", "2 no_identifier", "1"}},
		"nothing of before a day ago": {func(h *harness) {
			h.accept(`{"event":"pageview","event_id":"1"}`)
			h.start("pod-1", nil)
			h.awaitFinal(1)
			h.advance(24*time.Hour + time.Minute)
			h.await("trimming", func() string { return cmp.Diff([]string{}, h.kept()) })
		}, []string{}},
		"nothing for longer than devices are kept": {func(h *harness) {
			h.property.Retention.DeviceHours = 1
			h.accept(`{"event":"pageview","event_id":"1"}`)
			h.start("pod-1", nil)
			h.awaitFinal(1)
			h.advance(time.Hour + time.Minute)
			h.await("trimming", func() string { return cmp.Diff([]string{}, h.kept()) })
		}, []string{}},
		"nothing of a platform that is gone": {func(h *harness) {
			h.accept(`{"event":"pageview","event_id":"1"}`)
			engine := h.start("pod-1", nil)
			h.awaitFinal(1)
			engine.stop()
			h.property.Platforms = nil
			h.start("pod-1", nil)
			h.await("the removal", func() string { return cmp.Diff([]string{}, h.kept()) })
		}, []string{}},
		"what came before stays for its time when the mode is Deliver again": {func(h *harness) {
			h.accept(`{"event":"pageview","event_id":"1"}`)
			engine := h.start("pod-1", nil)
			h.awaitFinal(1)
			engine.stop()
			h.property.Platforms[0].Mode = platforms.Deliver
			h.property.Platforms[0].Suspend = true
			h.start("pod-1", nil)
			h.accept(`{"event":"pageview","event_id":"2"}`)
		}, []string{"1"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := shadowHarness(t)
			test.do(h)
			if diff := cmp.Diff(test.want, h.kept()); diff != "" {
				t.Errorf("kept (-want +got):\n%s", diff)
			}
		})
	}
}

// awaitFinal waits until so many events have a record, all of them skipped.
func (h *harness) awaitFinal(n int) {
	h.t.Helper()
	h.await("records", func() string {
		skipped := 0
		for _, r := range h.records("p") {
			if r.Status == "skipped" {
				skipped++
			}
		}
		return cmp.Diff(n, skipped)
	})
}

// TestSwitchingToDeliverSendsWhatComesAfter: and nothing of before, without a replay.
func TestSwitchingToDeliverSendsWhatComesAfter(t *testing.T) {
	sent := &recorded{}
	h := shadowHarness(t)
	h.property.Platforms[0] = sent.serve(t, h.property.Platforms[0])
	engine := h.start("pod-1", nil)
	before := h.accept(`{"event":"pageview","event_id":"1"}`)
	h.awaitFinal(1)
	engine.stop()
	h.property.Platforms[0].Mode = platforms.Deliver
	engine = h.start("pod-1", nil)
	after := h.accept(`{"event":"pageview","event_id":"2"}`)
	want := map[stream.Position]record{before: {Status: "skipped", Reason: "shadow"}, after: {Status: "delivered", Attempts: 1}}
	h.eventually("p", want)
	engine.stop()
	if n := len(sent.requests()); n != 1 {
		t.Errorf("%d requests were made, want that of the second event", n)
	}
	h.property.Platforms[0].Mode = platforms.Shadow
	h.start("pod-1", nil)
	third := h.accept(`{"event":"pageview","event_id":"3"}`)
	want[third] = record{Status: "skipped", Reason: "shadow"}
	h.eventually("p", want)
	if n := len(sent.requests()); n != 1 {
		t.Errorf("%d requests were made, want none in Shadow", n)
	}
}

// TestNothingIsKeptOfWhoIsErased: what was kept goes with anybody's erasure, and what comes later is kept again.
func TestNothingIsKeptOfWhoIsErased(t *testing.T) {
	h := shadowHarness(t)
	h.keepLedger()
	a := h.joiner()
	h.start("pod-1", nil)
	const ada, bob = "ada@example.com", "bob@example.com"
	h.visits(a, person{email: ada}.event("ada-1"), person{email: bob}.event("bob-1"))
	h.awaitFinal(2)
	if diff := cmp.Diff([]string{"bob-1", "ada-1"}, h.kept()); diff != "" {
		t.Fatalf("kept (-want +got):\n%s", diff)
	}
	h.awaitHidden(h.requestErasure(stream.ErasureRequest{Identifiers: person{email: ada}.identifiers()}))
	if diff := cmp.Diff([]string{}, h.kept()); diff != "" {
		t.Errorf("kept after the erasure (-want +got):\n%s", diff)
	}
	h.visits(a, person{email: bob}.event("bob-2"))
	h.await("what comes later", func() string { return cmp.Diff([]string{"bob-2"}, h.kept()) })
}
