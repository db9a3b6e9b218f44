package query

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-dev/weir/collector/analytics"
	"github.com/weir-dev/weir/collector/auth"
)

// crowd queues for callers, who are known by a letter.
type crowd struct {
	*testing.T
	queue *fairQueue
	// begun holds the callers in the order in which they were let in.
	begun []byte
}

func who(letter byte) caller { return auth.HashOf(string(letter)) }

// ask lets a caller wait in the queue until ctx ends.
func (c *crowd) ask(ctx context.Context, letter byte) {
	go func() {
		if err := c.queue.acquire(ctx, who(letter)); err == nil {
			c.queue.mu.Lock()
			c.begun = append(c.begun, letter)
			c.queue.mu.Unlock()
		}
	}()
	synctest.Wait()
}

func (c *crowd) expect(want string) {
	c.Helper()
	synctest.Wait()
	if string(c.begun) != want {
		c.Fatalf("the queue let in %q, want %q", c.begun, want)
	}
}

func TestOneCallersQueriesDoNotKeepAnothersFromBeginning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &crowd{T: t, queue: &fairQueue{limit: 3, running: map[caller]int{}}}
		for range 5 {
			c.ask(t.Context(), 'a')
		}
		c.expect("aa") // the third slot is left for others
		c.ask(t.Context(), 'b')
		c.expect("aab")
		c.ask(t.Context(), 'c')
		c.queue.release(who('a'))
		c.expect("aabc") // a has waited longer, and has a slot still
		c.queue.release(who('b'))
		c.expect("aabca")
	})
}

func TestWhoHasGivenUpTakesNoTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &crowd{T: t, queue: &fairQueue{limit: 2, running: map[caller]int{}}}
		c.ask(t.Context(), 'a')
		abandoned, abandon := context.WithCancel(t.Context())
		c.ask(abandoned, 'a')
		c.ask(t.Context(), 'a')
		c.expect("a")
		abandon()
		synctest.Wait()
		c.queue.release(who('a'))
		c.expect("aa")
		c.queue.release(who('a'))
		if c.queue.count != 0 || len(c.queue.running) != 0 || len(c.queue.waiting) != 0 {
			t.Errorf("at the end %d slots are taken and %d wait, want none", c.queue.count, len(c.queue.waiting))
		}
	})
}

func TestTooManyWaitingAreToldToComeBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &crowd{T: t, queue: &fairQueue{limit: 2, running: map[caller]int{}}}
		waiting, end := context.WithCancel(t.Context())
		for range maxWaiting + 1 {
			c.ask(waiting, 'a')
		}
		if err := c.queue.acquire(t.Context(), who('b')); !errors.Is(err, errQueueFull) {
			t.Errorf("got %v, want errQueueFull", err)
		}
		end()
	})
}

func TestAnAbandonedRequestDoesNotWaitForItsTurn(t *testing.T) {
	h := New(Options{Logger: slog.New(slog.DiscardHandler), Now: time.Now})
	h.queue.limit = 0 // no slot is ever free
	handle := h.queued(func(http.ResponseWriter, *http.Request, *Tenant) { t.Error("the query ran") })
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	answer := httptest.NewRecorder()
	handle(answer, httptest.NewRequestWithContext(ctx, http.MethodGet, "/", http.NoBody), &Tenant{})
	if answer.Code != http.StatusServiceUnavailable || answer.Header().Get("Retry-After") == "" {
		t.Errorf("got %d with Retry-After %q, want 503 with one", answer.Code, answer.Header().Get("Retry-After"))
	}
}

func TestAViewThatIsBeingBuiltAnewIsAskedLater(t *testing.T) {
	h := New(Options{Logger: slog.New(slog.DiscardHandler), Now: time.Now})
	answer := httptest.NewRecorder()
	h.fail(answer, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", http.NoBody), analytics.ErrReplaying)
	if answer.Code != http.StatusServiceUnavailable || answer.Header().Get("Retry-After") == "" {
		t.Errorf("got %d with Retry-After %q, want 503 with one", answer.Code, answer.Header().Get("Retry-After"))
	}
}

func TestAQueryThatTakesTooLongIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := New(Options{Logger: slog.New(slog.DiscardHandler), Now: time.Now})
		handle := h.queued(func(w http.ResponseWriter, r *http.Request, _ *Tenant) {
			<-r.Context().Done() // as the view does, which looks at it again and again
			h.fail(w, r, r.Context().Err())
		})
		answer := httptest.NewRecorder()
		began := time.Now()
		handle(answer, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", http.NoBody), &Tenant{})
		if took := time.Since(began); answer.Code != http.StatusServiceUnavailable || took != queryTimeout {
			t.Errorf("got %d after %s, want 503 after %s", answer.Code, took, queryTimeout)
		}
		if h.queue.count != 0 {
			t.Error("its slot was not given back")
		}
	})
}
