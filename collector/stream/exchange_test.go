package stream

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// serving has a deliverer answer requests for test events until the test ends.
func serving(t *testing.T, s *Stream, send func(context.Context, TestRequest) TestAnswer) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		ticker := time.NewTicker(5 * time.Millisecond)
		defer ticker.Stop()
		for ctx.Err() == nil {
			if err := s.AnswerTest(ctx, func(name string) bool { return name == "meta" }, send); err != nil && ctx.Err() == nil {
				t.Log(err)
			}
			<-ticker.C
		}
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
}

func TestADelivererAnswersARequestForATestEvent(t *testing.T) {
	s := newStream(t)
	want := TestAnswer{
		Verdict: TestRefused, Reason: "http_400", SentAt: time.UnixMilli(1700000000000).UTC(), Took: time.Second, Status: 400, Response: "no",
		Request: &ShadowRequest{Method: "POST", URL: "https://x.example", Body: json.RawMessage(`{"a":1}`), Encoding: "json"},
	}
	var asked atomic.Pointer[TestRequest]
	serving(t, s, func(_ context.Context, request TestRequest) TestAnswer {
		asked.Store(&request)
		return want
	})
	got, err := TestRequester{s}.Test(t.Context(), TestRequest{Platform: "meta", Code: "TEST1"})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(&TestRequest{Platform: "meta", Code: "TEST1"}, asked.Load()); diff != "" {
		t.Errorf("asked for (-want +got):\n%s", diff)
	}
	if lives, err := s.redis.PTTL(t.Context(), s.keys.testAnswers()).Result(); err != nil || lives <= 0 || lives > answered {
		t.Errorf("the answer lives for %v, error %v; want two minutes at most", lives, err)
	}
	if left, err := s.redis.Exists(t.Context(), s.keys.testRequest(), s.keys.testBusy()).Result(); err != nil || left != 0 {
		t.Errorf("%d keys are left of the test, error %v", left, err)
	}
}

func TestAnAnswerToATestIsBounded(t *testing.T) {
	long := TestAnswer{Verdict: TestAccepted, Response: "yes", Request: &ShadowRequest{
		Method: "POST", URL: "https://x.example", Body: json.RawMessage(`"` + strings.Repeat("a", maxTestAnswer) + `"`), Encoding: "text",
	}}
	s := newStream(t)
	serving(t, s, func(context.Context, TestRequest) TestAnswer { return long })
	got, err := TestRequester{s}.Test(t.Context(), TestRequest{Platform: "meta"})
	if err != nil || got.Request == nil || got.Request.Body != nil || got.Request.URL != "https://x.example" || got.Response != "yes" {
		t.Errorf("got %+v, error %v; want the answer without the request's body", got, err)
	}
}

func TestALongResponseToATestIsCut(t *testing.T) {
	a := TestAnswer{Verdict: TestRefused, Response: strings.Repeat("\x01", maxTestAnswer/2)} // six bytes each, as JSON
	text, err := a.text()
	var got TestAnswer
	if err := json.Unmarshal([]byte(text), &got); err != nil {
		t.Fatal(err)
	}
	if err != nil || len(text) > maxTestAnswer || got.Response == "" || !strings.HasPrefix(a.Response, got.Response) {
		t.Errorf("%d bytes are answered, error %v, %d of the response; want its beginning", len(text), err, len(got.Response))
	}
}

func TestATestThatIsNoneOfAQueryPodsIsDropped(t *testing.T) {
	for sentence, text := range map[string]string{
		"no JSON":             "junk",
		"no id":               `{"platform":"meta"}`,
		"no platform of ours": `{"id":"` + strings.Repeat("0", 8) + `-0000-4000-8000-000000000000","platform":"other"}`,
		"longer than is read": `{"id":"` + strings.Repeat("x", requestSize) + `","platform":"meta"}`,
	} {
		t.Run(sentence, func(t *testing.T) {
			s := newStream(t)
			if err := s.redis.Do(t.Context(), "SET", s.keys.testRequest(), text).Err(); err != nil {
				t.Fatal(err)
			}
			sent := false
			err := s.AnswerTest(t.Context(), func(name string) bool { return name == "meta" }, func(context.Context, TestRequest) TestAnswer {
				sent = true
				return TestAnswer{}
			})
			if err == nil || sent {
				t.Errorf("sent %v, error %v; want that it is dropped", sent, err)
			}
			if left, err := s.redis.Exists(t.Context(), s.keys.testRequest(), s.keys.testBusy()).Result(); err != nil || left != 0 {
				t.Errorf("%d keys are left, error %v", left, err)
			}
		})
	}
}

// While one deliverer sends a test event another one leaves the next request where it is.
func TestAnotherTestWaitsForTheOneThatRuns(t *testing.T) {
	s := newStream(t)
	if err := s.redis.Do(t.Context(), "SET", s.keys.testBusy(), "1", "PX", "60000").Err(); err != nil {
		t.Fatal(err)
	}
	if err := s.redis.Do(t.Context(), "SET", s.keys.testRequest(), `{"id":"00000000-0000-4000-8000-000000000000","platform":"meta"}`).Err(); err != nil {
		t.Fatal(err)
	}
	answer := func() error {
		return s.AnswerTest(t.Context(), func(string) bool { return true }, func(context.Context, TestRequest) TestAnswer { return TestAnswer{Verdict: TestAccepted} })
	}
	if err := answer(); err != nil {
		t.Fatal(err)
	}
	if left, err := s.redis.Exists(t.Context(), s.keys.testRequest()).Result(); err != nil || left != 1 {
		t.Fatalf("%d requests wait, error %v; want the one", left, err)
	}
	if err := s.redis.Unlink(t.Context(), s.keys.testBusy()).Err(); err != nil {
		t.Fatal(err)
	}
	if err := answer(); err != nil {
		t.Fatal(err)
	}
	if left, err := s.redis.Exists(t.Context(), s.keys.testRequest()).Result(); err != nil || left != 0 {
		t.Errorf("%d requests wait, error %v; want none", left, err)
	}
}

func TestATestIsUnavailableWithoutADeliverer(t *testing.T) {
	s := newStream(t)
	_, err := TestRequester{s}.Test(t.Context(), TestRequest{Platform: "meta"})
	if !errors.Is(err, ErrUnavailable) {
		t.Errorf("got %v, want %v", err, ErrUnavailable)
	}
}
