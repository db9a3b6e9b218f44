package consent_test

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-dev/weir/collector/auth"
	"github.com/weir-dev/weir/collector/config"
	"github.com/weir-dev/weir/collector/deliver/adapter"
	"github.com/weir-dev/weir/collector/deliver/fakes"
	"github.com/weir-dev/weir/collector/deliver/fakes/fakestest"
	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/event/wire"
	"github.com/weir-dev/weir/collector/ingest"
	"github.com/weir-dev/weir/collector/platforms"
	"github.com/weir-dev/weir/collector/stream"
)

// Random visitors say random things in all forms to collectors of Properties with random rules. What the real adapters make of
// the stored events is compared with what docs/reference/consent.md says, by an oracle that knows what was said and reads none
// of it.

const (
	properties = 100
	visitors   = 60
	apiKey     = "wk_0123456789ABCDEFGHIJKLMNOPQ2WYluI"
)

var received = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// visitorIDs are what tells a visitor again: the browser, the account and the visit.
var visitorIDs = []string{"client-of-visitor", "user-of-visitor", "1795175000"}

// reached has a platform of each type.
var reached = []platforms.Platform{
	{Name: "meta", Type: platforms.TypeMeta, Settings: platforms.Settings{Meta: &platforms.Meta{PixelID: "1"}}},
	{Name: "ga4", Type: platforms.TypeGA4, Settings: platforms.Settings{GA4: &platforms.GA4{MeasurementID: "G-1"}}},
	{Name: "tiktok", Type: platforms.TypeTikTok, Settings: platforms.Settings{TikTok: &platforms.TikTok{EventSourceID: "C1"}}},
	{Name: "pinterest", Type: platforms.TypePinterest, Settings: platforms.Settings{Pinterest: &platforms.Pinterest{AdAccountID: "1"}}},
	{Name: "microsoft", Type: platforms.TypeMicrosoft, Settings: platforms.Settings{Microsoft: &platforms.Microsoft{TagID: "1"}}},
	{Name: "linkedin", Type: platforms.TypeLinkedIn, EventNames: map[string]string{"purchase": "104012"}},
	{
		Name: "google", Type: platforms.TypeGoogle, EventNames: map[string]string{"purchase": "1", "lead": "2", "pageview": "3"},
		Settings: platforms.Settings{Google: &platforms.Google{AccountID: "1"}},
	},
	{Name: "mixpanel", Type: platforms.TypeMixpanel, Settings: platforms.Settings{Mixpanel: &platforms.Mixpanel{ProjectID: "1"}}},
	{Name: "webhook", Type: platforms.TypeWebhook, Settings: platforms.Settings{Webhook: &platforms.Webhook{URL: "https://crm.example/"}}},
	{Name: "lake", Type: platforms.TypeS3, Settings: platforms.Settings{S3: &platforms.S3{Bucket: "shop-events", Region: "eu-central-1"}}},
	{Name: "log", Type: platforms.TypeLog},
	{Name: "snapchat", Type: platforms.TypeSnapchat, Settings: platforms.Settings{Snapchat: &platforms.Snapchat{PixelID: "1ec32188-754e-4be2-8e55-c949a984a39f"}}},
	{Name: "reddit", Type: platforms.TypeReddit, Settings: platforms.Settings{Reddit: &platforms.Reddit{PixelID: "a2_1"}}},
	{Name: "klaviyo", Type: platforms.TypeKlaviyo, Settings: platforms.Settings{Klaviyo: &platforms.Klaviyo{}}},
	{Name: "amplitude", Type: platforms.TypeAmplitude, Settings: platforms.Settings{Amplitude: &platforms.Amplitude{}}},
	{Name: "posthog", Type: platforms.TypePostHog, Settings: platforms.Settings{PostHog: &platforms.PostHog{}}},
	{Name: "segment", Type: platforms.TypeSegment, Settings: platforms.Settings{Segment: &platforms.Segment{}}},
	{Name: "openai", Type: platforms.TypeOpenAI, Settings: platforms.Settings{OpenAI: &platforms.OpenAI{PixelID: "px-1"}}},
}

var credentials = map[string]string{
	"accessToken": "a", "apiSecret": "a", "conversionToken": "a", "serviceAccountUsername": "a", "serviceAccountSecret": "a",
	"signingSecret": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "projectToken": "a", "writeKey": "a", "apiKey": "a",
	"serviceAccountKey": fakestest.ServiceAccountKey(),
	"accessKeyID":       "a", "secretAccessKey": "a",
}

func TestNoEventReachesAPlatformAgainstItsRule(t *testing.T) {
	if len(reached) != len(platforms.Types()) {
		t.Fatalf("%d platforms stand for %d types", len(reached), len(platforms.Types()))
	}
	outcomes := map[string]int{}
	for seed := range uint64(properties) {
		random := rand.New(rand.NewPCG(seed, 7))
		rules := randomRules(random)
		said := make([]visitor, visitors)
		for i := range said {
			said[i] = randomVisitor(random, rules)
		}
		stored := collect(t, rules, said)
		for i, e := range stored {
			checkStored(t, seed, rules, &said[i], e)
		}
		for j := range reached {
			platform := &reached[j]
			opened, err := adapter.Open(*platform, credentials, rules.Rule(platform))
			if err != nil {
				t.Fatal(err)
			}
			var payloads []adapter.Payload
			milder := 0
			for i, e := range stored {
				payload, limited := checkPlatform(t, seed, platform, opened, rules, &said[i], e, outcomes)
				if payload != nil {
					payloads = append(payloads, *payload)
				}
				if limited {
					milder++
				}
			}
			checkTaken(t, seed, platform, opened, payloads, milder)
		}
	}
	for _, kind := range platforms.Types() {
		for _, outcome := range []string{"sent", "limited", "withheld"} {
			t.Logf("%s: %d %s", kind, outcomes[string(kind)+" "+outcome], outcome)
		}
	}
	for _, outcome := range []string{
		"Meta sent", "Meta limited", "Meta withheld", "GA4 sent", "GA4 limited", "GA4 withheld", "TikTok limited", "Pinterest limited", "Mixpanel withheld",
		"Google sent", "Google limited", "Google withheld",
		"Webhook withheld", "Log withheld",
		"Snapchat limited", "Snapchat withheld", "Reddit limited", "Reddit withheld",
		"Microsoft sent", "Microsoft limited", "Microsoft withheld", "LinkedIn sent", "LinkedIn withheld",
		"Klaviyo sent", "Klaviyo withheld", "Amplitude sent", "Amplitude withheld",
		"PostHog withheld", "Segment withheld", "OpenAI limited",
		"S3 withheld",
	} {
		if outcomes[outcome] < 50 {
			t.Errorf("%s: %d times among all, which proves nothing", outcome, outcomes[outcome])
		}
	}
}

// collect sends events to a collector, and returns what it has stored, in order.
func collect(t *testing.T, rules config.Consent, said []visitor) []event.Event {
	t.Helper()
	kept := new(appender)
	handler := ingest.New(ingest.Options{Now: func() time.Time { return received }, Registerer: prometheus.NewRegistry()})
	handler.Serve([]ingest.Tenant{{
		Property: config.Property{
			Namespace: "default", Name: "shop", Currency: "EUR", Platforms: reached, Consent: rules, JoinIdentities: true,
			Limits: config.Limits{MaxBodyBytes: 64 << 10}, DeduplicationWindowHours: 1,
		},
		Keys: []auth.Credential{{Name: "server", Hash: auth.HashOf(apiKey)}}, Appender: kept,
	}})
	router := chi.NewRouter()
	handler.Routes(router)
	events := make([]map[string]any, len(said))
	for i := range said {
		events[i] = map[string]any{
			"event": "purchase", "client_id": "client-of-visitor", "user_id": "user-of-visitor", "session_id": "1795175000", "user": map[string]any{"email": "ada@example.com"},
			"data": map[string]any{"value": 1, "currency": "EUR"}, "context": map[string]any{"ip": "203.0.113.7", "user_agent": "Mozilla/5.0"}, "consent": said[i].members(),
		}
	}
	body, err := json.Marshal(map[string]any{"events": events})
	if err != nil {
		t.Fatal(err)
	}
	request := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/collect/"+apiKey+"/batch", bytes.NewReader(body))
	request.Header.Set("Content-Type", "application/json")
	answer := httptest.NewRecorder()
	router.ServeHTTP(answer, request)
	if answer.Code != http.StatusAccepted || len(kept.additions) != len(said) {
		t.Fatalf("answered %d: %s", answer.Code, answer.Body)
	}
	stored := make([]event.Event, len(said))
	for i, addition := range kept.additions {
		if stored[i], err = wire.Decode(addition.Entry); err != nil {
			t.Fatal(err)
		}
		if stored[i].Anonymous == (len(addition.Identifiers) > 0) {
			t.Errorf("anonymous is %v, and Redis is told %d bytes of whose the event is", stored[i].Anonymous, len(addition.Identifiers))
		}
	}
	return stored
}

// appender keeps what it is given.
type appender struct {
	mu        sync.Mutex
	additions []stream.Addition
}

func (a *appender) Append(_ context.Context, additions []stream.Addition) ([]stream.Added, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.additions = append(a.additions, additions...)
	added := make([]stream.Added, len(additions))
	for i := range additions {
		added[i].EventID = additions[i].EventID
	}
	return added, nil
}

// checkPlatform compares what a platform gets of an event with what it may get. It returns that, nil where it is nothing, and
// whether it is a milder form.
func checkPlatform(
	t *testing.T, seed uint64, platform *platforms.Platform, opened *adapter.Platform, rules config.Consent, v *visitor, e event.Event, outcomes map[string]int,
) (got *adapter.Payload, limited bool) {
	t.Helper()
	payload, verdict := opened.Map(&adapter.Event{Event: e, ReceivedAt: received})
	want := ruling(platform, rules, v)
	if verdict.Reason != want.reason {
		t.Errorf("seed %d: %s: withheld for %q, want %q\n%s", seed, platform.Name, verdict.Reason, want.reason, v)
		return nil, false
	}
	switch {
	case want.reason != "":
		outcomes[string(platform.Type)+" withheld"]++
		if payload.Body != nil || payload.Line != nil {
			t.Errorf("seed %d: %s: there is a payload of an event that is withheld", seed, platform.Name)
		}
		return nil, false
	case want.form == "":
		outcomes[string(platform.Type)+" sent"]++
	default:
		outcomes[string(platform.Type)+" limited"]++
	}
	text := string(payload.Body) + fmt.Sprint(payload.Line)
	if diff := cmp.Diff(want.form, formOf(t, platform.Type, payload.Body)); diff != "" {
		t.Errorf("seed %d: %s: its form (-want +got):\n%s\n%s", seed, platform.Name, diff, v)
	}
	anonymous := v.denies(rules, "analytics_storage", nil)
	inPlain := map[platforms.Type][]string{ // those that know people by their ids as they are
		platforms.TypeGA4: visitorIDs, platforms.TypeMixpanel: visitorIDs, platforms.TypeAmplitude: visitorIDs, platforms.TypeKlaviyo: visitorIDs[:2],
		platforms.TypeMicrosoft: visitorIDs[:1],
		platforms.TypePostHog:   visitorIDs, platforms.TypeSegment: visitorIDs,
	}[platform.Type]
	for _, id := range visitorIDs {
		if anonymous && strings.Contains(text, id) && !slices.Contains(inPlain, id) {
			t.Errorf("seed %d: %s gets %s of a visitor who denied analytics", seed, platform.Name, id)
		}
	}
	switch platform.Type {
	case platforms.TypeGA4, platforms.TypeGoogle:
		return &payload, strings.Contains(want.form, "DENIED")
	case platforms.TypeMicrosoft:
		return &payload, want.form == "D"
	}
	return &payload, want.form != ""
}

// checkTaken sends payloads to the platform's fake, which takes them all, and so many in a milder form.
func checkTaken(t *testing.T, seed uint64, platform *platforms.Platform, opened *adapter.Platform, payloads []adapter.Payload, milder int) {
	t.Helper()
	if !fakes.Has(platform.Type) || platform.Type == platforms.TypeS3 { // what goes to a bucket are files
		return
	}
	now := func() time.Time { return received }
	account := *platform
	if account.Webhook != nil {
		account.Webhook = &platforms.Webhook{URL: "/"}
	}
	fake, err := fakes.New(platform.Type, []fakes.Account{{Platform: account, Credentials: credentials}}, nil, now)
	if err != nil {
		t.Fatal(err)
	}
	defer fake.Close()
	for batch := range slices.Chunk(payloads, opened.Limits.Events) {
		built := opened.Build(batch, received)
		request := httptest.NewRequestWithContext(t.Context(), built.Method, built.URL, bytes.NewReader(built.Body))
		request.Header = built.Header
		if platform.Type == platforms.TypeGoogle {
			request.Header.Set("Authorization", "Bearer "+fake.Token())
		}
		fake.ServeHTTP(httptest.NewRecorder(), request)
	}
	taken, limited := 0, 0
	for _, receipt := range fake.Receipts() {
		if receipt.Complaint != "" {
			t.Errorf("seed %d: %s: %s", seed, platform.Name, receipt.Complaint)
		}
		for _, e := range receipt.Events {
			taken++
			if e.Refusal != "" {
				t.Errorf("seed %d: %s refuses: %s", seed, platform.Name, e.Refusal)
			}
			if e.Limited != "" {
				limited++
			}
		}
	}
	if taken != len(payloads) || limited != milder {
		t.Errorf("seed %d: %s has taken %d events, %d in a milder form; want %d and %d", seed, platform.Name, taken, limited, len(payloads), milder)
	}
}

// formOf reads out of a payload in which milder form it is, in words of this test.
func formOf(t *testing.T, kind platforms.Type, body []byte) string {
	t.Helper()
	var read struct {
		Options []string `json:"data_processing_options"`
		Country *int     `json:"data_processing_options_country"`
		State   *int     `json:"data_processing_options_state"`
		Limited bool     `json:"limited_data_use"`
		OptOut  bool     `json:"opt_out"`
		Custom  struct {
			OptOutType string `json:"opt_out_type"`
		} `json:"custom_data"`
		AdStorageConsent string            `json:"adStorageConsent"`
		Consent          map[string]string `json:"consent"`
		UserData         *struct{}         `json:"user_data"`
		User             struct {
			Processing struct {
				Modes []string `json:"modes"`
			} `json:"data_processing_options"`
		} `json:"user"`
	}
	if kind == platforms.TypeWebhook || kind == platforms.TypeLog || kind == platforms.TypeS3 {
		return ""
	}
	if err := json.Unmarshal(body, &read); err != nil {
		t.Fatal(err)
	}
	switch kind {
	case platforms.TypeMicrosoft:
		return read.AdStorageConsent
	case platforms.TypeMeta:
		if read.Options != nil {
			return fmt.Sprint(read.Options, *read.Country, *read.State)
		}
	case platforms.TypeTikTok:
		if read.Limited {
			return "limited_data_use"
		}
	case platforms.TypePinterest, platforms.TypeOpenAI:
		if read.OptOut || read.Custom.OptOutType != "" {
			return fmt.Sprintf("%v %s", read.OptOut, read.Custom.OptOutType)
		}
	case platforms.TypeSnapchat:
		if read.Options != nil {
			return fmt.Sprint(read.Options)
		}
	case platforms.TypeReddit:
		if read.User.Processing.Modes != nil {
			return fmt.Sprint(read.User.Processing.Modes)
		}
	case platforms.TypeGoogle:
		words := []string{}
		for _, name := range slices.Sorted(maps.Keys(read.Consent)) {
			words = append(words, name+" "+read.Consent[name])
		}
		return strings.Join(words, ", ")
	case platforms.TypeGA4:
		words := []string{}
		for _, name := range slices.Sorted(maps.Keys(read.Consent)) {
			words = append(words, name+" "+read.Consent[name])
		}
		if read.UserData != nil {
			words = append(words, "with hashes")
		}
		if form := strings.Join(words, ", "); form != "with hashes" {
			return form
		}
	}
	return ""
}

// checkStored compares what is stored of an event's identifiers with what somebody needs.
func checkStored(t *testing.T, seed uint64, rules config.Consent, v *visitor, e event.Event) {
	t.Helper()
	want := event.Needed{ClientID: true, UserID: true, SessionID: true}
	anonymous := v.denies(rules, "analytics_storage", nil)
	if anonymous {
		want = event.Needed{}
		for i := range reached {
			if ruling(&reached[i], rules, v).reason != "" {
				continue
			}
			switch reached[i].Type {
			case platforms.TypeMeta, platforms.TypeTikTok, platforms.TypePinterest,
				platforms.TypeSnapchat, platforms.TypeReddit,
				platforms.TypeMicrosoft, platforms.TypeLinkedIn,
				platforms.TypeKlaviyo, platforms.TypeOpenAI:
				want.ClientID, want.UserID = true, true
			case platforms.TypeGA4, platforms.TypeMixpanel, platforms.TypeAmplitude,
				platforms.TypePostHog, platforms.TypeSegment:
				want = event.Needed{ClientID: true, UserID: true, SessionID: true}
			}
		}
	}
	got := event.Needed{ClientID: e.ClientID != "", UserID: e.UserID != "", SessionID: e.SessionID != ""}
	if diff := cmp.Diff(want, got); diff != "" || e.Anonymous != anonymous {
		t.Errorf("seed %d: stored as anonymous: %v, want %v; identifiers (-want +got):\n%s\n%s", seed, e.Anonymous, anonymous, diff, v)
	}
	if _, somebody := e.Whose("default/shop"); somebody == anonymous {
		t.Errorf("seed %d: the event is somebody's: %v", seed, somebody)
	}
}
