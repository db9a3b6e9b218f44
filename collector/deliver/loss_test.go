package deliver

import (
	"maps"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/weir-dev/weir/collector/redisserver"
	"github.com/weir-dev/weir/collector/redisserver/redistest"
	"github.com/weir-dev/weir/collector/stream"
)

// A process that is killed and comes back under its name sends what it held at once; it waits for no pending entry to
// age.
func TestARestartedProcessResumes(t *testing.T) {
	hook := newReceiver(t, hang(t))
	h := newHarness(t, hook.platform("crm"))
	want := map[stream.Position]record{}
	for range firstRequests - 1 {
		want[h.accept(pageview)] = record{"delivered", 1, ""}
	}
	slow := func(e *Engine) { e.timing.pendingIdle = time.Hour }
	victim := h.startVictim("one", slow)
	h.await("requests under way", func() string { return cmp.Diff(firstRequests-1, len(hook.arrivals())) })
	victim.kill()
	hook.setFailure(nil)
	h.start("one", func(e *Engine) { slow(e); e.options.Resume = true })
	later := h.accept(pageview)
	want[later] = record{"delivered", 1, ""}
	h.eventually("crm", want)
	for id, n := range hook.acceptances() {
		if n != 1 {
			t.Errorf("%s was taken %d times", id, n)
		}
	}
}

// Of a group that is lost while its retries are not, everything goes on: what waits is attempted once more, not
// twice, and what is final is not sent again, whichever deliverer finds it.
func TestALostGroupWhoseRetriesSurvive(t *testing.T) {
	stuck := uuid.New()
	hook := newReceiver(t, failing(stuck.String()))
	h := newHarness(t, hook.platform("crm"))
	first := h.accept(pageview)
	at := h.acceptAs(stuck)
	want := map[stream.Position]record{first: {"delivered", 1, ""}, at: {"retrying", 0, "http_500"}}
	for range 20 {
		want[h.accept(pageview)] = record{"delivered", 1, ""}
	}
	r := h.start("one", nil)
	h.eventuallyLike("crm", want)
	r.stop()
	pending := h.accept(refund)
	h.take("crm")
	last := h.accept(pageview) // final before its predecessor
	h.take("crm")
	settled := stream.Settlement{Record: stream.Record{Event: last, Status: stream.Delivered, Attempts: 1, At: time.Now()}}
	if err := h.stream.Settle(t.Context(), "crm", []stream.Settlement{settled}); err != nil {
		t.Fatal(err)
	}
	if !h.loseGroup("crm") {
		t.Fatal("there was no group")
	}
	hook.setFailure(nil)
	before := len(hook.arrivals())
	// The first to find it is killed; the others know no more than Redis does.
	h.startVictim("two", nil).kill()
	h.start("three", nil)
	h.start("four", nil)
	want[at], want[pending], want[last] = record{"delivered", 0, ""}, record{"delivered", 1, ""}, record{"delivered", 1, ""}
	h.eventuallyLike("crm", want)
	for id, n := range hook.acceptances() {
		if n != 1 {
			t.Errorf("%s was taken %d times", id, n)
		}
	}
	if got := len(hook.arrivals()) - before; got != 1 {
		t.Errorf("%d events were sent for the first time, want the pending one alone", got)
	}
	h.await("an empty group", func() string {
		g := h.group("crm")
		return cmp.Diff(int64(0), g.Pending+g.Waiting+g.Lag)
	})
}

// A Redis that is emptied, and one that comes back from an older copy of its disk, is delivered from as it is: what it
// has a final record of is not sent again, and what comes afterwards is delivered.
func TestARedisThatHasForgotten(t *testing.T) {
	hook := newReceiver(t, nil)
	directory, err := os.MkdirTemp("", "weir-") // where t.TempDir is too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(directory); err != nil {
			t.Error(err)
		}
	})
	server := redistest.Start(t, redisserver.Options{Persist: true, Fsync: redisserver.FsyncAlways, Dir: directory})
	h := newHarnessOn(t, server.URL(), hook.platform("crm"))
	accepted := func(n int) map[stream.Position]record {
		want := map[stream.Position]record{}
		for range n {
			want[h.accept(pageview)] = record{"delivered", 1, ""}
		}
		return want
	}
	old := accepted(5)
	h.start("one", nil)
	h.eventually("crm", old)

	// The copy is taken, five more are delivered, and the copy comes back.
	if err := server.Kill(); err != nil {
		t.Fatal(err)
	}
	saved := t.TempDir()
	if err := os.CopyFS(saved, os.DirFS(filepath.Join(directory, "appendonlydir"))); err != nil {
		t.Fatal(err)
	}
	if err := server.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	h.await("Redis", func() string {
		if _, err := h.stream.Groups(t.Context()); err != nil {
			return err.Error()
		}
		return ""
	})
	accepted(5)
	h.await("ten deliveries", func() string { return cmp.Diff(10, len(hook.acceptances())) })
	if err := server.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(filepath.Join(directory, "appendonlydir")); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(filepath.Join(directory, "appendonlydir"), os.DirFS(saved)); err != nil {
		t.Fatal(err)
	}
	if err := server.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	h.await("Redis", func() string {
		if _, err := h.stream.Groups(t.Context()); err != nil {
			return err.Error()
		}
		return ""
	})
	h.loseGroup("crm")
	maps.Copy(old, accepted(5))
	h.eventually("crm", old)
	for id, n := range hook.acceptances() {
		if n != 1 {
			t.Errorf("%s was taken %d times", id, n)
		}
	}

	if err := h.redis().FlushAll(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	h.eventually("crm", accepted(5))
}

// A platform's failed and expired deliveries are made again when a replay asks for it, even where the events'
// maximum age is reached; what was delivered is not.
func TestReplayedEventsAreDelivered(t *testing.T) {
	fb := newMeta(t, always(answer{status: 400, body: `{"error":{"code":100,"error_subcode":2804009}}`}))
	h := newHarness(t, fb.platform("meta"), console)
	failed := h.accept(pageview)
	h.start("one", nil)
	h.eventually("meta", one(failed, record{"failed", 1, "code_100_2804009"}))
	fb.set(always(answer{status: 500}), accessToken)
	late := h.accept(purchase)
	h.await("an attempt", func() string { return cmp.Diff("retrying", h.records("meta")[late].Status) })
	h.advance(8 * 24 * time.Hour)
	h.await("the end of its maximum age", func() string { return cmp.Diff("expired", h.records("meta")[late].Status) })

	fb.set(nil, accessToken)
	request := stream.ReplayRequest{
		Platform: "meta", To: h.now(), Statuses: []stream.Status{stream.Failed, stream.Expired}, Now: h.now(),
	}
	asker := stream.ReplayRequester{Stream: h.stream}
	if n, err := asker.Replay(t.Context(), request); err != nil || n != 2 {
		t.Fatalf("Replay = %d, %v, want 2", n, err)
	}
	// Meta itself takes nothing that is older than a week, whatever we think of it.
	h.await("the ends", func() string {
		return cmp.Diff([]string{"too_old", "too_old"}, []string{h.last("meta", failed).Reason, h.last("meta", late).Reason})
	})
	request.Platform = "console"
	if n, err := asker.Replay(t.Context(), request); err != nil || n != 0 {
		t.Errorf("Replay of what was delivered = %d, %v, want 0", n, err)
	}
}

// Where the platform takes events of any age, a replay lets them begin their maximum age anew.
func TestAReplayRenewsTheMaximumAge(t *testing.T) {
	h := newHarness(t, console)
	at := h.accept(purchase)
	h.advance(8 * 24 * time.Hour)
	h.start("one", nil)
	h.eventually("console", one(at, record{"expired", 0, "too_old"}))
	n, err := h.stream.Replay(t.Context(), stream.ReplayRequest{
		Platform: "console", To: h.now(), Statuses: []stream.Status{stream.Expired}, Now: h.now(),
	})
	if err != nil || n != 1 {
		t.Fatalf("Replay = %d, %v, want 1", n, err)
	}
	h.await("the line", func() string { return cmp.Diff(record{"delivered", 1, ""}, h.last("console", at)) })
}

// take takes an event as a deliverer would that dies with it. One that was stopped just before may have got it first,
// and given it back.
func (h *harness) take(platform string) {
	h.t.Helper()
	h.await("an event to take", func() string {
		taken, err := h.stream.Read(h.t.Context(), platform, "dead", 1, 0)
		if err == nil && len(taken) == 0 {
			taken, _, err = h.stream.Reclaim(h.t.Context(), platform, "dead", time.Hour, 1)
		}
		if err != nil {
			h.t.Fatal(err)
		}
		return cmp.Diff(1, len(taken))
	})
}

// last returns an event's last record; it may have had a final one before.
func (h *harness) last(platform string, position stream.Position) record {
	h.t.Helper()
	var last record
	for _, r := range h.recordsOf(platform) {
		if r.Event == position {
			last = record{r.Status.String(), r.Attempts, r.Reason}
		}
	}
	return last
}

// recordsOf returns all of a platform's records in order. The stream gives only so many of its entries at once, whatever
// it is asked for.
func (h *harness) recordsOf(platform string) []stream.Record {
	h.t.Helper()
	var all []stream.Record
	for after := stream.Position(0); ; {
		list, err := h.stream.ReadRecords(h.t.Context(), after, 1000, 0)
		if err != nil {
			h.t.Fatal(err)
		}
		for _, r := range list.Records {
			if r.Platform == platform {
				all = append(all, r)
			}
		}
		if list.Last == after {
			return all
		}
		after = list.Last
	}
}
