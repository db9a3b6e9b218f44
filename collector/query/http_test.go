package query

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"

	"github.com/weir-dev/weir/collector/analytics"
	"github.com/weir-dev/weir/collector/auth"
	"github.com/weir-dev/weir/collector/config"
	"github.com/weir-dev/weir/collector/event/envelope"
	"github.com/weir-dev/weir/collector/event/wire"
	"github.com/weir-dev/weir/collector/quality"
	"github.com/weir-dev/weir/collector/server"
	"github.com/weir-dev/weir/collector/stream"
)

// fixtureNow is when every request of the tests is made.
var fixtureNow = time.Date(2026, time.October, 26, 10, 0, 1, 0, time.UTC)

// trimmedAt is where the stream of the property "trimmed" begins: one millisecond before a midnight in Berlin.
var trimmedAt = time.Date(2026, time.October, 24, 21, 59, 59, 999_000_000, time.UTC)

// fixture is the content of testdata/events.json.
type fixture struct {
	Platforms []string       `json:"platforms"`
	Events    []fixtureEvent `json:"events"`
}

type fixtureEvent struct {
	At       time.Time       `json:"at"`
	Envelope jsontext.Value  `json:"envelope"`
	Records  []fixtureRecord `json:"records"`
}

type fixtureRecord struct {
	Platform  string    `json:"platform"`
	Status    string    `json:"status"`
	Attempts  int       `json:"attempts"`
	LatencyMS int64     `json:"latency_ms"`
	Reason    string    `json:"reason"`
	At        time.Time `json:"at"`
}

// entries takes the fixture's envelopes the way of the collector.
func (f *fixture) entries(t testing.TB, aliases map[string]string) ([]stream.Entry, []stream.Record) {
	t.Helper()
	var entries []stream.Entry
	var records []stream.Record
	var last stream.Position
	for i, sent := range f.Events {
		read := new(envelope.Envelope)
		if err := read.Decode(sent.Envelope); err != nil {
			t.Fatalf("event %d: %v", i, err)
		}
		valid, errs := read.Validate(sent.At, aliases)
		if len(errs) > 0 {
			t.Fatalf("event %d: %v", i, errs)
		}
		accepted := envelope.Pseudonymise(valid, envelope.Acceptance{DeliveryID: uuid.UUID{15: byte(i + 1)}, Platforms: f.Platforms})
		last = max(last+1, stream.At(sent.At))
		entries = append(entries, stream.Entry{Position: last, Data: wire.Encode(&accepted)})
		for _, r := range sent.Records {
			records = append(records, stream.Record{
				Event: last, Platform: r.Platform, Status: statusOf(t, r.Status), Attempts: r.Attempts,
				Latency: time.Duration(r.LatencyMS) * time.Millisecond, Reason: r.Reason, At: r.At,
			})
		}
	}
	return entries, records
}

func statusOf(t testing.TB, text string) stream.Status {
	t.Helper()
	for s := stream.Pending; s <= stream.Expired; s++ {
		if s.String() == text {
			return s
		}
	}
	t.Fatalf("no status %q", text)
	return 0
}

// tokens of the tests, by what they are good for.
var tokens = map[string]string{
	"berlin":       "wt_berlin",
	"kolkata":      "wt_kolkata",
	"saopaulo":     "wt_saopaulo",
	"trimmed":      "wt_trimmed",
	"empty":        "wt_empty",
	"replaying":    "wt_replaying",
	"write":        "wt_write",
	"admin":        "wt_admin",
	"expired":      "wt_expired",
	"expires next": "wt_expires_next",
	"no scope":     "wt_no_scope",
	"days":         "wt_days",
}

// serve returns the read API of properties with the fixture's events in several time zones, from views.
func serve(t testing.TB) (*Handler, http.Handler) {
	t.Helper()
	return serveFrom(t, newView)
}

// serveFrom is [serve] from engines of a kind.
func serveFrom(t testing.TB, engine engineMaker) (*Handler, http.Handler) {
	t.Helper()
	text, err := os.ReadFile("testdata/events.json")
	if err != nil {
		t.Fatal(err)
	}
	var sent fixture
	if err := json.Unmarshal(text, &sent); err != nil {
		t.Fatal(err)
	}
	aliases := map[string]string{"page_view": "pageview"}
	entries, records := sent.entries(t, aliases)

	var tenants []Tenant
	for name, zone := range map[string]string{
		"berlin": "Europe/Berlin", "kolkata": "Asia/Kolkata", "saopaulo": "America/Sao_Paulo",
		"trimmed": "Europe/Berlin", "empty": "UTC", "replaying": "UTC",
	} {
		location, err := time.LoadLocation(zone)
		if err != nil {
			t.Fatal(err)
		}
		tenant := Tenant{
			Property:   config.Property{Namespace: "default", Name: name, Currency: "EUR", TimeZone: zone, EventAliases: aliases},
			Location:   location,
			Tokens:     tokensOf(name),
			Rejections: refused[name],
			Shadows:    shadowed{},
			States:     reported{},
			Quality:    judged[name],
		}
		tenants = append(tenants, tenantOfFixture(t, engine, tenant, entries, records))
	}
	handler := New(Options{Logger: slog.New(slog.DiscardHandler), Now: func() time.Time { return fixtureNow }})
	handler.Serve(tenants)
	return handler, routes(handler)
}

// tenantOfFixture is a property's tenant, by its name with something about its events.
func tenantOfFixture(t testing.TB, engine engineMaker, tenant Tenant, entries []stream.Entry, records []stream.Record) Tenant {
	t.Helper()
	source := &memory{entries: entries, records: records}
	switch tenant.Property.Name {
	case "empty":
		source = &memory{}
	case "replaying": // nobody has told it that it is complete
		view := analytics.NewView(analytics.Options{Property: "default/replaying", Currency: "EUR", Logger: slog.New(slog.DiscardHandler)})
		if err := view.AddEvents(entries); err != nil {
			t.Fatal(err)
		}
		tenant.Engine, tenant.Events, tenant.Records = view, StreamEvents{source}, StreamRecords{source}
		return tenant
	}
	tenant, made := tenantOf(t, engine, tenant, source)
	if tenant.Property.Name == "trimmed" {
		made.Forget(stream.At(trimmedAt))
	}
	return tenant
}

// rejectionList is what a property's collectors refused; nil is a Redis that is away.
type rejectionList []stream.Rejection

func (l rejectionList) Rejections(_ context.Context, limit int) ([]stream.Rejection, error) {
	if l == nil {
		return nil, errors.New("connection refused")
	}
	return l[:min(limit, len(l))], nil
}

// judged are what was found of properties' numbers; of those that are not here nobody has looked.
var judged = map[string]judgement{
	"berlin": {State: quality.Watching, At: fixtureNow.Truncate(quality.SlotLength), Weeks: 4,
		Findings: []quality.Finding{
			{
				Event: "purchase", Signal: quality.Volume, From: fixtureNow.Add(-30 * time.Minute), To: fixtureNow, Actual: 3, Expected: 41.5, Events: 3,
			},
			{Event: "purchase", Signal: quality.Currency, Currency: "USD", From: fixtureNow.Add(-time.Hour), To: fixtureNow, Actual: 1, Expected: .000012345, Events: 9},
			{Signal: quality.Refused, From: fixtureNow.Add(-30 * time.Minute), To: fixtureNow, Actual: .25, Expected: .01, Events: 400},
			{Event: quality.OtherEvents, Signal: quality.Duplicates, From: fixtureNow.Add(-30 * time.Minute), To: fixtureNow, Actual: .5, Expected: .01, Events: 70},
		},
		Events: []quality.EventReport{{Event: "pageview", SeenWithin: 20 * time.Minute}, {Event: quality.OtherEvents, SeenWithin: time.Hour}, {Event: "purchase"}},
	},
	"kolkata": {State: quality.Learning, At: fixtureNow.Truncate(quality.SlotLength), Weeks: 1},
}

type judgement quality.Report

func (j judgement) Orders() []stream.OrderComparison {
	return []stream.OrderComparison{{
		Source: "shop", Day: "2026-10-25", At: fixtureNow.Add(-time.Hour), Orders: 40,
		Missing:   stream.OrderList{Count: 2, Orders: []stream.ComparedOrder{{OrderID: "4711", Shop: "10 EUR"}}},
		Different: stream.OrderList{Count: 1, Orders: []stream.ComparedOrder{{OrderID: "4712", Shop: "10 EUR", Stored: "12.5 EUR"}}},
	}}
}

func (j judgement) Quality() (quality.Report, bool) { return quality.Report(j), !j.At.IsZero() }

// shadowed is what is kept of the platform crm; Redis is away for broken.
type shadowed struct{}

func (shadowed) Shadow(_ context.Context, platform string, limit int) ([]stream.ShadowEntry, error) {
	if platform != "crm" {
		return nil, errors.New("connection refused")
	}
	list := []stream.ShadowEntry{
		{
			Event: stream.At(fixtureNow), EventID: "order-77", Name: "purchase", At: fixtureNow, Request: &stream.ShadowRequest{
				Method: "POST", URL: "https://crm.example/hook", Header: map[string]string{"Webhook-Signature": "…"}, Body: []byte(`{"type":"purchase"}`), Encoding: "json",
			},
		},
		{Event: stream.At(fixtureNow.Add(-time.Second)), EventID: "e-2", Name: "lead", At: fixtureNow, Reason: "no_identifier"},
		{Event: stream.At(fixtureNow.Add(-time.Minute)), EventID: "e-1", Name: "lead", At: fixtureNow, TooLong: true},
	}
	return list[:min(limit, len(list))], nil
}

// reported are the platforms of which a deliverer has reported; of live it has not.
type reported struct{ err error }

func (r reported) PlatformStates(context.Context) (map[string]stream.PlatformState, error) {
	at := fixtureNow.Add(-5 * time.Second)
	return map[string]stream.PlatformState{
		"crm": {Platform: "crm", LagEvents: 3, LagSeconds: 1.5, Waiting: 2, ReportedAt: at},
		"ads": {
			Platform: "ads", LagEvents: -1, LagSeconds: 60, ReportedAt: at,
			Pause: &stream.Pause{Misconfiguration: "CredentialsRejected", Reason: "unauthorized", Since: fixtureNow.Add(-time.Hour)},
		},
		"down":  {Platform: "down", ReportedAt: at, Pause: &stream.Pause{Reason: "http_503", Since: fixtureNow.Add(-time.Minute)}},
		"quiet": {Platform: "quiet", LagEvents: 9, ReportedAt: at, Pause: &stream.Pause{Reason: "http_503", Since: fixtureNow.Add(-time.Hour)}},
	}, r.err
}

// refused are the rejections of the properties.
var refused = map[string]rejectionList{
	"empty": {}, "trimmed": {},
	"berlin": {
		{
			ID: "0190163d-8694-739b-aea5-966c26f8ad91", At: fixtureNow.Add(-time.Minute), Endpoint: "batch", APIKey: "server", Event: "purchase", EventID: "order-77",
			Answer: []byte(`{"message":"The data.value field is required. (and 1 more error)","errors":{"data.value":["The data.value field is required."],` +
				`"data.currency":["The data.currency field is required."]}}`),
		},
		{ID: "junk", At: fixtureNow, Endpoint: "batch", Answer: []byte(`{"message":"x","errors":[]}`)},
		{
			ID: "0190163d-8694-739b-aea5-966c26f8ad92", At: fixtureNow.Add(-time.Hour), Endpoint: "collect",
			Answer: []byte(`{"message":"The request body is not valid JSON (at byte 17)."}`),
		},
	},
}

func routes(h *Handler) http.Handler {
	router := chi.NewRouter()
	router.Use(server.PlainPath)
	router.NotFound(server.NotFound)
	router.MethodNotAllowed(server.MethodNotAllowed)
	h.Routes(router)
	return router
}

func tokensOf(name string) []auth.Credential {
	list := []auth.Credential{{Name: "default", Hash: auth.HashOf(tokens[name]), Scope: auth.ScopeRead}}
	if name != "berlin" {
		return list
	}
	next := fixtureNow.Add(time.Millisecond)
	return append(list,
		auth.Credential{Name: "ops", Hash: auth.HashOf(tokens["write"]), Scope: auth.ScopeWrite},
		auth.Credential{Name: "dpo", Hash: auth.HashOf(tokens["admin"]), Scope: auth.ScopeAdmin},
		auth.Credential{Name: "old", Hash: auth.HashOf(tokens["expired"]), Scope: auth.ScopeAdmin, ExpirationTime: new(fixtureNow)},
		auth.Credential{Name: "ageing", Hash: auth.HashOf(tokens["expires next"]), Scope: auth.ScopeRead, ExpirationTime: &next},
		auth.Credential{Name: "none", Hash: auth.HashOf(tokens["no scope"])},
	)
}

// get asks for a path below /api/v1/properties with a token.
func get(api http.Handler, token, path string) *httptest.ResponseRecorder {
	return ask(api, http.MethodGet, "Bearer "+token, "/api/v1/properties/"+path)
}

func ask(api http.Handler, method, authorization, target string) *httptest.ResponseRecorder {
	request := httptest.NewRequest(method, target, nil)
	if authorization != "" {
		request.Header.Set("Authorization", authorization)
	}
	answer := httptest.NewRecorder()
	api.ServeHTTP(answer, request)
	return answer
}

func message(text string) string { return `{"message":"` + text + `"}` }

func TestAccess(t *testing.T) {
	handler, api := serve(t)
	unauthenticated, notFound := message("Unauthenticated."), message("Property not found.")
	for name, test := range map[string]struct {
		authorization string
		property      string
		want          int
		body          string
	}{
		"a token sees its own property":                       {"Bearer " + tokens["berlin"], "berlin", 200, ""},
		"the scheme's case does not matter":                   {"bEARER " + tokens["berlin"], "berlin", 200, ""},
		"blanks around the token do not matter":               {"Bearer   " + tokens["berlin"] + " ", "berlin", 200, ""},
		"a wider scope includes reading":                      {"Bearer " + tokens["write"], "berlin", 200, ""},
		"a token works until it expires":                      {"Bearer " + tokens["expires next"], "berlin", 200, ""},
		"no token is unauthenticated":                         {"", "berlin", 401, unauthenticated},
		"an empty token is unauthenticated":                   {"Bearer ", "berlin", 401, unauthenticated},
		"another scheme is unauthenticated":                   {"Basic " + tokens["berlin"], "berlin", 401, unauthenticated},
		"a bare token is unauthenticated":                     {tokens["berlin"], "berlin", 401, unauthenticated},
		"an unknown token is unauthenticated":                 {"Bearer wt_nobody", "berlin", 401, unauthenticated},
		"a token's case matters":                              {"Bearer " + strings.ToUpper(tokens["berlin"]), "berlin", 401, unauthenticated},
		"an unknown token learns nothing of properties":       {"Bearer wt_nobody", "nowhere", 401, unauthenticated},
		"an expired token is unauthenticated":                 {"Bearer " + tokens["expired"], "berlin", 401, unauthenticated},
		"an unknown property is not found":                    {"Bearer " + tokens["berlin"], "nowhere", 404, notFound},
		"another's property is as little found":               {"Bearer " + tokens["berlin"], "kolkata", 404, notFound},
		"property ids are case-sensitive":                     {"Bearer " + tokens["berlin"], "Berlin", 404, notFound},
		"a scope that does not allow reading is unauthorized": {"Bearer " + tokens["no scope"], "berlin", 403, message("This action is unauthorized.")},
	} {
		t.Run(name, func(t *testing.T) {
			handler.failures = newFailures() // so many mistakes would be too many
			for _, call := range calls {
				answer := ask(api, http.MethodGet, test.authorization, "/api/v1/properties/"+test.property+"/"+call)
				if answer.Code != test.want || (test.body != "" && answer.Body.String() != test.body) {
					t.Errorf("%s: got %d %s, want %d %s", call, answer.Code, answer.Body, test.want, test.body)
				}
				challenge := answer.Header().Get("WWW-Authenticate")
				if want := test.want == 401; (challenge == "Bearer") != want {
					t.Errorf("%s: got the challenge %q with status %d", call, challenge, answer.Code)
				}
				if kind := answer.Header().Get("Content-Type"); kind != "application/json" {
					t.Errorf("%s: got the content type %q", call, kind)
				}
				wantSecurityHeaders(t, answer.Header())
			}
		})
	}
}

func wantSecurityHeaders(t *testing.T, header http.Header) {
	t.Helper()
	for name, want := range map[string]string{
		"X-Content-Type-Options": "nosniff", "Cache-Control": "no-store", "Referrer-Policy": "no-referrer",
	} {
		if got := header.Get(name); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
}

func TestWhatABrowserOpensHasSecurityHeaders(t *testing.T) {
	_, api := serve(t)
	for _, path := range []string{"/docs", "/docs/docs.js", "/api/v1/openapi.json"} {
		wantSecurityHeaders(t, ask(api, http.MethodGet, "", path).Header())
	}
}

func TestAnotherSetOfTenantsTakesEffectAtOnce(t *testing.T) {
	handler, api := serve(t)
	served := *handler.tenants.Load()
	if got := get(api, tokens["berlin"], "berlin/analytics/summary").Code; got != 200 {
		t.Fatalf("before: got %d", got)
	}
	handler.Serve(nil)
	if got := get(api, tokens["berlin"], "berlin/analytics/summary").Code; got != 401 {
		t.Errorf("with no tenant: got %d, want 401", got)
	}
	handler.Serve(served)
	if got := get(api, tokens["berlin"], "berlin/analytics/summary").Code; got != 200 {
		t.Errorf("served again: got %d, want 200", got)
	}
}

func TestMethodsAndPaths(t *testing.T) {
	_, api := serve(t)
	for name, test := range map[string]struct {
		method string
		path   string
		want   int
		allow  string
	}{
		"HEAD is answered like GET":        {http.MethodHead, "/api/v1/properties/berlin/events", 200, ""},
		"POST is not allowed":              {http.MethodPost, "/api/v1/properties/berlin/events", 405, "GET, HEAD"},
		"DELETE is not allowed":            {http.MethodDelete, "/api/v1/properties/berlin/analytics/funnel", 405, "GET, HEAD"},
		"nothing is put to a page":         {http.MethodPut, "/properties/berlin/", 405, "GET, HEAD"},
		"nothing is put to its address":    {http.MethodPut, "/properties/berlin", 405, "GET, HEAD"},
		"nothing is put to its session":    {http.MethodPut, "/properties/berlin/session", 405, "GET, HEAD, POST, DELETE"},
		"nothing is put to its data":       {http.MethodPut, "/properties/berlin/api/events", 405, "GET, HEAD"},
		"nothing is put to the list":       {http.MethodPut, "/api/v1/properties", 405, "GET, HEAD, OPTIONS"},
		"the list names its methods":       {http.MethodOptions, "/api/v1/properties", 204, "GET, HEAD, OPTIONS"},
		"an unknown call is not found":     {http.MethodGet, "/api/v1/properties/berlin/analytics/mood", 404, ""},
		"a property itself is not found":   {http.MethodGet, "/api/v1/properties/berlin", 404, ""},
		"another version is not found":     {http.MethodGet, "/api/v2/properties/berlin/events", 404, ""},
		"a trailing slash is another path": {http.MethodGet, "/api/v1/properties/berlin/events/", 404, ""},
	} {
		t.Run(name, func(t *testing.T) {
			answer := ask(api, test.method, "Bearer "+tokens["berlin"], test.path)
			if answer.Code != test.want || answer.Header().Get("Allow") != test.allow {
				t.Errorf("got %d, Allow %q, want %d, %q", answer.Code, answer.Header().Get("Allow"), test.want, test.allow)
			}
			var body struct {
				Message string `json:"message"`
			}
			if err := json.Unmarshal(answer.Body.Bytes(), &body); test.want >= 400 && (err != nil || body.Message == "") {
				t.Errorf("got the body %q, want a message", answer.Body)
			}
		})
	}
}
