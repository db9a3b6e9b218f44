package deliver

import (
	"time"

	"github.com/weir-dev/weir/collector/deliver/adapter"
)

const (
	// maxProbes is how many events are tried in a row while a circuit is half-open, at most: so many bad ones among good
	// ones are passed at a time. It is less where the credential is refused, for platforms may lock out who shows a bad one
	// often.
	maxProbes           = 64
	maxCredentialProbes = 8
)

// kind says which events a request carries.
type kind int

const (
	// newEvents were never sent.
	newEvents kind = iota
	// retries were attempted before.
	retries
	kinds
)

// state is a circuit's.
type state int

const (
	// closed: all is sent.
	closed state = iota
	// open: nothing is sent until the pause is over.
	open
	// halfOpen: probes are sent, one after another.
	halfOpen
)

// circuit is the state of the circuit breaker for one kind of events.
type circuit struct {
	// tripped says that it is not closed, until when it is open rather than half-open.
	tripped bool
	until   time.Time
	// probing says that a probe is under way, probes how many may go while it is half-open, probed how many have failed.
	probing        bool
	probes, probed int
	// failures counts the openings in a row, generation all of them.
	failures, generation int
}

func (c *circuit) state(now time.Time) state {
	switch {
	case !c.tripped:
		return closed
	case now.Before(c.until):
		return open
	default:
		return halfOpen
	}
}

// open opens the circuit for so long, or leaves it open for longer; so many probes follow.
func (c *circuit) open(now time.Time, pause time.Duration, probes int) {
	c.tripped, c.probing, c.until = true, false, now.Add(pause)
	c.probes, c.probed = probes, 0
	c.failures++
	c.generation++
}

func (c *circuit) close() { c.tripped, c.probing, c.failures = false, false, 0 }

// probesAfter is how many probes may follow a pause of so many units that a verdict led to: as many, so that a platform that
// is down gets about one a second, and yet a run of events that are refused for their own sake is passed in about as many
// seconds as it is long.
func probesAfter(units time.Duration, verdict adapter.Verdict) int {
	switch {
	case rateLimited(verdict):
		return 1
	case verdict.Class == adapter.Auth:
		return min(max(1, int(units)), maxCredentialProbes)
	default:
		return min(max(1, int(units)), maxProbes)
	}
}

// rateLimited says whether a platform asks to be sent less.
func rateLimited(verdict adapter.Verdict) bool {
	return verdict.Class == adapter.Throttle || verdict.After > 0
}

// aboutPlatform says whether an answer of the class is about the platform as a whole, as a rule.
func aboutPlatform(class adapter.Class) bool {
	return class == adapter.Throttle || class == adapter.Auth || class == adapter.Config
}
