package ingest_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-dev/weir/collector/ingest"
	"github.com/weir-dev/weir/collector/redisserver/redistest"
	"github.com/weir-dev/weir/collector/server"
	"github.com/weir-dev/weir/collector/stream"
)

// held is an appender that stores nothing until it is let go.
type held struct {
	memory
	entered chan struct{}
	release chan struct{}
}

func (h *held) Append(ctx context.Context, additions []stream.Addition) ([]stream.Added, error) {
	h.entered <- struct{}{}
	<-h.release
	return h.memory.Append(ctx, additions)
}

func TestWhatIsBeyondTheCollectorsMemoryIsShedAtOnce(t *testing.T) {
	const room = 4
	appender := &held{entered: make(chan struct{}, room), release: make(chan struct{})}
	registry := prometheus.NewRegistry()
	handler := ingest.New(ingest.Options{
		Now: func() time.Time { return noon }, Registerer: registry, MaxInFlightBytes: room * (32<<10 + 4*100),
	})
	handler.Serve([]ingest.Tenant{{Property: property("shop"), Keys: keysOf(shopKey), Appender: appender}})
	log := new(safeBuffer)
	router := server.NewRouter(server.NewObserver(slog.New(slog.NewJSONHandler(log, nil)), registry))
	handler.Routes(router)
	s := &site{Server: httptest.NewServer(router), log: log}
	t.Cleanup(s.Close)

	var waiting sync.WaitGroup
	for range room {
		waiting.Go(func() {
			if got := s.send(t, request{body: []byte(`{"event": "lead"}`)}); got.status != http.StatusAccepted {
				t.Errorf("a request that was let in: got %d %s, want 202", got.status, got.body)
			}
		})
		<-appender.entered
	}
	for name, r := range map[string]request{
		"one more event": {body: []byte(`{"event": "lead"}`)},
		"a batch":        {suffix: "/batch", body: []byte(`{"events": [{"event": "lead"}]}`)},
		"a body that does not say how long it is": {body: []byte(`{"event": "lead"}`), chunked: true},
	} {
		t.Run(name, func(t *testing.T) {
			got := s.send(t, r)
			const want = `{"message":"The collector is overloaded. Please send the events again."}`
			if got.status != http.StatusServiceUnavailable || got.header.Get("Retry-After") != "1" || got.body != want {
				t.Errorf("got %d, Retry-After %q, %s; want 503, 1, %s", got.status, got.header.Get("Retry-After"), got.body, want)
			}
		})
	}
	t.Run("a wrong key is refused as ever", func(t *testing.T) {
		if got := s.send(t, request{path: "/collect/none", body: []byte(`{}`)}); got.status != http.StatusUnauthorized {
			t.Errorf("got %d, want 401", got.status)
		}
	})
	if !strings.Contains(log.String(), `"reason":"overloaded"`) {
		t.Errorf("the log does not say that requests were shed:\n%s", log.String())
	}
	close(appender.release)
	waiting.Wait()
	t.Run("events are taken again afterwards", func(t *testing.T) {
		if got := s.send(t, request{body: []byte(`{"event": "lead"}`)}); got.status != http.StatusAccepted {
			t.Errorf("got %d %s, want 202", got.status, got.body)
		}
	})
}

func TestReplicasShareTheRateLimit(t *testing.T) {
	address := redistest.URL(t)
	const limit, each = 50, 100
	p := property("shop")
	p.Limits.EventsPerSecond = limit
	var replicas []*site
	for range 2 {
		tenant, _ := inRedis(t, dial(t, address), p)
		replicas = append(replicas, newSite(t, tenant))
	}
	begin := time.Now()
	var mu sync.Mutex
	status := map[int]int{}
	var clients sync.WaitGroup
	for i, replica := range replicas {
		clients.Go(func() {
			for n := range each {
				got := replica.send(t, request{body: fmt.Appendf(nil, `{"event": "lead", "event_id": "%d-%d"}`, i, n)})
				mu.Lock()
				status[got.status]++
				mu.Unlock()
				after, err := strconv.Atoi(got.header.Get("Retry-After"))
				if limited := got.status == http.StatusTooManyRequests; limited != (err == nil && after >= 1) {
					t.Errorf("status %d came with Retry-After %q", got.status, got.header.Get("Retry-After"))
				}
				if got.header.Get("X-RateLimit-Limit") != strconv.Itoa(limit) || got.header.Get("X-RateLimit-Remaining") == "" {
					t.Errorf("the limit is not told: %v", got.header)
				}
			}
		})
	}
	clients.Wait()
	// A second's allowance at once, and what the time since has added to it.
	most := limit + int(time.Since(begin).Seconds()*limit) + 1
	if got := status[http.StatusAccepted]; got < min(limit, 2*each) || got > most || got+status[http.StatusTooManyRequests] != 2*each {
		t.Errorf("two replicas answered %v; want at least %d and at most %d times 202, otherwise 429", status, limit, most)
	}
}
