package main

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/weir-dev/weir/collector/redisserver"
)

// TestWhatIsTooMuchIsShedWhileTheRestWaits sends more at once than a collector may hold, while Redis stands still: what
// is beyond is told so at once, and what was let in fits the memory of the pod that the operator makes.
func TestWhatIsTooMuchIsShedWhileTheRestWaits(t *testing.T) {
	t.Parallel()
	const pod = 256 << 20
	long := strings.Repeat("x", 1000)
	events := make([]string, 480)
	for i := range events {
		events[i] = `{"event": "pageview", "context": {"user_agent": "` + long + `", "page_url": "https://shop.example/` + long + `"}}`
	}
	for name, test := range map[string]struct {
		clients      int
		suffix, body string
		// shed says that there are too many, however slowly they come.
		shed bool
	}{
		"large batches": {64, "/batch", `{"events": [` + strings.Join(events, ",") + `]}`, true},
		"single events": {*waiting, "", `{"event": "purchase", "data": {"value": 1, "currency": "EUR"}, "user": {"email": "jane@example.com"}}`, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, redisserver.Options{Extra: []string{"pidfile redis.pid"}})
			c := s.start("collect", fmt.Sprint("GOMEMLIMIT=", pod-pod/10), "GOGC=400")
			send := func(sender *client) reply {
				r, err := sender.send(t.Context(), c, test.suffix, []byte(test.body))
				if err != nil {
					t.Error(err)
				}
				return r
			}
			if r := send(newClient(t)); r.status != http.StatusAccepted {
				t.Fatalf("got %d %s", r.status, r.body)
			}
			redisServer := redisProcess(t, s)
			if err := redisServer.Signal(syscall.SIGSTOP); err != nil {
				t.Fatal(err)
			}
			replies := make(chan reply, test.clients)
			var all sync.WaitGroup
			for range test.clients {
				sender := newClient(t)
				all.Go(func() { replies <- send(sender) })
			}
			all.Wait()
			if err := redisServer.Signal(syscall.SIGCONT); err != nil {
				t.Fatal(err)
			}
			close(replies)
			shed, waited := 0, 0
			for r := range replies {
				switch {
				case r.status == http.StatusServiceUnavailable && r.retryAfter == "1" && strings.Contains(r.body, "overloaded"):
					shed++
				case r.status == http.StatusServiceUnavailable && r.retryAfter == "2":
					waited++
				default:
					t.Errorf("got %d %s, Retry-After %q", r.status, r.body, r.retryAfter)
				}
			}
			taken := c.memory()
			t.Logf("%d shed, %d waited in vain; the collector took %d MiB", shed, waited, taken>>20)
			if (test.shed && shed == 0) || waited == 0 || taken > pod {
				t.Errorf("%d were shed, %d waited, %d MiB were taken; want some (%v), some and at most %d MiB", shed, waited, taken>>20, test.shed, pod>>20)
			}
			eventually(t, "events are taken again", func() bool { return send(newClient(t)).status == http.StatusAccepted })
		})
	}
}
