package query

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-dev/weir/collector/platforms"
	"github.com/weir-dev/weir/collector/stream"
)

// testerFunc stands for the deliverer that sends test events.
type testerFunc func(stream.TestRequest) (stream.TestAnswer, error)

func (f testerFunc) Test(_ context.Context, request stream.TestRequest) (stream.TestAnswer, error) {
	return f(request)
}

// fivePlatforms are those of the property berlin.
func fivePlatforms() []platforms.Platform {
	return []platforms.Platform{
		{Name: "crm", Type: platforms.TypeWebhook, Settings: platforms.Settings{Webhook: &platforms.Webhook{URL: "https://crm.example/hook"}}},
		{Name: "ads", Type: platforms.TypeMeta, Settings: platforms.Settings{Meta: &platforms.Meta{PixelID: "1"}}},
		{Name: "down", Type: platforms.TypeAmplitude, Mode: platforms.Shadow, Settings: platforms.Settings{Amplitude: &platforms.Amplitude{}}},
		{Name: "quiet", Type: platforms.TypeLog, Suspend: true},
		{Name: "new", Type: platforms.TypeTikTok, Settings: platforms.Settings{TikTok: &platforms.TikTok{EventSourceID: "C1", TestEventCode: "OWN"}}},
	}
}

// serveBerlin serves the property berlin with five platforms.
func serveBerlin(t *testing.T, adjust func(*Tenant)) (*Handler, http.Handler) {
	t.Helper()
	handler, api := serve(t)
	served := slices.Clone(*handler.tenants.Load())
	tenant := &served[indexOf(t, handler, "berlin")]
	tenant.Property.Platforms = fivePlatforms()
	if adjust != nil {
		adjust(tenant)
	}
	handler.Serve(served)
	return handler, api
}

func TestThePlatformsOfAPropertyAreListedWithHowItStandsWithThem(t *testing.T) {
	_, api := serveBerlin(t, nil)
	answer := get(api, tokens["berlin"], "berlin/platforms")
	var got struct {
		Data []map[string]any `json:"data"`
	}
	if err := json.Unmarshal(answer.Body.Bytes(), &got); err != nil || answer.Code != http.StatusOK {
		t.Fatalf("answered %d %s", answer.Code, answer.Body)
	}
	text := func(kind platforms.Type) string { traits, _ := kind.Traits(); return traits.TestMode.Text }
	advice := func(reason string) string { return adviceFor(stream.Retrying, reason) }
	want := []map[string]any{
		{
			"platform": "crm", "type": "Webhook", "mode": "Live", "suspended": false, "beta": false, "lag_events": 3.0, "lag_seconds": 1.5, "waiting": 2.0,
			"paused": nil, "test_mode": text(platforms.TypeWebhook),
		},
		{
			"platform": "ads", "type": "Meta", "mode": "Live", "suspended": false, "beta": true, "lag_events": nil, "lag_seconds": 60.0, "waiting": 0.0,
			"paused": map[string]any{
				"reason": "CredentialsRejected", "last_reason": "unauthorized", "since": instant(fixtureNow.Add(-time.Hour)), "advice": advice("CredentialsRejected"),
			},
			"test_mode": text(platforms.TypeMeta),
		},
		{
			"platform": "down", "type": "Amplitude", "mode": "Shadow", "suspended": false, "beta": true, "lag_events": 0.0, "lag_seconds": 0.0, "waiting": 0.0,
			"paused": map[string]any{
				"reason": "circuit_open", "last_reason": "http_503", "since": instant(fixtureNow.Add(-time.Minute)), "advice": advice("http_503"),
			},
			"test_mode": nil,
		},
		{ // what is suspended is not paused
			"platform": "quiet", "type": "Log", "mode": "Live", "suspended": true, "beta": false, "lag_events": 9.0, "lag_seconds": 0.0, "waiting": 0.0,
			"paused": nil, "test_mode": text(platforms.TypeLog),
		},
		{ // no deliverer has reported of it
			"platform": "new", "type": "TikTok", "mode": "Live", "suspended": false, "beta": true, "lag_events": nil, "lag_seconds": nil, "waiting": nil,
			"paused": nil, "test_mode": text(platforms.TypeTikTok), "reported_at": nil,
		},
	}
	for i := range want {
		want[i]["reported_at"] = nil
		if i < 4 {
			want[i]["reported_at"] = instant(fixtureNow.Add(-5 * time.Second))
		}
	}
	if diff := cmp.Diff(want, got.Data); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// accepting has each test event be accepted, and says what was asked for.
func accepting(asked *[]stream.TestRequest) testerFunc {
	return func(request stream.TestRequest) (stream.TestAnswer, error) {
		*asked = append(*asked, request)
		return stream.TestAnswer{
			Verdict: stream.TestAccepted, SentAt: fixtureNow, Took: 84 * time.Millisecond, Status: 200, Response: "ok",
			Request: &stream.ShadowRequest{Method: "POST", URL: "https://x.example", Header: map[string]string{"Authorization": "…"}, Body: json.RawMessage(`{}`), Encoding: "json"},
		}, nil
	}
}

func TestATestEventIsAskedFor(t *testing.T) {
	invalid := func(field, message string) string {
		return `{"message":"` + message + `","errors":{"` + field + `":["` + message + `"]}}`
	}
	for sentence, test := range map[string]struct {
		token, platform, body string
		status                int
		has                   string
		asked                 []stream.TestRequest
		audit                 string
	}{
		"of a platform that needs no code": {
			platform: "crm", body: `{}`, status: 200, has: `"verdict":"accepted","reason":null,"advice":null,"explanation":"An event of the type weir.test`,
			asked: []stream.TestRequest{{Platform: "crm"}}, audit: `"act":"platform.tested"`,
		},
		"what was sent and answered is shown": {
			platform: "crm", body: `{"test_event_code":null}`, status: 200,
			has: `"took_ms":84,"status":200,"request":{"method":"POST","url":"https://x.example","headers":{"Authorization":"…"},"body":{},"body_encoding":"json"},` +
				`"response":"ok"}`,
			asked: []stream.TestRequest{{Platform: "crm"}}, audit: `"details":{"verdict":"accepted","reason":""}`,
		},
		"with a code": {
			platform: "ads", body: `{"test_event_code":"TEST1"}`, status: 200, has: `"accepted"`, asked: []stream.TestRequest{{Platform: "ads", Code: "TEST1"}},
			audit: `"object":{"kind":"platform","name":"ads"}`,
		},
		"with the settings' own code": {
			platform: "new", body: `{"test_event_code":""}`, status: 200, has: `"accepted"`, asked: []stream.TestRequest{{Platform: "new"}}, audit: "platform.tested",
		},
		"not without a code that is needed": {
			platform: "ads", body: `{}`, status: 422,
			has: invalid("test_event_code", "The test_event_code field is required where the platform's settings have none: copy it from Meta's Events Manager → the dataset → Test events."),
		},
		"not with a code that cannot be one": {
			platform: "ads", body: `{"test_event_code":"TEST 1\""}`, status: 422,
			has: invalid("test_event_code", "The test_event_code field must be a code of 1 to 64 letters, digits, - and _, from Meta's Events Manager → the dataset → Test events."),
		},
		"not with a code that is no text": {
			platform: "ads", body: `{"test_event_code":1}`, status: 422, has: "must be a code of 1 to 64 letters",
		},
		"not with a code for a type that has none": {
			platform: "crm", body: `{"test_event_code":"TEST1"}`, status: 422,
			has: invalid("test_event_code", "The test_event_code field must be absent: the type Webhook has no such code."),
		},
		"not with a member that there is not": {
			platform: "crm", body: `{"code":"TEST1"}`, status: 422, has: invalid("code", "The code field is unknown; known is test_event_code."),
		},
		"of no other platform":      {platform: "other", body: `{}`, status: 422, has: invalid("platform", "The selected platform is invalid.")},
		"not with the scope read":   {token: "berlin", platform: "crm", body: `{}`, status: 403, has: "This action is unauthorized."},
		"not without a JSON object": {platform: "crm", body: `[]`, status: 400, has: notObject},
		"not without a body":        {platform: "crm", body: ``, status: 400, has: notObject},
	} {
		t.Run(sentence, func(t *testing.T) {
			var asked []stream.TestRequest
			handler, api := serveBerlin(t, func(tenant *Tenant) { tenant.Tester = accepting(&asked) })
			lines := audited(handler)
			answer := post(api, tokens[orElse(test.token, "write")], "berlin/platforms/"+test.platform+"/test", test.body)
			if answer.Code != test.status || !strings.Contains(answer.Body.String(), test.has) {
				t.Errorf("got %d %s\nwant %d with %s", answer.Code, answer.Body, test.status, test.has)
			}
			if diff := cmp.Diff(test.asked, asked); diff != "" {
				t.Errorf("asked for (-want +got):\n%s", diff)
			}
			if got := lines.String(); (got == "") != (test.audit == "") || !strings.Contains(got, test.audit) {
				t.Errorf("the audit log has %q, want %q", got, test.audit)
			}
		})
	}
}

func TestAWebhooksAddressIsShownToAdministratorsAlone(t *testing.T) {
	const whole = "https://user:pass@hooks.example:8443/services/T1/B2?key=s3cr3t#frag"
	for sentence, test := range map[string]struct{ token, platform, url, want string }{
		"to the scope admin, whole":              {"admin", "crm", whole, whole},
		"to the scope write, the host alone":     {"write", "crm", whole, "https://hooks.example:8443/…"},
		"a host alone has nothing to hide":       {"write", "crm", "https://hooks.example", "https://hooks.example"},
		"nor has a slash":                        {"write", "crm", "https://hooks.example/", "https://hooks.example/"},
		"a query alone is hidden":                {"write", "crm", "https://hooks.example?key=s3cr3t", "https://hooks.example/…"},
		"a name alone is hidden":                 {"write", "crm", "https://s3cr3t@hooks.example", "https://hooks.example/…"},
		"what is no URL is hidden":               {"write", "crm", "https://s3cr3t:%zz/", "…"},
		"another platform's is the same for all": {"write", "ads", "https://graph.facebook.com/v25.0/1/events", "https://graph.facebook.com/v25.0/1/events"},
	} {
		t.Run(sentence, func(t *testing.T) {
			_, api := serveBerlin(t, func(tenant *Tenant) {
				tenant.Tester = testerFunc(func(stream.TestRequest) (stream.TestAnswer, error) {
					return stream.TestAnswer{Verdict: stream.TestAccepted, SentAt: fixtureNow, Request: &stream.ShadowRequest{Method: "POST", URL: test.url}}, nil
				})
			})
			body := `{}`
			if test.platform == "ads" {
				body = `{"test_event_code":"TEST1"}`
			}
			answer := post(api, tokens[test.token], "berlin/platforms/"+test.platform+"/test", body)
			var got struct {
				Data struct {
					Request struct {
						URL string `json:"url"`
					} `json:"request"`
				} `json:"data"`
			}
			if err := json.Unmarshal(answer.Body.Bytes(), &got); err != nil || got.Data.Request.URL != test.want {
				t.Errorf("got %d %s, want %s", answer.Code, answer.Body, test.want)
			}
		})
	}
}

func orElse(text, other string) string {
	if text == "" {
		return other
	}
	return text
}

// post makes a request with a body of JSON.
func post(api http.Handler, token, path, body string) *httptest.ResponseRecorder {
	request := httptest.NewRequest(http.MethodPost, apiPrefix+"/properties/"+path, strings.NewReader(body))
	request.Header.Set("Authorization", "Bearer "+token)
	request.Header.Set("Content-Type", typeJSON)
	answer := httptest.NewRecorder()
	api.ServeHTTP(answer, request)
	return answer
}

func TestWhatCannotBeTestedIsUnavailable(t *testing.T) {
	for sentence, test := range map[string]struct {
		err error
		has string
	}{
		"no deliverer takes it":       {fmt.Errorf("%w: none", stream.ErrUnavailable), "No deliverer has taken the test event"},
		"the deliverer does not end":  {context.DeadlineExceeded, "The test event was not answered. It may have been sent."},
		"Redis has gone in the while": {errors.New("connection refused"), "The test event was not answered. It may have been sent."},
	} {
		t.Run(sentence, func(t *testing.T) {
			handler, api := serveBerlin(t, func(tenant *Tenant) {
				tenant.Tester = testerFunc(func(stream.TestRequest) (stream.TestAnswer, error) { return stream.TestAnswer{}, test.err })
			})
			lines := audited(handler)
			answer := post(api, tokens["write"], "berlin/platforms/crm/test", `{}`)
			if answer.Code != http.StatusServiceUnavailable || !strings.Contains(answer.Body.String(), test.has) || answer.Header().Get("Retry-After") == "" {
				t.Errorf("got %d %s, want 503 with %q and Retry-After", answer.Code, answer.Body, test.has)
			}
			if !strings.Contains(lines.String(), `"outcome":"failure"`) {
				t.Errorf("the audit log has %q", lines)
			}
		})
	}
}

// Nothing of a test event is tried again by itself, and what is said of it must not say so.
func TestAdviceOnATestEventFitsIt(t *testing.T) {
	for sentence, test := range map[string]struct {
		answer stream.TestAnswer
		want   string
	}{
		"accepted":             {stream.TestAnswer{Verdict: stream.TestAccepted}, ""},
		"a refused credential": {stream.TestAnswer{Verdict: stream.TestRefused, Reason: "unauthorized"}, "Put a valid credential"},
		"a fault":              {stream.TestAnswer{Verdict: stream.TestRetry, Reason: "http_503"}, "Send the test event again in a while."},
		"an unknown reason":    {stream.TestAnswer{Verdict: stream.TestRetry, Reason: "some_reason"}, "Send the test event again in a while."},
		"no test mode":         {stream.TestAnswer{Verdict: stream.TestNotSent, Reason: "no_test_mode"}, "Compare what would be sent"},
		"a Secret that lacks":  {stream.TestAnswer{Verdict: stream.TestNotSent, Reason: "misconfigured"}, "lacks a key"},
	} {
		t.Run(sentence, func(t *testing.T) {
			got := testAdvice(&test.answer)
			if !strings.Contains(got, test.want) || (got == "") != (test.want == "") || strings.Contains(got, byItself) {
				t.Errorf("got %q, want %q in it", got, test.want)
			}
		})
	}
}

// checkPlatforms asks for the platforms, and for test events, in each way that is described.
func (d *description) checkPlatforms(handler *Handler, api http.Handler) {
	handler.failures = newFailures()
	served := slices.Clone(*handler.tenants.Load())
	tenant := &served[indexOf(d.t, handler, "berlin")]
	tenant.Property.Platforms = fivePlatforms()
	tenant.Tester = testerFunc(func(request stream.TestRequest) (stream.TestAnswer, error) {
		if request.Platform == "quiet" {
			return stream.TestAnswer{}, stream.ErrUnavailable
		}
		answer := stream.TestAnswer{Verdict: stream.TestNotSent, Reason: "no_test_mode", SentAt: fixtureNow}
		if request.Platform == "crm" {
			return accepting(new([]stream.TestRequest))(request)
		}
		return answer, nil
	})
	handler.Serve(served)
	const list, call = "/properties/{property}/platforms", "/properties/{property}/platforms/{platform}/test"
	look := func() {
		d.t.Helper()
		request := httptest.NewRequest(http.MethodGet, apiPrefix+strings.Replace(list, "{property}", "berlin", 1), http.NoBody)
		request.Header.Set("Authorization", "Bearer "+tokens["berlin"])
		answer := httptest.NewRecorder()
		api.ServeHTTP(answer, request)
		d.check(http.MethodGet, list, answer)
	}
	look()
	tenant.States = reported{errors.New("connection refused")}
	handler.Serve(slices.Clone(served))
	look()
	ask := func(token, property, platform, contentType, body string) {
		d.t.Helper()
		where := strings.NewReplacer("{property}", property, "{platform}", platform).Replace(call)
		request := httptest.NewRequest(http.MethodPost, apiPrefix+where, strings.NewReader(body))
		request.Header.Set("Content-Type", contentType)
		request.Header.Set("Authorization", "Bearer "+token)
		answer := httptest.NewRecorder()
		api.ServeHTTP(answer, request)
		d.check(http.MethodPost, call, answer)
	}
	ask(tokens["write"], "berlin", "crm", typeJSON, `{}`)
	ask(tokens["write"], "berlin", "ads", typeJSON, `{"test_event_code":"TEST1"}`)
	ask(tokens["write"], "berlin", "ads", typeJSON, `{}`)
	ask(tokens["write"], "berlin", "quiet", typeJSON, `{}`)
	ask(tokens["write"], "berlin", "crm", typeJSON, `[]`)
	ask(tokens["write"], "berlin", "crm", typeJSON, strings.Repeat(" ", maxTestBody+1))
	ask(tokens["write"], "berlin", "crm", "text/plain", `{}`)
	ask(tokens["write"], "nowhere", "crm", typeJSON, `{}`)
	ask(tokens["berlin"], "berlin", "crm", typeJSON, `{}`)
	for range failureBurst + 1 {
		ask("wt_guess", "berlin", "crm", typeJSON, `{}`)
	}
}
