package query

import (
	"context"
	"errors"
	"net/http"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/weir-dev/weir/collector/analytics"
	"github.com/weir-dev/weir/collector/auth"
)

const (
	// minTurns is how many questions that may be expensive are answered at once on a machine with fewer processors.
	minTurns = 2
	// maxWaiting is how many may wait for their turn; further ones are told to come back.
	maxWaiting = 256
	// crowdedRetryAfter is when.
	crowdedRetryAfter = time.Second
	// patience is how long a question may take, its waiting included, before it is given up. It is less than the
	// server's limit for writing an answer, so that the caller is told.
	patience = 30 * time.Second
)

// turns bounds how many questions that may be expensive are answered at once, and shares the turns out among the
// callers: whoever has the fewest questions in progress is next, of those the one who waits the longest. The last
// free turn never goes to a caller who has all the others, so that one caller's questions cannot keep another's
// from beginning. It is safe for concurrent use.
type turns struct {
	limit int

	mu      sync.Mutex
	running map[caller]int
	count   int
	waiting []*waiter
}

// caller is who asks: a token, by its hash.
type caller = auth.Hash

// waiter is a question that waits for its turn; ready is closed when it has come.
type waiter struct {
	caller caller
	ready  chan struct{}
}

func newTurns() *turns {
	return &turns{limit: max(minTurns, runtime.GOMAXPROCS(0)), running: map[caller]int{}}
}

// errCrowded says that too many questions wait already.
var errCrowded = errors.New("too many questions are waiting")

// take waits for a turn, which the caller gives back with give. It fails where ctx ends first, or with [errCrowded].
func (t *turns) take(ctx context.Context, who caller) error {
	t.mu.Lock()
	if len(t.waiting) >= maxWaiting {
		t.mu.Unlock()
		return errCrowded
	}
	w := &waiter{caller: who, ready: make(chan struct{})}
	t.waiting = append(t.waiting, w)
	t.grant()
	t.mu.Unlock()

	select {
	case <-w.ready:
		return nil
	case <-ctx.Done():
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if i := slices.Index(t.waiting, w); i >= 0 {
		t.waiting = slices.Delete(t.waiting, i, i+1)
	} else {
		t.end(who) // its turn has come meanwhile
	}
	return ctx.Err()
}

// give gives a turn back.
func (t *turns) give(who caller) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.end(who)
}

func (t *turns) end(who caller) {
	t.count--
	if t.running[who]--; t.running[who] == 0 {
		delete(t.running, who)
	}
	t.grant()
}

// grant lets those begin whose turn it is.
func (t *turns) grant() {
	for t.count < t.limit {
		next := -1
		for i, w := range t.waiting {
			fewer := next < 0 || t.running[w.caller] < t.running[t.waiting[next].caller]
			if fewer && t.running[w.caller] < t.limit-1 {
				next = i
			}
		}
		if next < 0 {
			return
		}
		w := t.waiting[next]
		t.waiting = slices.Delete(t.waiting, next, next+1)
		t.count++
		t.running[w.caller]++
		close(w.ready)
	}
}

// inTurn lets a question that may be expensive wait for its turn.
func (h *Handler) inTurn(handle func(http.ResponseWriter, *http.Request, *Tenant)) func(http.ResponseWriter, *http.Request, *Tenant) {
	return func(w http.ResponseWriter, r *http.Request, t *Tenant) {
		ctx, cancel := context.WithTimeout(r.Context(), patience)
		defer cancel()
		r = r.WithContext(ctx)
		who := auth.HashOf(bearerToken(r.Header))
		if err := h.turns.take(ctx, who); err != nil {
			h.fail(w, r, err)
			return
		}
		give := sync.OnceFunc(func() { h.turns.give(who) })
		defer give()
		release, err := h.budget.Hold(answerBytes)
		if err != nil {
			h.fail(w, r, err)
			return
		}
		defer release()
		handle(&turnWriter{w, give}, r, t)
	}
}

// answerBytes is what an answer of at most [maxRows] rows takes while it is written, recordBytes an event in a listing.
const (
	answerBytes = 1 << 20
	recordBytes = 4 << 10
)

// turnWriter gives a turn back when the answer begins: it has been worked out by then, and a caller who is slow to take it
// is not to keep others waiting.
type turnWriter struct {
	http.ResponseWriter
	give func()
}

// WriteHeader begins the answer.
func (w *turnWriter) WriteHeader(status int) {
	w.give()
	w.ResponseWriter.WriteHeader(status)
}

// Write begins the answer as well.
func (w *turnWriter) Write(text []byte) (int, error) {
	w.give()
	return w.ResponseWriter.Write(text)
}

// Unwrap lets http.ResponseController reach the connection.
func (w *turnWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// page asks the view for a page of a listing, in turn where its events may have to be looked for.
func (h *Handler) page(r *http.Request, t *Tenant, q analytics.ListingQuery) (analytics.Page, error) {
	ctx, cancel := context.WithTimeout(r.Context(), patience)
	defer cancel()
	if len(q.Events) > 0 || len(q.Platforms) > 0 || len(q.Statuses) > 0 {
		who := auth.HashOf(bearerToken(r.Header))
		if err := h.turns.take(ctx, who); err != nil {
			return analytics.Page{}, err
		}
		defer h.turns.give(who)
	}
	return t.View.Listing(ctx, q)
}
