package deliver

import (
	"context"
	"sync"
	"time"
)

const (
	// parallelRequests is how many requests one platform of a property gets at a time, at most.
	parallelRequests = 64
	// slowRequests is how many may be open beside those that have not been answered for long; see [request].
	slowRequests = 256
	// parallelEvents is how many events those may carry together, so that large batches do not fill the memory; the slow
	// ones may carry as many.
	parallelEvents = 10_000
	// firstRequests is how many a platform gets at a time until it has answered: with every answer that is not a
	// failure it gets one more.
	firstRequests = 4
)

// limiter is a concurrency limiter: it bounds the requests that are under way. The limit grows from firstRequests with every
// success, is halved where the platform throttles and begins anew when the circuit breaker opens, so that a platform that is
// down costs a few requests and not all of them. Retries get at most half of it: new events are not starved by them.
type limiter struct {
	max, maxSlow int

	mu    sync.Mutex
	limit int
	// inFlight are the requests that count against the limit, slow those that do not any more.
	inFlight, slow [kinds]int
	change         chan struct{} // closed and replaced when one who waits may look again
}

// newLimiter makes a limiter of requests with so many events each.
func newLimiter(events int) *limiter {
	room := max(1, parallelEvents/events)
	most := min(parallelRequests, room)
	return &limiter{max: most, maxSlow: min(slowRequests, room), limit: min(firstRequests, most), change: make(chan struct{})}
}

// acquire waits until a request is allowed and takes as many as are, at most most. It returns 0 when the context has ended.
func (l *limiter) acquire(ctx context.Context, k kind, most int) int {
	for {
		l.mu.Lock()
		free := l.limit - l.inFlight[newEvents] - l.inFlight[retries]
		switch k {
		case retries:
			free = min(free, max(1, l.limit/2)-l.inFlight[retries])
		default:
			// The last one is theirs: who takes new events holds what it got while it waits for some.
			free = min(free, max(1, l.limit-1)-l.inFlight[newEvents])
		}
		if n := min(free, most); n > 0 && ctx.Err() == nil {
			l.inFlight[k] += n
			l.mu.Unlock()
			return n
		}
		change := l.change
		l.mu.Unlock()
		select {
		case <-change:
		case <-ctx.Done():
			return 0
		}
	}
}

func (l *limiter) release(k kind, n int) {
	if n == 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.inFlight[k] -= n
	l.announce()
}

// request is one that is under way. One that is slow stops counting against the limit while others succeed: an event that a
// platform never answers says nothing about the platform's speed.
type request struct {
	limiter *limiter
	kind    kind
	timer   *time.Timer
	// slow says that it does not count against the limit any more, answered that it has ended.
	slow, answered bool
}

// begin notes that a request that was acquired begins. Once it has taken for longer than slow it makes room for another, if
// others have succeeded since; a few may without.
func (l *limiter) begin(k kind, slow time.Duration, succeeded func(since time.Time) bool) *request {
	start, r := time.Now(), &request{limiter: l, kind: k}
	l.mu.Lock()
	defer l.mu.Unlock()
	r.timer = time.AfterFunc(slow, func() {
		proven := succeeded(start)
		l.mu.Lock()
		defer l.mu.Unlock()
		switch {
		case r.answered:
		case l.roomForSlow(k, proven):
			r.slow = true
			l.inFlight[k]--
			l.slow[k]++
			l.announce()
		default:
			r.timer.Reset(slow)
		}
	})
	return r
}

// roomForSlow says whether one more slow request may be open. Retries leave half of them to new events, as of the limit; the
// lock is held.
func (l *limiter) roomForSlow(k kind, proven bool) bool {
	all := l.slow[newEvents] + l.slow[retries]
	return all < l.maxSlow && (k == newEvents || l.slow[retries] < l.maxSlow/2) && (proven || all < tripAfter)
}

// answer notes that the request has ended: from now on it is not the platform that is waited for.
func (r *request) answer() {
	r.limiter.mu.Lock()
	defer r.limiter.mu.Unlock()
	r.answered = true
	r.timer.Stop()
}

// release makes room for another.
func (r *request) release() {
	r.limiter.mu.Lock()
	defer r.limiter.mu.Unlock()
	if r.slow {
		r.limiter.slow[r.kind]--
	} else {
		r.limiter.inFlight[r.kind]--
	}
	r.limiter.announce()
}

// increase allows one more request at a time.
func (l *limiter) increase() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.limit < l.max {
		l.limit++
		l.announce()
	}
}

// halve lets half as many requests run at a time, but no fewer than at the beginning: so the rate is found that a platform takes
// which throttles some requests and takes others.
func (l *limiter) halve() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.limit = max(min(firstRequests, l.max), l.limit/2)
}

// reset begins anew.
func (l *limiter) reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.limit = min(firstRequests, l.max)
}

func (l *limiter) announce() {
	close(l.change)
	l.change = make(chan struct{})
}
