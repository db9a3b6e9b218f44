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

// crowd takes turns for callers, who are known by a letter.
type crowd struct {
	*testing.T
	turns *turns
	// begun holds the callers in the order in which their turns came.
	begun []byte
}

func who(letter byte) caller { return auth.HashOf(string(letter)) }

// ask lets a caller wait for a turn until ctx ends.
func (c *crowd) ask(ctx context.Context, letter byte) {
	go func() {
		if err := c.turns.take(ctx, who(letter)); err == nil {
			c.turns.mu.Lock()
			c.begun = append(c.begun, letter)
			c.turns.mu.Unlock()
		}
	}()
	synctest.Wait()
}

func (c *crowd) expect(want string) {
	c.Helper()
	synctest.Wait()
	if string(c.begun) != want {
		c.Fatalf("turns came to %q, want %q", c.begun, want)
	}
}

func TestOneCallersQuestionsDoNotKeepAnothersFromBeginning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &crowd{T: t, turns: &turns{limit: 3, running: map[caller]int{}}}
		for range 5 {
			c.ask(t.Context(), 'a')
		}
		c.expect("aa") // the third turn is left for others
		c.ask(t.Context(), 'b')
		c.expect("aab")
		c.ask(t.Context(), 'c')
		c.turns.give(who('a'))
		c.expect("aabc") // a has waited longer, and has a turn still
		c.turns.give(who('b'))
		c.expect("aabca")
	})
}

func TestWhoHasGivenUpTakesNoTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &crowd{T: t, turns: &turns{limit: 2, running: map[caller]int{}}}
		c.ask(t.Context(), 'a')
		abandoned, abandon := context.WithCancel(t.Context())
		c.ask(abandoned, 'a')
		c.ask(t.Context(), 'a')
		c.expect("a")
		abandon()
		synctest.Wait()
		c.turns.give(who('a'))
		c.expect("aa")
		c.turns.give(who('a'))
		if c.turns.count != 0 || len(c.turns.running) != 0 || len(c.turns.waiting) != 0 {
			t.Errorf("at the end %d turns are taken and %d wait, want none", c.turns.count, len(c.turns.waiting))
		}
	})
}

func TestTooManyWaitingAreToldToComeBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &crowd{T: t, turns: &turns{limit: 2, running: map[caller]int{}}}
		waiting, end := context.WithCancel(t.Context())
		for range maxWaiting + 1 {
			c.ask(waiting, 'a')
		}
		if err := c.turns.take(t.Context(), who('b')); !errors.Is(err, errCrowded) {
			t.Errorf("got %v, want errCrowded", err)
		}
		end()
	})
}

func TestAnAbandonedRequestDoesNotWaitForItsTurn(t *testing.T) {
	h := New(Options{Logger: slog.New(slog.DiscardHandler), Now: time.Now})
	h.turns.limit = 0 // no turn ever comes
	handle := h.inTurn(func(http.ResponseWriter, *http.Request, *Tenant) { t.Error("the question was asked") })
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	answer := httptest.NewRecorder()
	handle(answer, httptest.NewRequestWithContext(ctx, http.MethodGet, "/", http.NoBody), nil)
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

func TestAQuestionThatTakesTooLongIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := New(Options{Logger: slog.New(slog.DiscardHandler), Now: time.Now})
		handle := h.inTurn(func(w http.ResponseWriter, r *http.Request, _ *Tenant) {
			<-r.Context().Done() // as the view does, which looks at it again and again
			h.fail(w, r, r.Context().Err())
		})
		answer := httptest.NewRecorder()
		began := time.Now()
		handle(answer, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", http.NoBody), nil)
		if took := time.Since(began); answer.Code != http.StatusServiceUnavailable || took != patience {
			t.Errorf("got %d after %s, want 503 after %s", answer.Code, took, patience)
		}
		if h.turns.count != 0 {
			t.Error("its turn was not given back")
		}
	})
}
