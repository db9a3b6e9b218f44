package main

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/weir-dev/weir/collector/redisserver"
)

// load sends events from many clients to collectors until it is ended, and remembers what it was answered.
type load struct {
	t        *testing.T
	replicas []*collector
	stop     chan struct{}
	all      sync.WaitGroup
	accepted atomic.Int64

	mu sync.Mutex
	// acknowledged are the events that were answered 202.
	acknowledged map[string]acknowledgement
	// given are the events that got another answer or none, and were not sent again.
	given map[string]bool
	// others are the answers that were not 202.
	others []reply
	// failures is how many requests got no answer, nameless how many of those that were given up had no id: each may be
	// stored under an id that nobody was told.
	failures, nameless int
}

// acknowledgement is when the request was sent that was answered 202, and when it was answered.
type acknowledgement struct{ sent, answered time.Time }

func startLoad(t *testing.T, clients int, replicas ...*collector) *load {
	l := &load{t: t, replicas: replicas, stop: make(chan struct{}), acknowledged: map[string]acknowledgement{}, given: map[string]bool{}}
	for c := range clients {
		l.all.Go(func() { l.run(c) })
	}
	return l
}

// run is one client. Every eighth request is a batch, every fourth an event without ids; the events of every other one
// are sent until they are accepted, the rest once.
func (l *load) run(c int) {
	sender := newClient(l.t)
	for i := 0; ; i++ {
		select {
		case <-l.stop:
			return
		default:
		}
		sent := sending{ids: []string{fmt.Sprintf("%d-%d", c, i)}, insisting: i%2 == 0}
		switch {
		case i%8 == 7:
			sent.suffix = "/batch"
			for n := range 9 {
				sent.ids = append(sent.ids, fmt.Sprintf("%d-%d-%d", c, i, n))
			}
		case i%4 == 1:
			sent.ids = nil
		}
		for done := false; !done; sent.attempts++ {
			r, err := sender.send(l.t.Context(), l.replicas[(c+i+sent.attempts)%len(l.replicas)], sent.suffix, loadBody(sent.suffix, sent.ids))
			done = l.note(sent, r, err)
		}
	}
}

// sending is a request of a load: its events have ids of their own, or it is one event without.
type sending struct {
	suffix    string
	ids       []string
	insisting bool
	// attempts is how many times it was sent before.
	attempts int
}

func loadBody(suffix string, ids []string) []byte {
	if len(ids) == 0 {
		return []byte(`{"event": "pageview"}`)
	}
	var texts []string
	for _, id := range ids {
		texts = append(texts, fmt.Sprintf(`{"event": "purchase", "event_id": %q, "data": {"value": "12.50", "currency": "EUR", "order_id": %q}}`, id, "order-"+id))
	}
	if suffix == "" {
		return []byte(texts[0])
	}
	return []byte(`{"events": [` + strings.Join(texts, ",") + `]}`)
}

// note keeps an answer and says whether the client is done with the request.
func (l *load) note(sent sending, r reply, err error) (done bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case err == nil && r.status == http.StatusAccepted:
		l.accept(sent, r)
		return true
	case err != nil:
		l.failures++
	default:
		l.others = append(l.others, r)
	}
	if sent.insisting && l.t.Context().Err() == nil {
		return false
	}
	for _, id := range sent.ids {
		l.given[id] = true
	}
	if len(sent.ids) == 0 {
		l.nameless++
	}
	return true
}

// accept checks the answer to a request of which every event was accepted, and notes it.
func (l *load) accept(sent sending, r reply) {
	answered, duplicate := []string{r.EventID}, r.Duplicate
	if sent.suffix != "" {
		answered = nil
		for _, result := range r.Results {
			answered, duplicate = append(answered, result.EventID), duplicate || result.Duplicate
		}
	}
	if sent.ids != nil && !slices.Equal(answered, sent.ids) {
		l.t.Errorf("%v was answered %v", sent.ids, answered)
	}
	if duplicate && sent.attempts == 0 {
		l.t.Errorf("%v was sent for the first time and answered as a duplicate", answered)
	}
	now := time.Now()
	for _, id := range answered {
		l.acknowledged[id] = acknowledgement{now.Add(-r.took), now}
	}
	l.accepted.Add(int64(len(answered)))
}

// await waits until n more events are accepted.
func (l *load) await(n int64) {
	l.t.Helper()
	target := l.accepted.Load() + n
	eventually(l.t, fmt.Sprintf("%d more events are accepted", n), func() bool { return l.accepted.Load() >= target })
}

// end lets the clients finish.
func (l *load) end() {
	close(l.stop)
	l.all.Wait()
}

// lost compares what was acknowledged with what is stored, fails the test where an event is stored twice or was
// never sent, and returns the events that are missing.
func (l *load) lost(stored map[string]int) []string {
	l.t.Helper()
	var missing []string
	for id := range l.acknowledged {
		if stored[id] == 0 {
			missing = append(missing, id)
		}
	}
	unknown := 0
	for id, n := range stored {
		if n != 1 {
			l.t.Errorf("%s is stored %d times", id, n)
		}
		if _, acknowledged := l.acknowledged[id]; !acknowledged && !l.given[id] {
			unknown++
		}
	}
	if unknown > l.nameless {
		l.t.Errorf("%d events are stored that nobody sent, or twice under ids of our own; %d were sent without an id and not answered", unknown, l.nameless)
	}
	return missing
}

// TestWhatIsAcknowledgedSurvivesCrashes kills collectors and Redis in the middle of load.
func TestWhatIsAcknowledgedSurvivesCrashes(t *testing.T) {
	t.Parallel()
	// With fsync everysec Redis may be late to write: what it acknowledged in the two seconds before its end may be
	// gone, and nothing else.
	const lateness = 2500 * time.Millisecond
	for _, fsync := range []redisserver.Fsync{redisserver.FsyncAlways, redisserver.FsyncEverySec} {
		t.Run("with fsync "+string(fsync), func(t *testing.T) {
			s := newSite(t, redisserver.Options{Persist: true, Fsync: fsync})
			l := startLoad(t, 16, s.start("collect"), s.start("collect"))
			var ends []ending
			for n := range *kills {
				l.await(100 + rand.Int64N(200))
				if n%2 == 0 {
					if err := s.redis.Kill(); err != nil {
						t.Fatal(err)
					}
					ends = append(ends, endedNow())
					if err := s.redis.Restart(t.Context()); err != nil {
						t.Fatal(err)
					}
					continue
				}
				victim := l.replicas[n/2%2]
				victim.kill()
				victim.launch()
			}
			l.await(100)
			l.end()
			missing := l.lost(s.stored())
			cost := l.toll(missing, ends)
			t.Logf("%d kills, %d events acknowledged; %d requests without an answer, %d not accepted", *kills, len(l.acknowledged), l.failures, len(l.others))
			t.Logf("%d events lost by %d of %d ends of Redis, at most %d by one, acknowledged at most %s before it",
				len(missing), cost.ends, len(ends), cost.most, cost.earliest.Round(time.Millisecond))
			if len(missing) > 0 && (fsync == redisserver.FsyncAlways || cost.earliest > lateness) {
				t.Errorf("%d events were acknowledged and are not stored: %v", len(missing), missing)
			}
		})
	}
}

// ending is when a primary ended. What is acknowledged between, and lost, it has acknowledged itself.
type ending struct{ begun, over time.Time }

// endedNow is the ending of one that was killed.
func endedNow() ending { return ending{time.Now(), time.Now()} }

// toll is what ends of Redis have cost.
type toll struct {
	// ends is how many cost anything, most what the worst one did.
	ends, most int
	// earliest is how long before an end an event was acknowledged that is lost by it.
	earliest time.Duration
}

// toll says which ends the missing events are lost by: each by the first one that was not over when it was sent. It fails the
// test where there is none.
func (l *load) toll(missing []string, ends []ending) toll {
	var sum toll
	by := map[int]int{}
	for _, id := range missing {
		at := l.acknowledged[id]
		end := slices.IndexFunc(ends, func(e ending) bool { return at.sent.Before(e.over) })
		if end < 0 {
			l.t.Errorf("%s was acknowledged after Redis's last end and is not stored", id)
			continue
		}
		by[end]++
		sum.most = max(sum.most, by[end])
		sum.earliest = max(sum.earliest, ends[end].begun.Sub(at.answered))
	}
	sum.ends = len(by)
	return sum
}

// TestAFailoverOfUpToTwoSecondsCostsNoErrorAndNoDouble lets Redis go away under load in several ways.
func TestAFailoverOfUpToTwoSecondsCostsNoErrorAndNoDouble(t *testing.T) {
	for name, failOver := range map[string]func(*testing.T, *site, *cutter){
		"where it stands still": func(t *testing.T, s *site, _ *cutter) { freeze(t, s, *outage) },
		"where it ends and comes back": func(t *testing.T, s *site, _ *cutter) {
			if err := s.redis.Kill(); err != nil {
				t.Fatal(err)
			}
			pause(*outage / 2) // and the start takes its time
			if err := s.redis.Restart(t.Context()); err != nil {
				t.Fatal(err)
			}
		},
		"where its address refuses connections": func(_ *testing.T, _ *site, c *cutter) {
			c.refuse.Store(true)
			c.cut()
			pause(*outage)
			c.refuse.Store(false)
		},
		"where it leaves connections dead behind": func(_ *testing.T, _ *site, c *cutter) {
			c.hang.Store(true)
			pause(*outage)
			c.hang.Store(false)
		},
		"where connections break again and again": func(_ *testing.T, _ *site, c *cutter) {
			for range 20 {
				c.cut()
				pause(50 * time.Millisecond)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, redisserver.Options{Persist: true, Loopback: true, Extra: []string{"pidfile redis.pid"}})
			c := newCutter(t, s)
			l := startLoad(t, 8, s.start("collect"))
			l.await(50)
			failOver(t, s, c)
			l.await(50)
			l.end()
			for _, r := range l.others {
				t.Errorf("got %d %s after %s", r.status, r.body, r.took)
			}
			if l.failures > 0 {
				t.Errorf("%d requests got no answer", l.failures)
			}
			if missing := l.lost(s.stored()); len(missing) > 0 {
				t.Errorf("%d events were acknowledged and are not stored", len(missing))
			}
		})
	}
}

// freeze stops the Redis process for a time, as a host that hangs does.
func freeze(t *testing.T, s *site, d time.Duration) {
	t.Helper()
	process := redisProcess(t, s)
	if err := process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	pause(d)
	if err := process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
}

// redisProcess finds a server that was started with a pidfile.
func redisProcess(t *testing.T, s *site) *os.Process {
	t.Helper()
	text, err := os.ReadFile(s.redisDir + "/redis.pid")
	if err != nil {
		t.Fatal(err)
	}
	id, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	process, err := os.FindProcess(id)
	if err != nil {
		t.Fatal(err)
	}
	return process
}

// TestALongerOutageCosts503AndNoMemory lets Redis stand still for longer than requests wait.
func TestALongerOutageCosts503AndNoMemory(t *testing.T) {
	t.Parallel()
	const growth = 48 << 20
	s := newSite(t, redisserver.Options{Persist: true, Extra: []string{"pidfile redis.pid"}})
	c := s.start("collect")
	l := startLoad(t, 64, c)
	l.await(500)
	before := c.memory()
	freeze(t, s, *standstill)
	l.await(100)
	l.end()
	if grown := c.memory() - before; grown > growth {
		t.Errorf("the collector grew by %d MiB", grown>>20)
	}
	if len(l.others) < 64 || l.failures > 0 {
		t.Errorf("%d requests were refused and %d got no answer, want every client's at least once and none", len(l.others), l.failures)
	}
	for _, r := range l.others {
		if r.status != http.StatusServiceUnavailable || r.retryAfter != "2" || r.took > 4*time.Second {
			t.Fatalf("got %d %s, Retry-After %q, after %s; want 503 within the time", r.status, r.body, r.retryAfter, r.took)
		}
	}
	if missing := l.lost(s.stored()); len(missing) > 0 {
		t.Errorf("%d events were acknowledged and are not stored", len(missing))
	}
	// A call that was given up late may tell of the outage once more.
	log := c.log.String()
	if begun, ended := strings.Count(log, "redis does not take events"), strings.Count(log, "redis takes events again"); begun < 1 || begun > 3 || ended != begun {
		t.Errorf("the log tells %d times of an outage and %d times of its end, want it of one:\n%s", begun, ended, log)
	}
}
