package adapter_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-dev/weir/collector/deliver/adapter"
	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/platforms"
)

func TestOpenNamesWhatIsWrong(t *testing.T) {
	webhook := func(url string) platforms.Platform {
		return platforms.Platform{Name: "crm", Type: platforms.TypeWebhook, Settings: platforms.Settings{Webhook: &platforms.Webhook{URL: url}}}
	}
	hook := webhook("https://example.com/hook")
	for name, test := range map[string]struct {
		cfg         platforms.Platform
		credentials map[string]string
		want        string
	}{
		"an unknown type": {
			platforms.Platform{Name: "x", Type: "Fax"}, nil,
			fmt.Sprintf(`platform "x": type "Fax" is unknown; the types are %v`, platforms.Types()),
		},
		"a missing key": {
			platforms.Platform{Name: "meta", Type: platforms.TypeMeta, Settings: platforms.Settings{Meta: &platforms.Meta{PixelID: "1"}}}, nil,
			`platform "meta": its Secret must have the key accessToken`,
		},
		"a key of white space": {
			platforms.Platform{Name: "meta", Type: platforms.TypeMeta, Settings: platforms.Settings{Meta: &platforms.Meta{PixelID: "1"}}}, map[string]string{"accessToken": " \n"},
			`platform "meta": its Secret must have the key accessToken`,
		},
		"a missing member": {
			platforms.Platform{Name: "meta", Type: platforms.TypeMeta}, credentials,
			`platform "meta": meta must be set for a platform of type Meta`,
		},
		"a missing pixel": {
			platforms.Platform{Name: "meta", Type: platforms.TypeMeta, Settings: platforms.Settings{Meta: &platforms.Meta{}}}, credentials,
			`platform "meta": meta.pixelID must be the digits of a pixel's or dataset's id, in quotes`,
		},
		"a pixel with a path and a test code with a quote in it": {
			platforms.Platform{Name: "meta", Type: platforms.TypeMeta, Settings: platforms.Settings{Meta: &platforms.Meta{PixelID: "12 34/5", TestEventCode: `TEST"1`}}}, credentials,
			`platform "meta": meta.pixelID must be the digits of a pixel's or dataset's id, in quotes` + "\n" +
				`platform "meta": meta.testEventCode must be a code of Meta's Events Manager, such as TEST12345, or absent`,
		},
		"a version with a path in it": {
			platforms.Platform{Name: "meta", Type: platforms.TypeMeta, APIVersion: "v25.0/me", Settings: platforms.Settings{Meta: &platforms.Meta{PixelID: "1"}}}, credentials,
			`platform "meta": apiVersion must be a version as Meta writes it, such as v26.0`,
		},
		"a version where there is none to choose": {
			platforms.Platform{Name: "console", Type: platforms.TypeLog, APIVersion: "v1"}, credentials,
			`platform "console": apiVersion ` + platforms.TypeLog.VersionRule(),
		},
		"a missing data stream": {
			platforms.Platform{Name: "analytics", Type: platforms.TypeGA4, Settings: platforms.Settings{GA4: &platforms.GA4{}}}, credentials,
			`platform "analytics": ga4.measurementID must be the id of a web data stream, such as G-ABC123DEF4`,
		},
		"a missing event source": {
			platforms.Platform{Name: "tiktok", Type: platforms.TypeTikTok, Settings: platforms.Settings{TikTok: &platforms.TikTok{}}}, credentials,
			`platform "tiktok": tiktok.eventSourceID must be a pixel's code: letters and digits, such as C4A1B2C3D4E5F6G7H8I9`,
		},
		"a missing ad account": {
			platforms.Platform{Name: "pinterest", Type: platforms.TypePinterest, Settings: platforms.Settings{Pinterest: &platforms.Pinterest{}}}, credentials,
			`platform "pinterest": pinterest.adAccountID must be the digits of an ad account's id, in quotes`,
		},
		"a pixel of another platform": {
			platforms.Platform{Name: "snap", Type: platforms.TypeSnapchat, Settings: platforms.Settings{Snapchat: &platforms.Snapchat{PixelID: "42"}}}, credentials,
			`platform "snap": snapchat.pixelID must be the id of a Snap Pixel, such as 1ec32188-754e-4be2-8e55-c949a984a39f`,
		},
		"a pixel and a test id with a quote in them": {
			platforms.Platform{Name: "reddit", Type: platforms.TypeReddit, Settings: platforms.Settings{Reddit: &platforms.Reddit{PixelID: `a"2`, TestID: `t"2`}}}, credentials,
			`platform "reddit": reddit.pixelID must be the id of a Reddit pixel, such as a2_abc123def456` + "\n" +
				`platform "reddit": reddit.testID must be a test id of Reddit's Events Manager, such as t2_abc123, or absent`,
		},
		"a missing tag": {
			platforms.Platform{Name: "microsoft", Type: platforms.TypeMicrosoft, Settings: platforms.Settings{Microsoft: &platforms.Microsoft{}}}, credentials,
			`platform "microsoft": microsoft.tagID must be the digits of a UET tag's id, in quotes`,
		},
		"a name where LinkedIn has ids of rules": {
			platforms.Platform{Name: "linkedin", Type: platforms.TypeLinkedIn, EventNames: map[string]string{"lead": "104012", "purchase": "Purchase"}}, credentials,
			`platform "linkedin": eventNames.purchase must be the id of a conversion rule of LinkedIn's: digits, in quotes`,
		},
		"a missing project": {
			platforms.Platform{Name: "product", Type: platforms.TypeMixpanel, Settings: platforms.Settings{Mixpanel: &platforms.Mixpanel{}}}, credentials,
			`platform "product": mixpanel.projectID must be the digits of a project's id, in quotes`,
		},
		"a region that the platform does not have": {
			platforms.Platform{Name: "product", Type: platforms.TypeMixpanel, Settings: platforms.Settings{Mixpanel: &platforms.Mixpanel{ProjectID: "1", Region: "MARS"}}}, credentials,
			`platform "product": mixpanel.region must be one of US, EU, IN, or absent`,
		},
		"a region that Amplitude does not have": {
			platforms.Platform{Name: "product", Type: platforms.TypeAmplitude, Settings: platforms.Settings{Amplitude: &platforms.Amplitude{Region: "IN"}}}, credentials,
			`platform "product": amplitude.region must be one of US, EU, or absent`,
		},
		"a missing key of Klaviyo's": {
			configured(platforms.TypeKlaviyo), nil,
			`platform "p": its Secret must have the key apiKey`,
		},
		"a key of Amplitude's that is no text, which is not shown": {
			configured(platforms.TypeAmplitude), map[string]string{"apiKey": "hush\xff"},
			`platform "p": apiKey must be text in UTF-8`,
		},
		"a region and a host of one's own, of PostHog": {
			platforms.Platform{Name: "product", Type: platforms.TypePostHog, Settings: platforms.Settings{PostHog: &platforms.PostHog{Region: "EU", Host: "https://a.example.com"}}}, credentials,
			`platform "product": posthog.host must be absent where posthog.region is set`,
		},
		"a region and a host of one's own, of Segment": {
			platforms.Platform{Name: "cdp", Type: platforms.TypeSegment, Settings: platforms.Settings{Segment: &platforms.Segment{Region: "US", Host: "https://a.example.com"}}}, credentials,
			`platform "cdp": segment.host must be absent where segment.region is set`,
		},
		"a host with a query": {
			platforms.Platform{Name: "cdp", Type: platforms.TypeSegment, Settings: platforms.Settings{Segment: &platforms.Segment{Host: "https://a.example.com/?a=1"}}}, credentials,
			`platform "cdp": segment.host must be a URL without a query and a fragment: a path is added to it`,
		},
		"a token that is no text, which is not shown": {
			configured(platforms.TypePostHog), map[string]string{"projectToken": "hush\xff"},
			`platform "p": projectToken must be valid UTF-8`,
		},
		"a missing pixel of OpenAI's": {
			platforms.Platform{Name: "chatgpt", Type: platforms.TypeOpenAI, Settings: platforms.Settings{OpenAI: &platforms.OpenAI{}}}, credentials,
			`platform "chatgpt": openai.pixelID must be the id of a pixel`,
		},
		"one of two keys": {
			configured(platforms.TypeMixpanel), map[string]string{"serviceAccountUsername": "weir"},
			`platform "p": its Secret must have the key serviceAccountSecret`,
		},
		"a URL of another scheme": {
			webhook("ftp://example.com"), credentials,
			`platform "crm": webhook.url must be an http or https URL with a host, such as https://crm.example.com/hook`,
		},
		"a relative URL": {
			webhook("/hook"), credentials,
			`platform "crm": webhook.url must be an http or https URL with a host, such as https://crm.example.com/hook`,
		},
		"a URL that cannot be read, whose password is not shown": {
			webhook("https://user:hush@exa mple.com"), credentials,
			`platform "crm": webhook.url must be an http or https URL with a host, such as https://crm.example.com/hook`,
		},
		"a secret that is no base64, which is not shown": {
			hook, map[string]string{"signingSecret": "whsec_hush!"},
			`platform "crm": signingSecret must be whsec_ and 24 to 64 bytes in base64, or several such with spaces between them`,
		},
		"a secret that is too short": {
			hook, map[string]string{"signingSecret": "whsec_aHVzaA=="},
			`platform "crm": signingSecret must be whsec_ and 24 to 64 bytes in base64, or several such with spaces between them`,
		},
		"a secret without its prefix, which is not shown": {
			hook, map[string]string{"signingSecret": strings.TrimPrefix(signingSecret, "whsec_")},
			`platform "crm": signingSecret must be whsec_ and 24 to 64 bytes in base64, or several such with spaces between them`,
		},
		"the second of two secrets": {
			hook, map[string]string{"signingSecret": signingSecret + " whsec_aHVzaA=="},
			`platform "crm": signingSecret must be whsec_ and 24 to 64 bytes in base64, or several such with spaces between them`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := adapter.Open(test.cfg, test.credentials, ruleOf(test.cfg))
			if err == nil {
				t.Fatal("got no error")
			}
			if diff := cmp.Diff(test.want, err.Error()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// The vector is the one that the Standard Webhooks libraries publish.
func TestWebhookSignature(t *testing.T) {
	const vector = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
	for name, test := range map[string]struct {
		secrets string
		want    []string
	}{
		"by one secret":                        {signingSecret, []string{vector}},
		"by a secret that ends in a line feed": {signingSecret + "\n", []string{vector}},
		"by two secrets while they are rotated": {
			signingSecret + " whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=",
			[]string{vector, "v1,woH/1mJtZGSMCmpFTxRYbStS24eLLD/oXIYr4PYyZ7g="},
		},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := platforms.Platform{Name: "crm", Type: platforms.TypeWebhook, Settings: platforms.Settings{Webhook: &platforms.Webhook{URL: "https://example.com"}}}
			opened, err := adapter.Open(cfg, map[string]string{"signingSecret": test.secrets}, ruleOf(cfg))
			if err != nil {
				t.Fatal(err)
			}
			payload := adapter.Payload{MessageID: "msg_p5jXN8AQM9LWM0D4loKWxJek", Body: []byte(`{"test": 2432232314}`)}
			request := opened.Build([]adapter.Payload{payload}, time.Unix(1614265330, 0))
			want := http.Header{
				"Content-Type":      {"application/json"},
				"User-Agent":        {"Weir"},
				"Webhook-Id":        {"msg_p5jXN8AQM9LWM0D4loKWxJek"},
				"Webhook-Timestamp": {"1614265330"},
				"Webhook-Signature": {strings.Join(test.want, " ")},
			}
			if diff := cmp.Diff(want, request.Header); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestAnEventIsGivenUp(t *testing.T) {
	received := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	for name, test := range map[string]struct {
		cfg      platforms.Platform
		occurred time.Time
		want     time.Time
	}{
		"by Meta an hour before its seven days are over": {
			platforms.Platform{Name: "p", Type: platforms.TypeMeta, Settings: platforms.Settings{Meta: &platforms.Meta{PixelID: "1"}}}, time.Time{},
			received.Add(7*24*time.Hour - time.Hour),
		},
		"by Meta by its own time, not by that of its receipt": {
			platforms.Platform{Name: "p", Type: platforms.TypeMeta, Settings: platforms.Settings{Meta: &platforms.Meta{PixelID: "1"}}}, received.Add(-48 * time.Hour),
			received.Add(5*24*time.Hour - time.Hour),
		},
		"by GA4 an hour before its three days are over": {
			configured(platforms.TypeGA4), time.Time{}, received.Add(72*time.Hour - time.Hour),
		},
		"by Mixpanel seven days after its receipt": {
			configured(platforms.TypeMixpanel), received.Add(-48 * time.Hour), received.Add(7 * 24 * time.Hour),
		},
		"by Klaviyo seven days after its receipt": {
			configured(platforms.TypeKlaviyo), received.Add(-48 * time.Hour), received.Add(7 * 24 * time.Hour),
		},
		"by Amplitude seven days after its receipt": {
			configured(platforms.TypeAmplitude), received.Add(-48 * time.Hour), received.Add(7 * 24 * time.Hour),
		},
		"by OpenAI an hour before its seven days are over": {
			configured(platforms.TypeOpenAI), time.Time{}, received.Add(7*24*time.Hour - time.Hour),
		},
		"by PostHog and Segment seven days after its receipt": {
			configured(platforms.TypePostHog), received.Add(-48 * time.Hour), received.Add(7 * 24 * time.Hour),
		},
		"by a Webhook seven days after its receipt, however old it was": {
			platforms.Platform{Name: "p", Type: platforms.TypeWebhook, Settings: platforms.Settings{Webhook: &platforms.Webhook{URL: "https://example.com"}}}, received.Add(-48 * time.Hour),
			received.Add(7 * 24 * time.Hour),
		},
	} {
		t.Run(name, func(t *testing.T) {
			opened, err := adapter.Open(test.cfg, credentials, ruleOf(test.cfg))
			if err != nil {
				t.Fatal(err)
			}
			e := event.Event{ID: "1", Name: "lead", ClientID: "1.2", OccurredAt: test.occurred}
			payload, verdict := opened.Map(&adapter.Event{Event: e, ReceivedAt: received})
			if verdict.Class != adapter.Undecided {
				t.Fatalf("got verdict %+v", verdict)
			}
			if !payload.Expires.Equal(test.want) {
				t.Errorf("got %s, want %s", payload.Expires, test.want)
			}
		})
	}
}

func TestAnItemWhoseOwnMembersCannotBeRenderedFailsItsEventAlone(t *testing.T) {
	cfg := platforms.Platform{Name: "crm", Type: platforms.TypeWebhook, Settings: platforms.Settings{Webhook: &platforms.Webhook{URL: "https://example.com"}}}
	opened, err := adapter.Open(cfg, credentials, ruleOf(cfg))
	if err != nil {
		t.Fatal(err)
	}
	e := event.Event{ID: "1", Name: "lead", Contents: []event.Item{{ID: "1", Extra: []byte(`{"id":2}`)}}}
	_, got := opened.Map(&adapter.Event{Event: e})
	want := adapter.Verdict{Class: adapter.Permanent, Reason: "unrenderable"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// Answers come from strangers: whatever they hold, there is a verdict for every event, and its reason is a
// short code that repeats nothing of the body.
func FuzzClassify(f *testing.F) {
	f.Add(200, `{"events_received":1}`, "", 1)
	f.Add(400, `{"error":{"code":100,"error_subcode":2804003}}`, "", 3)
	f.Add(429, "", "12", 2)
	f.Add(200, `{"code":20001,"data":{"failed_events":[{"order_in_batch":1}]}}`, "", 2)
	f.Add(422, `{"events":[{"status":"processed"},{"status":"failed"}]}`, "", 2)
	f.Add(400, `{"num_records_imported":1,"failed_records":[{"index":0,"field":"properties.time"}]}`, "", 2)
	f.Add(200, `{"eventsReceived":1,"error":{"details":[{"index":1,"propertyName":"eventTime"}]}}`, "", 2)
	f.Add(200, `{"elements":[{"status":201},{"status":422}]}`, "", 2)
	f.Add(422, "{\"message\":\"Index: 1, ERROR :: /user :: x\\nIndex: 0, ERROR :: y\"}", "", 3)
	f.Add(400, `{"message":"CONVERSIONS_API, indices [0, 2] (0-indexed)"}`, "", 3)
	f.Add(400, `{"errors":[{"detail":"x","source":{"pointer":"/data/attributes/events-bulk-create/data/1/attributes/events/data/0/attributes/time"}}]}`, "", 3)
	f.Add(400, `{"error":"x","events_with_invalid_fields":{"time":[1]},"silenced_events":[0],"throttled_events":[2]}`, "", 3)
	f.Add(502, "<html>", "Fri, 20 Nov 2026 12:00:42 GMT", 5)
	f.Fuzz(func(t *testing.T, status int, body, retryAfter string, n int) {
		n = 1 + (n&0x7fffffff)%100
		response := adapter.Response{Status: status, Header: http.Header{"Retry-After": {retryAfter}}, Body: []byte(body), At: time.Unix(1_800_000_000, 0)}
		for _, kind := range platforms.Types() {
			opened, err := adapter.Open(configured(kind), credentials, ruleOf(configured(kind)))
			if err != nil {
				t.Fatal(err)
			}
			verdicts := opened.Classify(response, n)
			if len(verdicts) != n {
				t.Fatalf("%s: got %d verdicts on %d events", kind, len(verdicts), n)
			}
			for _, v := range verdicts {
				if v.Class == adapter.Undecided || v.After < 0 || v.After > time.Hour {
					t.Errorf("%s: got verdict %+v", kind, v)
				}
				if (v.Class == adapter.Isolate || v.Class == adapter.Split) && n == 1 {
					t.Errorf("%s: a single event cannot be %+v", kind, v)
				}
				if strings.Trim(v.Reason, "abcdefghijklmnopqrstuvwxyz_0123456789-") != "" || len(v.Reason) > 64 {
					t.Errorf("%s: reason %q is no short code", kind, v.Reason)
				}
			}
		}
	})
}
