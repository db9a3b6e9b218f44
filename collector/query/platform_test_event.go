package query

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/weir-dev/weir/collector/audit"
	"github.com/weir-dev/weir/collector/auth"
	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/platforms"
	"github.com/weir-dev/weir/collector/server"
	"github.com/weir-dev/weir/collector/stream"
)

// Tester has test events sent to platforms.
type Tester interface {
	Test(ctx context.Context, request stream.TestRequest) (stream.TestAnswer, error)
}

const (
	// maxTestBody bounds the body of a request for a test event, in bytes.
	maxTestBody = 4 << 10
	// testTimeout is how long a test event is waited for: until it is taken, sent and answered.
	testTimeout = 55 * time.Second
	// testCodeMember is the member of the body that has a platform's code for test events.
	testCodeMember = "test_event_code"
)

type testEventAnswer struct {
	Data testEventRecord `json:"data"`
}

// testEventRecord is what a platform made of a test event.
type testEventRecord struct {
	Platform    string             `json:"platform"`
	Type        platforms.Type     `json:"type"`
	Verdict     stream.TestVerdict `json:"verdict"`
	Reason      *string            `json:"reason"`
	Advice      *string            `json:"advice"`
	Explanation string             `json:"explanation"`
	SentAt      string             `json:"sent_at"`
	TookMS      int64              `json:"took_ms"`
	Status      *int               `json:"status"`
	Request     *shadowRequest     `json:"request"`
	Response    *string            `json:"response"`
}

// testEvent answers POST /properties/{property}/platforms/{platform}/test: a deliverer, which alone has the credentials, sends a
// made-up event in the platform's test mode.
func (h *Handler) testEvent(w http.ResponseWriter, r *http.Request, t *Tenant) {
	members, ok := readMembers[any](w, r, maxTestBody)
	if !ok {
		return
	}
	name := server.PathParameter(r, platformParameter)
	platform := t.Property.Platform(name)
	if platform == nil {
		var errs event.Errors
		errs.Add("platform", "The selected platform is invalid.")
		server.Invalid(w, errs)
		return
	}
	code, errs := testCode(members, platform)
	if len(errs) > 0 {
		server.Invalid(w, errs)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), testTimeout)
	defer cancel()
	answer, err := t.Tester.Test(ctx, stream.TestRequest{Platform: name, Code: code})
	h.note(r, t, audit.Entry{
		Act: audit.PlatformTested, Object: audit.Party{Kind: audit.Platform, Name: name},
		Details: []slog.Attr{slog.String("verdict", string(answer.Verdict)), slog.String("reason", answer.Reason)},
	}, err)
	switch {
	case errors.Is(err, stream.ErrUnavailable):
		server.Unavailable(w, "No deliverer has taken the test event: none runs, or another test event was under way.", replayRetryAfter)
	case err != nil:
		h.logger.WarnContext(r.Context(), "a test event was not answered", "property", propertyOf(t), "platform", name, "error", err)
		server.Unavailable(w, "The test event was not answered. It may have been sent.", replayRetryAfter)
	default:
		server.JSON(w, http.StatusOK, testEventAnswer{renderTest(platform, &answer, t.reader.Scope)})
	}
}

// testCode reads the platform's code for test events from a body, "" for that of the Property's settings or for none.
func testCode(members map[string]any, platform *platforms.Platform) (string, event.Errors) {
	errs := unknownMembers(members, testCodeMember)
	traits, _ := platform.Type.Traits()
	where := traits.TestMode.Code
	value := members[testCodeMember]
	code, _ := value.(string) // what is no string is no code either
	switch given := value != nil && value != ""; {
	case given && where == "":
		errs.Add(testCodeMember, fmt.Sprintf("The %s field must be absent: the type %s has no such code.", testCodeMember, platform.Type))
	case given && !platforms.IsTestCode(code):
		errs.Add(testCodeMember, fmt.Sprintf("The %s field must be a code of 1 to 64 letters, digits, - and _, from %s.", testCodeMember, where))
	case !given && where != "" && !platform.Type.HasTestCode(&platform.Settings):
		errs.Add(testCodeMember, fmt.Sprintf("The %s field is required where the platform's settings have none: copy it from %s.", testCodeMember, where))
	}
	return code, errs
}

// renderTest renders what became of a test event for a reader of some scope.
func renderTest(platform *platforms.Platform, answer *stream.TestAnswer, scope auth.Scope) testEventRecord {
	traits, _ := platform.Type.Traits()
	record := testEventRecord{
		Platform: platform.Name, Type: platform.Type, Verdict: answer.Verdict, Reason: optional(answer.Reason), Advice: optional(testAdvice(answer)),
		Explanation: traits.TestMode.Text, SentAt: instant(answer.SentAt), TookMS: answer.Took.Milliseconds(), Request: renderRequest(shownTo(scope, platform, answer.Request)),
		Response: optional(answer.Response),
	}
	if answer.Status != 0 {
		record.Status = &answer.Status
	}
	return record
}

// shownTo is a request as a reader of some scope may see it. The address of a webhook may be what lets in whoever knows it: of that,
// the host alone is shown to readers who may not administer the property.
func shownTo(scope auth.Scope, platform *platforms.Platform, request *stream.ShadowRequest) *stream.ShadowRequest {
	if request == nil || platform.Type != platforms.TypeWebhook || scope.Allows(auth.ScopeAdmin) {
		return request
	}
	shown := *request
	shown.URL = hostOf(request.URL)
	return &shown
}

// hostOf is a URL without all that a host may take for a credential, which is … where there is any.
func hostOf(address string) string {
	const hidden = "…"
	whole, err := url.Parse(address)
	if err != nil {
		return hidden
	}
	host := (&url.URL{Scheme: whole.Scheme, Host: whole.Host}).String()
	if rest := strings.TrimPrefix(address, host); rest == "" || rest == "/" {
		return address
	}
	return host + "/" + hidden
}

// testAdvices are about reasons that mean something else of a test event, or that only a test event has.
var testAdvices = map[string]string{
	"no_test_mode": "Compare what would be sent with what you expect. Then have an event of yours delivered, and look for it at the platform.",
	"not_valid":    "Look what the answer says is wrong with the event; please report it, since Weir made it.",
	"no_mapping":   "The platform has nothing like a purchase. Name an event of yours under eventNames in the Property, and it is tried with that.",
	"interrupted":  "The deliverer was stopped while it waited for the answer. Send the test event again.",
}

// testAdvice says what can be done about what became of a test event, "" where nothing has to be. Nothing of one is tried again by
// itself.
func testAdvice(answer *stream.TestAnswer) string {
	if advice, found := testAdvices[answer.Reason]; found {
		return advice
	}
	status := stream.Skipped
	if answer.Verdict == stream.TestRetry {
		status = stream.Retrying
	}
	return strings.ReplaceAll(adviceFor(status, answer.Reason), byItself, "Send the test event again in a while.")
}
