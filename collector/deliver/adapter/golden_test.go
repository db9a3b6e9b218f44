package adapter_test

import (
	"bytes"
	"flag"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/weir-dev/weir/collector/config"
	"github.com/weir-dev/weir/collector/deliver/adapter"
	"github.com/weir-dev/weir/collector/deliver/fakes/fakestest"
	"github.com/weir-dev/weir/collector/event/envelope"
	"github.com/weir-dev/weir/collector/platforms"
)

var update = flag.Bool("update", false, "write the golden files anew")

// The credentials of every golden pair.
const (
	accessToken   = "access-token-for-tests"
	signingSecret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
)

// snapPixel is the id of a Snap Pixel.
const snapPixel = "1ec32188-754e-4be2-8e55-c949a984a39f"

var credentials = map[string]string{
	"accessToken": accessToken, "apiSecret": "api-secret-for-tests", "conversionToken": "conversion-token-for-tests",
	"serviceAccountUsername": "weir.abc123.mp-service-account", "serviceAccountSecret": "service-account-secret-for-tests",
	"signingSecret": signingSecret, "projectToken": "phc_project-token-for-tests", "writeKey": "write-key-for-tests", "apiKey": "api-key-for-tests",
	"serviceAccountKey": fakestest.ServiceAccountKey(),
	"accessKeyID":       "access-key-for-tests", "secretAccessKey": "secret-key-for-tests",
}

// configured is a platform of any type.
func configured(kind platforms.Type) platforms.Platform {
	settings := map[platforms.Type]platforms.Settings{
		platforms.TypeMeta:      {Meta: &platforms.Meta{PixelID: "1"}},
		platforms.TypeGA4:       {GA4: &platforms.GA4{MeasurementID: "G-1"}},
		platforms.TypeTikTok:    {TikTok: &platforms.TikTok{EventSourceID: "C1"}},
		platforms.TypePinterest: {Pinterest: &platforms.Pinterest{AdAccountID: "1"}},
		platforms.TypeMixpanel:  {Mixpanel: &platforms.Mixpanel{ProjectID: "1"}},
		platforms.TypeS3:        {S3: &platforms.S3{Bucket: "shop-events", Region: "eu-central-1"}},
		platforms.TypeWebhook:   {Webhook: &platforms.Webhook{URL: "https://example.com"}},
		platforms.TypeSnapchat:  {Snapchat: &platforms.Snapchat{PixelID: snapPixel}},
		platforms.TypeReddit:    {Reddit: &platforms.Reddit{PixelID: "a2_1"}},
		platforms.TypeMicrosoft: {Microsoft: &platforms.Microsoft{TagID: "1"}},
		platforms.TypeKlaviyo:   {Klaviyo: &platforms.Klaviyo{}},
		platforms.TypeAmplitude: {Amplitude: &platforms.Amplitude{}},
		platforms.TypePostHog:   {PostHog: &platforms.PostHog{}},
		platforms.TypeSegment:   {Segment: &platforms.Segment{}},
		platforms.TypeOpenAI:    {OpenAI: &platforms.OpenAI{PixelID: "px-1"}},
		platforms.TypeGoogle:    {Google: &platforms.Google{AccountID: "1"}},
	}
	return platforms.Platform{Name: "p", Type: kind, Settings: settings[kind]}
}

// ruleOf is the platform's rule where the Property has none of its own.
func ruleOf(cfg platforms.Platform) platforms.ConsentRule { return new(config.Consent).Rule(&cfg) }

// requestCase is a golden pair's input: what a customer's server sent and how the platform is configured.
type requestCase struct {
	Config     platforms.Platform `json:"config"`
	Consent    config.Consent     `json:"consent"`
	Now        time.Time          `json:"now"`
	ReceivedAt time.Time          `json:"received_at"`
	Envelopes  []jsontext.Value   `json:"envelopes"`
}

// requestWant is its output.
type requestWant struct {
	Events   []mapped  `json:"events"`
	Requests []request `json:"requests"`
}

type mapped struct {
	Class   string     `json:"class"`
	Reason  string     `json:"reason,omitzero"`
	Expires *time.Time `json:"expires,omitzero"`
}

type request struct {
	Method string              `json:"method,omitzero"`
	URL    string              `json:"url,omitzero"`
	Header http.Header         `json:"header,omitempty"`
	Body   jsontext.Value      `json:"body,omitzero"`
	Lines  []map[string]string `json:"lines,omitempty"`
}

func TestRequests(t *testing.T) {
	for _, path := range pairs(t, "testdata/*/requests/*.in.json") {
		t.Run(name(path), func(t *testing.T) {
			var in requestCase
			readJSON(t, path, &in)
			opened, err := adapter.Open(in.Config, credentials, in.Consent.Rule(&in.Config))
			if err != nil {
				t.Fatal(err)
			}
			var want requestWant
			var payloads []adapter.Payload
			for i, body := range in.Envelopes {
				payload, verdict := opened.Map(accept(t, in, body, i))
				outcome := mapped{Class: className(verdict.Class), Reason: verdict.Reason}
				if verdict.Class == adapter.Undecided {
					payloads = append(payloads, payload)
					outcome.Expires = &payload.Expires
				}
				want.Events = append(want.Events, outcome)
			}
			for len(payloads) > 0 {
				n := min(opened.Limits.Events, len(payloads))
				if other := slices.IndexFunc(payloads, func(p adapter.Payload) bool { return p.Group != payloads[0].Group }); other >= 0 {
					n = min(n, other)
				}
				built := opened.Build(payloads[:n], in.Now)
				forbidRawPerson(t, built)
				want.Requests = append(want.Requests, request{built.Method, built.URL, built.Header, built.Body, lines(built)})
				payloads = payloads[n:]
			}
			compareGolden(t, path, want)
		})
	}
}

// What shows who sends is in no address, which proxies and logs on the way keep; but where the platform takes it nowhere else.
func TestNoCredentialIsPartOfAnAddress(t *testing.T) {
	exceptions := map[platforms.Type][]string{
		platforms.TypeGA4:      {"apiSecret"},   // the Measurement Protocol documents the parameter api_secret alone
		platforms.TypeSnapchat: {"accessToken"}, // Snapchat documents the parameter access_token alone
	}
	for _, kind := range platforms.Types() {
		t.Run(string(kind), func(t *testing.T) {
			opened, err := adapter.Open(configured(kind), credentials, ruleOf(configured(kind)))
			if err != nil {
				t.Fatal(err)
			}
			traits, _ := kind.Traits()
			built := opened.Build([]adapter.Payload{{Body: []byte("{}"), MessageID: "019a9f3c-7a00-7000-8000-000000000001"}}, time.Now())
			var got []string
			for _, key := range traits.Credentials {
				if strings.Contains(built.URL, url.QueryEscape(credentials[key])) {
					got = append(got, key)
				}
			}
			if diff := cmp.Diff(exceptions[kind], got); diff != "" {
				t.Errorf("credentials in the address (-want +got):\n%s", diff)
			}
		})
	}
}

// accept takes an envelope the way the collector does.
func accept(t *testing.T, in requestCase, body []byte, i int) *adapter.Event {
	t.Helper()
	sent := new(envelope.Envelope)
	if err := sent.Decode(body); err != nil {
		t.Fatal(err)
	}
	valid, errs := sent.Validate(in.ReceivedAt, nil)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	property := config.Property{Platforms: []platforms.Platform{in.Config}}
	accepted := envelope.Pseudonymise(valid, envelope.Acceptance{
		DeliveryID: uuid.MustParse(fmt.Sprintf("019a9f3c-7a00-7000-8000-%012d", i+1)),
		Variants:   property.Variants(), AccountVariants: property.AccountVariants(),
		Platforms: property.PlatformNames(),
	})
	return &adapter.Event{Event: accepted, ReceivedAt: in.ReceivedAt}
}

// forbidRawPerson fails where a request shows the test person, in any case.
func forbidRawPerson(t *testing.T, r adapter.Request) {
	t.Helper()
	text := strings.ToLower(fmt.Sprint(r.URL, r.Header, string(r.Body), r.Lines))
	for _, raw := range []string{"ada@example.com", "ada%40example.com", "15550100", "lovelace"} {
		if strings.Contains(text, raw) {
			t.Errorf("the request shows the person's %q", raw)
		}
	}
}

func lines(r adapter.Request) []map[string]string {
	var list []map[string]string
	for _, line := range r.Lines {
		fields := map[string]string{}
		for _, attr := range line {
			fields[attr.Key] = slog.AnyValue(attr.Value).Resolve().String()
		}
		list = append(list, fields)
	}
	return list
}

// answerCase is a golden pair's input: an answer to a request with so many events.
type answerCase struct {
	Type   platforms.Type    `json:"type"`
	Events int               `json:"events"`
	Status int               `json:"status"`
	Header map[string]string `json:"header"`
	Body   string            `json:"body"`
}

type verdict struct {
	Class  string `json:"class"`
	Reason string `json:"reason,omitzero"`
	After  string `json:"after,omitzero"`
	Ticket string `json:"ticket,omitzero"`
}

func TestAnswers(t *testing.T) {
	at := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	for _, path := range pairs(t, "testdata/*/answers/*.in.json") {
		t.Run(name(path), func(t *testing.T) {
			var in answerCase
			readJSON(t, path, &in)
			opened, err := adapter.Open(configured(in.Type), credentials, ruleOf(configured(in.Type)))
			if err != nil {
				t.Fatal(err)
			}
			header := http.Header{}
			for key, value := range in.Header {
				header.Set(key, value)
			}
			verdicts := opened.Classify(adapter.Response{Status: in.Status, Header: header, Body: []byte(in.Body), At: at}, in.Events)
			var want []verdict
			for _, v := range verdicts {
				out := verdict{Class: className(v.Class), Reason: v.Reason, Ticket: v.Ticket}
				if v.After > 0 {
					out.After = v.After.String()
				}
				want = append(want, out)
			}
			if len(verdicts) != in.Events {
				t.Errorf("got %d verdicts on %d events", len(verdicts), in.Events)
			}
			compareGolden(t, path, want)
		})
	}
}

func className(c adapter.Class) string {
	return [...]string{
		"undecided", "delivered", "retry", "throttle", "auth", "config", "isolate", "split", "permanent", "expired", "skipped", "queued", "waiting",
	}[c]
}

func pairs(t *testing.T, pattern string) []string {
	t.Helper()
	paths, err := filepath.Glob(pattern)
	if err != nil || len(paths) == 0 {
		t.Fatalf("no golden pairs match %s: %v", pattern, err)
	}
	return paths
}

func name(path string) string {
	name := strings.TrimSuffix(strings.TrimPrefix(path, "testdata/"), ".in.json")
	return strings.ReplaceAll(name, "-", " ")
}

func readJSON(t *testing.T, path string, into any) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, into, json.RejectUnknownMembers(true)); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}

func compareGolden(t *testing.T, in string, value any) {
	t.Helper()
	got, err := json.Marshal(value, json.Deterministic(true), jsontext.WithIndent("  "))
	if err != nil {
		t.Fatal(err)
	}
	got = append(got, '\n')
	path := strings.TrimSuffix(in, ".in.json") + ".out.json"
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(bytes.TrimSpace(want)), string(bytes.TrimSpace(got))); diff != "" {
		t.Errorf("%s (-want +got; -update writes it anew):\n%s", path, diff)
	}
}
