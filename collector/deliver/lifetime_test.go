package deliver

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/weir-dev/weir/collector/config"
	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/event/wire"
	"github.com/weir-dev/weir/collector/redisserver"
	"github.com/weir-dev/weir/collector/redisserver/redistest"
	"github.com/weir-dev/weir/collector/stream"
)

// An engine that is killed in the middle of its requests has told nobody what came of them. Another takes them
// over and sends them again, with the ids they had.
func TestTakeoverAfterAKill(t *testing.T) {
	hook := newReceiver(t, hang(t))
	h := newHarness(t, hook.platform("crm"))
	want := map[stream.Position]record{}
	for range firstRequests - 1 {
		want[h.accept(pageview)] = record{"delivered", 1, ""}
	}
	victim := h.startVictim("victim", nil)
	h.await("requests under way", func() string { return cmp.Diff(firstRequests-1, len(hook.arrivals())) })
	victim.kill()
	if got := h.records("crm"); len(got) != 0 {
		t.Fatalf("the killed engine wrote %v", got)
	}
	hook.setFailure(nil)
	h.start("heir", func(e *Engine) { e.timing.pendingIdle = 50 * time.Millisecond })
	h.eventually("crm", want)
	if got := hook.arrivals(); len(got) != firstRequests-1 {
		t.Errorf("the two engines used the ids %v, want an id for each event", got)
	}
	if got := hook.acceptances(); len(got) != firstRequests-1 {
		t.Errorf("the receiver took %v, want all events", got)
	}
}

// An engine that is stopped lets its requests end and writes what came of them: nothing is sent twice.
func TestStopWaitsForRequestsUnderWay(t *testing.T) {
	release := make(chan struct{})
	hook := newReceiver(t, func(*http.Request) *answer { <-release; return nil })
	h := newHarness(t, hook.platform("crm"))
	at := h.accept(purchase)
	r := h.start("one", nil)
	h.await("the request under way", func() string { return cmp.Diff(1, len(hook.arrivals())) })
	r.stopTaking()
	later := h.accept(pageview)
	close(release)
	r.stop()
	if diff := cmp.Diff(one(at, record{"delivered", 1, ""}), h.records("crm")); diff != "" {
		t.Errorf("after the stop (-want +got):\n%s", diff)
	}
	h.start("one", nil)
	h.eventually("crm", map[stream.Position]record{at: {"delivered", 1, ""}, later: {"delivered", 1, ""}})
	for id, n := range hook.acceptances() {
		if n != 1 {
			t.Errorf("%s was sent %d times", id, n)
		}
	}
}

// What does not end in time when an engine stops is cut off, counts as an attempt and is due again.
func TestStopCutsOffWhatTakesTooLong(t *testing.T) {
	hook := newReceiver(t, hang(t))
	h := newHarness(t, hook.platform("crm"))
	at := h.accept(purchase)
	r := h.start("one", func(e *Engine) { e.options.DrainTimeout = 20 * time.Millisecond })
	h.await("the request under way", func() string { return cmp.Diff(1, len(hook.arrivals())) })
	r.stop()
	if diff := cmp.Diff(one(at, record{"retrying", 1, "interrupted"}), h.records("crm")); diff != "" {
		t.Errorf("after the stop (-want +got):\n%s", diff)
	}
	hook.setFailure(nil)
	h.start("two", nil)
	h.eventually("crm", one(at, record{"delivered", 2, ""}))
}

func TestTwoEnginesShareTheWork(t *testing.T) {
	hook := newReceiver(t, nil)
	h := newHarness(t, hook.platform("crm"))
	h.start("one", nil)
	h.start("two", nil)
	want := map[stream.Position]record{}
	for range 200 {
		want[h.accept(pageview)] = record{"delivered", 1, ""}
	}
	h.eventually("crm", want)
	for id, n := range hook.acceptances() {
		if n != 1 {
			t.Errorf("%s was sent %d times", id, n)
		}
	}
}

// A platform that is no longer configured gets nothing more: what it had not got ends as skipped, whether it
// was unread, pending at a deliverer or waiting for another attempt, and its group goes.
func TestARemovedPlatform(t *testing.T) {
	hook := newReceiver(t, always(answer{status: 500}))
	h := newHarness(t, hook.platform("crm"), console)
	pending := h.accept(pageview)
	if _, err := h.stream.EnsureGroup(t.Context(), "crm", stream.GroupState{}); err != nil {
		t.Fatal(err)
	}
	if taken, err := h.stream.Read(t.Context(), "crm", "dead", 1, 0); err != nil || len(taken) != 1 {
		t.Fatal(taken, err)
	}
	waiting := h.accept(purchase)
	r := h.start("one", nil)
	h.eventuallyLike("crm", one(waiting, record{"retrying", 0, "http_500"}))
	r.stop()
	unread := h.accept(refund)

	h.property.Platforms = h.property.Platforms[1:]
	none := h.accept(pageview) // does not name it any more
	h.start("one", nil)
	skipped := record{"skipped", 0, "platform_removed"}
	h.eventuallyLike("crm", map[stream.Position]record{waiting: skipped, pending: skipped, unread: skipped})
	h.await("the end of the group", func() string { return cmp.Diff([]string{"console"}, groupNames(t, h)) })
	ok := record{"delivered", 1, ""}
	h.eventually("console", map[stream.Position]record{waiting: ok, pending: ok, unread: ok, none: ok})
}

// A platform that comes back after its removal does not get what was skipped for it.
func TestAPlatformThatComesBack(t *testing.T) {
	hook := newReceiver(t, nil)
	suspended := hook.platform("crm")
	suspended.Suspend = true
	h := newHarness(t, suspended)
	old := h.accept(purchase)
	r := h.start("one", nil)
	h.await("the group", func() string { return cmp.Diff([]string{"crm"}, groupNames(t, h)) })
	r.stop()
	h.property.Platforms = nil
	r = h.start("one", nil)
	h.eventually("crm", one(old, record{"skipped", 0, "platform_removed"}))
	h.await("the end of the group", func() string { return cmp.Diff([]string{}, groupNames(t, h)) })
	r.stop()
	passed := h.accept(pageview)
	h.property.Platforms = append(h.property.Platforms, hook.platform("crm"))
	fresh := h.accept(pageview)
	h.start("one", nil)
	h.eventually("crm", map[stream.Position]record{
		old: {"skipped", 0, "platform_removed"}, fresh: {"delivered", 1, ""},
	})
	if _, found := h.records("crm")[passed]; found {
		t.Error("an event from between has a record")
	}
}

// A group that is lost while an engine runs is made anew. What was final stays so, what was open is delivered.
func TestAGroupThatIsLost(t *testing.T) {
	hook := newReceiver(t, nil)
	h := newHarness(t, hook.platform("crm"))
	want := map[stream.Position]record{}
	for range 3 {
		want[h.accept(pageview)] = record{"delivered", 1, ""}
	}
	h.start("one", nil)
	h.eventually("crm", want)

	hook.setFailure(always(answer{status: 500}))
	open := h.accept(purchase)
	h.await("an open event", func() string { return cmp.Diff("retrying", h.records("crm")[open].Status) })
	h.loseGroup("crm")
	h.await("the group again, with the open event handed out and settled", func() string {
		groups, err := h.stream.Groups(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		want := []stream.Group{{Platform: "crm", LastDelivered: open, Waiting: 1}}
		return cmp.Diff(want, groups)
	})
	hook.setFailure(nil)
	want[open] = record{"delivered", 0, ""}
	after := h.accept(refund)
	want[after] = record{"delivered", 1, ""}
	h.eventuallyLike("crm", want)
	taken := 0
	for id, n := range hook.acceptances() {
		taken++
		if n != 1 {
			t.Errorf("%s was taken %d times", id, n)
		}
	}
	if taken != 5 {
		t.Errorf("the receiver took %d events, want 5", taken)
	}
}

// A group that is lost begins again before the oldest open event; the final ones behind that are passed over.
func TestALostGroupPassesOverWhatIsFinal(t *testing.T) {
	hook := newReceiver(t, func(r *http.Request) *answer {
		if r.Header.Get("webhook-id") == "019a9f3c-7a00-7000-8000-000000000001" {
			return &answer{status: 500}
		}
		return nil
	})
	h := newHarness(t, hook.platform("crm"))
	stuck := h.acceptAs(uuid.MustParse("019a9f3c-7a00-7000-8000-000000000001"))
	want := map[stream.Position]record{stuck: {"retrying", 0, "http_500"}}
	for range 3 {
		want[h.accept(pageview)] = record{"delivered", 1, ""}
	}
	r := h.start("one", nil)
	h.eventuallyLike("crm", want)
	r.stop()
	if err := h.stream.DestroyGroup(t.Context(), "crm"); err != nil {
		t.Fatal(err)
	}
	hook.setFailure(nil)
	h.start("one", nil)
	want[stuck] = record{"delivered", 0, ""}
	h.eventuallyLike("crm", want)
	for id, n := range hook.acceptances() {
		if n != 1 {
			t.Errorf("%s was taken %d times", id, n)
		}
	}
	h.await("an empty group", func() string {
		groups, err := h.stream.Groups(t.Context())
		if err != nil || len(groups) != 1 {
			t.Fatal(groups, err)
		}
		return cmp.Diff(int64(0), groups[0].Pending+groups[0].Waiting+groups[0].Lag)
	})
}

// What the property's ceilings take away before it was delivered is recorded as expired.
func TestEventsThatAreTrimmedUndelivered(t *testing.T) {
	hook := newReceiver(t, nil)
	suspended := hook.platform("crm")
	suspended.Suspend = true
	h := newHarness(t, suspended)
	r := h.start("one", nil)
	h.await("the group", func() string { return cmp.Diff([]string{"crm"}, groupNames(t, h)) })
	first, second, third := h.accept(pageview), h.accept(pageview), h.accept(pageview)
	r.stop()
	h.property.Retention.MaxEvents = 1
	h.start("one", nil)
	expired := record{"expired", 0, "trimmed"}
	h.eventually("crm", map[stream.Position]record{first: expired, second: expired})
	if found, err := h.stream.Exists(t.Context(), third); err != nil || !found {
		t.Errorf("the newest event is gone: %v", err)
	}
}

// With a history an event that is too old stays until it is archived.
func TestEventsThatAreNotArchivedAreNotTrimmedByAge(t *testing.T) {
	hook := newReceiver(t, nil)
	h := newHarness(t, hook.platform("crm"))
	h.property.History, h.property.Retention.Days = &config.History{RetentionDays: 100}, 1
	old := time.Now().Add(-72 * time.Hour)
	h.redisClock.Stop(old)
	first := h.accept(pageview)
	h.redisClock.Stop(old.Add(time.Minute))
	second := h.accept(pageview)
	h.redisClock.Ahead(0)
	epoch, err := h.stream.BeginArchive(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := h.stream.NoteArchive(t.Context(), epoch, time.Time{}, stream.ArchiveNote{Lane: stream.EventsLane, Confirmed: first}); err != nil {
		t.Fatal(err)
	}
	h.start("one", nil)
	h.await("what is archived goes", func() string {
		found, err := h.stream.Exists(t.Context(), first)
		if err != nil {
			t.Fatal(err)
		}
		return cmp.Diff(false, found)
	})
	if found, err := h.stream.Exists(t.Context(), second); err != nil || !found {
		t.Errorf("what is not archived is gone: %v", err)
	}
}

// loseGroup removes a group as a Redis that was restored from an old copy would have lost it, and says whether there
// was one.
func (h *harness) loseGroup(platform string) bool {
	h.t.Helper()
	n, err := h.redis().XGroupDestroy(h.t.Context(), "weir:{default/shop}:events", platform).Result()
	if err != nil {
		h.t.Fatal(err)
	}
	return n == 1
}

func groupNames(t *testing.T, h *harness) []string {
	t.Helper()
	groups, err := h.stream.Groups(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	names := []string{}
	for _, group := range groups {
		names = append(names, group.Platform)
	}
	return names
}

// acceptAs appends a page view with a delivery id of the test's choice.
func (h *harness) acceptAs(id uuid.UUID) stream.Position {
	h.t.Helper()
	e := event.Event{ID: id.String(), DeliveryID: id, Name: "pageview", Platforms: h.property.PlatformNames()}
	return h.append(stream.Addition{Entry: wire.Encode(&e), EventID: e.ID})
}

// While Redis is gone, outcomes that cannot be written are kept; when it is back they are written, and nothing
// is sent a second time for their sake.
func TestRedisGoesWhileRequestsAreUnderWay(t *testing.T) {
	release := make(chan struct{})
	hook := newReceiver(t, func(*http.Request) *answer { <-release; return nil })
	server := redistest.Start(t, redisserver.Options{Persist: true})
	h := newHarnessOn(t, server.URL(), hook.platform("crm"))
	at := h.accept(purchase)
	h.start("one", func(e *Engine) { e.timing.pendingIdle = time.Minute })
	h.await("the request under way", func() string { return cmp.Diff(1, len(hook.arrivals())) })
	if err := server.Kill(); err != nil {
		t.Fatal(err)
	}
	close(release)
	h.await("the complaint", func() string {
		if strings.Contains(h.log.String(), "delivery outcomes cannot be written yet") {
			return ""
		}
		return "not yet"
	})
	if err := server.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	// Its client repeats the last failure to connect until it has tried again, at most once a second.
	h.await("redis", func() string {
		if _, err := h.stream.Bounds(t.Context()); err != nil {
			return err.Error()
		}
		return ""
	})
	h.eventually("crm", one(at, record{"delivered", 1, ""}))
	later := h.accept(pageview)
	h.eventually("crm", map[stream.Position]record{at: {"delivered", 1, ""}, later: {"delivered", 1, ""}})
	for id, n := range hook.arrivals() {
		if n != 1 {
			t.Errorf("%s was sent %d times", id, n)
		}
	}
}
