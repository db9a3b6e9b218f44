package server

import (
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// What of lines with one reason is logged: so many at once, and one more each interval.
const (
	sampleBurst    = 10
	sampleInterval = time.Second
	// maxReasons bounds the reasons that are told apart; all others share one allowance.
	maxReasons = 1024
)

// sampler lets through the first lines of each reason and then a few of them, so that whoever is refused ten thousand
// times a second does not fill a disk. Metrics count all.
type sampler struct {
	mu      sync.Mutex
	reasons map[string]*sampled
}

// sampled is one reason's.
type sampled struct {
	limiter    *rate.Limiter
	suppressed int
}

func newSampler() *sampler { return &sampler{reasons: map[string]*sampled{}} }

// take says whether a line is to be logged now, and how many with the same reason were not since the last that was.
func (s *sampler) take(reason string, now time.Time) (suppressed int, logged bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	one := s.reasons[reason]
	if one == nil && len(s.reasons) >= maxReasons {
		reason = ""
		one = s.reasons[reason]
	}
	if one == nil {
		one = &sampled{limiter: rate.NewLimiter(rate.Every(sampleInterval), sampleBurst)}
		s.reasons[reason] = one
	}
	if !one.limiter.AllowN(now, 1) {
		one.suppressed++
		return 0, false
	}
	suppressed, one.suppressed = one.suppressed, 0
	return suppressed, true
}
