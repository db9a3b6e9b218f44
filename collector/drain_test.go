package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/weir-dev/weir/collector/redisserver"
)

// balancer sends to the collectors that say they are ready, by turns, as a Service does: it looks at their readiness
// every few milliseconds and knows nothing else of them.
type balancer struct {
	t          *testing.T
	collectors []*collector
	ready      []atomic.Bool
	turn       atomic.Uint64
	// refused counts connections that a collector did not take.
	refused atomic.Int64
}

func newBalancer(t *testing.T, collectors ...*collector) *balancer {
	t.Helper()
	b := &balancer{t: t, collectors: collectors, ready: make([]atomic.Bool, len(collectors))}
	ctx, stop := context.WithCancel(t.Context())
	var probes sync.WaitGroup
	for i := range collectors {
		probes.Go(func() { b.probe(ctx, i) })
	}
	t.Cleanup(func() { stop(); probes.Wait() })
	for i := range collectors {
		eventually(t, "a collector is ready", b.ready[i].Load)
	}
	return b
}

// probe follows a collector's readiness until ctx ends.
func (b *balancer) probe(ctx context.Context, i int) {
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		response, err := http.Get("http://" + b.collectors[i].metrics + "/readyz")
		if err == nil {
			response.Body.Close()
		}
		b.ready[i].Store(err == nil && response.StatusCode == http.StatusOK)
	}
}

// send sends an event to the next collector that is ready, and to another only where a connection was refused, so that
// nothing has been sent.
func (b *balancer) send(ctx context.Context, c *client, body []byte) (reply, error) {
	for attempt := 0; ; {
		next := int(b.turn.Add(1) % uint64(len(b.collectors)))
		if !b.ready[next].Load() {
			continue
		}
		r, err := c.send(ctx, b.collectors[next], "", body)
		if errors.Is(err, syscall.ECONNREFUSED) && attempt < 10 {
			attempt++
			b.refused.Add(1)
			continue
		}
		return r, err
	}
}

func TestARollingRestartLosesAndFailsNoRequest(t *testing.T) {
	s := newSite(t, redisserver.Options{Persist: true, Fsync: redisserver.FsyncEverySec})
	var collectors []*collector
	for range 2 {
		c := s.start("collect")
		// Started anew with a time in which the balancer can notice; metrics last as long.
		c.stop()
		c.flags = []string{"--drain-delay", "300ms"}
		c.launch()
		collectors = append(collectors, c)
	}
	b := newBalancer(t, collectors...)

	const clients = 8
	ctx, stop := context.WithCancel(t.Context())
	var sending sync.WaitGroup
	sent := make([]int, clients)
	for number := range clients {
		c := newClient(t)
		sending.Go(func() {
			for ; ctx.Err() == nil; sent[number]++ {
				id := fmt.Sprintf("%d-%d", number, sent[number])
				r, err := b.send(t.Context(), c, []byte(`{"event": "lead", "event_id": "`+id+`"}`))
				if err != nil || r.status != http.StatusAccepted || r.EventID != id || r.Duplicate {
					t.Errorf("event %s was answered %d %s: %v", id, r.status, r.body, err)
					return
				}
			}
		})
	}
	for n := range *restarts {
		i := n % len(collectors)
		c := collectors[i]
		c.stop()
		if b.ready[i].Load() {
			t.Error("a collector that had ended was still taken for ready: the drain gave no time to notice")
		}
		c.launch()
		eventually(t, "the new collector is ready", b.ready[i].Load)
	}
	stop()
	sending.Wait()

	stored, total := s.stored(), 0
	for number, n := range sent {
		total += n
		for i := range n {
			if id := fmt.Sprintf("%d-%d", number, i); stored[id] != 1 {
				t.Errorf("event %s was answered 202 and is stored %d times", id, stored[id])
			}
		}
	}
	if len(stored) != total {
		t.Errorf("%d events were sent and %d are stored", total, len(stored))
	}
	t.Logf("%d events over %d restarts; %d connections refused", total, *restarts, b.refused.Load())
}
