package deliver

import (
	"math/rand/v2"
	"time"
)

// backoff is how long to wait after a failure.
type backoff struct {
	// unit is doubled with every failure, up to cap; what is waited is at least floor.
	unit, cap, floor time.Duration
}

// ceiling is the longest wait after so many failures before this one.
func (b backoff) ceiling(failures int) time.Duration {
	delay := b.unit
	for range failures {
		if delay *= 2; delay >= b.cap {
			return b.cap
		}
	}
	return max(min(delay, b.cap), b.floor)
}

// jittered draws a wait between nothing and the ceiling, so that what failed together does not come back
// together, but no shorter than the floor.
func (b backoff) jittered(failures int) time.Duration {
	return max(b.floor, rand.N(b.ceiling(failures)+1))
}
