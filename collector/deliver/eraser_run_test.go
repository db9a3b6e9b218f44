package deliver

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/weir-dev/weir/collector/analytics"
	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/event/erasure"
	"github.com/weir-dev/weir/collector/event/wire"
	"github.com/weir-dev/weir/collector/redisserver"
	"github.com/weir-dev/weir/collector/redisserver/redistest"
	"github.com/weir-dev/weir/collector/stream"
)

// TestNothingIsSentOfWhoIsErased has somebody erased at each point of an event's way to a platform.
func TestNothingIsSentOfWhoIsErased(t *testing.T) {
	ada, bob := person{client: "ada.1"}, person{client: "bob.2"}
	// erase puts Ada into the ledger, and nothing else is done: what is tested is that the ledger suffices.
	erase := func(h *harness, l *testLedger) {
		h.requestErasure(stream.ErasureRequest{Identifiers: ada.identifiers(), Suppress: true})
		if n, err := l.take(t.Context(), h.stream); n != 1 || err != nil {
			t.Fatalf("%d requests were taken, %v", n, err)
		}
	}
	never := func(e *Engine) { e.timing.erase = time.Hour }
	for name, run := range map[string]func(h *harness, l *testLedger, hook *receiver, a *stream.Appender){
		"before a new event is taken": func(h *harness, l *testLedger, _ *receiver, a *stream.Appender) {
			h.visits(a, ada.event(""), bob.event(""))
			erase(h, l)
			h.start("one", never)
		},
		"while its event waits for another attempt": func(h *harness, l *testLedger, hook *receiver, a *stream.Appender) {
			hook.setFailure(always(answer{status: 503}))
			h.visits(a, ada.event(""), bob.event(""))
			h.start("one", never)
			h.await("an attempt", func() string {
				if h.group("crm").Waiting == 0 {
					return "none waits"
				}
				return ""
			})
			erase(h, l)
			hook.setFailure(nil)
		},
		"while its event is a dead deliverer's": func(h *harness, l *testLedger, _ *receiver, a *stream.Appender) {
			if _, err := h.stream.EnsureGroup(t.Context(), "crm", stream.GroupState{}); err != nil {
				t.Fatal(err)
			}
			h.visits(a, ada.event(""), bob.event(""))
			h.take("crm")
			erase(h, l)
			h.start("one", never)
		},
		"while its event waits in memory to be sent": func(h *harness, l *testLedger, _ *receiver, a *stream.Appender) {
			h.visits(a, ada.event(""), bob.event(""))
			erase(h, l)
			h.ledger = &lateLedger{testLedger: l, asked: map[string]bool{}}
			h.start("one", never)
		},
	} {
		t.Run(name, func(t *testing.T) {
			hook := newReceiver(t, nil)
			h := newHarness(t, hook.platform("crm"))
			l := newTestLedger()
			h.ledger = l
			a := h.joiner()
			run(h, l, hook, a)
			last := bob.event("")
			position := h.visits(a, last)[0]
			h.await("the next event", func() string { return cmp.Diff("delivered", h.records("crm")[position].Status) })
			for _, entry := range h.entries() {
				identity := decoded(t, entry)
				n := hook.acceptances()[identity.DeliveryID.String()]
				if identity.ClientID == ada.client && n > 0 {
					t.Errorf("an event of Ada's was sent %d times", n)
				}
				r, recorded := h.records("crm")[entry.Position]
				if identity.ClientID == ada.client && recorded && r.Status != "retrying" {
					t.Errorf("an event of Ada's has the record %v", r)
				}
			}
		})
	}
}

// lateLedger says of each event once that it is nobody's who was erased, as one does that is told of it a moment later.
type lateLedger struct {
	*testLedger
	once  sync.Mutex
	asked map[string]bool
}

func (l *lateLedger) Erased(e *event.Event, received time.Time) bool {
	l.once.Lock()
	defer l.once.Unlock()
	first := !l.asked[e.ID]
	l.asked[e.ID] = true
	return !first && l.testLedger.Erased(e, received)
}

// TestAThousandAreErasedWhileEventsComeIn asks for all of them at once. The numbers of a view that is made afterwards are those
// of one of the others' events alone.
func TestAThousandAreErasedWhileEventsComeIn(t *testing.T) {
	const subjects, others = 1000, 300
	hook := newReceiver(t, nil)
	h := newHarness(t, hook.platform("crm"))
	h.keepLedger()
	a := h.joiner()
	batch := func(n int, one func(i int) event.Event) {
		var additions []stream.Addition
		for i := range n {
			additions = append(additions, h.addition(one(i)))
		}
		for some := range slices.Chunk(additions, 100) {
			if _, err := a.Append(t.Context(), some); err != nil {
				t.Error(err)
			}
		}
	}
	of := func(kind string, i int) person {
		return person{client: fmt.Sprint(kind, ".", i), user: fmt.Sprint("u-", kind, i)}
	}
	for range 2 {
		batch(subjects, func(i int) event.Event { return buys(of("gone", i).event(""), uuid.NewString()) })
		batch(others, func(i int) event.Event { return buys(of("stays", i).event(""), uuid.NewString()) })
	}
	h.start("one", nil)
	stop, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		ticker := time.NewTicker(20 * time.Millisecond)
		defer ticker.Stop()
		for {
			select {
			case <-stop:
				return
			case <-ticker.C:
				batch(100, func(int) event.Event { return of("stays", rand.IntN(others)).event("") })
			}
		}
	}()
	began := time.Now()
	var ids []string
	for i := range subjects {
		p := person{client: of("gone", i).client}
		ids = append(ids, h.requestErasure(stream.ErasureRequest{Identifiers: p.identifiers(), Suppress: i%2 == 0}))
	}
	states := h.awaitHidden(ids...)
	took := time.Since(began)
	close(stop)
	<-ended
	t.Logf("%d persons were erased in %s, among %d events", subjects, took.Round(time.Millisecond), len(h.entries()))
	if took > time.Minute {
		t.Errorf("it took %s, want a minute at most", took)
	}
	for _, state := range states {
		if state.Events != 2 {
			t.Errorf("%+v, want two events", state)
		}
	}
	visits := 0
	for _, entry := range h.entries() {
		e := decoded(t, entry)
		if strings.HasPrefix(e.ClientID, "gone") {
			t.Fatalf("an event of %s is left", e.ClientID)
		}
		if e.Name == "pageview" {
			visits++
		}
	}
	view := analytics.NewView(analytics.Options{Property: "default/shop", Currency: "EUR", Logger: slog.New(slog.DiscardHandler)})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() { _ = view.Follow(ctx, h.stream) }()
	h.awaitFor(time.Minute, "the view", func() string { return cmp.Diff(true, view.Status(t.Context()).Ready) })
	summary, err := view.Summary(ctx, analytics.Range{From: began.Add(-time.Hour), To: time.Now().Add(time.Hour)}, analytics.Filter{})
	if err != nil {
		t.Fatal(err)
	}
	got := []int{summary.Purchases, summary.Pageviews, summary.UniqueVisitors}
	if diff := cmp.Diff([]int{2 * others, visits, others}, got); diff != "" {
		t.Errorf("purchases, page views, visitors (-want +got):\n%s", diff)
	}
}

// TestNoFileOfRedisHasWhoIsErased looks for a person's bytes in all files of a Redis whose append-only file has been rewritten.
func TestNoFileOfRedisHasWhoIsErased(t *testing.T) {
	directory := t.TempDir()
	server := redistest.Start(t, redisserver.Options{Dir: directory, Persist: true, Fsync: redisserver.FsyncEverySec})
	hook := newReceiver(t, nil)
	h := newHarnessOn(t, server.URL(), hook.platform("crm"))
	h.keepLedger()
	a := h.joiner()
	ada, bob := person{"1700000001.99", "user-of-ada", "ada@example.com"}, person{"client-of-bob", "user-of-bob", "bob@example.com"}
	needles := func(p person, event, order string, id uuid.UUID) map[string][]byte {
		hash := sha256.Sum256([]byte(p.email))
		all := map[string][]byte{
			"client id": []byte(p.client), "user id": []byte(p.user), "hash": hash[:], "event id": []byte(event), "order id": []byte(order),
			"delivery id": id[:],
		}
		for i, one := range p.identifiers() {
			all[fmt.Sprint("identifier ", i)] = one[:]
		}
		return all
	}
	// Neighbours of the same node of the stream, on both sides.
	var adas, bobs map[string][]byte
	for i := range 50 {
		bobsEvent, adasEvent := buys(bob.event(fmt.Sprint("event-of-bob-", i)), fmt.Sprint("order-of-bob-", i)), buys(ada.event(fmt.Sprint("event-of-ada-", i)), fmt.Sprint("order-of-ada-", i))
		h.visits(a, bobsEvent, adasEvent)
		adas, bobs = needles(ada, adasEvent.ID, adasEvent.OrderID, adasEvent.DeliveryID), needles(bob, bobsEvent.ID, bobsEvent.OrderID, bobsEvent.DeliveryID)
	}
	// A client id of the form of Google's cookie is stored as two numbers.
	delete(adas, "client id")
	// What she does without her e-mail address is hers by other identifiers.
	h.visits(a, person{client: ada.client}.event(""), person{user: ada.user}.event(""))
	// A repeated order is answered with the id of the event that had it first, and the answer is remembered for a while.
	for _, order := range []string{"order-of-ada-3", "order-of-bob-3"} {
		again, err := a.Append(t.Context(), []stream.Addition{h.addition(buys(person{client: "carol.3"}.event(""), order))})
		if err != nil || !again[0].Duplicate {
			t.Fatalf("%s again: %+v, %v", order, again, err)
		}
	}
	rejections := stream.NewRejections(h.stream, slog.New(slog.DiscardHandler))
	rejections.Add(stream.Rejection{ID: uuid.NewString(), EventID: "event-of-ada-1", Answer: []byte(`{}`)})
	if err := rejections.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	h.start("one", nil)
	h.await("deliveries", func() string { return cmp.Diff(102, len(h.records("crm"))) })

	rewrite := func() {
		if err := h.redis().BgRewriteAOF(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
		h.await("the rewritten file", func() string {
			info := h.redis().InfoMap(t.Context(), "persistence").Val()["Persistence"]
			if info["aof_rewrite_in_progress"] != "0" || info["aof_rewrite_scheduled"] != "0" || info["aof_last_bgrewrite_status"] != "ok" {
				return fmt.Sprint(info)
			}
			return ""
		})
	}
	rewrite()
	files := bytesBelow(t, directory)
	for name, needle := range adas {
		if strings.HasPrefix(name, "identifier") {
			continue // one that stands for itself is not written down
		}
		if !bytes.Contains(files, needle) {
			t.Errorf("Ada's %s is not there before: the scan finds nothing", name)
		}
	}
	id := h.requestErasure(stream.ErasureRequest{Identifiers: ada.identifiers(), Suppress: true})
	state := h.awaitHidden(id)[0]
	if state.Events != 52 {
		t.Errorf("%d events were erased, want 52", state.Events)
	}
	rewrite()
	files = bytesBelow(t, directory)
	for name, needle := range adas {
		if bytes.Contains(files, needle) {
			t.Errorf("Ada's %s is in Redis's files", name)
		}
	}
	for _, text := range []string{"event-of-ada", "order-of-ada", "user-of-ada"} {
		if bytes.Contains(files, []byte(text)) {
			t.Errorf("%s is in Redis's files", text)
		}
	}
	for name, needle := range bobs {
		if !bytes.Contains(files, needle) && !strings.HasPrefix(name, "identifier") {
			t.Errorf("Bob's %s is not in Redis's files any more", name)
		}
	}
	hidden, err := h.stream.HiddenErasures(t.Context(), 10)
	if err != nil || len(hidden) != 1 || hidden[0].ID != id {
		t.Fatalf("hidden are %v, %v", hidden, err)
	}
	if purged, err := h.stream.NotePurged(t.Context(), hidden); err != nil || len(purged) != 1 {
		t.Fatal(purged, err)
	}
	if err := server.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := len(h.positions()); n != 50 {
		t.Errorf("%d events are left after a restart, want Bob's 50", n)
	}
}

// decoded reads an entry.
func decoded(t *testing.T, entry stream.Entry) event.Event {
	t.Helper()
	e, err := wire.Decode(entry.Data)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// bytesBelow returns what stands in all files below a directory.
func bytesBelow(t *testing.T, directory string) []byte {
	t.Helper()
	var all []byte
	err := filepath.WalkDir(directory, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		content, err := os.ReadFile(path)
		all = append(all, content...)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestErasuresGoOnWhateverRedissClockSays turns it while there is something to erase.
func TestErasuresGoOnWhateverRedissClockSays(t *testing.T) {
	for name, ahead := range map[string]time.Duration{"set back by a day": -24 * time.Hour, "a year ahead": 365 * 24 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			hook := newReceiver(t, nil)
			h := newHarness(t, hook.platform("crm"))
			h.keepLedger()
			a := h.joiner()
			ada, bob := person{client: "ada.1"}, person{client: "bob.2"}
			h.start("one", nil)
			h.visits(a, ada.event(""))
			rest := h.visits(a, bob.event(""))
			h.await("deliveries", func() string { return cmp.Diff(2, len(h.records("crm"))) })
			began := time.Now()
			h.redisClock.Ahead(ahead)
			h.await("the deliverer to see it", func() string {
				if h.metric("weir_redis_clock_ahead_seconds", map[string]string{}) == 0 {
					return "it is believed"
				}
				return ""
			})
			h.visits(a, ada.event(""))
			id := h.requestErasure(stream.ErasureRequest{Identifiers: ada.identifiers()})
			state := h.awaitHidden(id)[0]
			if state.Events != 2 || state.Hidden.Sub(began) > 5*time.Minute || state.Hidden.Before(began.Add(-time.Minute)) {
				t.Errorf("%+v, want two events, and all times about %s", state, began)
			}
			// What comes later of somebody who is not suppressed is theirs again.
			rest = append(rest, h.visits(a, ada.event(""))...)
			if diff := cmp.Diff(rest, h.positions()); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
		})
	}
}

func TestOneErasesAtATimeAndAnotherTakesOver(t *testing.T) {
	h := newHarness(t)
	l := h.keepLedger()
	e := New(Options{Stream: h.stream, Property: h.property, Consumer: "one", Metrics: h.metrics, Logger: slog.New(slog.DiscardHandler), Ledger: l})
	ran := time.Duration(0)
	e.monotonic = func() time.Duration { return ran }
	eraser := e.eraser()
	ctx := t.Context()
	lookup := func(want bool) {
		t.Helper()
		if got, err := eraser.acquire(ctx); got != want || err != nil {
			t.Errorf("after %s it may erase: %v, %v, want %v", ran, got, err, want)
		}
	}
	say := func(text string) {
		t.Helper()
		if err := h.stream.LockErasures(ctx, text); err != nil {
			t.Fatal(err)
		}
	}
	lookup(true)
	say("other 1")
	lookup(false)
	ran += 29 * time.Second
	lookup(false)
	say("other 2")
	ran += 2 * time.Second
	lookup(false)
	ran += 30 * time.Second
	lookup(true) // it has said nothing for half a minute
	say("other 3")
	lookup(false)
	release := eraser.hold(ctx)
	h.await("its own word", func() string {
		lock, err := h.stream.ErasureLock(ctx)
		if err != nil || !strings.HasPrefix(lock, eraser.token) {
			return lock
		}
		return ""
	})
	lookup(true)
	release()
	if lock, err := h.stream.ErasureLock(ctx); lock != "" || err != nil {
		t.Errorf("the lock is %q, %v, want none", lock, err)
	}
}

// TestWhatWasSeenWithASubjectGoesOneHopFar has Ada's e-mail address on two devices, one of which is Bob's too.
func TestWhatWasSeenWithASubjectGoesOneHopFar(t *testing.T) {
	for name, c := range map[string]struct {
		linked bool
		want   []string
		count  int64
	}{
		"where that is asked for": {true, []string{"bob-elsewhere"}, 2},
		"not where it is not":     {false, []string{"on-the-telephone", "on-the-tablet", "bob-on-the-tablet", "bob-elsewhere"}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t)
			h.keepLedger()
			a := h.joiner()
			const ada, bob = "ada@example.com", "bob@example.com"
			h.visits(a,
				person{client: "telephone.1"}.event("on-the-telephone"), person{client: "telephone.1", email: ada}.event("known-on-the-telephone"),
				person{client: "tablet.2"}.event("on-the-tablet"), person{client: "tablet.2", email: ada}.event("known-on-the-tablet"),
				person{client: "tablet.2", email: bob}.event("bob-on-the-tablet"), person{email: bob}.event("bob-elsewhere"),
			)
			h.start("one", nil)
			state := h.awaitHidden(h.requestErasure(stream.ErasureRequest{Identifiers: person{email: ada}.identifiers(), Linked: c.linked}))[0]
			var left []string
			for _, entry := range h.entries() {
				left = append(left, decoded(t, entry).ID)
			}
			if diff := cmp.Diff(c.want, left); diff != "" || state.Linked != c.count {
				t.Errorf("%d identifiers were seen with it, want %d; events left (-want +got):\n%s", state.Linked, c.count, diff)
			}
		})
	}
}

// TestARestoredBackupIsErasedAgain puts a Redis back to what it was before an erasure, which has lost its ledger stream.
func TestARestoredBackupIsErasedAgain(t *testing.T) {
	hook := newReceiver(t, nil)
	h := newHarness(t, hook.platform("crm"))
	l := newTestLedger()
	h.ledger = l
	a := h.joiner()
	ada, bob := person{client: "ada.1", user: "u-ada"}, person{client: "bob.2"}
	h.visits(a, ada.event(""), ada.event(""))
	rest := h.visits(a, bob.event(""))
	bounds, err := h.stream.Bounds(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var entries []erasure.Entry
	for _, id := range ada.identifiers() {
		entry := erasure.Entry{Digest: l.ledger.Salt.Digest(id), At: bounds.Newest.Time()}
		entries = append(entries, entry)
		l.ledger.Add(entry)
	}
	h.start("one", nil)
	h.await("delivery", func() string { return cmp.Diff(1, len(h.records("crm"))) })
	// What has come since is not the erased person's.
	h.await("another millisecond", func() string {
		if !time.Now().After(bounds.Newest.Time().Add(2 * time.Millisecond)) {
			return "not yet"
		}
		return ""
	})
	rest = append(rest, h.visits(a, ada.event(""))...)
	if err := h.stream.Ledgered(t.Context(), stream.ErasureRequest{ID: "restored-1"}, entries); err != nil {
		t.Fatal(err)
	}
	if state := h.awaitHidden("restored-1")[0]; state.Events != 2 {
		t.Errorf("%+v, want two events", state)
	}
	if diff := cmp.Diff(rest, h.positions()); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	if n := len(hook.arrivals()); n != 2 {
		t.Errorf("%d events were delivered, want two", n)
	}
}
