package server

import (
	"net/netip"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// AddressRate limits the rate of something for each address. Those whose allowance is whole are forgotten. It is safe
// for concurrent use.
type AddressRate struct {
	// PerSecond is what an address is allowed in the long run, Burst what it is at once.
	PerSecond, Burst int
	// MaxAddresses bounds the addresses that are told apart; all others share one allowance.
	MaxAddresses int

	mu sync.Mutex
	// limiters has none for an address whose allowance is whole.
	limiters map[netip.Addr]*rate.Limiter
	// swept is when the map was last looked through.
	swept time.Time
}

// others is the key of those that have no place of their own.
var others netip.Addr

// sweepInterval is how often the addresses are looked through at most, so that many of them cannot keep that busy.
const sweepInterval = time.Second

// Take takes n from an address's allowance and returns 0, or how long to wait before as much is there; nothing is taken
// then. A burst and more is there when the allowance is whole but for 1, which a request takes before it is known how much it
// wants, and is paid for with the time after it.
func (a *AddressRate) Take(from netip.Addr, n int, now time.Time) time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	limiter := a.limiter(from, now)
	there := max(1, a.Burst-1)
	first := limiter.ReserveN(now, min(n, there))
	if wait := first.DelayFrom(now); wait > 0 {
		first.CancelAt(now)
		return wait
	}
	for n -= there; n > 0; n -= a.Burst {
		limiter.ReserveN(now, min(n, a.Burst))
	}
	return 0
}

// limiter returns the limiter of an address. The mutex is held.
func (a *AddressRate) limiter(from netip.Addr, now time.Time) *rate.Limiter {
	if a.limiters[from] == nil && len(a.limiters) >= a.MaxAddresses {
		a.forget(now)
		if len(a.limiters) >= a.MaxAddresses {
			from = others
		}
	}
	if a.limiters == nil {
		a.limiters = map[netip.Addr]*rate.Limiter{}
	}
	if a.limiters[from] == nil {
		a.limiters[from] = rate.NewLimiter(rate.Limit(a.PerSecond), a.Burst)
	}
	return a.limiters[from]
}

// forget drops the addresses whose allowance is whole again. The mutex is held.
func (a *AddressRate) forget(now time.Time) {
	if now.Sub(a.swept) < sweepInterval {
		return
	}
	a.swept = now
	for address, limiter := range a.limiters {
		if limiter.TokensAt(now) >= float64(a.Burst) {
			delete(a.limiters, address)
		}
	}
}
