package query

import (
	"net/netip"
	"sync"
	"time"
)

// What failed attempts to authenticate are allowed from one address: so many at once, and one more each interval.
const (
	failureBurst    = 60
	failureInterval = time.Second
	// maxFailing bounds the addresses that are told apart; all others share one allowance.
	maxFailing = 4096
)

// failures limits the failed attempts from each address. It never has a say in attempts that succeed: callers
// behind one proxy share its address, and none of them is to suffer from another's wrong token.
type failures struct {
	mu sync.Mutex
	// whole is when an address's allowance is whole again; one that is whole is not in it.
	whole map[netip.Addr]time.Time
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
	if _, known := f.whole[from]; !known && len(f.whole) >= maxFailing {
		f.forget(now)
		if len(f.whole) >= maxFailing {
			from = others
		}
	}
	whole := f.whole[from]
	if whole.Before(now) {
		whole = now
	}
	if wait := whole.Add(failureInterval).Sub(now) - failureBurst*failureInterval; wait > 0 {
		return wait
	}
	if f.whole == nil {
		f.whole = map[netip.Addr]time.Time{}
	}
	f.whole[from] = whole.Add(failureInterval)
	return 0
}

// forget drops the addresses whose allowance is whole again. It looks for them once in an interval, so that many
// addresses cannot keep it busy.
func (f *failures) forget(now time.Time) {
	if now.Sub(f.swept) < failureInterval {
		return
	}
	f.swept = now
	for address, whole := range f.whole {
		if !whole.After(now) {
			delete(f.whole, address)
		}
	}
}
