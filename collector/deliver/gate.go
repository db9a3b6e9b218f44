package deliver

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/weir-dev/weir/collector/deliver/platform"
	"github.com/weir-dev/weir/collector/stream"
)

// breakAfter is how many requests with different events have to fail in a row for the platform itself to be down.
const breakAfter = 5

// gate stops everything that goes to one platform while the platform wants a pause, refuses the credential, is
// misconfigured or does not work at all. When the pause is over, one request goes through as a probe: its outcome
// opens the gate or closes it again, for longer.
type gate struct {
	backoff backoff
	now     func() time.Time
	logger  *slog.Logger
	metrics *pauseMetrics
	slots   *slots

	mu      sync.Mutex
	closed  bool
	probing bool
	until   time.Time
	// failures counts the closings in a row, epoch all of them.
	failures, epoch int
	// suspects are the first events of the requests that have failed since the last one that did not.
	suspects map[stream.Position]struct{}
	// changed is closed and replaced when one who waits may look again.
	changed chan struct{}
}

// pass is the permission to send. A probe's must be used or given back.
type pass struct {
	epoch int
	probe bool
}

func newGate(b backoff, now func() time.Time, logger *slog.Logger, metrics *pauseMetrics, slots *slots) *gate {
	return &gate{
		backoff: b, now: now, logger: logger, metrics: metrics, slots: slots,
		suspects: map[stream.Position]struct{}{}, changed: make(chan struct{}),
	}
}

// enter waits until something may be sent, as a probe if need be. It fails only with the context's error.
func (g *gate) enter(ctx context.Context) (pass, error) {
	return g.wait(ctx, func() (pass, bool) {
		if g.closed && !g.probing && !g.now().Before(g.until) {
			g.probing = true
			return pass{epoch: g.epoch, probe: true}, true
		}
		return pass{epoch: g.epoch}, !g.closed
	})
}

// enterOpen waits until the gate is open; it never probes.
func (g *gate) enterOpen(ctx context.Context) (pass, error) {
	return g.wait(ctx, func() (pass, bool) { return pass{epoch: g.epoch}, !g.closed })
}

func (g *gate) wait(ctx context.Context, try func() (pass, bool)) (pass, error) {
	for {
		g.mu.Lock()
		p, ok := try()
		changed, rest := g.changed, g.until.Sub(g.now())
		g.mu.Unlock()
		if err := ctx.Err(); err != nil || ok {
			if err != nil {
				g.giveBack(p)
			}
			return p, err
		}
		// Where the pause is over another probes, and its outcome is announced.
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

// giveBack returns a pass that was not used.
func (g *gate) giveBack(p pass) {
	if !p.probe {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if p.epoch == g.epoch {
		g.probing = false
		g.announce()
	}
}

// admits says whether the pass still holds; where not, it returns the time for which the gate stays closed.
func (g *gate) admits(p pass) (time.Duration, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if p.epoch == g.epoch || !g.closed {
		return 0, true
	}
	return max(0, g.until.Sub(g.now())), false
}

// report tells the gate what came of a request, given its first event. For a verdict that stops the platform it
// returns for how long.
func (g *gate) report(p pass, first stream.Position, verdict platform.Verdict) time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case stops(verdict.Class):
		return g.shut(p, verdict)
	case verdict.Class != platform.Retry:
		clear(g.suspects)
		g.slots.widen()
		if p.probe && g.closed && p.epoch == g.epoch {
			g.closed, g.probing, g.failures = false, false, 0
			g.metrics.resumed()
			g.logger.Info("platform resumed")
			g.announce()
		}
	case p.probe:
		g.shut(p, verdict)
	case !g.closed:
		// An event that fails again and again is no reason to keep the others waiting.
		if g.suspects[first] = struct{}{}; len(g.suspects) >= breakAfter {
			g.shut(p, verdict)
		}
	}
	return 0
}

// shut closes the gate, or leaves it closed for longer, and returns for how long; the lock is held.
func (g *gate) shut(p pass, verdict platform.Verdict) time.Duration {
	delay := g.backoff.ceiling(g.failures)
	if verdict.After > 0 {
		delay = max(verdict.After, g.backoff.floor)
	}
	until := g.now().Add(delay)
	if p.epoch != g.epoch && g.closed {
		// One of several that were under way together: they count as one closing.
		if until.After(g.until) && verdict.After > 0 {
			g.until = until
		}
		return g.until.Sub(g.now())
	}
	if !g.closed || g.metrics.reason != verdict.Reason {
		g.logger.Warn("platform paused", "reason", verdict.Reason, "for", delay, "advice", advice(verdict.Class))
	}
	g.closed, g.probing, g.until = true, false, until
	clear(g.suspects)
	g.slots.narrow()
	g.failures++
	g.epoch++
	g.metrics.pausedFor(verdict.Reason, faultOf(verdict))
	g.announce()
	return delay
}

// advice says what whoever runs the property can do about a pause.
func advice(class platform.Class) string {
	switch class {
	case platform.Auth:
		return "put a credential that the platform accepts into its Secret; it is used at once"
	case platform.Config:
		return "correct the platform's address, identifiers or permissions; see its page in the documentation"
	case platform.Throttle:
		return "none needed: the platform asks for patience; if it lasts, ask the platform for a higher limit"
	default:
		return "none needed: the platform does not work and is tried from time to time"
	}
}

// announce wakes those who wait; the lock is held.
func (g *gate) announce() {
	close(g.changed)
	g.changed = make(chan struct{})
}

// stops says whether the class stops a whole platform.
func stops(class platform.Class) bool {
	return class == platform.Throttle || class == platform.Auth || class == platform.Config
}
