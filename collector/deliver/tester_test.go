package deliver

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/weir-dev/weir/collector/config"
	"github.com/weir-dev/weir/collector/deliver/fakes"
	"github.com/weir-dev/weir/collector/platforms"
	"github.com/weir-dev/weir/collector/stream"
)

// marks are what tells a request of a type's test mode, as it stands on the wire. A type without one is sent nothing.
var marks = map[platforms.Type]string{
	platforms.TypeMeta:      `"test_event_code":"TEST42"`,
	platforms.TypeTikTok:    `"test_event_code":"TEST42"`,
	platforms.TypeReddit:    `"test_id":"TEST42"`,
	platforms.TypeGA4:       `/debug/mp/collect`,
	platforms.TypeGoogle:    `"validateOnly":true`,
	platforms.TypePinterest: `?test=true`,
	platforms.TypeSnapchat:  `/events/validate?`,
	platforms.TypeOpenAI:    `"validate_only":true`,
	platforms.TypeWebhook:   `"type":"weir.test"`,
}

// ask asks for a test event as a query pod does.
func (h *harness) ask(code string) (stream.TestAnswer, error) {
	return stream.TestRequester{Stream: h.stream}.Test(h.t.Context(), stream.TestRequest{Platform: "p", Code: code})
}

// test is ask where an answer is expected.
func (h *harness) test(code string) stream.TestAnswer {
	h.t.Helper()
	answer, err := h.ask(code)
	if err != nil {
		h.t.Fatal(err)
	}
	return answer
}

// newTestSite is a site whose deliverer runs and whose Property has a currency.
func newTestSite(t *testing.T, kind platforms.Type) *site {
	s := newSite(t, kind)
	s.property.Currency = "EUR"
	return s
}

// codeFor is a platform's code for test events where its type needs one.
func codeFor(kind platforms.Type) string {
	if traits, _ := kind.Traits(); traits.TestMode.Code != "" {
		return "TEST42"
	}
	return ""
}

// TestATestEventIsSentInThePlatformsTestModeAndCountsNowhere has each type's fake, which checks as the platform does, judge a test
// event and an event of a customer's after it.
func TestATestEventIsSentInThePlatformsTestModeAndCountsNowhere(t *testing.T) {
	for kind := range subjects {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			s := newTestSite(t, kind)
			s.launch()
			answer := s.test(codeFor(kind))
			traits, _ := kind.Traits()
			if shown := fmt.Sprint(answer.Request); answer.Request == nil || !strings.Contains(string(answer.Request.Body), "weir-test") {
				t.Errorf("shown is %s, want the request with the test event", shown)
			}
			text, err := json.Marshal(answer)
			if err != nil {
				t.Fatal(err)
			}
			for key, secret := range suiteCredentials {
				if strings.Contains(string(text), secret) {
					t.Errorf("the credential %s is shown", key)
				}
			}
			wire := func() string { s.mu.Lock(); defer s.mu.Unlock(); return s.wire.String() }
			if !traits.TestMode.Sends {
				if answer.Verdict != stream.TestNotSent || answer.Reason != "no_test_mode" || wire() != "" {
					t.Errorf("answered %s %s, on the wire %q; want that nothing is sent", answer.Verdict, answer.Reason, wire())
				}
				return
			}
			if answer.Verdict != stream.TestAccepted {
				t.Fatalf("answered %s", text)
			}
			if s.fake == nil {
				if !strings.Contains(s.log.String(), "weir-test-") {
					t.Errorf("the log has no line with the event:\n%s", s.log)
				}
				return
			}
			if mark := marks[kind]; mark == "" || !strings.Contains(wire(), mark) {
				t.Errorf("the request has not %q:\n%s", mark, wire())
			}
			before := len(wire())
			position, _ := s.purchase("")
			s.becomes("an event of a customer's", position, "delivered")
			if sent := wire()[before:]; strings.Contains(sent, marks[kind]) || strings.Contains(sent, "weir-test") {
				t.Errorf("a customer's event was sent as a test:\n%s", sent)
			}
			for id := range s.fake.Taken() {
				if strings.Contains(id, "weir-test") {
					t.Errorf("the test event %s was taken", id)
				}
			}
			tests := slices.DeleteFunc(s.fake.Receipts(), func(r fakes.Receipt) bool { return !r.Test })
			if len(tests) != 1 || tests[0].Complaint != "" {
				t.Errorf("the fake had the tests %+v, want one without a complaint", tests)
			}
			if got := s.records("p"); len(got) != 1 {
				t.Errorf("there are the records %v, want the customer's event's alone", got)
			}
		})
	}
}

func TestWhatAPlatformMakesOfATestEventIsAnswered(t *testing.T) {
	const token = accessToken
	for sentence, test := range map[string]struct {
		kind    platforms.Type
		failure fakes.Failure
		adjust  func(*site)
		code    string
		verdict stream.TestVerdict
		reason  string
		status  int
		says    string
	}{
		"a refused credential": {
			kind: platforms.TypeSnapchat, verdict: stream.TestRefused, reason: "unauthorized", status: 401,
			adjust: func(s *site) { s.credentials["p"] = map[string]string{"accessToken": "another-token"} },
		},
		"an answer that repeats the credential": {
			kind: platforms.TypeMeta, code: "TEST42", failure: fakes.Failure{Status: 400, Body: `{"error":{"code":190,"message":"token ` + token + ` has expired"}}`},
			verdict: stream.TestRefused, reason: "unauthorized", status: 400, says: `"token … has expired"`,
		},
		"a platform that does not work": {
			kind: platforms.TypePinterest, failure: fakes.Failure{Status: 503}, verdict: stream.TestRetry, reason: "http_503", status: 503,
		},
		"a rate limit": {
			kind: platforms.TypeOpenAI, failure: fakes.Failure{Status: 429}, verdict: stream.TestRetry, reason: "throttled", status: 429,
		},
		"a receiver that refuses": {
			kind: platforms.TypeWebhook, failure: fakes.Failure{Status: 400}, verdict: stream.TestRefused, reason: "http_400", status: 400,
		},
		"a connection that breaks off": {
			kind: platforms.TypeWebhook, failure: fakes.Failure{Reset: true}, verdict: stream.TestRetry, reason: "connection_reset",
		},
		"an address that deliveries may not go to": {
			kind: platforms.TypeWebhook, verdict: stream.TestNotSent, reason: "egress_denied",
			adjust: func(s *site) { s.property.Egress = config.Egress{} },
		},
		"a Secret without the key": {
			kind: platforms.TypePinterest, verdict: stream.TestNotSent, reason: "misconfigured",
			adjust: func(s *site) { s.credentials["p"] = nil },
		},
		"the mode Shadow": {
			kind: platforms.TypePinterest, verdict: stream.TestNotSent, reason: "shadow",
			adjust: func(s *site) { s.property.Platforms[0].Mode = platforms.Shadow; delete(s.credentials, "p") },
		},
		"a suspended platform is tried all the same": {
			kind: platforms.TypePinterest, verdict: stream.TestAccepted, status: 200,
			adjust: func(s *site) { s.property.Platforms[0].Suspend = true },
		},
		"a platform that gets other events is tried all the same": {
			kind: platforms.TypePinterest, verdict: stream.TestAccepted, status: 200,
			adjust: func(s *site) { s.property.Platforms[0].Events = []string{"lead"} },
		},
		"a purchase that Google has no conversion action for is another event": {
			kind: platforms.TypeGoogle, verdict: stream.TestAccepted, status: 200,
			adjust: func(s *site) { s.property.Platforms[0].EventNames = map[string]string{"lead": "77"} },
		},
		"no event that Google has a conversion action for": {
			kind: platforms.TypeGoogle, verdict: stream.TestNotSent, reason: "no_mapping",
			adjust: func(s *site) { s.property.Platforms[0].EventNames = nil },
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			t.Parallel()
			s := newTestSite(t, test.kind)
			if test.adjust != nil {
				test.adjust(s)
			}
			if test.failure != (fakes.Failure{}) {
				s.fake.Fail(test.failure)
			}
			s.launch()
			got := s.test(test.code)
			if got.Verdict != test.verdict || got.Reason != test.reason || got.Status != test.status || !strings.Contains(got.Response, test.says) {
				t.Errorf("answered %+v, want %s %s with the status %d and %q", got, test.verdict, test.reason, test.status, test.says)
			}
			if sent := got.Verdict != stream.TestNotSent; sent != (got.Took > 0) {
				t.Errorf("it took %s and was sent: %v", got.Took, sent)
			}
			if strings.Contains(got.Response, token) {
				t.Errorf("the answer shows the token: %s", got.Response)
			}
			// Neither the circuit breaker nor a count has heard of it.
			if n := s.metric("weir_delivery_requests_total", map[string]string{"platform": "p"}); n != 0 {
				t.Errorf("%v requests are counted as deliveries", n)
			}
		})
	}
}

func TestATestEventIsTriedOnce(t *testing.T) {
	s := newTestSite(t, platforms.TypeWebhook)
	s.fake.FailAlways(fakes.Failure{Status: http.StatusServiceUnavailable})
	s.launch()
	s.test("")
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := len(s.arrivals); n != 1 {
		t.Errorf("%d requests were made, want one", n)
	}
}

func TestABucketIsTriedWithoutWriting(t *testing.T) {
	for sentence, test := range map[string]struct {
		adjust func(*lakeSite)
		want   stream.TestAnswer
	}{
		"the right keys": {func(*lakeSite) {}, stream.TestAnswer{Verdict: stream.TestAccepted}},
		"another key": {
			func(s *lakeSite) {
				s.credentials["lake"] = map[string]string{"accessKeyID": "AKIAIOSFODNN7EXAMPLE", "secretAccessKey": "another"}
			},
			stream.TestAnswer{Verdict: stream.TestRefused, Reason: "unauthorized", Status: 403},
		},
		"another bucket": {
			func(s *lakeSite) {
				s.property.Platforms[0].S3 = &platforms.S3{Bucket: "other", Region: "eu-central-1", RowsPerFile: 1000}
			},
			stream.TestAnswer{Verdict: stream.TestRefused, Reason: "no_such_bucket", Status: 404},
		},
		"no keys": {
			func(s *lakeSite) { s.credentials["lake"] = nil },
			stream.TestAnswer{Verdict: stream.TestNotSent, Reason: "misconfigured"},
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			t.Parallel()
			s := newLakeSite(t, func(cfg *platforms.Platform) { cfg.Suspend = true })
			test.adjust(s)
			s.onRequest(&s.before, func(r *http.Request) bool {
				if r.Method != http.MethodGet {
					t.Errorf("the bucket's server was asked for %s %s", r.Method, r.URL)
				}
				return false
			})
			s.start("pod-1", nil)
			got, err := stream.TestRequester{Stream: s.stream}.Test(t.Context(), stream.TestRequest{Platform: "lake"})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got, cmpopts.IgnoreFields(stream.TestAnswer{}, "SentAt", "Took")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestCredentialsAreTakenOutOfAnswersInAllForms(t *testing.T) {
	key := `{
  "type": "service_account",
  "private_key": "-----BEGIN PRIVATE KEY-----\nTUlJRXZR\n-----END PRIVATE KEY-----\n",
  "private_key_id": "k1d"
}`
	r := newRedactor(
		map[string]string{"accessToken": "a/b+c secret", "signingSecret": "whsec_old whsec_new", "serviceAccountKey": key},
		http.Header{"Authorization": {"Basic dXNlcjpzZWNyZXQ="}, "Content-Type": {"application/json"}},
	)
	for sentence, test := range map[string]struct{ answer, want string }{
		"as it is":             {"no a/b+c secret here", "no … here"},
		"in a query":           {"?token=a%2Fb%2Bc+secret&x=1", "?token=…&x=1"},
		"in a path":            {"/a%2Fb+c%20secret/x", "/…/x"},
		"in base64":            {"YS9iK2Mgc2VjcmV0 and more", "… and more"},
		"in hexadecimal":       {"612f622b6320736563726574", "…"},
		"behind its scheme":    {`{"got":"dXNlcjpzZWNyZXQ="}`, `{"got":"…"}`},
		"a line of a key":      {"bad line TUlJRXZR", "bad line …"},
		"a key's id":           {"no key k1d", "no key …"},
		"one of several":       {"signed by whsec_new", "signed by …"},
		"nothing else":         {"application/json, service_account", "application/json, service_account"},
		"no JSON of theirs":    {`{ "type": {"id": "7b7d"} }`, `{ "type": {"id": "7b7d"} }`},
		"at most so much":      {strings.Repeat("ä", 40), strings.Repeat("ä", 20)},
		"text that is no text": {"a\xffb", noText[:41]},
	} {
		t.Run(sentence, func(t *testing.T) {
			if diff := cmp.Diff(test.want, r.text([]byte(test.answer), 41)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestOneTestIsSentAtATime has two deliverers be asked at once, and none is taken while another one runs.
func TestOneTestIsSentAtATime(t *testing.T) {
	s := newTestSite(t, platforms.TypeWebhook)
	s.fake.Fail(fakes.Failure{Silent: true})
	adjust := func(e *Engine) { e.timing.request = 300 * time.Millisecond }
	s.start("pod-1", adjust)
	s.start("pod-2", adjust)
	answers := make(chan stream.TestAnswer, 2)
	for range 2 {
		go func() {
			answer, err := s.ask("")
			if err != nil {
				t.Error(err)
			}
			answers <- answer
		}()
	}
	first, second := <-answers, <-answers
	if second.SentAt.Before(first.SentAt) { // who asked first is not told first
		first, second = second, first
	}
	if first.Reason != "timeout" || second.Verdict != stream.TestAccepted {
		t.Errorf("answered %+v, then %+v; want that the second waits for the first", first, second)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.arrivals) != 2 || s.arrivals[1].Sub(s.arrivals[0]) < 300*time.Millisecond {
		t.Errorf("the requests came at %v, want the second after the end of the first", s.arrivals)
	}
}
