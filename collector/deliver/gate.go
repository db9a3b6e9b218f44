package deliver

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-dev/weir/collector/deliver/platform"
)

// gate stops everything that goes to one platform while the platform wants a pause, refuses the credential or
// is misconfigured. When the pause is over, one request goes through as a probe: its outcome opens the gate or
// closes it again, for longer.
type gate struct {
	backoff backoff
	now     func() time.Time
	logger  *slog.Logger
	paused  prometheus.Gauge

	mu      sync.Mutex
	closed  bool
	probing bool
	until   time.Time
	// failures counts the closings in a row, epoch all of them.
	failures, epoch int
	// changed is closed and replaced when one who waits may look again.
	changed chan struct{}
}

// pass is the permission to send. A probe's must be used or given back.
type pass struct {
	epoch int
	probe bool
}

func newGate(b backoff, now func() time.Time, logger *slog.Logger, paused prometheus.Gauge) *gate {
	paused.Set(0)
	return &gate{backoff: b, now: now, logger: logger, paused: paused, changed: make(chan struct{})}
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

// report tells the gate what came of a request. For a verdict that stops the platform it returns for how long.
func (g *gate) report(p pass, verdict platform.Verdict) time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !stops(verdict.Class) {
		if p.probe && g.closed && p.epoch == g.epoch {
			g.closed, g.probing, g.failures = false, false, 0
			g.paused.Set(0)
			g.logger.Info("platform resumed")
			g.announce()
		}
		return 0
	}

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
	if !g.closed {
		g.logger.Warn("platform paused", "reason", verdict.Reason, "for", delay)
	}
	g.closed, g.probing, g.until = true, false, until
	g.failures++
	g.epoch++
	g.paused.Set(1)
	g.announce()
	return delay
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
