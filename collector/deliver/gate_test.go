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

	"github.com/weir-dev/weir/collector/deliver/platform"
	"github.com/weir-dev/weir/collector/stream"
)

var (
	throttled = platform.Verdict{Class: platform.Throttle, Reason: "throttled", After: 7 * time.Second}
	refused   = platform.Verdict{Class: platform.Auth, Reason: "unauthorized"}
	delivered = platform.Verdict{Class: platform.Delivered}
)

func testGate() *gate {
	b := backoff{unit: time.Second, cap: 10 * time.Minute, floor: 200 * time.Millisecond}
	metrics, err := NewMetrics(prometheus.NewRegistry())
	if err != nil {
		panic(err)
	}
	return newGate(b, defaultTiming().slow, time.Now, slog.New(slog.DiscardHandler), metrics.pauses("crm"), newSlots(1))
}

func mustEnter(t *testing.T, g *gate) pass {
	t.Helper()
	p, err := g.enter(context.Background(), fresh)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// shut closes the gate by as many different events as that takes and returns for how long.
func shut(t *testing.T, g *gate, verdict platform.Verdict) time.Duration {
	t.Helper()
	p := mustEnter(t, g)
	for event := range stream.Position(breakAfter) {
		if g.report(p, 1000+event, verdict, 0); resting(g) {
			return time.Until(g.stops[fresh].until)
		}
	}
	t.Fatal("the gate is open")
	return 0
}

func TestGateWaitsAsLongAsThePlatformAsks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := testGate()
		start := time.Now()
		if got := shut(t, g, throttled); got != 7*time.Second {
			t.Errorf("got a pause of %s, want 7s", got)
		}
		p := mustEnter(t, g)
		if !p.probe || time.Since(start) != 7*time.Second {
			t.Errorf("got %+v after %s, want a probe after 7s", p, time.Since(start))
		}
		g.report(p, 1, delivered, 0)
		if p := mustEnter(t, g); p.probe || time.Since(start) != 7*time.Second {
			t.Errorf("the gate is not open after the probe: %+v", p)
		}
	})
}

// What follows on which pause, where nothing is taken: a run of bad events is passed, and a platform that is down gets about one
// request a second.
func TestGateProbesLessAndLessOften(t *testing.T) {
	pauses := []int{1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 600, 600}
	most := []int{1, 2, 4, 8, 16, 32, 64, 64, 64, 64, 64, 64}
	for name, test := range map[string]struct {
		verdict platform.Verdict
		pauses  []int // in seconds
		probes  []int // after each
	}{
		"no answer":                 {platform.Verdict{Class: platform.Retry, Reason: "timeout"}, pauses, most},
		"misconfigured or gone":     {platform.Verdict{Class: platform.Config, Reason: "http_404"}, pauses, most},
		"the credential is refused": {refused, pauses, []int{1, 2, 4, 8, 8, 8, 8, 8, 8, 8, 8, 8}},
		"asked for patience":        {platform.Verdict{Class: platform.Throttle}, pauses, []int{1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}},
		"asked for seven seconds":   {throttled, []int{7, 7, 7}, []int{1, 1, 1}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := testGate()
				shut(t, g, test.verdict)
				event := stream.Position(1)
				var got [2][]int
				for range test.pauses {
					start := time.Now()
					p := mustEnter(t, g)
					got[0] = append(got[0], int(time.Since(start)/time.Second))
					n := 1
					for event++; g.report(p, event, test.verdict, 0).stopped == 0 && !resting(g); event++ {
						if p = mustEnter(t, g); !p.probe || p.nth != n {
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

// resting says whether new events have to wait.
func resting(g *gate) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.stops[fresh].closed && g.now().Before(g.stops[fresh].until)
}

func TestGateLetsOneProbeThrough(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := testGate()
		shut(t, g, refused)
		first := mustEnter(t, g)
		second := make(chan pass)
		go func() { second <- mustEnter(t, g) }()
		open := make(chan pass)
		go func() {
			p, err := g.enter(context.Background(), again)
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
			t.Fatalf("the gate was open: %+v", p)
		default:
		}
		g.giveBack(first)
		p := <-second
		if !p.probe {
			t.Errorf("got %+v, want the probe that was given back", p)
		}
		g.report(p, 1, delivered, 0)
		if p := <-open; p.probe {
			t.Errorf("got %+v, want an open gate after a probe that was not refused", p)
		}
	})
}

func TestGateCountsRequestsUnderWayTogetherOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := testGate()
		var passes []pass
		for range 3 * breakAfter {
			passes = append(passes, mustEnter(t, g))
		}
		for i, p := range passes {
			g.report(p, stream.Position(i), refused, 0)
		}
		start := time.Now()
		mustEnter(t, g)
		if time.Since(start) != time.Second {
			t.Errorf("the pause was %s, want that of one failure", time.Since(start))
		}
	})
}

func TestGateHoldsBackWhatWasTakenBeforeItClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := testGate()
		late := mustEnter(t, g)
		shut(t, g, throttled)
		<-time.After(2 * time.Second)
		if left, ok := g.admits(late); ok || left != 5*time.Second {
			t.Errorf("got %s, %t; want 5s, false", left, ok)
		}
		g.report(late, 1, delivered, 0)
		if _, ok := g.admits(late); ok {
			t.Error("an answer to a request from before opened the gate")
		}
	})
}

func TestGateWaitEndsWithTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := testGate()
		shut(t, g, refused)
		ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
		defer cancel()
		if _, err := g.enter(ctx, fresh); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		if p := mustEnter(t, g); !p.probe {
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
