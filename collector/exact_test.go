package main

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/weir-dev/weir/collector/redisserver"
)

// TestTheSameEventsFromManyClientsAreStoredOnce sends the same events from 64 clients, several times each, through
// three collectors of which one is killed and one restarted on the way, and so is Redis.
func TestTheSameEventsFromManyClientsAreStoredOnce(t *testing.T) {
	t.Parallel()
	const clients = 64
	perBatch := min(max(1, *events/3), 250)
	for name, body := range map[string]func(client, n int) string{
		"by event_id": func(_, n int) string {
			return fmt.Sprintf(`{"event": "pageview", "event_id": "event-%d"}`, n)
		},
		// Every client has event ids of its own; the order alone makes them one.
		"by order_id": func(client, n int) string {
			return fmt.Sprintf(`{"event": "purchase", "event_id": "%d-%d", "data": {"value": 1, "currency": "EUR", "order_id": "order-%d"}}`, client, n, n)
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, redisserver.Options{Persist: true})
			replicas := []*collector{s.start("collect"), s.start("collect"), s.start("collect")}
			firsts := &firstAnswers{ids: make([]string, *events), fresh: make([]int, *events)}
			var all sync.WaitGroup
			halfway := make(chan struct{}, clients)
			for c := range clients {
				all.Go(func() {
					sender := newClient(t)
					for pass := range *repeats {
						if pass == 1 {
							halfway <- struct{}{}
						}
						for begin := 0; begin < *events; begin += perBatch {
							// Another beginning for each client, so that they do not go in step.
							from := (begin + c*perBatch*7) % *events
							numbers := make([]int, 0, perBatch)
							for k := range min(perBatch, *events-begin) {
								numbers = append(numbers, (from+k)%*events)
							}
							firsts.send(t, sender, replicas, c, pass, numbers, body)
						}
					}
				})
			}
			for range clients / 2 {
				<-halfway
			}
			replicas[0].kill()
			replicas[0].launch()
			replicas[1].stop()
			replicas[1].launch()
			if err := s.redis.Kill(); err != nil {
				t.Fatal(err)
			}
			if err := s.redis.Restart(t.Context()); err != nil {
				t.Fatal(err)
			}
			all.Wait()
			for n, times := range firsts.fresh {
				// One that was stored by a collector that was killed before it could answer was new to nobody.
				if times > 1 {
					t.Errorf("event %d was answered as new %d times", n, times)
				}
			}
			stored := s.stored()
			for n, id := range firsts.ids {
				if stored[id] != 1 {
					t.Errorf("event %d was answered %q, which is stored %d times", n, id, stored[id])
				}
			}
			if len(stored) != *events {
				t.Errorf("%d events are stored, want %d", len(stored), *events)
			}
		})
	}
}

// firstAnswers remembers the first id that each event was answered with.
type firstAnswers struct {
	mu    sync.Mutex
	ids   []string
	fresh []int
}

// send sends the events of the numbers until they are accepted: in batches, but for a quarter of them in the first pass,
// which goes singly.
func (f *firstAnswers) send(t *testing.T, sender *client, replicas []*collector, c, pass int, numbers []int, body func(client, n int) string) {
	var together []int
	var texts []string
	for _, n := range numbers {
		if pass > 0 || n%4 != c%4 {
			together, texts = append(together, n), append(texts, body(c, n))
			continue
		}
		r := insist(t, sender, replicas, c+n, "", body(c, n))
		f.note(t, n, r.EventID, r.Duplicate)
	}
	if len(together) == 0 {
		return
	}
	r := insist(t, sender, replicas, c+pass, "/batch", `{"events": [`+strings.Join(texts, ",")+`]}`)
	if len(r.Results) != len(together) {
		t.Errorf("%d results for %d events", len(r.Results), len(together))
		return
	}
	for i, result := range r.Results {
		f.note(t, together[i], result.EventID, result.Duplicate)
	}
}

// insist sends until the answer is 202, each time to the next collector.
func insist(t *testing.T, sender *client, replicas []*collector, turn int, suffix, body string) reply {
	for ; ; turn++ {
		r, err := sender.send(t.Context(), replicas[turn%len(replicas)], suffix, []byte(body))
		switch {
		case t.Context().Err() != nil:
			t.Error(t.Context().Err())
			return reply{}
		case err != nil: // the collector has been killed
		case r.status == http.StatusAccepted:
			return r
		case r.status != http.StatusServiceUnavailable:
			t.Errorf("got %d %s", r.status, r.body)
			return r
		}
	}
}

// note checks an answer against the first one.
func (f *firstAnswers) note(t *testing.T, n int, id string, duplicate bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ids[n] == "" {
		f.ids[n] = id
	}
	if f.ids[n] != id {
		t.Errorf("event %d was answered %q and %q", n, f.ids[n], id)
	}
	if !duplicate {
		f.fresh[n]++
	}
}
