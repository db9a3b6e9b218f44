package ingest_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-dev/weir/collector/config"
	"github.com/weir-dev/weir/collector/redisserver"
	"github.com/weir-dev/weir/collector/redisserver/redistest"
)

const unavailable = `{"message":"Events cannot be stored at the moment. Please send them again."}`

func TestWithoutRedisRequestsWaitAndThenAreAskedToComeBack(t *testing.T) {
	redis := redistest.Start(t, redisserver.Options{Persist: true})
	client := dial(t, redis.URL())
	limited := property("limited")
	limited.Limits.EventsPerSecond = 1000
	plain, events := inRedis(t, client, property("shop"))
	throttled, _ := inRedis(t, client, limited)
	throttled.Keys = keysOf("key-of-the-limited-one")
	s := newSite(t, plain, throttled)

	send := func(id string) answer {
		return s.send(t, request{body: fmt.Appendf(nil, `{"event": "pageview", "event_id": %q}`, id)})
	}
	if got := send("before"); got.status != http.StatusAccepted {
		t.Fatalf("before: got %d %s", got.status, got.body)
	}
	if err := redis.Kill(); err != nil {
		t.Fatal(err)
	}
	for name, r := range map[string]request{
		"an event":                     {body: []byte(`{"event": "pageview", "event_id": "during"}`)},
		"a batch":                      {suffix: "/batch", body: []byte(`{"events": [{"event": "pageview", "event_id": "during"}]}`)},
		"an event with a rate to obey": {path: "/collect/key-of-the-limited-one", body: []byte(purchase)},
	} {
		start := time.Now()
		got := s.send(t, r)
		if got.status != http.StatusServiceUnavailable || got.body != unavailable || got.header.Get("Retry-After") != "2" {
			t.Errorf("%s: got %d %s with Retry-After %q, want 503", name, got.status, got.body, got.header.Get("Retry-After"))
		}
		if took := time.Since(start); took < 1500*time.Millisecond || took > 5*time.Second {
			t.Errorf("%s: took %s, want about 2.5 s", name, took)
		}
	}
	// What is wrong with a request is said without Redis.
	if got := s.send(t, request{body: []byte(`{}`)}); got.status != http.StatusUnprocessableEntity {
		t.Errorf("an invalid event: got %d, want 422", got.status)
	}

	if err := redis.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ id, want string }{
		{"during", accepted("during")}, {"during", duplicate("during")}, {"before", duplicate("before")},
	} {
		if got := send(c.id); got.status != http.StatusAccepted || got.body != c.want {
			t.Errorf("%s, afterwards: got %d %s, want %s", c.id, got.status, got.body, c.want)
		}
	}
	if got := len(storedNames(t, events)); got != 2 {
		t.Errorf("%d events are stored, want 2", got)
	}
}

func TestARequestThatWaitsIsServedWhenRedisComesBackInTime(t *testing.T) {
	redis := redistest.Start(t, redisserver.Options{Persist: true})
	tenant, _ := inRedis(t, dial(t, redis.URL()), property("shop"))
	s := newSite(t, tenant)
	if err := redis.Kill(); err != nil {
		t.Fatal(err)
	}
	answers := make(chan answer, 1)
	go func() { answers <- s.send(t, request{body: []byte(purchase)}) }()
	if err := redis.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := <-answers; got.status != http.StatusAccepted {
		t.Errorf("got %d %s, want 202", got.status, got.body)
	}
}

func TestManyClientsAtOnceAreEachStoredOnce(t *testing.T) {
	const clients, each = 64, 20
	tenant, events := inRedis(t, newRedis(t), property("shop"))
	s := newSite(t, tenant)
	var all sync.WaitGroup
	var mu sync.Mutex
	firsts := map[string]int{}
	for c := range clients {
		all.Go(func() {
			for i := range each {
				// Two clients share every id, and each answer must be the one that belongs to its request.
				id := fmt.Sprintf("event-%d-%d", c/2, i)
				got := s.send(t, request{body: fmt.Appendf(nil, `{"event": "pageview", "event_id": %q}`, id)})
				switch got.body {
				case accepted(id):
					mu.Lock()
					firsts[id]++
					mu.Unlock()
				case duplicate(id):
				default:
					t.Errorf("%s: got %d %s", id, got.status, got.body)
				}
			}
		})
	}
	all.Wait()
	for id, n := range firsts {
		if n != 1 {
			t.Errorf("%s was accepted as new %d times", id, n)
		}
	}
	bounds, err := events.ReadEvents(context.Background(), 0, 2*clients*each, -1)
	if err != nil {
		t.Fatal(err)
	}
	if want := clients / 2 * each; len(bounds) != want || len(firsts) != want {
		t.Errorf("%d are stored and %d were answered as new, want %d", len(bounds), len(firsts), want)
	}
	want := map[string]float64{"accepted": clients / 2 * each, "duplicate": clients / 2 * each}
	if diff := cmp.Diff(want, s.outcomes(t)); diff != "" {
		t.Errorf("outcomes (-want +got):\n%s", diff)
	}
}

func TestWhatAClientHasSentWholeIsStoredThoughItLeaves(t *testing.T) {
	client := dial(t, redistest.Start(t, redisserver.Options{}).URL())
	gone, leave := context.WithCancel(t.Context())
	leave()
	limited := property("limited")
	limited.Limits.EventsPerSecond = 1000
	for name, test := range map[string]struct {
		property     config.Property
		suffix, body string
	}{
		"an event":                     {property("shop"), "", `{"event": "pageview"}`},
		"a batch":                      {property("batches"), "/batch", `{"events": [{"event": "pageview"}]}`},
		"an event with a rate to obey": {limited, "", `{"event": "pageview"}`},
	} {
		t.Run(name, func(t *testing.T) {
			tenant, events := inRedis(t, client, test.property)
			s := newSite(t, tenant)
			r := httptest.NewRequestWithContext(gone, http.MethodPost, "/collect/"+shopKey+test.suffix, strings.NewReader(test.body))
			r.Header.Set("Content-Type", "application/json")
			answer := httptest.NewRecorder()
			s.Config.Handler.ServeHTTP(answer, r)
			if n := len(storedNames(t, events)); answer.Code >= 300 || n != 1 {
				t.Errorf("got %d %s and %d events, want it to be stored", answer.Code, answer.Body, n)
			}
		})
	}
}
