package deliver

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-dev/weir/collector/deliver/adapter"
	"github.com/weir-dev/weir/collector/stream"
)

var (
	throttled = adapter.Verdict{Class: adapter.Throttle, Reason: "throttled", After: 7 * time.Second}
	refused   = adapter.Verdict{Class: adapter.Auth, Reason: "unauthorized"}
	delivered = adapter.Verdict{Class: adapter.Delivered}
)

func testBreaker() *breaker {
	b := backoff{unit: time.Second, cap: 10 * time.Minute, floor: 200 * time.Millisecond}
	metrics, err := NewMetrics(prometheus.NewRegistry())
	if err != nil {
		panic(err)
	}
	return newBreaker(b, defaultTiming().slow, time.Now, slog.New(slog.DiscardHandler), metrics.pauses("crm", time.Now), newLimiter(1))
}

func mustAcquire(t *testing.T, b *breaker) permit {
	t.Helper()
	p, err := b.acquire(context.Background(), newEvents)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// trip opens the breaker by as many different events as that takes and returns for how long.
func trip(t *testing.T, b *breaker, verdict adapter.Verdict) time.Duration {
	t.Helper()
	p := mustAcquire(t, b)
	for event := range stream.Position(tripAfter) {
		if b.record(p, 1000+event, verdict, 0); isOpen(b) {
			return time.Until(b.circuits[newEvents].until)
		}
	}
	t.Fatal("the breaker is closed")
	return 0
}

func TestBreakerStaysOpenAsLongAsThePlatformAsks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := testBreaker()
		start := time.Now()
		if got := trip(t, b, throttled); got != 7*time.Second {
			t.Errorf("got a pause of %s, want 7s", got)
		}
		p := mustAcquire(t, b)
		if !p.probe || time.Since(start) != 7*time.Second {
			t.Errorf("got %+v after %s, want a probe after 7s", p, time.Since(start))
		}
		b.record(p, 1, delivered, 0)
		if p := mustAcquire(t, b); p.probe || time.Since(start) != 7*time.Second {
			t.Errorf("the breaker is not closed after the probe: %+v", p)
		}
	})
}

// What follows on which pause, where nothing is taken: a run of bad events is passed, and a platform that is down gets about one
// request a second.
func TestBreakerProbesLessAndLessOften(t *testing.T) {
	pauses := []int{1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 600, 600}
	most := []int{1, 2, 4, 8, 16, 32, 64, 64, 64, 64, 64, 64}
	for name, test := range map[string]struct {
		verdict adapter.Verdict
		pauses  []int // in seconds
		probes  []int // after each
	}{
		"no answer":                   {adapter.Verdict{Class: adapter.Retry, Reason: "timeout"}, pauses, most},
		"misconfigured or gone":       {adapter.Verdict{Class: adapter.Config, Reason: "http_404"}, pauses, most},
		"the credential is refused":   {refused, pauses, []int{1, 2, 4, 8, 8, 8, 8, 8, 8, 8, 8, 8}},
		"throttled for no time":       {adapter.Verdict{Class: adapter.Throttle}, pauses, []int{1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}},
		"throttled for seven seconds": {throttled, []int{7, 7, 7}, []int{1, 1, 1}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := testBreaker()
				trip(t, b, test.verdict)
				event := stream.Position(1)
				var got [2][]int
				for range test.pauses {
					start := time.Now()
					p := mustAcquire(t, b)
					got[0] = append(got[0], int(time.Since(start)/time.Second))
					n := 1
					for event++; b.record(p, event, test.verdict, 0).openFor == 0 && !isOpen(b); event++ {
						if p = mustAcquire(t, b); !p.probe || p.nth != n {
							t.Fatalf("got %+v, want probe %d of its round", p, n)
						}
						n++
					}
					got[1] = append(got[1], n)
				}
				if diff := cmp.Diff([2][]int{test.pauses, test.probes}, got); diff != "" {
					t.Errorf("pauses and probes (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// isOpen says whether new events have to wait.
func isOpen(b *breaker) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.circuits[newEvents].state(b.now()) == open
}

func TestBreakerLetsOneProbeThrough(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := testBreaker()
		trip(t, b, refused)
		first := mustAcquire(t, b)
		second := make(chan permit)
		go func() { second <- mustAcquire(t, b) }()
		open := make(chan permit)
		go func() {
			p, err := b.acquire(context.Background(), retries)
			if err != nil {
				t.Error(err)
			}
			open <- p
		}()
		synctest.Wait()
		select {
		case p := <-second:
			t.Fatalf("two probes at a time: %+v", p)
		case p := <-open:
			t.Fatalf("the breaker was closed: %+v", p)
		default:
		}
		b.release(first)
		p := <-second
		if !p.probe {
			t.Errorf("got %+v, want the probe that was given back", p)
		}
		b.record(p, 1, delivered, 0)
		if p := <-open; p.probe {
			t.Errorf("got %+v, want a closed breaker after a probe that was not refused", p)
		}
	})
}

func TestBreakerCountsRequestsUnderWayTogetherOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := testBreaker()
		var passes []permit
		for range 3 * tripAfter {
			passes = append(passes, mustAcquire(t, b))
		}
		for i, p := range passes {
			b.record(p, stream.Position(i), refused, 0)
		}
		start := time.Now()
		mustAcquire(t, b)
		if time.Since(start) != time.Second {
			t.Errorf("the pause was %s, want that of one failure", time.Since(start))
		}
	})
}

func TestBreakerHoldsBackWhatWasTakenBeforeItOpened(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := testBreaker()
		late := mustAcquire(t, b)
		trip(t, b, throttled)
		<-time.After(2 * time.Second)
		if left, ok := b.allows(late); ok || left != 5*time.Second {
			t.Errorf("got %s, %t; want 5s, false", left, ok)
		}
		b.record(late, 1, delivered, 0)
		if _, ok := b.allows(late); ok {
			t.Error("an answer to a request from before closed the breaker")
		}
	})
}

func TestBreakerWaitEndsWithTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := testBreaker()
		trip(t, b, refused)
		ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
		defer cancel()
		if _, err := b.acquire(ctx, newEvents); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		if p := mustAcquire(t, b); !p.probe {
			t.Errorf("got %+v: the one that gave up took the probe with it", p)
		}
	})
}

func TestBackoff(t *testing.T) {
	b := defaultTiming().backoff
	for failures, ceiling := range map[int]time.Duration{
		0: time.Second, 1: 2 * time.Second, 5: 32 * time.Second, 9: 512 * time.Second, 10: 10 * time.Minute, 1_000_000: 10 * time.Minute,
	} {
		if got := b.ceiling(failures); got != ceiling {
			t.Errorf("after %d failures the ceiling is %s, want %s", failures, got, ceiling)
		}
		least, most := time.Duration(1<<62), time.Duration(0)
		for range 200 {
			wait := b.jittered(failures)
			least, most = min(least, wait), max(most, wait)
		}
		if least < 200*time.Millisecond || most > ceiling || most < ceiling/2 || least > ceiling/2 {
			t.Errorf("after %d failures the waits lie between %s and %s, want them spread over 200ms to %s", failures, least, most, ceiling)
		}
	}
}
