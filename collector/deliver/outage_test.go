package deliver

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/weir-dev/weir/collector/stream"
)

// group returns the platform's consumer group.
func (h *harness) group(platform string) stream.Group {
	h.t.Helper()
	groups, err := h.stream.Groups(h.t.Context())
	if err != nil {
		h.t.Fatal(err)
	}
	for _, g := range groups {
		if g.Platform == platform {
			return g
		}
	}
	return stream.Group{}
}

// A platform that only fails is tried with a few events; the others wait unread, and go out when it works again, hours
// later.
func TestAnOutageCostsAFewAttempts(t *testing.T) {
	const events, few = 1500, 100 * (tripAfter + firstRequests)
	fb := newMeta(t, always(answer{status: 503}))
	h := newHarness(t, fb.platform("meta"))
	fb.now = h.now
	want := map[stream.Position]record{}
	for range events {
		want[h.accept(pageview)] = record{"delivered", 0, ""}
	}
	h.start("one", nil)
	meta := map[string]string{"platform": "meta"}
	failure := map[string]string{"platform": "meta", "reason": "http_503"}
	h.await("a pause", func() string { return cmp.Diff(1.0, h.metric("weir_platform_paused", meta)) })
	requests := len(fb.batches())
	h.advance(5 * time.Hour)
	h.await("probes", func() string {
		if n := len(fb.batches()); n < requests+10 {
			return fmt.Sprint(n)
		}
		return ""
	})
	if g := h.group("meta"); g.Waiting+g.Pending > few || g.Lag < events-few {
		t.Errorf("%d events wait for another attempt and %d are unread, want at most %d of %d to have been tried", g.Waiting+g.Pending, g.Lag, few, events)
	}
	if got := h.metric("weir_platform_error", failure); got != 1 {
		t.Errorf("the metric of the error is %v, want 1", got)
	}
	h.await("the lag", func() string {
		if seconds := h.metric("weir_delivery_lag_seconds", meta); seconds < 5*3600 {
			return fmt.Sprint(seconds)
		}
		return ""
	})

	// A Redis that has read its append-only file does not know any more how many events were handed out.
	last := h.group("meta").LastDelivered.String()
	if err := h.redis().Do(t.Context(), "XGROUP", "SETID", "weir:{default/shop}:events", "meta", last, "ENTRIESREAD", 0).Err(); err != nil {
		t.Fatal(err)
	}

	fb.set(nil, accessToken)
	want[h.accept(purchase)] = record{"delivered", 0, ""}
	h.eventuallyLike("meta", want)
	for key, n := range fb.counts() {
		if n != 1 {
			t.Errorf("%s was taken %d times", key, n)
		}
	}
	h.await("no more lag", func() string {
		return cmp.Diff([]float64{0, 0, 0, 0}, []float64{
			h.metric("weir_delivery_lag_seconds", meta), h.metric("weir_delivery_lag_events", meta),
			h.metric("weir_delivery_waiting_events", meta), h.metric("weir_platform_error", failure),
		})
	})
}

// failing fails the requests with one of the delivery ids.
func failing(ids ...string) failure {
	return func(r *http.Request) *answer {
		if slices.Contains(ids, r.Header.Get("webhook-id")) {
			return &answer{status: 500}
		}
		return nil
	}
}

// An event that a receiver always fails at keeps no other waiting, however few others there are; nor do several.
func TestPoisonKeepsNoOtherWaiting(t *testing.T) {
	for name, poison := range map[string]int{"one": 1, "more than it takes to pause the platform": 2 * tripAfter} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var ids []string
			for range poison {
				ids = append(ids, uuid.NewString())
			}
			hook := newReceiver(t, failing(ids...))
			h := newHarness(t, hook.platform("crm"))
			want := map[stream.Position]record{}
			for _, id := range ids {
				want[h.acceptAs(uuid.MustParse(id))] = record{"retrying", 0, "http_500"}
			}
			h.start("one", nil)
			h.eventuallyLike("crm", want)
			for range 5 {
				at := h.accept(pageview)
				h.await("an event behind the poison", func() string {
					return cmp.Diff(record{"delivered", 1, ""}, h.records("crm")[at])
				})
			}
		})
	}
}

// An event for whose sake a platform fails whole batches, without saying so, ends up alone.
func TestPoisonThatFailsWholeBatches(t *testing.T) {
	fb := newMeta(t, nil)
	judge := fb.Config.Handler
	fb.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return // the engine gave up
		}
		if bytes.Contains(body, []byte(`"evt-1"`)) {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		judge.ServeHTTP(w, r)
	})
	h := newHarness(t, fb.platform("meta"))
	fb.now = h.now
	want := map[stream.Position]record{h.accept(purchase): {"retrying", 0, "http_500"}}
	for range 20 {
		want[h.accept(pageview)] = record{"delivered", 0, ""}
	}
	h.start("one", nil)
	h.eventuallyLike("meta", want)
}

// Platforms that hang, fail, throttle or refuse their credential leave the latency of another as it is.
func TestNeighboursDoNotFeelEachOther(t *testing.T) {
	hanging := newReceiver(t, hang(t))
	failing := newReceiver(t, always(answer{status: 500}))
	throttling := newReceiver(t, always(answer{status: 429, header: map[string]string{"Retry-After": "30"}}))
	refusing := newReceiver(t, always(answer{status: 401}))
	latency := func(t *testing.T, neighbours ...*receiver) time.Duration {
		quick := newReceiver(t, nil)
		h := newHarness(t, quick.platform("quick"))
		for i, neighbour := range neighbours {
			h.property.Platforms = append(h.property.Platforms, neighbour.platform(fmt.Sprint("neighbour-", i)))
			h.credentials[fmt.Sprint("neighbour-", i)] = h.credentials["quick"]
		}
		for range 500 {
			h.accept(pageview) // a backlog for all
		}
		h.start("one", func(e *Engine) {
			e.timing.request = 30 * time.Second
			e.options.DrainTimeout = 10 * time.Millisecond
		})
		h.await("the backlog", func() string { return cmp.Diff(500, len(quick.acceptances())) })
		var latencies []time.Duration
		for i := range 50 {
			start := time.Now()
			h.accept(pageview)
			h.await("an event", func() string { return cmp.Diff(501+i, len(quick.acceptances())) })
			latencies = append(latencies, time.Since(start))
		}
		slices.Sort(latencies)
		return latencies[len(latencies)/2]
	}
	alone := latency(t)
	among := latency(t, hanging, failing, throttling, refusing)
	t.Logf("the median latency is %s alone, %s among bad neighbours", alone, among)
	// Generous, for a busy machine; one request of a neighbour takes seconds.
	if among > 5*alone+200*time.Millisecond {
		t.Errorf("the median latency is %s among bad neighbours, %s alone", among, alone)
	}
}

// However many events wait, a deliverer holds no more of them than it may send at a time.
func TestMemoryIsBoundedWhateverTheBacklog(t *testing.T) {
	const events = 60_000
	fb := newMeta(t, hang(t))
	h := newHarness(t, fb.platform("meta"))
	fill(t, h, events)
	bounds, err := h.stream.Bounds(t.Context())
	if err != nil || bounds.Length != events {
		t.Fatal(bounds, err)
	}
	before := heap()
	h.start("one", func(e *Engine) {
		e.timing.request = 30 * time.Second
		e.options.DrainTimeout = 10 * time.Millisecond
	})
	h.await("requests under way", func() string { return cmp.Diff(firstRequests-1, len(fb.batches())) })
	if g := h.group("meta"); g.Pending != 100*(firstRequests-1) || g.Waiting != 0 {
		t.Errorf("the deliverer holds %d events, want %d", g.Pending, 100*(firstRequests-1))
	}
	const most = 16 << 20
	if grown := heap() - before; grown > most {
		t.Errorf("%d bytes are in use more than before, want less than %d", grown, most)
	}
}

func heap() int64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}

func TestDeadLettersAreCounted(t *testing.T) {
	hook := newReceiver(t, always(answer{status: 422}))
	h := newHarness(t, hook.platform("crm"))
	at := h.accept(purchase)
	h.start("one", nil)
	h.eventually("crm", one(at, record{"failed", 1, "http_422"}))
	h.await("the metric", func() string {
		return cmp.Diff(1.0, h.metric("weir_dead_letters_total", map[string]string{"platform": "crm", "reason": "http_422"}))
	})
}
