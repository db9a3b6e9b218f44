package deliver

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/weir-dev/weir/collector/deliver/platform"
	"github.com/weir-dev/weir/collector/stream"
)

// offencesToFail is how often an event may be refused for its own sake, by a status that would stop the platform were it
// refused to all, before it has failed: with the pauses between attempts that takes an hour or two.
const offencesToFail = 20

const (
	// probesMost is how many events are tried in a row when a pause is over, at most: so many bad ones among good ones
	// are passed at a time. It is less where the credential is refused, for platforms may lock out who shows a bad one often.
	probesMost     = 64
	credentialMost = 8
)

// gate stops what goes to one platform while the platform wants a pause, refuses the credential, is misconfigured or
// does not work at all. When the pause is over, requests with one event go through as probes, one after another: as many
// as the pause had seconds, so that a platform that is down gets about one a second, and yet a run of events that
// are refused for their own sake is passed in about as many seconds as it is long. The first that is taken opens the gate; if
// none is, it closes again, for longer. A platform that asks for patience gets one.
//
// There are two stops. That of new events holds everything back, and needs different new events that were refused. That of
// events which were attempted before holds back those alone, so that however many of them are refused no new one waits.
type gate struct {
	backoff backoff
	// slow is for how long a request may be under way before what was taken meanwhile speaks for the platform.
	slow    time.Duration
	now     func() time.Time
	logger  *slog.Logger
	metrics *pauseMetrics
	slots   *slots

	mu       sync.Mutex
	stops    [shares]stop
	evidence evidence
	// taken is when the platform took a request last, by the monotonic clock.
	taken time.Time
	// changed is closed and replaced when one who waits may look again.
	changed chan struct{}
}

// stop is whether events of a kind are held back, and until when.
type stop struct {
	closed  bool
	probing bool
	until   time.Time
	// probes is how many may go when the pause is over, probed how many went.
	probes, probed int
	// failures counts the closings in a row, epoch all of them.
	failures, epoch int
}

// pass is the permission to send events of a kind. A probe's must be used or given back.
type pass struct {
	kind   share
	epochs [shares]int
	probe  bool
	// nth is the probe's number within its round, from 0 on.
	nth int
}

// ruling is what the gate makes of an answer for the events that it was given to.
type ruling struct {
	// stopped is for how long the platform is stopped by a verdict that can stop it; 0 where it is not.
	stopped time.Duration
	// refusals is how often the request's first event was refused, this time included.
	refusals int
	// own says that it is refused again and again while others are taken.
	own bool
}

func newGate(b backoff, slow time.Duration, now func() time.Time, logger *slog.Logger, metrics *pauseMetrics, slots *slots) *gate {
	return &gate{
		backoff: b, slow: slow, now: now, logger: logger, metrics: metrics, slots: slots,
		evidence: newEvidence(), changed: make(chan struct{}),
	}
}

// enter waits until something of the kind may be sent, as a probe if need be. What was attempted before never probes
// for new events. It fails only with the context's error.
func (g *gate) enter(ctx context.Context, kind share) (pass, error) {
	for {
		g.mu.Lock()
		p, ok := g.try(kind)
		changed, rest := g.changed, g.stops[kind].until.Sub(g.now())
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

// try returns a pass, or false where what is of the kind has to wait; the lock is held.
func (g *gate) try(kind share) (pass, bool) {
	p := pass{kind: kind}
	for k := range g.stops {
		p.epochs[k] = g.stops[k].epoch
	}
	if kind == again && g.stops[fresh].closed {
		return p, false
	}
	s := &g.stops[kind]
	if s.closed && !s.probing && !g.now().Before(s.until) {
		s.probing, p.probe, p.nth = true, true, s.probed
	}
	return p, p.probe || !s.closed
}

// giveBack returns a pass that was not used.
func (g *gate) giveBack(p pass) {
	if !p.probe {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if s := &g.stops[p.kind]; p.epochs[p.kind] == s.epoch {
		s.probing = false
		g.announce()
	}
}

// admits says whether the pass still holds; where not, it returns the time for which the gate stays closed.
func (g *gate) admits(p pass) (time.Duration, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if s := g.shutSince(p); s != nil {
		return max(0, s.until.Sub(g.now())), false
	}
	return 0, true
}

// shutSince returns a stop that has closed since the pass was given and concerns it, nil where none has; the lock is held.
func (g *gate) shutSince(p pass) *stop {
	for k := fresh; k <= p.kind; k++ {
		if s := &g.stops[k]; s.closed && p.epochs[k] != s.epoch {
			return s
		}
	}
	return nil
}

// takenSince says whether the platform took a request since then.
func (g *gate) takenSince(then time.Time) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.taken.After(then)
}

// report tells the gate what came of a request, given its first event and how long it took.
func (g *gate) report(p pass, first stream.Position, verdict platform.Verdict, took time.Duration) ruling {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := time.Now()
	if verdict.Class != platform.Retry && !stops(verdict.Class) {
		g.taken = now
		g.evidence.taken(first)
		g.slots.widen()
		g.open(p)
		return ruling{}
	}
	enough := false
	if took > g.slow && g.taken.After(now.Add(-took)) {
		g.evidence.offend(first) // others were taken while it was under way
	} else {
		enough = g.evidence.refused(p.kind, first, verdict.Class)
	}
	offences := g.evidence.offences[first]
	r := ruling{refusals: g.evidence.refusals(first), own: offences >= offencesToFail}
	since, s := g.shutSince(p), &g.stops[p.kind]
	switch {
	case since != nil:
		r.stopped = g.prolong(since, verdict)
	case p.probe && p.epochs[p.kind] == s.epoch:
		if s.probed++; s.probed < s.probes && !patience(verdict) {
			s.probing = false
			g.announce()
			break
		}
		r.stopped = g.shut(p.kind, verdict)
	case enough:
		r.stopped = g.shut(p.kind, verdict)
	case verdict.Class == platform.Throttle && offences == 0:
		g.slots.halve()
	}
	if !stops(verdict.Class) {
		r.stopped = 0
	}
	return r
}

// forget drops what is known of an event that is not sent again, unless it is replayed.
func (g *gate) forget(event stream.Position) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.evidence.offences, event)
}

// open ends the pauses that a request which was not refused speaks against; the lock is held. One that was under way when
// the pause began does not.
func (g *gate) open(p pass) {
	opened := false
	for k := range g.stops {
		s := &g.stops[k]
		current := s.closed && p.epochs[k] == s.epoch
		if current && (share(k) == again || p.probe && p.kind == fresh) {
			s.closed, s.probing, s.failures = false, false, 0
			opened = true
		}
	}
	if !opened {
		return
	}
	if g.metrics.reason != "" && !g.stops[fresh].closed && !g.stops[again].closed {
		g.metrics.resumed()
		g.logger.Info("platform resumed")
	}
	g.announce()
}

// prolong counts several refusals that were under way together as one closing, and returns how long that lasts; the lock
// is held.
func (g *gate) prolong(s *stop, verdict platform.Verdict) time.Duration {
	if until := g.now().Add(max(verdict.After, g.backoff.floor)); verdict.After > 0 && until.After(s.until) {
		s.until = until
	}
	return max(s.until.Sub(g.now()), g.backoff.floor)
}

// shut closes a stop, or leaves it closed for longer, and returns for how long; the lock is held.
func (g *gate) shut(kind share, verdict platform.Verdict) time.Duration {
	s := &g.stops[kind]
	delay := g.backoff.ceiling(s.failures)
	if verdict.After > 0 {
		delay = max(verdict.After, g.backoff.floor)
	}
	s.closed, s.probing, s.until = true, false, g.now().Add(delay)
	s.probes, s.probed = probesAfter(delay/g.backoff.unit, verdict), 0
	s.failures++
	s.epoch++
	g.evidence.acquit()
	if kind == fresh {
		g.slots.narrow()
	}
	// That events which were refused before are refused again is said when a probe has found it so too.
	if kind == fresh || s.failures > 1 {
		if g.metrics.reason != verdict.Reason {
			g.logger.Warn("platform paused", "reason", verdict.Reason, "for", delay, "held", held[kind], "advice", advice(verdict.Class))
		}
		g.metrics.pausedFor(verdict.Reason, faultOf(verdict))
	}
	g.announce()
	return delay
}

// probesAfter is how many probes may follow a pause of so many units that a verdict led to.
func probesAfter(units time.Duration, verdict platform.Verdict) int {
	switch {
	case patience(verdict):
		return 1
	case verdict.Class == platform.Auth:
		return min(max(1, int(units)), credentialMost)
	default:
		return min(max(1, int(units)), probesMost)
	}
}

// patience says whether a platform asks for it.
func patience(verdict platform.Verdict) bool {
	return verdict.Class == platform.Throttle || verdict.After > 0
}

// held says in the log what a stop holds back.
var held = [shares]string{fresh: "all events", again: "events that were attempted before; new ones are sent"}

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
