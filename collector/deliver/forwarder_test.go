package deliver

import (
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-dev/weir/collector/deliver/fakes"
	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/platforms"
	"github.com/weir-dev/weir/collector/stream"
)

const gdprToken, projectToken = "gdpr-token-for-tests", "project-token-for-tests"

// erasing is a property whose one platform takes erasures, with events of Ada's and of Bob's, who share a browser.
type erasing struct {
	*harness
	fake *fakes.Server
	// requests counts those of the platform's interface for erasures, and after is called behind each that was answered.
	requests atomic.Int64
	after    func()
	ids      idLog
}

// idLog are ids of messages, in the order in which they came.
type idLog struct {
	sync.Mutex
	list []string
}

var (
	adaAtHome = person{client: "home.1", user: "u-ada", email: "ada@example.com"}
	adaAway   = person{client: "away.2", email: "ada@example.com"}
	bobAtHome = person{client: "home.1", user: "u-bob", email: "bob@example.com"}
)

func newErasing(t *testing.T, kind platforms.Type, adjust func(*platforms.Platform, map[string]string)) *erasing {
	t.Helper()
	e := &erasing{after: func() {}}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		erases := strings.HasPrefix(r.URL.Path, "/api/app/data-deletions/") || strings.Count(r.Header.Get("Webhook-Id"), "-") == 5
		if erases {
			e.requests.Add(1)
			e.ids.Lock()
			e.ids.list = append(e.ids.list, r.Header.Get("Webhook-Id"))
			e.ids.Unlock()
		}
		e.fake.ServeHTTP(w, r)
		if erases {
			e.after()
		}
	}))
	credentials := map[string]string{
		"serviceAccountUsername": "weir", "serviceAccountSecret": "service-account-secret", "projectToken": projectToken, "gdprToken": gdprToken,
		"signingSecret": signingSecret,
	}
	own := maps.Clone(credentials)
	cfg := platforms.Platform{Name: "p", Type: kind, ForwardErasure: true}
	if kind == platforms.TypeMixpanel {
		cfg.Mixpanel, cfg.Endpoint = &platforms.Mixpanel{ProjectID: "42"}, server.URL
	} else {
		cfg.Webhook = &platforms.Webhook{URL: server.URL + "/hook"}
	}
	if adjust != nil {
		adjust(&cfg, own)
	}
	var err error
	if e.fake, err = fakes.New(kind, []fakes.Account{{Platform: cfg, Credentials: credentials}}, nil, time.Now); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		e.fake.Close()
		server.Close()
	})
	e.harness = newHarness(t, cfg)
	e.credentials["p"] = own
	e.keepLedger()
	return e
}

// visitors has Ada come from home and from elsewhere, and Bob from her home, and waits until the platform has them.
func (e *erasing) visitors(events ...event.Event) {
	e.t.Helper()
	if len(events) == 0 {
		events = []event.Event{adaAtHome.event(""), adaAtHome.event(""), adaAway.event(""), bobAtHome.event("")}
	}
	e.visits(e.joiner(), events...)
	delivering := e.start("one", func(e *Engine) { e.options.Ledger = nil })
	e.await("deliveries", func() string { return cmp.Diff(len(events), len(e.records("p"))) })
	delivering.stop()
}

// erasures are those that the platform has taken.
func (e *erasing) erasures() []map[string][]string {
	var taken []map[string][]string
	for _, receipt := range e.fake.Receipts() {
		if receipt.Erasure != nil {
			taken = append(taken, receipt.Erasure.Persons)
		}
		if receipt.Complaint != "" {
			e.t.Errorf("the platform complains: %s", receipt.Complaint)
		}
	}
	return taken
}

func (e *erasing) noSecretsLogged() {
	e.t.Helper()
	for _, secret := range []string{gdprToken, projectToken, "home.1", "away.2", "u-ada", hashOf("ada@example.com")} {
		if strings.Contains(e.log.String(), secret) {
			e.t.Errorf("the log shows %s:\n%s", secret, e.log)
		}
	}
}

func TestAPlatformIsAskedToEraseWhoIsErasedHere(t *testing.T) {
	ada := hashOf("ada@example.com")
	webhook := func(clients, users, emails []string) map[string][]string {
		return map[string][]string{"client_ids": clients, "user_ids": users, "emails": emails, "phones": {}}
	}
	none := []string{}
	anonymous := adaAtHome.event("")
	anonymous.Anonymous = true
	denied := adaAtHome.event("")
	denied.Consent.AnalyticsStorage = event.Denied
	for sentence, test := range map[string]struct {
		kind    platforms.Type
		subject person
		linked  bool
		events  []event.Event
		want    []map[string][]string
	}{
		"Mixpanel by a user id":   {kind: platforms.TypeMixpanel, subject: person{user: "u-ada"}, want: []map[string][]string{{"distinct_ids": {"u-ada"}}}},
		"Mixpanel by a client id": {kind: platforms.TypeMixpanel, subject: person{client: "away.2"}, want: []map[string][]string{{"distinct_ids": {"$device:away.2", "away.2"}}}},
		"Mixpanel by an address with what was seen with it": {
			kind: platforms.TypeMixpanel, subject: person{email: "ada@example.com"}, linked: true,
			want: []map[string][]string{{"distinct_ids": {"$device:away.2", "$device:home.1", "away.2", "home.1", "u-ada"}}},
		},
		"not Mixpanel by an address alone, which it does not have: the browser may be another's too": {
			kind: platforms.TypeMixpanel, subject: person{email: "ada@example.com"},
		},
		"not Mixpanel of whom it was sent nothing": {kind: platforms.TypeMixpanel, subject: person{user: "u-ada"}, events: []event.Event{denied}},
		"a receiver by an address alone":           {kind: platforms.TypeWebhook, subject: person{email: "ada@example.com"}, want: []map[string][]string{webhook(none, none, []string{ada})}},
		"a receiver by an address with what was seen with it": {
			kind: platforms.TypeWebhook, subject: person{email: "ada@example.com"}, linked: true,
			want: []map[string][]string{webhook([]string{"away.2", "home.1"}, []string{"u-ada"}, []string{ada})},
		},
		"a receiver by no id that it was not told": {
			kind: platforms.TypeWebhook, subject: person{client: "home.1", email: "ada@example.com"}, events: []event.Event{anonymous},
			want: []map[string][]string{webhook(none, none, []string{ada})},
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			e := newErasing(t, test.kind, nil)
			e.visitors(test.events...)
			e.start("two", nil)
			began := time.Now().Add(-time.Minute)
			state := e.awaitHidden(e.requestErasure(stream.ErasureRequest{Identifiers: test.subject.identifiers(), Linked: test.linked}))[0]
			if diff := cmp.Diff(test.want, e.erasures()); diff != "" {
				t.Errorf("what it was asked (-want +got):\n%s", diff)
			}
			if len(state.Unforwarded) > 0 || len(test.want) > 0 != state.Forwarded["p"].After(began) {
				t.Errorf("the state says %v, %v", state.Forwarded, state.Unforwarded)
			}
			e.noSecretsLogged()
		})
	}
}

func TestAPlatformThatTakesNoErasureKeepsNobodyFromBeingErased(t *testing.T) {
	for sentence, test := range map[string]struct {
		kind     platforms.Type
		failure  *fakes.Failure
		adjust   func(*platforms.Platform, map[string]string)
		want     string
		requests int64
	}{
		"it is down":                  {kind: platforms.TypeWebhook, failure: &fakes.Failure{Status: 503}, want: "http_503", requests: forwardTries},
		"it breaks connections off":   {kind: platforms.TypeMixpanel, failure: &fakes.Failure{Reset: true}, want: "connection_reset", requests: forwardTries},
		"it answers nonsense":         {kind: platforms.TypeMixpanel, failure: &fakes.Failure{Status: 200, Body: "<]"}, want: "answer_unreadable", requests: forwardTries},
		"it names no task":            {kind: platforms.TypeMixpanel, failure: &fakes.Failure{Status: 200, Body: `{"status":"ok"}`}, want: "answer_unreadable", requests: forwardTries},
		"it never answers":            {kind: platforms.TypeWebhook, failure: &fakes.Failure{Silent: true}, want: "timeout", requests: 2},
		"it wants a pause of an hour": {kind: platforms.TypeMixpanel, failure: &fakes.Failure{Status: 429, RetryAfter: time.Hour}, want: "throttled", requests: 1},
		"it redirects":                {kind: platforms.TypeWebhook, failure: &fakes.Failure{Status: 302, Location: "https://example.com"}, want: "redirected", requests: 1},
		"it refuses the message":      {kind: platforms.TypeWebhook, failure: &fakes.Failure{Status: 422}, want: "http_422", requests: 1},
		"it refuses the token": {
			kind: platforms.TypeMixpanel, adjust: func(_ *platforms.Platform, keys map[string]string) { keys["gdprToken"] = "expired" },
			want: "unauthorized", requests: 1,
		},
		"its Secret lacks the token": {
			kind: platforms.TypeMixpanel, adjust: func(_ *platforms.Platform, keys map[string]string) { delete(keys, "gdprToken") },
			want: reasonUnusable,
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			t.Parallel()
			e := newErasing(t, test.kind, test.adjust)
			e.visitors()
			if test.failure != nil {
				e.fake.FailAlways(*test.failure)
			}
			e.start("two", nil)
			began := time.Now()
			state := e.awaitHidden(e.requestErasure(stream.ErasureRequest{Identifiers: person{user: "u-ada"}.identifiers()}))[0]
			if took := time.Since(began); state.Events != 2 || took > 30*time.Second {
				t.Errorf("%d events are erased after %s, want both of hers", state.Events, took)
			}
			if diff := cmp.Diff(map[string]string{"p": test.want}, state.Unforwarded); diff != "" || len(state.Forwarded) > 0 {
				t.Errorf("forwarded %v; failed (-want +got):\n%s", state.Forwarded, diff)
			}
			if got := e.requests.Load(); got != test.requests {
				t.Errorf("it was asked %d times, want %d", got, test.requests)
			}
			e.noSecretsLogged()
		})
	}
}

func TestAPlatformThatFailsForAMomentIsAskedAgain(t *testing.T) {
	e := newErasing(t, platforms.TypeMixpanel, nil)
	e.visitors()
	e.fake.Fail(fakes.Failure{Status: 502}, fakes.Failure{Status: 200, Body: "{}", After: true})
	e.start("two", nil)
	state := e.awaitHidden(e.requestErasure(stream.ErasureRequest{Identifiers: person{user: "u-ada"}.identifiers()}))[0]
	if len(state.Unforwarded) > 0 || state.Forwarded["p"].IsZero() || e.requests.Load() != 3 {
		t.Errorf("%d requests: %v, %v", e.requests.Load(), state.Forwarded, state.Unforwarded)
	}
}

// TestAPlatformThatIsDownIsNotAskedForEach has many erased in one way through the events.
func TestAPlatformThatIsDownIsNotAskedForEach(t *testing.T) {
	e := newErasing(t, platforms.TypeWebhook, nil)
	var events []event.Event
	for i := range 100 {
		events = append(events, person{client: fmt.Sprint("client.", i)}.event(""))
	}
	e.visitors(events...)
	e.fake.FailAlways(fakes.Failure{Status: 503})
	var ids []string
	for _, ev := range events {
		ids = append(ids, e.requestErasure(stream.ErasureRequest{Identifiers: person{client: ev.ClientID}.identifiers()}))
	}
	e.await("the ledger", func() string {
		open, err := e.stream.OpenErasures(t.Context(), maxErasures)
		if err != nil {
			return err.Error()
		}
		return cmp.Diff(len(ids), len(open))
	})
	e.start("two", nil)
	for _, state := range e.awaitHidden(ids...) {
		if diff := cmp.Diff(map[string]string{"p": "http_503"}, state.Unforwarded); diff != "" {
			t.Errorf("failed (-want +got):\n%s", diff)
		}
	}
	if most := int64(parallelForwards * forwardTries); e.requests.Load() > most {
		t.Errorf("it was asked %d times, want %d at most", e.requests.Load(), most)
	}
}

// TestADelivererThatDiesBeforeItErasesForwardsAgain kills it when the platform has taken the erasure: the next one says the same
// again, under the same id, rather than nothing.
func TestADelivererThatDiesBeforeItErasesForwardsAgain(t *testing.T) {
	for _, kind := range []platforms.Type{platforms.TypeMixpanel, platforms.TypeWebhook} {
		t.Run(string(kind), func(t *testing.T) {
			e := newErasing(t, kind, nil)
			e.visitors()
			id := e.requestErasure(stream.ErasureRequest{Identifiers: person{user: "u-ada"}.identifiers()})
			victim := make(chan *cutWire, 1)
			var once sync.Once
			e.after = func() { once.Do(func() { (<-victim).end() }) }
			never := func() bool { return false }
			if !e.eraseUntilCutBy(t, 1_000_000, func(w *cutWire) { victim <- w }, never) {
				t.Fatal("it was not killed")
			}
			if state, err := e.stream.Erasure(t.Context(), id); err != nil || !state.Hidden.IsZero() || state.Events != 0 || len(e.positions()) != 4 {
				t.Fatalf("after the kill %+v, %v, want nothing to be erased", state, err)
			}
			e.start("two", nil)
			state := e.awaitHidden(id)[0]
			if state.Events != 2 || state.Forwarded["p"].IsZero() || len(state.Unforwarded) > 0 {
				t.Errorf("%+v", state)
			}
			taken := e.erasures()
			if len(taken) != 2 || !cmp.Equal(taken[0], taken[1]) {
				t.Errorf("it was asked %v, want the same twice", taken)
			}
			if ids := slices.Compact(slices.Clone(e.ids.list)); len(ids) != 1 {
				t.Errorf("the messages have the ids %v, want one", ids)
			}
		})
	}
}
