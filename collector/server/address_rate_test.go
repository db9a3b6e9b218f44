package server_test

import (
	"net/netip"
	"testing"
	"time"

	"github.com/weir-dev/weir/collector/server"
)

func TestAnAddressHasABurstAndThenItsRate(t *testing.T) {
	start := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	one, other := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2")
	type step struct {
		after time.Duration
		from  netip.Addr
		n     int
		want  time.Duration
	}
	for name, steps := range map[string][]step{
		"a burst, and one more each tenth of a second": {
			{0, one, 50, 0}, {0, one, 1, 100 * time.Millisecond}, {99 * time.Millisecond, one, 1, time.Millisecond}, {100 * time.Millisecond, one, 1, 0},
		},
		"another address has an allowance of its own": {{0, one, 50, 0}, {0, other, 50, 0}, {0, other, 1, 100 * time.Millisecond}},
		"what is refused is not taken":                {{0, one, 45, 0}, {0, one, 6, 100 * time.Millisecond}, {0, one, 5, 0}},
		"more than a burst is paid for afterwards": {
			{0, one, 120, 0}, {7 * time.Second, one, 1, 100 * time.Millisecond}, {7100 * time.Millisecond, one, 1, 0},
		},
		"more than a burst after the request itself":            {{0, one, 1, 0}, {0, one, 120, 0}, {7 * time.Second, one, 1, 200 * time.Millisecond}},
		"more than a burst has to wait for the whole allowance": {{0, one, 2, 0}, {0, one, 120, 100 * time.Millisecond}, {100 * time.Millisecond, one, 120, 0}},
	} {
		t.Run(name, func(t *testing.T) {
			limit := server.AddressRate{PerSecond: 10, Burst: 50, MaxAddresses: 10}
			for i, s := range steps {
				if got := limit.Take(s.from, s.n, start.Add(s.after)).Round(time.Microsecond); got != s.want {
					t.Errorf("step %d: got %s, want %s", i, got, s.want)
				}
			}
		})
	}
}

func TestAddressesBeyondTheMemoryShareOneAllowance(t *testing.T) {
	const most, burst = 4096, 60
	limit := server.AddressRate{PerSecond: 1, Burst: burst, MaxAddresses: most}
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	address := netip.MustParseAddr("10.0.0.1")
	for range most + burst {
		if wait := limit.Take(address, 1, now); wait > 0 {
			t.Fatalf("%s has to wait %s", address, wait)
		}
		address = address.Next()
	}
	beyond := netip.MustParseAddr("192.0.2.1")
	if wait := limit.Take(beyond, 1, now); wait == 0 {
		t.Error("an address beyond the memory is not limited")
	}
	if wait := limit.Take(netip.MustParseAddr("10.0.0.1"), 1, now); wait != 0 {
		t.Errorf("an address with an allowance of its own has to wait %s", wait)
	}
	if wait := limit.Take(beyond, burst, now.Add(time.Minute)); wait != 0 {
		t.Errorf("once others are forgotten it has no allowance of its own: it has to wait %s", wait)
	}
}
