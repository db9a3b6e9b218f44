package deliver

import (
	"io"
	"net/http"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/weir-dev/weir/collector/stream"
)

// backlogs are events that wait when a deliverer starts, by their number, and what a receiver does with the attempt at one.
var backlogs = map[string]struct {
	events int
	// refused says what is answered to the attempt, from 1 on, at an event; 0 where it is taken.
	refused func(i, attempt int) int
	// never is how many events are never taken.
	never int
}{
	"each event is failed at the first time":  {events: 300, refused: func(_, attempt int) int { return when(attempt == 1, 500) }},
	"each event is refused the first time":    {events: 300, refused: func(_, attempt int) int { return when(attempt == 1, 404) }},
	"every second is refused the first time":  {events: 300, refused: func(i, attempt int) int { return when(attempt == 1 && i%2 == 0, 404) }},
	"each event is failed at the first twice": {events: 100, refused: func(_, attempt int) int { return when(attempt <= 2, 500) }},
	"a run of ten is refused":                 {events: 50, refused: func(i, _ int) int { return when(i >= 20 && i < 30, 404) }, never: 10},
	"a run of sixty is refused":               {events: 100, refused: func(i, _ int) int { return when(i >= 20 && i < 80, 404) }, never: 60},
	"a run of sixty is failed":                {events: 100, refused: func(i, _ int) int { return when(i >= 20 && i < 80, 500) }, never: 60},
	"a run of twenty has its credential refused": {
		events: 60, refused: func(i, _ int) int { return when(i >= 20 && i < 40, 401) }, never: 20,
	},
}

func when(is bool, status int) int {
	if is {
		return status
	}
	return 0
}

// However a receiver refuses the events of a backlog for a time or for their own sake, the others reach it soon: what is
// waited is measured in first pauses.
func TestABacklogIsNotStalled(t *testing.T) {
	for name, backlog := range backlogs {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var mu sync.Mutex
			attempts, numbers := map[string]int{}, map[string]int{}
			hook := newReceiver(t, func(r *http.Request) *answer {
				mu.Lock()
				defer mu.Unlock()
				id := r.Header.Get("webhook-id")
				attempts[id]++
				if status := backlog.refused(numbers[id], attempts[id]); status != 0 {
					return &answer{status: status}
				}
				return nil
			})
			h := newHarness(t, hook.platform("crm"))
			for i := range backlog.events {
				id := uuid.New()
				numbers[id.String()] = i
				h.acceptAs(id)
			}
			h.start("one", func(e *Engine) {
				e.timing.breaker = backoff{unit: 20 * time.Millisecond, cap: 30 * time.Second, floor: 10 * time.Millisecond}
				e.timing.backoff = e.timing.breaker
			})
			h.await(strconv.Itoa(backlog.events)+" events", func() string {
				return cmp.Diff(backlog.events-backlog.never, len(hook.acceptances()))
			})
		})
	}
}

// slownesses are how a receiver may keep the deliverer waiting for what comes of an event.
var slownesses = map[string]func(w http.ResponseWriter, r *http.Request){
	"never answered": func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
	"an endless preamble": func(w http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			w.WriteHeader(http.StatusEarlyHints)
			<-time.After(20 * time.Millisecond)
		}
	},
	"an endless body":    func(w http.ResponseWriter, r *http.Request) { dribble(w, r, http.StatusOK) },
	"an endless refusal": func(w http.ResponseWriter, r *http.Request) { dribble(w, r, http.StatusInternalServerError) },
}

// dribble answers with a body without an end.
func dribble(w http.ResponseWriter, r *http.Request, status int) {
	w.WriteHeader(status)
	for r.Context().Err() == nil {
		_, _ = w.Write([]byte("."))
		_ = http.NewResponseController(w).Flush()
		<-time.After(20 * time.Millisecond)
	}
}

// slowly has every second event answered so, from the first on, and returns the receiver and the ids of the others.
func slowly(t *testing.T, slowness func(http.ResponseWriter, *http.Request)) (*receiver, func(h *harness, n int) stream.Position) {
	var mu sync.Mutex
	slow := map[string]bool{}
	hook := newReceiver(t, nil)
	judge := hook.Config.Handler
	hook.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		bad := slow[r.Header.Get("webhook-id")]
		mu.Unlock()
		if !bad {
			judge.ServeHTTP(w, r)
			return
		}
		_, _ = io.Copy(io.Discard, r.Body)
		slowness(w, r)
	})
	return hook, func(h *harness, n int) stream.Position {
		id := uuid.New()
		mu.Lock()
		slow[id.String()] = n%2 == 0
		mu.Unlock()
		return h.acceptAs(id)
	}
}

// Events that keep the deliverer waiting keep no others waiting: these are all there before the first of those is given up.
func TestSlowEventsKeepNoOthersWaiting(t *testing.T) {
	for name, slowness := range slownesses {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			hook, accept := slowly(t, slowness)
			h := newHarness(t, hook.platform("crm"))
			const events = 6 * parallelRequests
			for i := range events {
				accept(h, i)
			}
			h.start("one", func(e *Engine) {
				e.timing.slow, e.timing.request, e.options.DrainTimeout = 50*time.Millisecond, time.Minute, 10*time.Millisecond
			})
			h.await("the others", func() string { return cmp.Diff(events/2, len(hook.acceptances())) })
		})
	}
}

// Events that are given up one after another pause nothing while others are taken.
func TestTimeoutsAmongOthersPauseNothing(t *testing.T) {
	hook, accept := slowly(t, slownesses["never answered"])
	h := newHarness(t, hook.platform("crm"))
	h.start("one", func(e *Engine) {
		hour := backoff{unit: time.Hour, cap: time.Hour, floor: time.Hour}
		e.timing.breaker, e.timing.backoff = hour, hour
		e.timing.slow, e.timing.request, e.options.DrainTimeout = 50*time.Millisecond, 500*time.Millisecond, 10*time.Millisecond
	})
	const events = 6 * parallelRequests
	for i := range events {
		accept(h, i)
	}
	h.await("the others", func() string { return cmp.Diff(events/2, len(hook.acceptances())) })
	h.await("the slow ones", func() string {
		retrying := 0
		for _, r := range h.records("crm") {
			if r.Status == "retrying" && r.Reason == "timeout" {
				retrying++
			}
		}
		return cmp.Diff(events/2, retrying)
	})
	if got := h.metric("weir_platform_paused", map[string]string{"platform": "crm"}); got != 0 {
		t.Errorf("the platform is paused: %v\n%s", got, h.log)
	}
}

// A webhook's answer is its status, however long its body takes.
func TestAWebhookIsJudgedByItsStatus(t *testing.T) {
	for status, want := range map[int]record{
		200: {"delivered", 1, ""}, 202: {"delivered", 1, ""}, 422: {"failed", 1, "http_422"},
		404: {"retrying", 1, "http_404"}, 500: {"retrying", 1, "http_500"},
	} {
		t.Run(strconv.Itoa(status), func(t *testing.T) {
			t.Parallel()
			hook := newReceiver(t, nil)
			hook.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				dribble(w, r, status)
			})
			h := newHarness(t, hook.platform("crm"))
			at := h.accept(pageview)
			h.start("one", func(e *Engine) {
				e.timing.request, e.options.DrainTimeout = time.Minute, 10*time.Millisecond
				e.timing.backoff = backoff{unit: time.Hour, cap: time.Hour, floor: time.Hour}
			})
			h.eventually("crm", one(at, want))
		})
	}
}
