package deliver

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-dev/weir/collector/config"
	"github.com/weir-dev/weir/collector/platforms"
	"github.com/weir-dev/weir/collector/stream"
)

const (
	purchase = `{"event":"purchase","event_id":"evt-1","client_id":"1.2","user":{"email":"ada@example.com","phone":"+15550100999","first_name":"Lovelace"},"data":{"value":9.5,"currency":"EUR","order_id":"A-1","contents":[{"id":"s","quantity":1,"price":9.5}]}}`
	pageview = `{"event":"pageview","client_id":"1.2","context":{"page_url":"https://shop.example/?utm_source=news"}}`
	refund   = `{"event":"refund","client_id":"1.2","data":{"value":9.5,"currency":"EUR","order_id":"A-1"}}`
)

var console = platforms.Platform{Name: "console", Type: platforms.TypeLog}

func one(p stream.Position, r record) map[stream.Position]record {
	return map[stream.Position]record{p: r}
}

func TestEveryPlatformGetsEveryEventOfItsOwn(t *testing.T) {
	hook, fb := newReceiver(t, nil), newMeta(t, nil)
	choosy := hook.platform("choosy")
	choosy.Events = []string{"purchase"}
	h := newHarness(t, fb.platform("meta"), hook.platform("crm"), choosy, console)
	a, b, c := h.accept(purchase), h.accept(pageview), h.accept(refund)
	h.start("one", nil)
	d := h.accept(`{"event":"pageview"}`) // while it runs

	ok := record{"delivered", 1, ""}
	h.eventually("console", map[stream.Position]record{a: ok, b: ok, c: ok, d: ok})
	h.eventually("crm", map[stream.Position]record{a: ok, b: ok, c: ok, d: ok})
	h.eventually("meta", map[stream.Position]record{
		a: ok, b: ok, c: {"skipped", 0, "no_mapping"}, d: {"skipped", 0, "no_identifier"},
	})
	excluded := record{"skipped", 0, "event_excluded"}
	h.eventually("choosy", map[stream.Position]record{a: ok, b: excluded, c: excluded, d: excluded})

	if got := fb.counts()["Purchase evt-1"]; got != 1 || len(fb.counts()) != 2 {
		t.Errorf("Meta received %v", fb.counts())
	}
	if got := hook.acceptances(); len(got) != 4 {
		t.Errorf("the receivers took %v, want four ids", got)
	}
	if got := strings.Count(h.log.String(), "msg=event platform=console event_id="); got != 4 {
		t.Errorf("the log has %d lines of events, want 4:\n%s", got, h.log)
	}
	h.await("metrics", func() string {
		return cmp.Diff([]float64{2, 2, 0}, []float64{
			h.metric("weir_deliveries_total", map[string]string{"platform": "meta", "status": "delivered"}),
			h.metric("weir_deliveries_total", map[string]string{"platform": "meta", "status": "skipped"}),
			h.metric("weir_platform_paused", map[string]string{"platform": "meta"}),
		})
	})
}

// The end of a version is known for as long as the version is spoken, also while deliveries are suspended.
func TestTheEndOfAVersionIsAMetric(t *testing.T) {
	fb := newMeta(t, nil)
	h := newHarness(t, fb.platform("meta"))
	speaking := func(sentence, version string, suspend bool, want float64) {
		h.property.Platforms[0].APIVersion, h.property.Platforms[0].Suspend = version, suspend
		r := h.start("one", nil)
		h.await(sentence, func() string {
			return cmp.Diff(want, h.metric("weir_platform_version_ends_timestamp_seconds", map[string]string{"platform": "meta"}))
		})
		r.stop()
	}
	const noEnd = 0
	ends := float64(time.Date(2027, 1, 21, 0, 0, 0, 0, time.UTC).Unix())
	speaking("no end of Weir's own version", "", false, noEnd)
	speaking("the end of an older one, though deliveries are suspended", "v21.0", true, ends)
	speaking("no end of a version that nobody knows", "v99.0", false, noEnd)
	speaking("the end of the older one, which is spoken again", "v21.0", false, ends)
}

// Whatever a Webhook's receiver does at first, what comes of the event is clear from its records.
func TestWebhookThatFailsAtFirst(t *testing.T) {
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("a redirect was followed") }))
	t.Cleanup(elsewhere.Close)
	for name, test := range map[string]struct {
		failure failure
		want    record
	}{
		"a server error is tried again":                 {first(2, answer{status: 500}), record{"delivered", 3, ""}},
		"a web page of a gateway is tried again":        {first(1, answer{status: 502, body: "<html>ada@example.com</html>"}), record{"delivered", 2, ""}},
		"a throttled request costs no attempt":          {first(3, answer{status: 429}), record{"delivered", 1, ""}},
		"so does one with a time to wait":               {first(1, answer{status: 429, header: map[string]string{"Retry-After": "1"}}), record{"delivered", 1, ""}},
		"an unavailable server may ask for time too":    {first(1, answer{status: 503, header: map[string]string{"Retry-After": "0"}}), record{"delivered", 1, ""}},
		"a refused signature pauses and is tried again": {first(2, answer{status: 401}), record{"delivered", 3, ""}},
		"a receiver that is gone pauses":                {first(1, answer{status: 410}), record{"delivered", 2, ""}},
		"a redirect is not followed":                    {first(1, answer{status: 307, header: map[string]string{"Location": elsewhere.URL}}), record{"delivered", 2, ""}},
		"a refused event fails for good":                {always(answer{status: 422, body: "ada@example.com"}), record{"failed", 1, "http_422"}},
		"an event that is too large fails for good":     {always(answer{status: 413}), record{"failed", 1, "too_large"}},
		"an answer that breaks off is success": {func(*http.Request) *answer {
			return &answer{status: 200, header: map[string]string{"Content-Length": "99"}}
		}, record{"delivered", 1, ""}},
		"no answer at all is tried again": {abortFirst(), record{"delivered", 2, ""}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			hook := newReceiver(t, test.failure)
			h := newHarness(t, hook.platform("crm"))
			at := h.accept(purchase)
			h.start("one", nil)
			h.eventually("crm", one(at, test.want))
			if got := hook.arrivals(); len(got) != 1 {
				t.Errorf("the attempts had the ids %v, want one id", got)
			}
			h.await("the closed breaker", func() string {
				return cmp.Diff(0.0, h.metric("weir_platform_paused", map[string]string{"platform": "crm"}))
			})
		})
	}
}

func abortFirst() failure {
	once := first(1, answer{})
	return func(r *http.Request) *answer {
		if once(r) != nil {
			panic(http.ErrAbortHandler)
		}
		return nil
	}
}

// While a platform cannot be reached its events are retrying, for a reason that says why.
func TestWebhookThatCannotBeReached(t *testing.T) {
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	for name, test := range map[string]struct {
		url    string
		egress config.Egress
		want   string
	}{
		"a port at which nobody listens":           {gone.URL, loopback, "connection_refused"},
		"an address that deliveries may not go to": {gone.URL, config.Egress{}, "egress_denied"},
		"the cloud's metadata":                     {"http://169.254.169.254/latest", loopback, "egress_denied"},
		"a name that resolves to such an address":  {"http://localhost:9/", config.Egress{}, "egress_denied"},
		"a name that does not exist":               {"http://receiver.invalid/", loopback, "name_not_resolved"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t, platforms.Platform{Name: "crm", Type: platforms.TypeWebhook, Settings: platforms.Settings{Webhook: &platforms.Webhook{URL: test.url}}})
			h.property.Egress = test.egress
			at := h.accept(purchase)
			h.start("one", nil)
			h.eventuallyLike("crm", one(at, record{"retrying", 0, test.want}))
			h.await("a second attempt", func() string {
				if h.records("crm")[at].Attempts < 2 {
					return "not yet"
				}
				return ""
			})
		})
	}
}

func TestAnEventThatNoOneTakesExpires(t *testing.T) {
	hook := newReceiver(t, always(answer{status: 500}))
	h := newHarness(t, hook.platform("crm"))
	at := h.accept(purchase)
	h.start("one", nil)
	h.eventuallyLike("crm", one(at, record{"retrying", 0, "http_500"}))
	h.advance(8 * 24 * time.Hour)
	h.eventuallyLike("crm", one(at, record{"expired", 0, "too_old"}))
}

func TestAPlatformThatHangsDelaysNoOther(t *testing.T) {
	slow, quick := newReceiver(t, hang(t)), newReceiver(t, nil)
	h := newHarness(t, slow.platform("slow"), quick.platform("quick"))
	h.start("one", func(e *Engine) { e.options.DrainTimeout = 10 * time.Millisecond })
	want := map[stream.Position]record{}
	for range 3 * parallelRequests { // more than the slow one is sent at a time
		want[h.accept(pageview)] = record{"delivered", 1, ""}
	}
	h.eventually("quick", want)
	if got := h.records("slow"); len(got) != 0 {
		t.Errorf("the slow platform has records: %v", got)
	}
	if got := len(slow.arrivals()); got > parallelRequests {
		t.Errorf("the slow platform got %d requests at a time, want at most %d", got, parallelRequests)
	}
}

func TestMetaPoisonDoesNotHarmItsBatch(t *testing.T) {
	fb := newMeta(t, nil)
	h := newHarness(t, fb.platform("meta"))
	want := map[stream.Position]record{}
	for range 5 {
		want[h.accept(pageview)] = record{"delivered", 2, ""}
	}
	poison := h.accept(`{"event":"lead","event_id":"` + poisonID + `","client_id":"1.2"}`)
	want[poison] = record{"failed", 2, "code_100_2804019"}
	h.start("one", nil)
	h.eventually("meta", want)
	for key, n := range fb.counts() {
		if n != 1 {
			t.Errorf("Meta counted %s %d times", key, n)
		}
	}
}

func TestMetaTooLargeABatchIsHalved(t *testing.T) {
	fb := newMeta(t, nil)
	fb.set(func(r *http.Request) *answer {
		if r.ContentLength > 500 {
			return &answer{status: 413}
		}
		return nil
	}, accessToken)
	h := newHarness(t, fb.platform("meta"))
	positions := []stream.Position{}
	for range 8 {
		positions = append(positions, h.accept(pageview))
	}
	h.start("one", nil)
	want := map[stream.Position]record{}
	for _, p := range positions {
		want[p] = record{"delivered", 0, ""}
	}
	h.eventuallyLike("meta", want)
}

func TestMetaFailures(t *testing.T) {
	for name, test := range map[string]struct {
		answer answer
		want   record
	}{
		"a web page of a gateway":         {answer{status: 502, header: map[string]string{"Content-Type": "text/html"}, body: "<html>"}, record{"delivered", 2, ""}},
		"fewer received than sent":        {answer{status: 200, body: `{"events_received":0}`}, record{"delivered", 2, ""}},
		"a temporary code":                {answer{status: 400, body: `{"error":{"code":2}}`}, record{"delivered", 2, ""}},
		"a throttling code in a 500":      {answer{status: 500, body: `{"error":{"code":17}}`}, record{"delivered", 1, ""}},
		"a permission that is missing":    {answer{status: 403, body: `{"error":{"code":10}}`}, record{"delivered", 2, ""}},
		"an event that was too old there": {answer{status: 400, body: `{"error":{"code":100,"error_subcode":2804003}}`}, record{"expired", 1, "too_old"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fb := newMeta(t, first(1, test.answer))
			h := newHarness(t, fb.platform("meta"))
			at := h.accept(purchase)
			h.start("one", nil)
			h.eventually("meta", one(at, test.want))
		})
	}
}

// A refused token pauses the platform; nothing is lost, and a new one is used as soon as an engine with it runs.
func TestAPlatformWaitsForItsCredential(t *testing.T) {
	fb := newMeta(t, nil)
	fb.set(nil, "another-token")
	h := newHarness(t, fb.platform("meta"), console)
	first := h.accept(purchase)
	r := h.start("one", func(e *Engine) { e.timing.breaker = defaultTiming().breaker })
	h.eventuallyLike("meta", one(first, record{"retrying", 0, "unauthorized"}))
	second := h.accept(pageview)
	h.eventually("console", map[stream.Position]record{first: {"delivered", 1, ""}, second: {"delivered", 1, ""}})
	h.await("the pause, though there are two events only", func() string {
		return cmp.Diff([]any{1.0, CredentialsRejected},
			[]any{h.metric("weir_platform_paused", map[string]string{"platform": "meta"}), h.metrics.Misconfigured()["meta"]})
	})
	r.stop()
	h.setCredential("meta", "accessToken", "another-token")
	h.start("one", nil)
	h.await("deliveries", func() string {
		return cmp.Diff(map[string]int{"Purchase evt-1": 1}, map[string]int{"Purchase evt-1": fb.counts()["Purchase evt-1"]})
	})
	h.eventuallyLike("meta", map[stream.Position]record{first: {"delivered", 0, ""}, second: {"delivered", 0, ""}})
}

func TestAPlatformWithoutItsSecretWaitsForIt(t *testing.T) {
	hook := newReceiver(t, nil)
	h := newHarness(t, hook.platform("crm"))
	h.setCredential("crm", "other", "x")
	at := h.accept(purchase)
	h.start("one", nil)
	h.await("the error in the log", func() string {
		if strings.Contains(h.log.String(), `its Secret must have the key signingSecret`) {
			return ""
		}
		return "not yet"
	})
	h.setCredential("crm", "signingSecret", signingSecret)
	h.eventually("crm", one(at, record{"delivered", 1, ""}))
}

func TestASuspendedPlatformKeepsItsEvents(t *testing.T) {
	hook := newReceiver(t, nil)
	suspended := hook.platform("crm")
	suspended.Suspend = true
	h := newHarness(t, suspended, console)
	r := h.start("one", nil)
	at := h.accept(purchase)
	h.eventually("console", one(at, record{"delivered", 1, ""}))
	if got := h.records("crm"); len(got) != 0 {
		t.Errorf("the suspended platform has records: %v", got)
	}
	r.stop()
	h.property.Platforms[0].Suspend = false
	h.start("one", nil)
	h.eventually("crm", one(at, record{"delivered", 1, ""}))
}

func TestAnEntryThatCannotBeReadIsNoPoison(t *testing.T) {
	hook := newReceiver(t, nil)
	h := newHarness(t, hook.platform("crm"))
	bad := h.append(stream.Addition{Entry: []byte{0xff, 0xff}, EventID: "bad"})
	good := h.accept(purchase)
	h.start("one", nil)
	h.eventually("crm", map[stream.Position]record{bad: {"failed", 0, "undecodable"}, good: {"delivered", 1, ""}})
}

func TestRunNamesMissingOptions(t *testing.T) {
	if err := New(Options{}).Run(t.Context()); err == nil {
		t.Error("got no error")
	}
}

func TestMetricsCannotBeRegisteredTwice(t *testing.T) {
	h := newHarness(t, console)
	if _, err := NewMetrics(h.registry); err == nil {
		t.Error("got no error")
	}
}

// Events that were taken before a platform asked for a pause are put back, not sent into the pause.
func TestAPauseHoldsBackWhatWasTakenBefore(t *testing.T) {
	isolate := first(1, answer{status: 400, body: `{"error":{"code":100,"error_subcode":2804019}}`})
	throttle := answer{status: 429, header: map[string]string{"Retry-After": "2"}}
	fb := newMeta(t, func(r *http.Request) *answer {
		if a := isolate(r); a != nil {
			return a
		}
		return &throttle
	})
	h := newHarness(t, fb.platform("meta"))
	const events = 40
	positions := make([]stream.Position, events)
	for i := range positions {
		positions[i] = h.accept(pageview)
	}
	h.start("one", nil)
	h.await("all events put back", func() string {
		groups, err := h.stream.Groups(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if len(groups) != 1 {
			return "no group yet"
		}
		return cmp.Diff(int64(events), groups[0].Waiting)
	})
	if got := len(fb.batches()); got > 1+isolated+tripAfter {
		t.Errorf("Meta got %d requests, want the batch, %d that prove the pause and at most %d beside them", got, tripAfter, isolated)
	}
	fb.set(nil, accessToken)
	want := map[stream.Position]record{}
	for _, p := range positions {
		want[p] = record{"delivered", 2, ""} // the batch, and what followed the pause
	}
	h.eventually("meta", want)
}
