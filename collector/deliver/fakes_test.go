package deliver

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weir-dev/weir/collector/platforms"
)

// personal matches what a body must not hold: any address, and the test person's name and phone number.
var personal = regexp.MustCompile(`(?i)@|lovelace|15550100999`)

// answer is what a fake answers instead of judging for itself.
type answer struct {
	status int
	header map[string]string
	body   string
}

// error decides what a fake does with a request; nil lets it judge for itself. It may also block.
type failure func(r *http.Request) *answer

// receiver is a Webhook receiver that verifies what it gets the way the Standard Webhooks libraries do.
type receiver struct {
	*httptest.Server
	t         testing.TB
	tolerance time.Duration // of timestamps

	mu      sync.Mutex
	failure failure
	arrived []string // webhook-id of every verified request, refused or not
	taken   []string // webhook-id of every request answered 204
}

func newReceiver(t testing.TB, f failure) *receiver {
	r := &receiver{t: t, failure: f, tolerance: 5 * time.Minute}
	r.Server = httptest.NewServer(http.HandlerFunc(r.serve))
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) platform(name string) platforms.Platform {
	return platforms.Platform{Name: name, Type: platforms.TypeWebhook, Settings: platforms.Settings{Webhook: &platforms.Webhook{URL: r.URL + "/hook"}}}
}

func (r *receiver) serve(w http.ResponseWriter, request *http.Request) {
	body, err := io.ReadAll(request.Body)
	if err != nil {
		return // the engine gave up
	}
	id := request.Header.Get("webhook-id")
	if failure := verify(request, body, r.tolerance); failure != "" {
		r.t.Errorf("webhook: %s", failure)
		http.Error(w, failure, http.StatusBadRequest)
		return
	}
	r.mu.Lock()
	r.arrived = append(r.arrived, id)
	f := r.failure
	r.mu.Unlock()
	if f != nil {
		if a := f(request); a != nil {
			a.write(w)
			return
		}
	}
	r.mu.Lock()
	r.taken = append(r.taken, id)
	r.mu.Unlock()
	w.WriteHeader(http.StatusNoContent)
}

func (a *answer) write(w http.ResponseWriter) {
	for key, value := range a.header {
		w.Header().Set(key, value)
	}
	w.WriteHeader(a.status)
	_, _ = io.WriteString(w, a.body)
}

// soon is an answer that asks for no longer a pause than a second.
func (a *answer) soon() *answer {
	if a.header["Retry-After"] == "" {
		return a
	}
	return &answer{status: a.status, header: map[string]string{"Retry-After": "1"}, body: a.body}
}

// verify returns what is wrong with a webhook, "" where nothing is.
func verify(r *http.Request, body []byte, tolerance time.Duration) string {
	id, stamp := r.Header.Get("webhook-id"), r.Header.Get("webhook-timestamp")
	seconds, err := strconv.ParseInt(stamp, 10, 64)
	if err != nil || time.Since(time.Unix(seconds, 0)).Abs() > tolerance {
		return "timestamp " + stamp + " is not of these minutes"
	}
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(signingSecret, "whsec_"))
	if err != nil {
		return err.Error()
	}
	mac := hmac.New(sha256.New, key)
	fmt.Fprintf(mac, "%s.%s.%s", id, stamp, body)
	want := "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
	switch {
	case r.Method != http.MethodPost, r.Header.Get("content-type") != "application/json":
		return "must be a POST of JSON"
	case id == "" || strings.Contains(id, "."):
		return "id " + id + " is malformed"
	case !slices.Contains(strings.Fields(r.Header.Get("webhook-signature")), want):
		return "signature does not match"
	case personal.Match(body):
		return "the body shows the person: " + string(body)
	}
	var message struct {
		Type, Timestamp string
		Data            struct {
			EventID string `json:"event_id"`
			Event   string
			User    map[string]any
		}
	}
	if err := json.Unmarshal(body, &message); err != nil {
		return err.Error()
	}
	if message.Type == "" || message.Type != message.Data.Event || message.Data.EventID == "" {
		return "the body lacks its type, event or event_id"
	}
	for field, value := range message.Data.User {
		list, isList := value.([]any)
		if !isList && value != nil {
			list = []any{value}
		}
		for _, hash := range list {
			if text, _ := hash.(string); !hexHash.MatchString(text) && field != "country" {
				return field + " is no hash"
			}
		}
	}
	return ""
}

var hexHash = regexp.MustCompile(`^[0-9a-f]{64}$`)

func (r *receiver) setFailure(f failure) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failure = f
}

// arrivals returns how often each webhook-id arrived.
func (r *receiver) arrivals() map[string]int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return tally(r.arrived)
}

// acceptances returns how often each webhook-id was answered 204.
func (r *receiver) acceptances() map[string]int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return tally(r.taken)
}

func tally(ids []string) map[string]int {
	counts := map[string]int{}
	for _, id := range ids {
		counts[id]++
	}
	return counts
}

// meta is a Conversions API that rejects like the real one: one bad event, and the whole batch is refused.
type meta struct {
	*httptest.Server
	t   testing.TB
	now func() time.Time // by which events are too old or of the future

	mu       sync.Mutex
	failure  failure
	token    string
	requests []int          // events in each request
	received map[string]int // name and id of each event → times received
}

func newMeta(t testing.TB, f failure) *meta {
	m := &meta{t: t, failure: f, token: accessToken, received: map[string]int{}, now: time.Now}
	m.Server = httptest.NewServer(http.HandlerFunc(m.serve))
	t.Cleanup(m.Close)
	return m
}

func (m *meta) platform(name string) platforms.Platform {
	return platforms.Platform{Name: name, Type: platforms.TypeMeta, Endpoint: m.URL, Settings: platforms.Settings{Meta: &platforms.Meta{PixelID: "42"}}}
}

type metaFakeEvent struct {
	Name         string              `json:"event_name"`
	Time         int64               `json:"event_time"`
	ID           string              `json:"event_id"`
	ActionSource string              `json:"action_source"`
	URL          string              `json:"event_source_url"`
	User         map[string]any      `json:"user_data"`
	Custom       struct{ Value any } `json:"custom_data"`
}

func (m *meta) serve(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the engine gave up
	}
	if personal.Match(body) {
		m.t.Errorf("meta: the body shows the person: %s", body)
	}
	var request struct{ Data []metaFakeEvent }
	if err := json.Unmarshal(body, &request); err != nil {
		m.t.Errorf("meta: %v", err)
	}
	m.mu.Lock()
	m.requests = append(m.requests, len(request.Data))
	f, token := m.failure, m.token
	m.mu.Unlock()
	if f != nil {
		if a := f(r); a != nil {
			a.write(w)
			return
		}
	}
	switch {
	case r.Method != http.MethodPost || r.URL.RequestURI() != "/v26.0/42/events":
		metaRefuses(w, 100, 33)
		return
	case r.Header.Get("Authorization") != "Bearer "+token:
		metaRefuses(w, 190, 0)
		return
	case len(request.Data) == 0 || len(request.Data) > 1000:
		metaRefuses(w, 100, 2804019)
		return
	}
	for _, e := range request.Data {
		if subcode := e.failure(m.now()); subcode != 0 {
			metaRefuses(w, 100, subcode)
			return
		}
	}
	m.mu.Lock()
	for _, e := range request.Data {
		m.received[e.Name+" "+e.ID]++
	}
	m.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"events_received":%d,"messages":[],"fbtrace_id":"x"}`, len(request.Data))
}

// poisonID is the id of an event that Meta refuses.
const poisonID = "poison"

// error returns the subcode for which Meta refuses the event, 0 where it does not.
func (e *metaFakeEvent) failure(now time.Time) int {
	age := now.Sub(time.Unix(e.Time, 0))
	website := e.ActionSource == "website"
	switch {
	case e.Name == "" || e.ID == "" || e.ID == poisonID || !slices.Contains([]string{"website", "other", "system_generated"}, e.ActionSource):
		return 2804019
	case age > 7*24*time.Hour || age < -time.Minute:
		return 2804003
	case website && (e.URL == "" || e.User["client_user_agent"] == nil):
		return 2804019
	case e.Name == "Purchase" && e.Custom.Value == nil:
		return 2804009
	}
	enough := false
	for key, value := range e.User {
		switch key {
		case "em", "ph", "external_id", "fn":
			hashes, _ := value.([]any)
			if len(hashes) != 1 || !hexHash.MatchString(fmt.Sprint(hashes[0])) {
				return 2804019
			}
		}
		enough = enough || (key != "fn" && key != "client_user_agent")
	}
	if !enough {
		return 2804050
	}
	return 0
}

func metaRefuses(w http.ResponseWriter, code, subcode int) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusBadRequest)
	fmt.Fprintf(w, `{"error":{"message":"no","type":"OAuthException","code":%d,"error_subcode":%d,"is_transient":false}}`, code, subcode)
}

func (m *meta) set(f failure, token string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.failure, m.token = f, token
}

// counts returns how often each event was received.
func (m *meta) counts() map[string]int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return maps.Clone(m.received)
}

// batches returns how many events each request held.
func (m *meta) batches() []int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.requests)
}

// first answers the first n requests with a and lets the fake judge the others.
func first(n int, a answer) failure {
	var mu sync.Mutex
	return func(*http.Request) *answer {
		mu.Lock()
		defer mu.Unlock()
		if n == 0 {
			return nil
		}
		n--
		return &a
	}
}

// always answers every request with a.
func always(a answer) failure { return func(*http.Request) *answer { return &a } }

// hang blocks until the request is given up or the test ends.
func hang(t testing.TB) failure {
	return func(r *http.Request) *answer {
		select {
		case <-r.Context().Done():
		case <-t.Context().Done():
		}
		return &answer{status: http.StatusServiceUnavailable}
	}
}
