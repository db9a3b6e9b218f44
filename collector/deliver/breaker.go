package deliver

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/weir-dev/weir/collector/deliver/adapter"
	"github.com/weir-dev/weir/collector/stream"
)

// poisonAttempts is how often an event may be refused for its own sake, by a status that would open the circuit were it
// answered to all, before it has failed: with the pauses between attempts that takes an hour or two.
const poisonAttempts = 20

// breaker is the circuit breaker of one platform. It opens while the platform rate limits, refuses the credential, is
// misconfigured or does not work at all. When the pause is over it is half-open: requests with one event go through as probes,
// one after another. The first that succeeds closes it; if none does it opens again, for longer.
//
// It has two circuits. That of new events holds everything back, and opens when different new events fail. That of
// retries holds back those alone, so that however many of them fail no new event waits.
type breaker struct {
	backoff backoff
	// slow is for how long a request may be under way before what succeeded meanwhile speaks for the platform.
	slow    time.Duration
	now     func() time.Time
	logger  *slog.Logger
	metrics *pauseMetrics
	limiter *limiter

	mu       sync.Mutex
	circuits [kinds]circuit
	failures failures
	// succeeded is when a request succeeded last, by the monotonic clock.
	succeeded time.Time
	// changed is closed and replaced when one who waits may look again.
	changed chan struct{}
}

// permit is the breaker's permission to send events of a kind. A probe's must be used or released.
type permit struct {
	kind        kind
	generations [kinds]int
	probe       bool
	// nth is the probe's number since the circuit became half-open, from 0 on.
	nth int
}

// assessment is what the breaker makes of an answer for the events that it was given to.
type assessment struct {
	// openFor is for how long nothing is sent because of a verdict about the platform; 0 where the circuit is closed.
	openFor time.Duration
	// failures is how often the request's first event failed, this time included.
	failures int
	// blamed says that it failed before and others succeeded since then, poison that it does so again and again.
	blamed, poison bool
}

func newBreaker(b backoff, slow time.Duration, now func() time.Time, logger *slog.Logger, metrics *pauseMetrics, l *limiter) *breaker {
	return &breaker{
		backoff: b, slow: slow, now: now, logger: logger, metrics: metrics, limiter: l,
		failures: newFailures(), changed: make(chan struct{}),
	}
}

// acquire waits until something of the kind may be sent, as a probe if need be. Retries never probe for new events. It
// fails only with the context's error.
func (b *breaker) acquire(ctx context.Context, k kind) (permit, error) {
	for {
		b.mu.Lock()
		p, ok := b.tryAcquire(k)
		changed, rest := b.changed, b.circuits[k].until.Sub(b.now())
		b.mu.Unlock()
		if err := ctx.Err(); err != nil || ok {
			if err != nil {
				b.release(p)
			}
			return p, err
		}
		// Where it is half-open another probes, and its outcome is announced.
		var over <-chan time.Time
		if rest > 0 {
			over = time.After(rest)
		}
		select {
		case <-ctx.Done():
		case <-changed:
		case <-over:
		}
	}
}

// tryAcquire returns a permit, or false where what is of the kind has to wait; the lock is held.
func (b *breaker) tryAcquire(k kind) (permit, bool) {
	p := permit{kind: k}
	for i := range b.circuits {
		p.generations[i] = b.circuits[i].generation
	}
	if k == retries && b.circuits[newEvents].tripped {
		return p, false
	}
	c := &b.circuits[k]
	switch c.state(b.now()) {
	case closed:
		return p, true
	case halfOpen:
		if !c.probing {
			c.probing, p.probe, p.nth = true, true, c.probed
		}
	}
	return p, p.probe
}

// release returns a permit that was not used.
func (b *breaker) release(p permit) {
	if !p.probe {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if c := &b.circuits[p.kind]; p.generations[p.kind] == c.generation {
		c.probing = false
		b.announce()
	}
}

// allows says whether the permit still holds; where not, it returns for how long the circuit stays open.
func (b *breaker) allows(p permit) (time.Duration, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if c := b.openedSince(p); c != nil {
		return max(0, c.until.Sub(b.now())), false
	}
	return 0, true
}

// openedSince returns a circuit that has opened since the permit was given and concerns it, nil where none has; the lock is
// held.
func (b *breaker) openedSince(p permit) *circuit {
	for k := newEvents; k <= p.kind; k++ {
		if c := &b.circuits[k]; c.tripped && p.generations[k] != c.generation {
			return c
		}
	}
	return nil
}

// succeededSince says whether a request has succeeded since then.
func (b *breaker) succeededSince(then time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.succeeded.After(then)
}

// record tells the breaker what came of a request, given its first event and how long it took.
func (b *breaker) record(p permit, first stream.Position, verdict adapter.Verdict, took time.Duration) assessment {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	if verdict.Class != adapter.Retry && !aboutPlatform(verdict.Class) {
		b.succeeded = now
		b.failures.success(first)
		b.limiter.increase()
		b.close(p)
		return assessment{}
	}
	trip := false
	if took > b.slow && b.succeeded.After(now.Add(-took)) {
		b.failures.blame(first) // others succeeded while it was under way
	} else {
		trip = b.failures.failure(p.kind, first, verdict.Class)
	}
	poison := b.failures.poison[first]
	a := assessment{failures: b.failures.count(first), blamed: poison > 0, poison: poison >= poisonAttempts}
	since, c := b.openedSince(p), &b.circuits[p.kind]
	switch {
	case since != nil:
		a.openFor = b.prolong(since, verdict)
	case p.probe && p.generations[p.kind] == c.generation:
		if c.probed++; c.probed < c.probes && !rateLimited(verdict) {
			c.probing = false
			b.announce()
			break
		}
		a.openFor = b.open(p.kind, verdict)
	case trip:
		a.openFor = b.open(p.kind, verdict)
	case verdict.Class == adapter.Throttle && poison == 0:
		b.limiter.halve()
	}
	if !aboutPlatform(verdict.Class) {
		a.openFor = 0
	}
	return a
}

// forget drops what is known of an event that is not sent again, unless it is replayed.
func (b *breaker) forget(event stream.Position) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.failures.poison, event)
}

// close closes the circuits that a success speaks against; the lock is held. One that was under way when a circuit opened does
// not.
func (b *breaker) close(p permit) {
	changed := false
	for k := range b.circuits {
		c := &b.circuits[k]
		current := c.tripped && p.generations[k] == c.generation
		if current && (kind(k) == retries || p.probe && p.kind == newEvents) {
			c.close()
			changed = true
		}
	}
	if !changed {
		return
	}
	if b.metrics.reason != "" && !b.circuits[newEvents].tripped && !b.circuits[retries].tripped {
		b.metrics.resumed()
		b.logger.Info("platform resumed: the circuit breaker is closed")
	}
	b.announce()
}

// prolong counts several failures that were under way together as one opening, and returns how long that lasts; the lock
// is held.
func (b *breaker) prolong(c *circuit, verdict adapter.Verdict) time.Duration {
	if until := b.now().Add(max(verdict.After, b.backoff.floor)); verdict.After > 0 && until.After(c.until) {
		c.until = until
	}
	return max(c.until.Sub(b.now()), b.backoff.floor)
}

// open opens a circuit, or leaves it open for longer, and returns for how long; the lock is held.
func (b *breaker) open(k kind, verdict adapter.Verdict) time.Duration {
	c := &b.circuits[k]
	pause := b.backoff.ceiling(c.failures)
	if verdict.After > 0 {
		pause = max(verdict.After, b.backoff.floor)
	}
	c.open(b.now(), pause, probesAfter(pause/b.backoff.unit, verdict))
	b.failures.reset()
	if k == newEvents {
		b.limiter.reset()
	}
	// That events which failed before fail again is said when a probe has found it so too.
	if k == newEvents || c.failures > 1 {
		if b.metrics.reason != verdict.Reason {
			b.logger.Warn("platform paused: the circuit breaker is open",
				"reason", verdict.Reason, "for", pause, "held", held[k], "advice", advice(verdict.Class))
		}
		b.metrics.pausedFor(verdict.Reason, misconfigurationOf(verdict))
	}
	b.announce()
	return pause
}

// held says in the log what an open circuit holds back.
var held = [kinds]string{newEvents: "all events", retries: "events that were attempted before; new ones are sent"}

// advice says what whoever runs the property can do about an open circuit.
func advice(class adapter.Class) string {
	switch class {
	case adapter.Auth:
		return "put a credential that the platform accepts into its Secret; it is used at once"
	case adapter.Config:
		return "correct the platform's address, identifiers or permissions; see its page in the documentation"
	case adapter.Throttle:
		return "none needed: the platform limits the rate of requests; if it lasts, ask the platform for a higher limit"
	default:
		return "none needed: the platform does not work and is tried from time to time"
	}
}

// announce wakes those who wait; the lock is held.
func (b *breaker) announce() {
	close(b.changed)
	b.changed = make(chan struct{})
}
