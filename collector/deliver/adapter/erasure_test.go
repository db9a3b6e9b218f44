package adapter

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-dev/weir/collector/platforms"
)

const anErasure, another = "3e1f8e44-5a5c-4c0e-9d0b-6b1f4b9a7c21", "9c4b7a52-0d55-4a39-8d52-0a3b1c2d3e4f"

var erasedAt = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// eraserOf opens a platform of a type with the keys that erasures need.
func eraserOf(t *testing.T, settings platforms.Settings, of platforms.Type) Eraser {
	t.Helper()
	p, err := Open(platforms.Platform{Name: "p", Type: of, Settings: settings}, map[string]string{
		"serviceAccountUsername": "weir", "serviceAccountSecret": "hush", "projectToken": "project-token", "gdprToken": "gdpr-token",
		"signingSecret": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
	}, platforms.ConsentRule{})
	if err != nil {
		t.Fatal(err)
	}
	eraser, err := p.Eraser()
	if err != nil {
		t.Fatal(err)
	}
	return eraser
}

func mixpanelIn(region platforms.Region) platforms.Settings {
	return platforms.Settings{Mixpanel: &platforms.Mixpanel{ProjectID: "42", Region: region}}
}

func requestsOf(t *testing.T, e Eraser, persons ...Person) []ErasureRequest {
	t.Helper()
	requests, err := e.Erase(persons, erasedAt)
	if err != nil {
		t.Fatal(err)
	}
	return requests
}

func TestMixpanelIsAskedToDeleteDistinctIDs(t *testing.T) {
	for region, host := range map[platforms.Region]string{"": "mixpanel.com", "US": "mixpanel.com", "EU": "eu.mixpanel.com", "IN": "in.mixpanel.com"} {
		requests := requestsOf(t, eraserOf(t, mixpanelIn(region), platforms.TypeMixpanel),
			Person{Erasure: anErasure, ClientIDs: []string{"1.2"}, UserIDs: []string{"u-1"}, Emails: []string{"of-no-use"}},
			Person{Erasure: another, ClientIDs: []string{"1.2"}}, Person{Erasure: "by-email-alone", Emails: []string{"of-no-use"}})
		if len(requests) != 1 {
			t.Fatalf("%d requests, want one for all", len(requests))
		}
		r := requests[0]
		got := []string{r.Method, r.URL, r.Header.Get("Authorization"), r.Header.Get("Content-Type"), string(r.Body)}
		want := []string{
			"POST", "https://" + host + "/api/app/data-deletions/v3.0/?token=project-token", "Bearer gdpr-token", "application/json",
			`{"compliance_type":"GDPR","distinct_ids":["$device:1.2","1.2","u-1"]}`,
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("region %q (-want +got):\n%s", region, diff)
		}
		if diff := cmp.Diff([]string{anErasure, another}, r.Erasures); diff != "" {
			t.Errorf("erasures (-want +got):\n%s", diff)
		}
	}
}

func TestMixpanelGetsNoMoreIDsThanItTakes(t *testing.T) {
	person := Person{Erasure: anErasure}
	for i := range 4000 {
		person.UserIDs = append(person.UserIDs, fmt.Sprintf("u-%04d", i))
	}
	var got []int
	for _, r := range requestsOf(t, eraserOf(t, mixpanelIn(""), platforms.TypeMixpanel), person) {
		got = append(got, strings.Count(string(r.Body), "u-"))
	}
	if diff := cmp.Diff([]int{1999, 1999, 2}, got); diff != "" {
		t.Errorf("ids a request (-want +got):\n%s", diff)
	}
}

func TestAReceiverIsToldOfEachErasure(t *testing.T) {
	eraser := eraserOf(t, platforms.Settings{Webhook: &platforms.Webhook{URL: "https://crm.example.com/hook"}}, platforms.TypeWebhook)
	person := Person{Erasure: anErasure, ClientIDs: []string{"1.2"}, Emails: []string{"b5fc"}}
	requests := requestsOf(t, eraser, person, Person{Erasure: another}, Person{Erasure: another, UserIDs: []string{"u-1"}})
	if len(requests) != 2 {
		t.Fatalf("%d requests, want one for each person who is known there", len(requests))
	}
	r := requests[0]
	const want = `{"type":"person.erased","timestamp":"2026-11-20T12:00:00.000Z","data":{"erasure_id":"` + anErasure +
		`","client_ids":["1.2"],"user_ids":[],"emails":["b5fc"],"phones":[]}}`
	if diff := cmp.Diff(want, string(r.Body)); diff != "" || r.URL != "https://crm.example.com/hook" || !r.StatusOnly {
		t.Errorf("to %s (-want +got):\n%s", r.URL, diff)
	}
	id := r.Header.Get("Webhook-Id")
	if !strings.HasPrefix(id, anErasure+"-") || r.Header.Get("Webhook-Timestamp") != "1795176000" || r.Header.Get("Webhook-Signature") == "" {
		t.Errorf("headers are %v", r.Header)
	}
	later, err := eraser.Erase([]Person{person}, erasedAt.Add(time.Hour))
	if err != nil || later[0].Header.Get("Webhook-Id") != id {
		t.Errorf("a repeat has the id %v, %v, want %s", later, err, id)
	}
	person.UserIDs = []string{"u-9"}
	if more := requestsOf(t, eraser, person); more[0].Header.Get("Webhook-Id") == id {
		t.Error("what says more has the id of what said less")
	}
}

func TestWhatAnswersToErasuresMean(t *testing.T) {
	const task = `{"status":"ok","results":{"task_id":"158395"}}`
	html := http.Header{"Content-Type": {"text/html"}}
	for sentence, test := range map[string]struct {
		of       platforms.Type
		response Response
		want     Verdict
	}{
		"Mixpanel names the task":                {platforms.TypeMixpanel, Response{Status: 200, Body: []byte(task)}, Verdict{Class: Delivered}},
		"Mixpanel says that all is well alone":   {platforms.TypeMixpanel, Response{Status: 200, Body: []byte(`{"status":"ok"}`)}, Verdict{Class: Retry, Reason: "answer_unreadable"}},
		"Mixpanel says error with a task":        {platforms.TypeMixpanel, Response{Status: 200, Body: []byte(`{"status":"error","results":{"task_id":"1"}}`)}, Verdict{Class: Retry, Reason: "answer_unreadable"}},
		"Mixpanel answers nonsense":              {platforms.TypeMixpanel, Response{Status: 200, Body: []byte(`]`)}, Verdict{Class: Retry, Reason: "answer_unreadable"}},
		"Mixpanel answers nothing":               {platforms.TypeMixpanel, Response{Status: 204}, Verdict{Class: Retry, Reason: "answer_unreadable"}},
		"what stands before Mixpanel has a page": {platforms.TypeMixpanel, Response{Status: 403, Header: html}, Verdict{Class: Retry, Reason: "http_403"}},
		"Mixpanel's token has expired":           {platforms.TypeMixpanel, Response{Status: 401}, Verdict{Class: Auth, Reason: "unauthorized"}},
		"Mixpanel finds the request bad":         {platforms.TypeMixpanel, Response{Status: 400}, Verdict{Class: Permanent, Reason: "http_400"}},
		"Mixpanel wants a pause":                 {platforms.TypeMixpanel, Response{Status: 429, Header: http.Header{"Retry-After": {"7"}}}, Verdict{Class: Throttle, Reason: "throttled", After: 7 * time.Second}},
		"a receiver takes it":                    {platforms.TypeWebhook, Response{Status: 202, Body: []byte("no")}, Verdict{Class: Delivered}},
		"a receiver is gone":                     {platforms.TypeWebhook, Response{Status: 410}, Verdict{Class: Config, Reason: "http_410"}},
		"a receiver is down":                     {platforms.TypeWebhook, Response{Status: 502}, Verdict{Class: Retry, Reason: "http_502"}},
		"a receiver refuses the message":         {platforms.TypeWebhook, Response{Status: 422}, Verdict{Class: Permanent, Reason: "http_422"}},
	} {
		t.Run(sentence, func(t *testing.T) {
			settings := mixpanelIn("")
			if test.of == platforms.TypeWebhook {
				settings = platforms.Settings{Webhook: &platforms.Webhook{URL: "https://crm.example.com/hook"}}
			}
			if diff := cmp.Diff(test.want, eraserOf(t, settings, test.of).ClassifyErasure(test.response)); diff != "" {
				t.Errorf("verdict (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAPlatformWithoutTheKeysForErasuresIsDeliveredTo(t *testing.T) {
	p, err := Open(platforms.Platform{Name: "p", Type: platforms.TypeMixpanel, Settings: mixpanelIn("")},
		map[string]string{"serviceAccountUsername": "weir", "serviceAccountSecret": "hush", "gdprToken": " \n"}, platforms.ConsentRule{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Eraser(); err == nil || err.Error() != "for erasures the Secret must have the keys projectToken, gdprToken" {
		t.Errorf("it is asked to erase: %v", err)
	}
}

func TestTheTypesThatTakeErasuresAreTheTables(t *testing.T) {
	for _, of := range platforms.Types() {
		traits, _ := of.Traits()
		settings := map[platforms.Type]platforms.Settings{
			platforms.TypeMeta: {Meta: &platforms.Meta{PixelID: "1"}}, platforms.TypeGA4: {GA4: &platforms.GA4{MeasurementID: "G-1"}},
			platforms.TypeTikTok: {TikTok: &platforms.TikTok{EventSourceID: "C1"}}, platforms.TypePinterest: {Pinterest: &platforms.Pinterest{AdAccountID: "1"}},
			platforms.TypeSnapchat:  {Snapchat: &platforms.Snapchat{PixelID: "1ec32188-754e-4be2-8e55-c949a984a39f"}},
			platforms.TypeReddit:    {Reddit: &platforms.Reddit{PixelID: "a2_1"}},
			platforms.TypeMicrosoft: {Microsoft: &platforms.Microsoft{TagID: "1"}},
			platforms.TypeKlaviyo:   {Klaviyo: &platforms.Klaviyo{}}, platforms.TypeAmplitude: {Amplitude: &platforms.Amplitude{}},
			platforms.TypeGoogle:   {Google: &platforms.Google{AccountID: "1"}},
			platforms.TypeS3:       {S3: &platforms.S3{Bucket: "shop-events", Region: "eu-central-1"}},
			platforms.TypeMixpanel: mixpanelIn(""), platforms.TypeWebhook: {Webhook: &platforms.Webhook{URL: "https://crm.example.com/hook"}},
			platforms.TypePostHog: {PostHog: &platforms.PostHog{}}, platforms.TypeSegment: {Segment: &platforms.Segment{}},
			platforms.TypeOpenAI: {OpenAI: &platforms.OpenAI{PixelID: "px-1"}},
		}[of]
		p, err := OpenShadow(platforms.Platform{Name: "p", Type: of, Settings: settings}, platforms.ConsentRule{})
		if err != nil {
			t.Fatalf("%s: %v", of, err)
		}
		if _, err := p.Eraser(); (err == nil) != traits.Erasure.Forwarded {
			t.Errorf("%s has an eraser: %v, and the table says %t", of, err, traits.Erasure.Forwarded)
		}
	}
}
