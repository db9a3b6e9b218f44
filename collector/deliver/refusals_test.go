package deliver

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/weir-dev/weir/collector/deliver/adapter"
	"github.com/weir-dev/weir/collector/platforms"
	"github.com/weir-dev/weir/collector/stream"
)

// refusals are what a receiver may answer instead of taking an event.
var refusals = map[string]struct {
	status     int
	retryAfter string
	// ends is what becomes of an event that is always answered so: "" where it is tried until it is too old.
	ends string
}{
	"301":                  {status: 301, ends: "redirected"},
	"401":                  {status: 401, ends: "unauthorized"},
	"403":                  {status: 403, ends: "http_403"},
	"404":                  {status: 404, ends: "http_404"},
	"405":                  {status: 405, ends: "http_405"},
	"410":                  {status: 410, ends: "http_410"},
	"426":                  {status: 426, ends: "http_426"},
	"408":                  {status: 408},
	"425":                  {status: 425},
	"429":                  {status: 429},
	"429 with Retry-After": {status: 429, retryAfter: "30"},
	"500":                  {status: 500},
	"502":                  {status: 502},
	"503":                  {status: 503},
	"503 with Retry-After": {status: 503, retryAfter: "30"},
}

// shares are the events that are refused, by their number.
var refusedShares = map[string]struct {
	refused func(i int) bool
	// all says that the platform is to be stopped.
	all bool
}{
	"one event":                {refused: func(i int) bool { return i == 50 }},
	"every second event":       {refused: func(i int) bool { return i%2 == 1 }},
	"every third event":        {refused: func(i int) bool { return i%3 == 1 }},
	"every hundredth event":    {refused: func(i int) bool { return i%100 == 50 }},
	"two in a row, repeatedly": {refused: func(i int) bool { return i%20 < 2 }},
	"all events":               {refused: func(int) bool { return true }, all: true},
	"all from the middle on":   {refused: func(i int) bool { return i >= 500 }, all: true},
}

const (
	simulated = 1000                 // events, one a millisecond
	roundTrip = 3 * time.Millisecond // of a request
)

// simulation sends events through a circuit breaker to a receiver, all in virtual time.
type simulation struct {
	breaker   *breaker
	scheduler scheduler
	adapter   adapter.Adapter
	refuse    func(i int) *adapter.Response

	requests atomic.Int64
	mu       sync.Mutex
	// waited is how long after its time an event that is not refused was delivered; failed the reasons of those that failed.
	waited map[int]time.Duration
	failed map[int]string
}

// send sends one event until it is delivered, has failed or the context ends.
func (s *simulation) send(ctx context.Context, i int, k kind) {
	accepted := time.Now()
	for attempts := 1; ; attempts++ {
		p, err := s.breaker.acquire(ctx, k)
		if err != nil {
			return
		}
		s.requests.Add(1)
		<-time.After(roundTrip)
		answer := adapter.Response{Status: http.StatusNoContent, At: time.Now()}
		if refusal := s.refuse(i); refusal != nil {
			answer = *refusal
		}
		verdict := s.adapter.Classify(answer, 1)[0]
		verdict = s.scheduler.judge(verdict, s.breaker.record(p, stream.Position(i+1), verdict, roundTrip))
		settlement := s.scheduler.settlement(task{position: stream.Position(i + 1), attempts: attempts,
			payload: adapter.Payload{Expires: time.Now().Add(time.Hour)}}, verdict, roundTrip)
		switch settlement.Status {
		case stream.Delivered:
			s.mu.Lock()
			s.waited[i] = time.Since(accepted) - roundTrip
			s.mu.Unlock()
			return
		case stream.Failed:
			s.mu.Lock()
			s.failed[i] = verdict.Reason
			s.mu.Unlock()
			return
		}
		k = retries
		select {
		case <-ctx.Done():
			return
		case <-time.After(time.Until(settlement.RetryAt)):
		}
	}
}

// run sends all events, first the ones that were attempted before, and goes on with those refused until the context ends.
func (s *simulation) run(ctx context.Context, attempted int) {
	var senders sync.WaitGroup
	defer senders.Wait()
	for i := range attempted {
		senders.Go(func() { s.send(ctx, -1-i, retries) })
	}
	for i := range simulated {
		senders.Go(func() { s.send(ctx, i, newEvents) })
		<-time.After(time.Millisecond)
	}
}

func newSimulation(t *testing.T, refuse func(i int) *adapter.Response) *simulation {
	t.Helper()
	opened, err := adapter.Open(
		platforms.Platform{Name: "crm", Type: platforms.TypeWebhook, Settings: platforms.Settings{Webhook: &platforms.Webhook{URL: "https://crm.example/"}}},
		map[string]string{"signingSecret": signingSecret}, platforms.ConsentRule{})
	if err != nil {
		t.Fatal(err)
	}
	return &simulation{
		breaker: testBreaker(), scheduler: scheduler{defaultTiming().backoff, time.Now, time.Now},
		adapter: opened, refuse: refuse, waited: map[int]time.Duration{}, failed: map[int]string{},
	}
}

// A receiver that refuses some events and takes the others is sent the others without delay, whatever it answers; one
// that refuses all is sent a few.
func TestRefusals(t *testing.T) {
	for name, refusal := range refusals {
		for which, shared := range refusedShares {
			t.Run(name+" to "+which, func(t *testing.T) {
				answer := adapter.Response{Status: refusal.status, Header: http.Header{}}
				if refusal.retryAfter != "" {
					answer.Header.Set("Retry-After", refusal.retryAfter)
				}
				synctest.Test(t, func(t *testing.T) {
					s := newSimulation(t, func(i int) *adapter.Response {
						if shared.refused(i) {
							return &answer
						}
						return nil
					})
					ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
					defer cancel()
					s.run(ctx, 0)
					if shared.all {
						s.assertStopped(t, which)
						return
					}
					s.assertUndelayed(t, shared.refused)
				})
			})
		}
	}
}

func (s *simulation) assertUndelayed(t *testing.T, refused func(i int) bool) {
	t.Helper()
	for i := range simulated {
		if waited, delivered := s.waited[i]; !refused(i) && (!delivered || waited > 0) {
			t.Fatalf("event %d was delivered: %t, after %s; want it without delay", i, delivered, waited)
		}
	}
	if p, err := s.breaker.acquire(t.Context(), newEvents); err != nil || p.probe {
		t.Errorf("got %+v, %v; want a closed breaker", p, err)
	}
}

func (s *simulation) assertStopped(t *testing.T, which string) {
	t.Helper()
	wasted := s.requests.Load() - int64(len(s.waited))
	// Those that prove it, those that are under way meanwhile, and a probe after one second and after two.
	if most := int64(tripAfter + roundTrip/time.Millisecond + 5); wasted > most {
		t.Errorf("%s: %d requests were refused, want at most %d", which, wasted, most)
	}
	if s.breaker.metrics.reason == "" {
		t.Error("the platform is not paused")
	}
	if len(s.failed) > 0 {
		t.Errorf("events have failed: %v", s.failed)
	}
}

// An event that is refused for its own sake ends as the table says, and not before others were taken between its attempts.
func TestWhatBecomesOfARefusedEvent(t *testing.T) {
	for name, refusal := range refusals {
		for traffic, interval := range map[string]time.Duration{"with others": time.Second, "without others": 0} {
			t.Run(name+" "+traffic, func(t *testing.T) {
				answer := adapter.Response{Status: refusal.status, Header: http.Header{}}
				if refusal.retryAfter != "" {
					answer.Header.Set("Retry-After", refusal.retryAfter)
				}
				synctest.Test(t, func(t *testing.T) {
					s := newSimulation(t, func(i int) *adapter.Response {
						if i == 0 {
							return &answer
						}
						return nil
					})
					ctx, cancel := context.WithTimeout(t.Context(), 6*time.Hour)
					defer cancel()
					var senders sync.WaitGroup
					senders.Go(func() { s.send(ctx, 0, newEvents) })
					for i := 1; interval > 0 && ctx.Err() == nil; i++ {
						senders.Go(func() { s.send(ctx, i, newEvents) })
						<-time.After(interval)
					}
					senders.Wait()
					want := map[int]string{}
					if refusal.ends != "" && interval > 0 {
						want[0] = refusal.ends
					}
					if diff := cmp.Diff(want, s.failed); diff != "" {
						t.Errorf("failed (-want +got):\n%s", diff)
					}
					if paused := s.breaker.metrics.reason != ""; interval > 0 && paused {
						t.Error("the platform is paused for one event's sake")
					}
				})
			})
		}
	}
}

// Many events that were refused before, as after a replay, are refused again while new ones come in.
func TestAReplayOfRefusedEventsDelaysNoOther(t *testing.T) {
	for name, refusal := range refusals {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSimulation(t, func(i int) *adapter.Response {
					if i < 0 {
						return &adapter.Response{Status: refusal.status, Header: http.Header{}}
					}
					return nil
				})
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				s.run(ctx, 500)
				s.assertUndelayed(t, func(int) bool { return false })
			})
		})
	}
}

// A single event that is refused with nothing else to be sent is reported as what it may be, and the next event is sent at once
// all the same. It takes the attempts that are evidence, with the longest pauses that may be drawn between them, and a probe.
func TestALoneRefusedEventIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSimulation(t, func(i int) *adapter.Response {
			if i == 0 {
				return &adapter.Response{Status: 401}
			}
			return nil
		})
		ctx, cancel := context.WithCancel(t.Context())
		var sender sync.WaitGroup
		sender.Go(func() { s.send(ctx, 0, newEvents) })
		timing := defaultTiming()
		within := timing.breaker.ceiling(0) + (tripAfter+2)*roundTrip
		for attempt := range tripAfter {
			within += timing.backoff.ceiling(attempt)
		}
		<-time.After(within + time.Millisecond)
		if got := s.breaker.metrics.metrics.Misconfigured()["crm"]; got != CredentialsRejected {
			t.Errorf("the platform is %q, want %q", got, CredentialsRejected)
		}
		for s.breaker.probing(retries) {
			<-time.After(roundTrip) // its outcome would be newer than the next event's
		}
		s.send(ctx, 1, newEvents)
		if waited, delivered := s.waited[1]; !delivered || waited > 0 {
			t.Errorf("the next event was delivered: %t, after %s; want it without delay", delivered, waited)
		}
		if got := s.breaker.metrics.reason; got != "" {
			t.Errorf("the platform is paused for %s though it took an event", got)
		}
		cancel()
		sender.Wait()
	})
}

func (b *breaker) probing(k kind) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.circuits[k].probing
}

// poisons are what one event may do to its receiver; the others are taken.
var poisons = map[string]failure{
	"a redirect":         always(answer{status: 301, header: map[string]string{"Location": "/elsewhere"}}),
	"a 401":              always(answer{status: 401}),
	"a 403":              always(answer{status: 403}),
	"a 404":              always(answer{status: 404}),
	"a 410":              always(answer{status: 410}),
	"a 429":              always(answer{status: 429}),
	"a 429 for an hour":  always(answer{status: 429, header: map[string]string{"Retry-After": "3600"}}),
	"a 500":              always(answer{status: 500}),
	"a 503 for an hour":  always(answer{status: 503, header: map[string]string{"Retry-After": "3600"}}),
	"a status of 999":    always(answer{status: 999}),
	"no answer":          func(r *http.Request) *answer { <-r.Context().Done(); return &answer{status: 200} },
	"a connection's end": func(*http.Request) *answer { panic(http.ErrAbortHandler) },
	"a huge refusal":     always(answer{status: 404, body: strings.Repeat("x", 4*maxAnswer)}),
	"huge headers":       always(answer{status: 404, header: map[string]string{"X-Long": strings.Repeat("x", 4*maxAnswer)}}),
}

// The same with the whole deliverer: were the platform paused but once, none of the events behind would come.
func TestOnePoisonedEventPausesNothing(t *testing.T) {
	for name, poison := range poisons {
		t.Run("a webhook: "+name, func(t *testing.T) {
			t.Parallel()
			id := uuid.New()
			hook := newReceiver(t, func(r *http.Request) *answer {
				if r.Header.Get("webhook-id") == id.String() {
					return poison(r)
				}
				return nil
			})
			h := newHarness(t, hook.platform("crm"))
			assertOthersDelivered(h, "crm", h.acceptAs(id))
		})
		t.Run("a batch: "+name, func(t *testing.T) {
			t.Parallel()
			fb := newMeta(t, nil)
			judge := fb.Config.Handler
			fb.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, err := io.ReadAll(r.Body)
				if err != nil {
					return // the engine gave up
				}
				if bytes.Contains(body, []byte(`"evt-1"`)) {
					poison(r).soon().write(w) // the others of its batch wait at first too
					return
				}
				r.Body = io.NopCloser(bytes.NewReader(body))
				judge.ServeHTTP(w, r)
			})
			h := newHarness(t, fb.platform("meta"))
			for range 30 {
				h.accept(pageview) // in one batch with it
			}
			assertOthersDelivered(h, "meta", h.accept(purchase))
		})
	}
}

func assertOthersDelivered(h *harness, name string, poisoned stream.Position) {
	h.t.Helper()
	h.start("one", func(e *Engine) {
		hour := backoff{unit: time.Hour, cap: time.Hour, floor: time.Hour}
		e.timing.breaker, e.timing.request, e.options.DrainTimeout = hour, time.Second, 10*time.Millisecond
	})
	for range 20 {
		h.accept(pageview)
		<-time.After(5 * time.Millisecond)
	}
	bounds, err := h.stream.Bounds(h.t.Context())
	if err != nil {
		h.t.Fatal(err)
	}
	h.await("the others", func() string {
		delivered := 0
		for position, r := range h.records(name) {
			if r.Status == "delivered" && position != poisoned {
				delivered++
			}
		}
		return cmp.Diff(int(bounds.Length)-1, delivered)
	})
	h.await("the poisoned event", func() string {
		if got := h.records(name)[poisoned]; got.Status != "retrying" {
			return fmt.Sprint(got)
		}
		return ""
	})
	if got := h.metric("weir_platform_paused", map[string]string{"platform": name}); got != 0 {
		h.t.Errorf("the platform is paused: %v\n%s", got, h.log)
	}
}
