package adapter_test

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/weir-dev/weir/collector/deliver/adapter"
	"github.com/weir-dev/weir/collector/deliver/fakes/fakestest"
	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/platforms"
)

// googleSchema compiles one of the messages of Google's own description.
func googleSchema(t *testing.T, message string) *jsonschema.Schema {
	t.Helper()
	const path = "testdata/google/datamanager-v1.schema.json"
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	compiler := jsonschema.NewCompiler()
	compiler.AssertFormat()
	if err := compiler.AddResource(path, document); err != nil {
		t.Fatal(err)
	}
	schema, err := compiler.Compile(path + "#/$defs/" + message)
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

func validate(t *testing.T, schema *jsonschema.Schema, body []byte) {
	t.Helper()
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if err := schema.Validate(value); err != nil {
		t.Errorf("%v\n%s", err, body)
	}
}

func TestGoogleRequestsAreOfGooglesOwnDescription(t *testing.T) {
	schema := googleSchema(t, "IngestEventsRequest")
	judged := 0
	for _, path := range pairs(t, "testdata/google/requests/*.out.json") {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".out.json"), func(t *testing.T) {
			var want requestWant
			readJSON(t, path, &want)
			for _, made := range want.Requests {
				validate(t, schema, made.Body)
				judged++
			}
		})
	}
	if judged < 30 {
		t.Errorf("%d requests were judged", judged)
	}
	for _, wrong := range []string{`{"events":[{"transaction_id":"1"}]}`, `{"events":[{"cartData":{"items":[{"quantity":1}]}}]}`, `{"encoding":"hex"}`} {
		value, err := jsonschema.UnmarshalJSON(strings.NewReader(wrong))
		if err != nil {
			t.Fatal(err)
		}
		if schema.Validate(value) == nil {
			t.Errorf("the description takes %s", wrong)
		}
	}
}

func TestGoogleAnswersInTheTestsAreOfGooglesOwnDescription(t *testing.T) {
	for pattern, message := range map[string]string{"answers/queued*": "IngestEventsResponse", "statuses/[fps]*": "RetrieveRequestStatusResponse"} {
		schema := googleSchema(t, message)
		for _, path := range pairs(t, "testdata/google/"+pattern+".in.json") {
			var in struct {
				Body   string `json:"body"`
				Status int    `json:"status"`
			}
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal(text, &in); err != nil {
				t.Fatal(err)
			}
			if in.Status == 200 {
				validate(t, schema, []byte(in.Body))
			}
		}
	}
}

// statusCase is a golden pair's input: an answer to a look at so many events, refunds or not, that were queued so long ago with so
// many in all.
type statusCase struct {
	Events int    `json:"events"`
	Refund bool   `json:"refund"`
	Sent   int    `json:"sent"`
	Age    string `json:"age"`
	Status int    `json:"status"`
	Body   string `json:"body"`
}

func TestStatuses(t *testing.T) {
	opened := openGoogle(t, configured(platforms.TypeGoogle))
	tracker, ok := opened.Adapter.(adapter.Tracker)
	if !ok {
		t.Fatal("the adapter does not track what it sends")
	}
	for _, path := range pairs(t, "testdata/google/statuses/*.in.json") {
		t.Run(name(path), func(t *testing.T) {
			var in statusCase
			readJSON(t, path, &in)
			age, err := time.ParseDuration(in.Age)
			if err != nil {
				t.Fatal(err)
			}
			var want []verdict
			look := adapter.Look{Refunds: slices.Repeat([]bool{in.Refund}, in.Events), Sent: in.Sent, Group: "1/7", Age: age}
			for _, v := range tracker.Tracked(adapter.Response{Status: in.Status, Body: []byte(in.Body)}, look) {
				out := verdict{Class: className(v.Class), Reason: v.Reason}
				if v.After > 0 {
					out.After = v.After.String()
				}
				want = append(want, out)
			}
			if len(want) != in.Events {
				t.Errorf("got %d verdicts on %d events", len(want), in.Events)
			}
			compareGolden(t, path, want)
		})
	}
}

func openGoogle(t *testing.T, cfg platforms.Platform) *adapter.Platform {
	t.Helper()
	opened, err := adapter.Open(cfg, credentials, ruleOf(cfg))
	if err != nil {
		t.Fatal(err)
	}
	return opened
}

func TestGoogleIsAskedForAStatus(t *testing.T) {
	tracker, ok := openGoogle(t, configured(platforms.TypeGoogle)).Adapter.(adapter.Tracker)
	if !ok {
		t.Fatal("the adapter does not track what it sends")
	}
	got := tracker.Track("a&b=c/1")
	want := adapter.Request{
		Method: "GET", URL: "https://datamanager.googleapis.com/v1/requestStatus:retrieve?requestId=a%26b%3Dc%2F1", Header: map[string][]string{"User-Agent": {"Weir"}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestGoogleRestatesAPurchase(t *testing.T) {
	cfg := configured(platforms.TypeGoogle)
	cfg.EventNames = map[string]string{"purchase": "7001"}
	opened := openGoogle(t, cfg)
	restater, ok := opened.Adapter.(adapter.Restater)
	if !ok {
		t.Fatal("the adapter restates nothing")
	}
	received := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	refund := accept(t, requestCase{Config: cfg, ReceivedAt: received}, []byte(
		`{"event":"refund","event_id":"r-1","client_id":"1.2","user":{"email":"ada@example.com"},"data":{"value":9.9,"currency":"EUR","order_id":"A-1"}}`), 1)
	payload, verdict := opened.Map(refund)
	if verdict.Class != adapter.Undecided {
		t.Fatal(verdict)
	}
	amount := event.Amount(99_000)
	want := &adapter.Order{ID: "A-1", Refund: true, Value: &amount, Currency: "EUR", At: received, Target: "1/7001"}
	if diff := cmp.Diff(want, payload.Order); diff != "" {
		t.Errorf("its order (-want +got):\n%s", diff)
	}
	cfg.Google.Test = true
	checked, _ := openGoogle(t, cfg).Map(refund)
	if want.Target = "1/7001/test"; checked.Order.Target != want.Target {
		t.Errorf("one that is only checked has the target %q, want %q", checked.Order.Target, want.Target)
	}
	purchased := received.Add(-48 * time.Hour)
	early, verdict := restater.Restate(payload, 400_000, purchased, purchased.Add(-time.Hour))
	if verdict.Class != adapter.Undecided || !strings.Contains(string(early.Body), `"lastUpdatedTimestamp":"2026-11-18T12:00:00.000Z"`) {
		t.Errorf("restated by a clock that is late: %v, %s", verdict, early.Body)
	}
	restated, verdict := restater.Restate(payload, 400_000, purchased, received.Add(time.Hour))
	if verdict.Class != adapter.Undecided {
		t.Fatal(verdict)
	}
	var got map[string]jsontext.Value
	if err := json.Unmarshal(restated.Body, &got); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"transactionId": `"A-1"`, "conversionValue": "40", "currency": `"EUR"`, "eventTimestamp": `"2026-11-18T12:00:00.000Z"`,
		"lastUpdatedTimestamp": `"2026-11-20T13:00:00.000Z"`,
	} {
		if string(got[name]) != want {
			t.Errorf("%s is %s, want %s", name, got[name], want)
		}
	}
	validate(t, googleSchema(t, "IngestEventsRequest"), opened.Build([]adapter.Payload{restated}, received).Body)
}

func TestGoogleSettingsThatAreWrong(t *testing.T) {
	key := fakestest.ServiceAccountKey()
	with := func(old, instead string) string {
		if !strings.Contains(key, old) {
			t.Fatalf("%s is not in the key", old)
		}
		return strings.Replace(key, old, instead, 1)
	}
	ads := platforms.Google{AccountID: "1"}
	for name, test := range map[string]struct {
		google   platforms.Google
		names    map[string]string
		endpoint string
		key      string
		want     string
	}{
		"Analytics without a stream":            {google: platforms.Google{Product: "Analytics", AccountID: "1"}, key: key, want: "google.measurementID must be set for the product Analytics"},
		"Ads with a stream":                     {google: platforms.Google{AccountID: "1", MeasurementID: "G-1"}, key: key, want: "google.measurementID must be set for the product Analytics, and for no other"},
		"Analytics by a manager account":        {google: platforms.Google{Product: "Analytics", AccountID: "1", MeasurementID: "G-1", LoginAccountID: "2"}, key: key, want: "google.loginAccountID must be absent"},
		"a product that is none":                {google: platforms.Google{Product: "Maps", AccountID: "1"}, key: key, want: "google.product must be one of Ads, Analytics, or absent"},
		"a conversion action by its name":       {google: ads, names: map[string]string{"lead": "Lead"}, key: key, want: "eventNames.lead must be the id of a conversion action of Google's: digits, in quotes"},
		"a key that is no JSON":                 {google: ads, key: "PRIVATE", want: "must be the JSON key of a service account"},
		"a key of a person":                     {google: ads, key: with("service_account", "authorized_user"), want: `must have the type "service_account"`},
		"a key without an address":              {google: ads, key: with("client_email", "email"), want: "must have a client_email"},
		"a key that is broken":                  {google: ads, key: with("-----BEGIN PRIVATE KEY-----", "-----BEGIN"), want: "must have a private_key that is an RSA key in PEM"},
		"a key whose tokens come from anywhere": {google: ads, key: with("https://oauth2.googleapis.com/token", "https://169.254.169.254/token"), want: "must have a token_uri of Google's"},
		"a key whose tokens come in the clear":  {google: ads, key: with("https://oauth2", "http://oauth2"), want: "must have a token_uri of Google's"},
		"a key whose tokens come from a port":   {google: ads, key: with("googleapis.com/token", "googleapis.com:8443/token"), want: "must have a token_uri of Google's"},
		"a key whose host only looks like one":  {google: ads, key: with("oauth2.googleapis.com", "oauth2.googleapis.com.example"), want: "must have a token_uri of Google's"},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := platforms.Platform{Name: "p", Type: platforms.TypeGoogle, EventNames: test.names, Endpoint: test.endpoint, Settings: platforms.Settings{Google: &test.google}}
			_, err := adapter.Open(cfg, map[string]string{"serviceAccountKey": test.key}, ruleOf(cfg))
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
			if err != nil && strings.Contains(err.Error(), "PRIVATE") {
				t.Errorf("the error repeats the key: %v", err)
			}
		})
	}
}
