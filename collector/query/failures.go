package query

import (
	"net/netip"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// What failed attempts to authenticate are allowed from one address: so many at once, and one more each interval.
const (
	failureBurst    = 60
	failureInterval = time.Second
	// maxFailing bounds the addresses that are told apart; all others share one allowance.
	maxFailing = 4096
)

// failures limits the rate of failed attempts from each address. It never has a say in attempts that succeed: callers
// behind one proxy share its address, and none of them is to suffer from another's wrong token.
type failures struct {
	mu sync.Mutex
	// limiters has none for an address whose allowance is whole.
	limiters map[netip.Addr]*rate.Limiter
	// swept is when the map was last looked through.
	swept time.Time
}

// others is the key of those that have no place of their own.
var others netip.Addr

// add counts a failed attempt and returns how long its caller has to wait before the next, 0 where it is within
// the allowance. One that is beyond is not counted: it may come again when the time is over.
func (f *failures) add(from netip.Addr, now time.Time) time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.limiters[from] == nil && len(f.limiters) >= maxFailing {
		f.forget(now)
		if len(f.limiters) >= maxFailing {
			from = others
		}
	}
	limiter := f.limiters[from]
	if limiter == nil {
		if f.limiters == nil {
			f.limiters = map[netip.Addr]*rate.Limiter{}
		}
		limiter = rate.NewLimiter(rate.Every(failureInterval), failureBurst)
		f.limiters[from] = limiter
	}
	attempt := limiter.ReserveN(now, 1)
	wait := attempt.DelayFrom(now)
	if wait > 0 {
		attempt.CancelAt(now)
	}
	return wait
}

// forget drops the addresses whose allowance is whole again. It looks for them once in an interval, so that many
// addresses cannot keep it busy.
func (f *failures) forget(now time.Time) {
	if now.Sub(f.swept) < failureInterval {
		return
	}
	f.swept = now
	for address, limiter := range f.limiters {
		if limiter.TokensAt(now) >= failureBurst {
			delete(f.limiters, address)
		}
	}
}
