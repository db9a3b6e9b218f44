package stream

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
)

const (
	// MaxTest is how long a deliverer takes at most to send a test event and have its answer.
	MaxTest = 20 * time.Second
	// testSpare is how much longer the mark of a test stays that nobody ended.
	testSpare = 5 * time.Second
	// maxTestAnswer bounds what is answered, in bytes. Of a longer one the request's body is left out, then the response's end.
	maxTestAnswer = 8 << 10
)

// TestRequest asks for a test event.
type TestRequest struct {
	Platform string `json:"platform"`
	// Code is the platform's own for test events; "" for that of the Property's settings, or for none.
	Code string `json:"code,omitempty"`
}

// TestAnswer is what a deliverer says of a test event. No credential is in it.
type TestAnswer struct {
	// Verdict is what the platform made of the event.
	Verdict TestVerdict `json:"verdict"`
	// Reason is a code as in delivery records; "" for one that was accepted.
	Reason string `json:"reason,omitempty"`
	// SentAt is when it was sent, or would have been; Took is how long the answer took, 0 where nothing was sent.
	SentAt time.Time     `json:"sent_at"`
	Took   time.Duration `json:"took"`
	// Status is the answer's, 0 where there was none. Response is the beginning of its body.
	Status   int    `json:"status,omitempty"`
	Response string `json:"response,omitempty"`
	// Request is what was sent, or would be; nil for a bucket, and where it could not be made. It has no body where that is too long.
	Request *ShadowRequest `json:"request,omitempty"`
}

// TestVerdict is what a platform made of a test event.
type TestVerdict string

// The verdicts.
const (
	// TestAccepted: it takes such events.
	TestAccepted TestVerdict = "accepted"
	// TestRefused: it does not take this one, the credentials or the settings.
	TestRefused TestVerdict = "refused"
	// TestRetry: it cannot say now.
	TestRetry TestVerdict = "retry"
	// TestNotSent: nothing was sent.
	TestNotSent TestVerdict = "not_sent"
)

// text is the answer as it is stored, without what makes it too long.
func (a *TestAnswer) text() (string, error) {
	short := *a
	text, err := json.Marshal(&short)
	if err == nil && len(text) > maxTestAnswer && a.Request != nil {
		request := *a.Request
		request.Body = nil
		short.Request = &request
		text, err = json.Marshal(&short)
	}
	for err == nil && len(text) > maxTestAnswer && short.Response != "" {
		short.Response = strings.ToValidUTF8(short.Response[:len(short.Response)/2], "")
		text, err = json.Marshal(&short)
	}
	if err == nil && len(text) > maxTestAnswer {
		return "", fmt.Errorf("an answer to a test event takes %d bytes; it may take %d", len(text), maxTestAnswer)
	}
	return string(text), err
}

// tests is how test events are asked for: one at a time.
func (s *Stream) tests() *exchange {
	return &exchange{
		redis: s.redis, what: "a test event", request: s.keys.testRequest(), answers: s.keys.testAnswers(), busy: s.keys.testBusy(), lasts: MaxTest + testSpare,
	}
}

// testMessage is a request on its way to a deliverer.
type testMessage struct {
	ID string `json:"id"`
	TestRequest
}

// TestRequester has deliverers send test events, for whoever may only read.
type TestRequester struct{ Stream *Stream }

// Test has one of the property's deliverers send a platform a test event. It fails with [ErrUnavailable] where none takes the
// request within ten seconds, which is so too where another test takes longer than that; then nobody will.
func (r TestRequester) Test(ctx context.Context, request TestRequest) (TestAnswer, error) {
	message := testMessage{uuid.NewString(), request}
	text, err := r.Stream.tests().ask(ctx, message.ID, message)
	if err != nil {
		return TestAnswer{}, err
	}
	var answer TestAnswer
	if err := json.Unmarshal([]byte(text), &answer); err != nil {
		return TestAnswer{}, fmt.Errorf("read the answer to a test event: %w", err)
	}
	return answer, nil
}

// AnswerTest takes a request for a test event, where there is one and nobody sends another, has it sent and answers. The platform
// must be one of platforms; a request for another one, and one that cannot be read, is dropped.
func (s *Stream) AnswerTest(ctx context.Context, platforms func(name string) bool, send func(context.Context, TestRequest) TestAnswer) error {
	return s.tests().serve(ctx, func(text []byte) (work, bool) {
		var message testMessage
		if err := json.Unmarshal(text, &message); err != nil || !platforms(message.Platform) {
			return work{}, false
		}
		return work{message.ID, func(ctx context.Context) (string, error) {
			answer := send(ctx, message.TestRequest)
			return answer.text()
		}}, true
	})
}
