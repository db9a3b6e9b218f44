package deliver

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/google/uuid"

	"github.com/weir-dev/weir/collector/deliver/adapter"
	"github.com/weir-dev/weir/collector/deliver/lake"
	"github.com/weir-dev/weir/collector/platforms"
	"github.com/weir-dev/weir/collector/stream"
)

// Why a test event is not sent, beside the reasons for which any event is not.
const (
	reasonNoTestMode  = "no_test_mode"
	reasonNotRendered = "unrenderable"
)

// maxTestResponse is how much of a platform's answer to a test event is repeated, in bytes.
const maxTestResponse = 4 << 10

// answerTests sends the test events that query pods ask for, until taking ends. Several deliverers may look: one takes each.
func (e *Engine) answerTests(taking context.Context) {
	for failed := false; ; {
		err := e.options.Stream.AnswerTest(taking, e.configured, e.test)
		if err != nil && !failed && taking.Err() == nil {
			e.options.Logger.Error("a request for a test event failed", "error", err)
		}
		failed = err != nil
		if !pause(taking, e.timing.replay) {
			return
		}
	}
}

// test sends a platform a made-up event in its test mode, once, and returns what came of it. Neither the circuit breaker nor the
// metrics hear of it, and there is no delivery record.
func (e *Engine) test(ctx context.Context, request stream.TestRequest) stream.TestAnswer {
	cfg := e.options.Property.Platform(request.Platform)
	if cfg == nil {
		return stream.TestAnswer{Verdict: stream.TestNotSent, Reason: reasonUnusable, SentAt: e.options.Now()}
	}
	ctx, cancel := context.WithTimeout(ctx, stream.MaxTest)
	defer cancel()
	t := &tester{engine: e, cfg: *cfg, code: request.Code, now: e.options.Now()}
	answer := t.run(ctx)
	e.options.Logger.Info("a test event", "platform", t.cfg.Name, "verdict", string(answer.Verdict), "reason", answer.Reason)
	return answer
}

// tester sends one test event.
type tester struct {
	engine *Engine
	cfg    platforms.Platform
	code   string
	now    time.Time
}

func (t *tester) run(ctx context.Context) stream.TestAnswer {
	traits, _ := t.cfg.Type.Traits()
	if t.cfg.S3 != nil && t.cfg.Mode != platforms.Shadow {
		return t.list(ctx)
	}
	payload, shown, reason := t.render()
	answer := stream.TestAnswer{Verdict: stream.TestNotSent, Reason: reason, SentAt: t.now, Request: shown}
	switch {
	case reason != "":
	case t.cfg.Mode == platforms.Shadow:
		answer.Reason = stream.ReasonShadow
	case !traits.TestMode.Sends:
		answer.Reason = reasonNoTestMode
	default:
		t.send(ctx, payload, &answer)
	}
	return answer
}

// render makes the event and the request that it comes in, without a credential. A reason says why there is none.
func (t *tester) render() (adapter.Payload, *stream.ShadowRequest, string) {
	blind, err := adapter.OpenTest(t.cfg, t.code, adapter.StandIns(t.cfg.Type), t.rule())
	if err != nil {
		return adapter.Payload{}, nil, t.unusable(err)
	}
	id, err := uuid.NewV7()
	if err != nil {
		return adapter.Payload{}, nil, reasonNotRendered
	}
	payload, verdict := blind.MapTest(adapter.TestMade{Type: t.cfg.Type, ID: id, Currency: t.engine.options.Property.Currency, Now: t.now})
	if verdict.Class != adapter.Undecided {
		return adapter.Payload{}, nil, verdict.Reason
	}
	shown, err := blind.Show(payload, t.now)
	if err != nil {
		return adapter.Payload{}, nil, reasonNotRendered
	}
	return payload, &stream.ShadowRequest{
		Method: shown.Method, URL: shown.URL, Header: shown.Header, Body: json.RawMessage(shown.Body), Encoding: shown.Encoding,
	}, ""
}

func (t *tester) rule() platforms.ConsentRule { return t.engine.options.Property.Consent.Rule(&t.cfg) }

// open makes the platform with its credentials. A reason says that they do not suffice.
func (t *tester) open() (*adapter.Platform, map[string]string, string) {
	given, err := t.engine.options.Credentials(t.cfg.Name)
	if err != nil {
		return nil, nil, t.unusable(err)
	}
	opened, err := adapter.OpenTest(t.cfg, t.code, given, t.rule())
	if err != nil {
		return nil, nil, t.unusable(err)
	}
	return opened, given, ""
}

// unusable logs why the platform cannot be spoken to, and returns the reason.
func (t *tester) unusable(err error) string {
	t.engine.options.Logger.Warn("a test event cannot be sent", "platform", t.cfg.Name, "error", err)
	return reasonUnusable
}

// send sends the event, and fills in what came of it.
func (t *tester) send(ctx context.Context, payload adapter.Payload, answer *stream.TestAnswer) {
	opened, credentials, reason := t.open()
	if reason != "" {
		answer.Reason = reason
		return
	}
	o := &t.engine.options
	requester := &requester{
		platform: opened, client: t.engine.client, tokens: newTokens(opened.Adapter, t.engine.client.http), wall: o.Now,
		logger: o.Logger.With("platform", t.cfg.Name),
	}
	request := opened.Build([]adapter.Payload{payload}, t.now)
	start := time.Now() // the monotonic clock
	response, failure := requester.exchange(ctx, request)
	if failure != nil && failure.Reason == reasonEgressDenied { // no connection was made
		answer.Reason = failure.Reason
		return
	}
	answer.Took = time.Since(start)
	if failure == nil {
		verdict := opened.Classify(response, 1)[0]
		failure = &verdict
	}
	answer.Verdict, answer.Reason = judged(ctx, *failure)
	answer.Status = response.Status
	answer.Response = newRedactor(credentials, request.Header, addressSecrets(&t.cfg)...).text(response.Body, maxTestResponse)
}

// list asks for the objects of a bucket that has none of anybody's: nothing is written, and nothing is learnt but whether that is
// answered.
func (t *tester) list(ctx context.Context) stream.TestAnswer {
	answer := stream.TestAnswer{Verdict: stream.TestNotSent, SentAt: t.now}
	opened, _, reason := t.open()
	if reason != "" {
		answer.Reason = reason
		return answer
	}
	options, _ := opened.Bucket()
	options.Client = t.engine.client.http
	property := t.engine.options.Property
	start := time.Now() // the monotonic clock
	_, err := lake.NewBucket(options).List(ctx, lakePrefix(t.cfg, property.Namespace+"/"+property.Name)+"_weir/")
	answer.Took = time.Since(start)
	verdict := adapter.Verdict{Class: adapter.Delivered}
	if err != nil {
		verdict = (&bucketError{err}).verdict(ctx)
	}
	if refused, ok := errors.AsType[*lake.RefusedError](err); ok {
		answer.Status = refused.Status
	}
	answer.Verdict, answer.Reason = judged(ctx, verdict)
	return answer
}

// judged is a verdict in the words of an answer.
func judged(ctx context.Context, verdict adapter.Verdict) (stream.TestVerdict, string) {
	switch verdict.Class {
	case adapter.Delivered, adapter.Queued:
		return stream.TestAccepted, ""
	case adapter.Retry, adapter.Throttle, adapter.Waiting:
		switch {
		case errors.Is(ctx.Err(), context.DeadlineExceeded):
			return stream.TestRetry, reasonTimeout
		case misconfigurationOf(verdict) == "":
			return stream.TestRetry, verdict.Reason
		}
	}
	return stream.TestRefused, verdict.Reason
}
