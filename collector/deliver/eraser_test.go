package deliver

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/google/uuid"
	goredis "github.com/redis/go-redis/v9"

	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/event/erasure"
	"github.com/weir-dev/weir/collector/event/wire"
	"github.com/weir-dev/weir/collector/stream"
)

// testLedger is a ledger that a test keeps, as the operator keeps one.
type testLedger struct {
	property string

	mu     sync.Mutex
	ledger erasure.Ledger
}

func newTestLedger() *testLedger {
	return &testLedger{property: "default/shop", ledger: erasure.Ledger{Salt: erasure.Salt{7}}}
}

func (l *testLedger) Erased(e *event.Event, received time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ledger.Erased(e.Identifiers(l.property, nil), received)
}

func (l *testLedger) Salt() (erasure.Salt, bool) { return l.ledger.Salt, true }

// take writes the requests that wait to the ledger, and returns how many there were.
func (l *testLedger) take(ctx context.Context, s *stream.Stream) (int, error) {
	requests, err := s.ErasureRequests(ctx, 1000)
	if err != nil || len(requests) == 0 {
		return 0, err
	}
	bounds, err := s.Bounds(ctx)
	if err != nil {
		return 0, err
	}
	for _, r := range requests {
		at := r.At
		if newest := bounds.Newest.Time(); newest.After(at) {
			at = newest
		}
		var entries []erasure.Entry
		for _, id := range r.Identifiers {
			entries = append(entries, erasure.Entry{Digest: l.ledger.Salt.Digest(id), At: at, Suppress: r.Suppress})
		}
		l.mu.Lock()
		for _, entry := range entries {
			l.ledger.Add(entry)
		}
		l.mu.Unlock()
		if err := s.Ledgered(ctx, r, entries); err != nil {
			return 0, err
		}
	}
	return len(requests), nil
}

// keepLedger gives the harness a ledger, and keeps it until the test ends.
func (h *harness) keepLedger() *testLedger {
	h.t.Helper()
	l := newTestLedger()
	h.ledger = l
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for pause(ctx, 5*time.Millisecond) {
			if _, err := l.take(ctx, h.stream); err != nil && ctx.Err() == nil {
				h.t.Log(err) // as while a test restarts Redis; it is tried again
			}
		}
	}()
	h.t.Cleanup(func() {
		cancel()
		<-done
	})
	return l
}

// person is somebody whom events are about.
type person struct {
	client, user, email string
}

func (p person) event(id string) event.Event {
	e := event.Event{DeliveryID: uuid.New(), Name: "pageview", ClientID: p.client, UserID: p.user, ID: id}
	if id == "" {
		e.ID = e.DeliveryID.String()
	}
	if p.email != "" {
		e.User[event.EmailLower] = sha256.Sum256([]byte(p.email))
	}
	return e
}

// identifiers are what a request for the person's erasure has: of one of client, user and email, the others being "".
func (p person) identifiers() []event.Identifier {
	e := p.event("")
	return e.Identifiers("default/shop", nil).List
}

// buys makes an event the purchase of an order.
func buys(e event.Event, order string) event.Event {
	amount := event.Amount(125_000)
	e.Name, e.OrderID, e.Value, e.Currency = event.Purchase, order, &amount, "EUR"
	return e
}

// visits appends events as a collector does, with whose they are, and returns their positions.
func (h *harness) visits(a *stream.Appender, events ...event.Event) []stream.Position {
	h.t.Helper()
	var positions []stream.Position
	for _, e := range events {
		added, err := a.Append(h.t.Context(), []stream.Addition{h.addition(e)})
		if err != nil || added[0].Duplicate {
			h.t.Fatalf("append: %+v, %v", added, err)
		}
		bounds, err := h.stream.Bounds(h.t.Context())
		if err != nil {
			h.t.Fatal(err)
		}
		positions = append(positions, bounds.Last)
	}
	return positions
}

func (h *harness) addition(e event.Event) stream.Addition {
	e.Platforms = h.property.PlatformNames()
	one := stream.Addition{Entry: wire.Encode(&e), EventID: e.ID, IDSpace: uint8(e.Class), Identifiers: e.Identifiers("default/shop", nil).Packed()}
	if e.Name == event.Purchase {
		one.OrderID = e.OrderID
	}
	return one
}

func (h *harness) joiner() *stream.Appender {
	a := stream.NewAppender(h.stream, stream.AppenderOptions{Window: time.Hour, JoinedFor: 24 * time.Hour})
	h.t.Cleanup(func() {
		if err := a.Close(context.Background()); err != nil {
			h.t.Error(err)
		}
	})
	return a
}

// requestErasure asks for somebody's erasure, and returns its id.
func (h *harness) requestErasure(r stream.ErasureRequest) string {
	h.t.Helper()
	r.ID, r.Origin = uuid.NewString(), "api:test"
	if err := h.stream.RequestErasure(h.t.Context(), r); err != nil {
		h.t.Fatal(err)
	}
	return r.ID
}

// awaitHidden waits until nothing is left of the persons, and returns what became of the erasures.
func (h *harness) awaitHidden(ids ...string) []stream.ErasureState {
	h.t.Helper()
	var states []stream.ErasureState
	h.awaitFor(time.Minute, "the end of the erasures", func() string {
		states = states[:0]
		for _, id := range ids {
			state, err := h.stream.Erasure(h.t.Context(), id)
			if err != nil || state.Hidden.IsZero() {
				return fmt.Sprintf("%+v, %v", state, err)
			}
			states = append(states, state)
		}
		return ""
	})
	return states
}

// positions are those of all events in the stream.
func (h *harness) positions() []stream.Position {
	h.t.Helper()
	var all []stream.Position
	for _, entry := range h.entries() {
		all = append(all, entry.Position)
	}
	return all
}

// announced are the events that have been announced as erased.
func (h *harness) announced() []stream.Position {
	h.t.Helper()
	var all []stream.Position
	for after := stream.Position(0); ; {
		list, err := h.stream.ReadRecords(h.t.Context(), after, 1000, 0)
		if err != nil {
			h.t.Fatal(err)
		}
		all = append(all, list.Erased...)
		if list.Last == after {
			slices.Sort(all)
			return slices.Compact(all)
		}
		after = list.Last
	}
}

// erasedShop is a property in which Ada has been erased, whose events stood among Bob's: delivered to crm, waiting for
// another attempt at a platform that is down, and unread for one that is suspended.
type erasedShop struct {
	*harness
	hook     *receiver // of crm
	appender *stream.Appender
	ada, bob []stream.Position
	// bobs are Bob's records before, by the platform.
	bobs  map[string]map[stream.Position]record
	state stream.ErasureState
	// again are events that were appended since.
	again []event.Event
}

func newErasedShop(t *testing.T) *erasedShop {
	hook, down := newReceiver(t, nil), newReceiver(t, always(answer{status: 503}))
	later := hook.platform("later")
	later.Suspend = true
	h := newHarness(t, hook.platform("crm"), down.platform("down"), later)
	h.keepLedger()
	shop := &erasedShop{harness: h, hook: hook, appender: h.joiner(), bobs: map[string]map[stream.Position]record{}}
	ada, bob := person{"ada.1", "u-ada", "ada@example.com"}, person{"bob.2", "u-bob", "bob@example.com"}
	for i := range 10 {
		shop.bob = append(shop.bob, h.visits(shop.appender, bob.event(fmt.Sprint("of-bob-", i)))...)
		shop.ada = append(shop.ada, h.visits(shop.appender, ada.event(fmt.Sprint("of-ada-", i)))...)
	}
	shop.ada = append(shop.ada, h.visits(shop.appender, buys(ada.event("buy-ada"), "order-ada"))...)
	shop.bob = append(shop.bob, h.visits(shop.appender, buys(bob.event("buy-bob"), "order-bob"))...)
	// What Ada does where nobody knows her e-mail address.
	shop.ada = append(shop.ada, h.visits(shop.appender, person{user: "u-ada"}.event("quiet-ada"))...)

	rejections := stream.NewRejections(h.stream, slog.New(slog.DiscardHandler))
	hashed := sha256.Sum256([]byte("ada@example.com"))
	for _, id := range []string{"of-ada-3", "ada.1", "u-ada", hex.EncodeToString(hashed[:]), "of-bob-3", "bob.2"} {
		rejections.Add(stream.Rejection{ID: uuid.NewString(), EventID: id, Event: "pageview", Answer: []byte(`{}`)})
	}
	rejections.Add(stream.Rejection{ID: uuid.NewString(), Event: "u-ada", Answer: []byte(`{}`)})
	if err := rejections.Close(t.Context()); err != nil {
		t.Fatal(err)
	}

	h.start("one", func(e *Engine) {
		hour := backoff{unit: time.Hour, cap: time.Hour, floor: time.Hour}
		e.timing.backoff, e.timing.breaker = hour, hour
	})
	all := len(shop.ada) + len(shop.bob)
	h.await("deliveries", func() string { return cmp.Diff(all, len(h.records("crm"))) })
	h.await("a pause", func() string {
		return cmp.Diff(1.0, h.metric("weir_platform_paused", map[string]string{"platform": "down"}))
	})
	h.await("the outcomes of attempts", func() string { return cmp.Diff(int64(0), h.group("down").Pending) })
	h.await("the suspended platform's group", func() string { return cmp.Diff("later", h.group("later").Platform) })
	for _, platform := range []string{"crm", "down"} {
		shop.bobs[platform] = h.records(platform)
		for _, position := range shop.ada {
			delete(shop.bobs[platform], position)
		}
	}
	id := h.requestErasure(stream.ErasureRequest{Identifiers: person{email: ada.email}.identifiers(), Linked: true})
	shop.state = h.awaitHidden(id)[0]
	return shop
}

// TestWhoIsErasedIsGone looks in each place where something of a person has been.
func TestWhoIsErasedIsGone(t *testing.T) {
	shop := newErasedShop(t)
	ctx, redis, prefix := t.Context(), shop.redis(), "weir:{default/shop}:"
	t.Run("from the stream, where others' events are as they were", func(t *testing.T) {
		if diff := cmp.Diff(shop.bob, shop.positions()); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
	})
	t.Run("from what platforms hold or wait with", func(t *testing.T) {
		for _, platform := range []string{"crm", "down", "later"} {
			for _, position := range shop.ada {
				id := position.String()
				if pending := redis.XPendingExt(ctx, &goredis.XPendingExtArgs{Stream: prefix + "events", Group: platform, Start: id, End: id, Count: 1}).Val(); len(pending) > 0 {
					t.Errorf("%s holds %s", platform, id)
				}
				for _, key := range []string{"due", "open"} {
					if redis.ZScore(ctx, prefix+"retry:"+platform+":"+key, id).Err() == nil {
						t.Errorf("%s waits with %s", platform, id)
					}
				}
				if redis.HExists(ctx, prefix+"retry:"+platform+":attempts", id).Val() {
					t.Errorf("%s counts attempts of %s", platform, id)
				}
			}
		}
	})
	t.Run("from the records, where others' are as they were", func(t *testing.T) {
		for platform, want := range shop.bobs {
			if diff := cmp.Diff(want, shop.records(platform), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("records of %s (-want +got):\n%s", platform, diff)
			}
		}
	})
	t.Run("from the deduplication keys, where others' are", func(t *testing.T) {
		for id, want := range map[string]bool{"of-ada-4": false, "quiet-ada": false, "of-bob-4": true} {
			e := person{client: "carol.3"}.event(id)
			added, err := shop.appender.Append(ctx, []stream.Addition{shop.addition(e)})
			if !want {
				shop.again = append(shop.again, e)
			}
			if err != nil || added[0].Duplicate != want {
				t.Errorf("an event %s is a repeat: %+v, %v, want %v", id, added, err, want)
			}
		}
		for order, want := range map[string]bool{"order-ada": false, "order-bob": true} {
			e := buys(person{client: "carol.3"}.event(""), order)
			added, err := shop.appender.Append(ctx, []stream.Addition{shop.addition(e)})
			if !want {
				shop.again = append(shop.again, e)
			}
			if err != nil || added[0].Duplicate != want {
				t.Errorf("%s is a repeat: %+v, %v, want %v", order, added, err, want)
			}
		}
	})
	t.Run("from the joined identifiers, where others' are", func(t *testing.T) {
		all := redis.HGetAll(ctx, prefix+"join:0").Val()
		for _, id := range (person{"ada.1", "u-ada", "ada@example.com"}).identifiers() {
			for field, value := range all {
				if field == string(id[:]) || strings.HasPrefix(value, string(id[:])) {
					t.Errorf("%x is joined: %x → %x", id, field, value)
				}
			}
		}
		if len(all) != 2 {
			t.Errorf("%d identifiers are joined, want Bob's user id and e-mail address", len(all))
		}
	})
	t.Run("from the rejections that have an id of theirs", func(t *testing.T) {
		rejections, err := shop.stream.Rejections(ctx, 10)
		if err != nil {
			t.Fatal(err)
		}
		var ids []string
		for _, r := range rejections {
			ids = append(ids, r.EventID)
		}
		if diff := cmp.Diff([]string{"bob.2", "of-bob-3"}, ids); diff != "" {
			t.Errorf("rejections (-want +got):\n%s", diff)
		}
	})
	t.Run("and readers are told of each event", func(t *testing.T) {
		if diff := cmp.Diff(shop.ada, shop.announced()); diff != "" {
			t.Errorf("announced (-want +got):\n%s", diff)
		}
	})
	t.Run("and the state says what went, and where it has to be deleted by hand", func(t *testing.T) {
		want := stream.ErasureState{Events: int64(len(shop.ada)), Linked: 2, Identifiers: 2, Platforms: []string{"crm", "down"}}
		if diff := cmp.Diff(want, shop.state, cmpopts.IgnoreFields(stream.ErasureState{}, "ID", "Requested", "Ledgered", "Hidden", "PurgeBy", "Records"),
			cmpopts.IgnoreUnexported(stream.ErasureState{})); diff != "" {
			t.Errorf("state (-want +got):\n%s", diff)
		}
		if shop.state.Records < int64(len(shop.ada)) {
			t.Errorf("%d records went, want at least one for each of %d events", shop.state.Records, len(shop.ada))
		}
		if want := shop.state.Hidden.Add(24 * time.Hour); !shop.state.PurgeBy.Equal(want) {
			t.Errorf("purged by %s, want %s", shop.state.PurgeBy, want)
		}
	})
	t.Run("and a group that is made anew delivers nothing again", func(t *testing.T) {
		delivered := func(records map[stream.Position]record) (n int) {
			for _, r := range records {
				if r.Status == "delivered" {
					n++
				}
			}
			return n
		}
		// What has no record yet may be delivered again.
		want := delivered(shop.bobs["crm"]) + len(shop.again)
		shop.await("the records of what was appended above", func() string { return cmp.Diff(want, delivered(shop.records("crm"))) })
		before := shop.hook.arrivals()
		shop.loseGroup("crm")
		next := person{client: "dora.4"}.event("")
		before[next.DeliveryID.String()] = 1
		position := shop.visits(shop.appender, next)[0]
		shop.await("the next event", func() string { return cmp.Diff("delivered", shop.records("crm")[position].Status) })
		for _, e := range append(shop.again, next) {
			before[e.DeliveryID.String()] = 1 // appended above
		}
		shop.await("all that was appended above", func() string { return cmp.Diff(before, shop.hook.arrivals()) })
	})
}
