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
	// minRunning is how many queries that may be expensive run at once on a machine with fewer processors.
	minRunning = 2
	// maxWaiting is how long the queue may be; further queries are told to come back.
	maxWaiting = 256
	// busyRetryAfter is when.
	busyRetryAfter = time.Second
	// queryTimeout is how long a query may take, its waiting included, before it is given up. It is less than the
	// server's limit for writing an answer, so that the caller is told.
	queryTimeout = 30 * time.Second
)

// fairQueue bounds how many queries that may be expensive run at once, and is fair to the callers: whoever has the
// fewest queries running is next, of those the one who waits the longest. The last free slot never goes to a caller who
// has all the others, so that one caller's queries cannot keep another's from beginning. It is safe for concurrent use.
type fairQueue struct {
	// limit is how many queries run at once.
	limit int

	mu      sync.Mutex
	running map[caller]int
	count   int
	waiting []*waiter
}

// caller is who asks: a token, by its hash.
type caller = auth.Hash

// waiter is a query in the queue; ready is closed when it may run.
type waiter struct {
	caller caller
	ready  chan struct{}
}

func newFairQueue() *fairQueue {
	return &fairQueue{limit: max(minRunning, runtime.GOMAXPROCS(0)), running: map[caller]int{}}
}

// errQueueFull says that too many queries wait already.
var errQueueFull = errors.New("too many queries are waiting")

// acquire waits for a slot, which the caller gives back with release. It fails where ctx ends first, or with [errQueueFull].
func (q *fairQueue) acquire(ctx context.Context, who caller) error {
	q.mu.Lock()
	if len(q.waiting) >= maxWaiting {
		q.mu.Unlock()
		return errQueueFull
	}
	w := &waiter{caller: who, ready: make(chan struct{})}
	q.waiting = append(q.waiting, w)
	q.grant()
	q.mu.Unlock()

	select {
	case <-w.ready:
		return nil
	case <-ctx.Done():
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if i := slices.Index(q.waiting, w); i >= 0 {
		q.waiting = slices.Delete(q.waiting, i, i+1)
	} else {
		q.end(who) // it was given a slot meanwhile
	}
	return ctx.Err()
}

// release gives a slot back.
func (q *fairQueue) release(who caller) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.end(who)
}

func (q *fairQueue) end(who caller) {
	q.count--
	if q.running[who]--; q.running[who] == 0 {
		delete(q.running, who)
	}
	q.grant()
}

// grant gives free slots to those who are next.
func (q *fairQueue) grant() {
	for q.count < q.limit {
		next := -1
		for i, w := range q.waiting {
			fewer := next < 0 || q.running[w.caller] < q.running[q.waiting[next].caller]
			if fewer && q.running[w.caller] < q.limit-1 {
				next = i
			}
		}
		if next < 0 {
			return
		}
		w := q.waiting[next]
		q.waiting = slices.Delete(q.waiting, next, next+1)
		q.count++
		q.running[w.caller]++
		close(w.ready)
	}
}

// queued lets a query that may be expensive wait in the queue.
func (h *Handler) queued(handle func(http.ResponseWriter, *http.Request, *Tenant)) func(http.ResponseWriter, *http.Request, *Tenant) {
	return func(w http.ResponseWriter, r *http.Request, t *Tenant) {
		ctx, cancel := context.WithTimeout(r.Context(), queryTimeout)
		defer cancel()
		r = r.WithContext(ctx)
		who := t.reader.Hash
		if err := h.queue.acquire(ctx, who); err != nil {
			h.fail(w, r, err)
			return
		}
		releaseSlot := sync.OnceFunc(func() { h.queue.release(who) })
		defer releaseSlot()
		release, err := h.budget.Hold(answerBytes)
		if err != nil {
			h.fail(w, r, err)
			return
		}
		defer release()
		handle(&releasingWriter{w, releaseSlot}, r, t)
	}
}

// answerBytes is what an answer of at most [maxRows] rows takes while it is written, recordBytes an event in a listing.
const (
	answerBytes = 1 << 20
	recordBytes = 4 << 10
)

// releasingWriter gives a slot back when the answer begins: it has been worked out by then, and a caller who is slow to take it
// is not to keep others waiting.
type releasingWriter struct {
	http.ResponseWriter
	releaseSlot func()
}

// WriteHeader begins the answer.
func (w *releasingWriter) WriteHeader(status int) {
	w.releaseSlot()
	w.ResponseWriter.WriteHeader(status)
}

// Write begins the answer as well.
func (w *releasingWriter) Write(text []byte) (int, error) {
	w.releaseSlot()
	return w.ResponseWriter.Write(text)
}

// Unwrap lets http.ResponseController reach the connection.
func (w *releasingWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// page asks the view for a page of a listing, by way of the queue where its events may have to be looked for.
func (h *Handler) page(r *http.Request, t *Tenant, q analytics.ListingQuery) (analytics.Page, error) {
	ctx, cancel := context.WithTimeout(r.Context(), queryTimeout)
	defer cancel()
	if len(q.Events) > 0 || len(q.Platforms) > 0 || len(q.Statuses) > 0 || looksUp(q) || q.Count {
		who := t.reader.Hash
		if err := h.queue.acquire(ctx, who); err != nil {
			return analytics.Page{}, err
		}
		defer h.queue.release(who)
	}
	return t.Engine.Listing(ctx, q)
}
