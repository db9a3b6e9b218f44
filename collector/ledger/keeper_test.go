package ledger_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/event/erasure"
	"github.com/weir-dev/weir/collector/ledger"
	"github.com/weir-dev/weir/collector/redisserver/redistest"
	"github.com/weir-dev/weir/collector/stream"
)

// shelf is a store that keeps a ledger's bytes.
type shelf struct {
	bytes        []byte
	loads, saves int
	// before is called when something is saved; its error is the save's.
	before func() error
}

func (s *shelf) Load(context.Context) (*erasure.Ledger, error) {
	s.loads++
	if s.bytes == nil {
		return nil, nil
	}
	return erasure.Decode(s.bytes)
}

func (s *shelf) Save(_ context.Context, l *erasure.Ledger) error {
	if s.before != nil {
		if err := s.before(); err != nil {
			return err
		}
	}
	s.saves++
	s.bytes = l.Encode()
	return nil
}

// ledger returns what is kept.
func (s *shelf) ledger(t *testing.T) *erasure.Ledger {
	t.Helper()
	l, err := erasure.Decode(s.bytes)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// fixture is a property in a Redis of its own, with a keeper.
type fixture struct {
	t      *testing.T
	redis  *redis.Client
	stream *stream.Stream
	store  *shelf
	keeper *ledger.Keeper
}

const retention = 30 * 24 * time.Hour

func newFixture(t *testing.T) *fixture {
	t.Helper()
	address := redistest.URL(t)
	options, err := redis.ParseURL(address)
	if err != nil {
		t.Fatal(err)
	}
	client, err := stream.Dial(address, stream.DialOptions{})
	if err != nil {
		t.Fatal(err)
	}
	raw := redis.NewClient(options)
	t.Cleanup(func() {
		if err := errors.Join(client.Close(), raw.Close()); err != nil {
			t.Error(err)
		}
	})
	if err := client.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	f := &fixture{t: t, redis: raw, stream: client.Stream("default", "shop"), store: &shelf{}}
	f.keeper = f.another()
	return f
}

// another returns a keeper of another process.
func (f *fixture) another() *ledger.Keeper {
	return &ledger.Keeper{Stream: f.stream, Store: f.store, Retention: retention}
}

// person returns the identifier of a client.
func person(name string) event.Identifier {
	e := event.Event{ClientID: name}
	return e.Identifiers("default/shop", nil).List[0]
}

// request asks for the erasure of some, and returns its id.
func (f *fixture) request(change func(*stream.ErasureRequest), names ...string) string {
	f.t.Helper()
	r := stream.ErasureRequest{ID: uuid.NewString(), Origin: "api:test"}
	for _, name := range names {
		r.Identifiers = append(r.Identifiers, person(name))
	}
	if change != nil {
		change(&r)
	}
	if err := f.stream.RequestErasure(f.t.Context(), r); err != nil {
		f.t.Fatal(err)
	}
	return r.ID
}

func suppress(r *stream.ErasureRequest) { r.Suppress = true }

// look has a keeper look, and returns how many requests it has seen to.
func (f *fixture) look(k *ledger.Keeper) int {
	f.t.Helper()
	done, err := k.Look(f.t.Context(), time.Now())
	if err != nil {
		f.t.Fatal(err)
	}
	return done
}

// ledgered says whether an erasure stands in the ledger.
func (f *fixture) ledgered(id string) bool {
	f.t.Helper()
	state, err := f.stream.Erasure(f.t.Context(), id)
	if err != nil && !errors.Is(err, stream.ErrNoErasure) {
		f.t.Fatal(err)
	}
	return !state.Ledgered.IsZero()
}

// kept says what the ledger, and the ledger stream with its salt, have of a person.
func (f *fixture) kept(name string) string {
	f.t.Helper()
	stored := f.store.ledger(f.t)
	copied := &erasure.Ledger{Salt: stored.Salt}
	list, _, err := f.stream.ReadLedger(f.t.Context(), 0, 10_000)
	if err != nil {
		f.t.Fatal(err)
	}
	for _, read := range list {
		for _, entry := range read.Entries {
			copied.Add(entry)
		}
	}
	ids := event.Identifiers{List: []event.Identifier{person(name)}}
	say := func(l *erasure.Ledger) string {
		switch {
		case l.Suppressed(ids):
			return "suppressed"
		case l.Erased(ids, time.Now().Add(-time.Minute)):
			return "erased"
		}
		return "unknown"
	}
	return say(stored) + " " + say(copied)
}

func TestRequestsStandInTheLedgerBeforeTheStreamIsTold(t *testing.T) {
	f := newFixture(t)
	plain, suppressed := f.request(nil, "ann"), f.request(suppress, "bob")
	f.store.before = func() error {
		if f.ledgered(plain) || f.ledgered(suppressed) {
			t.Error("the stream has been told before the ledger was saved")
		}
		return nil
	}
	if got := f.look(f.keeper); got != 2 || f.store.saves != 1 {
		t.Errorf("%d requests with %d saves, want 2 with 1", got, f.store.saves)
	}
	if !f.ledgered(plain) || !f.ledgered(suppressed) {
		t.Error("the stream has not been told")
	}
	got := []string{f.kept("ann"), f.kept("bob"), f.kept("cara")}
	if diff := cmp.Diff([]string{"erased erased", "suppressed suppressed", "unknown unknown"}, got); diff != "" {
		t.Errorf("ledger and stream (-want +got):\n%s", diff)
	}
	if left, err := f.stream.ErasureRequests(t.Context(), 10); err != nil || len(left) > 0 {
		t.Errorf("%d requests are left, error %v", len(left), err)
	}
}

func TestAFirstLookMakesALedgerThatPodsHaveTheSaltOf(t *testing.T) {
	f := newFixture(t)
	f.look(f.keeper)
	if salt := f.store.ledger(t).Salt; salt == (erasure.Salt{}) {
		t.Error("the salt is zero")
	}
	if f.store.ledger(t).Salt == ledger.New().Salt {
		t.Error("two ledgers have the same salt")
	}
}

func TestALookWithoutWorkAsksNothingOfTheStore(t *testing.T) {
	f := newFixture(t)
	f.request(nil, "ann")
	f.look(f.keeper)
	f.look(f.keeper) // which compares once what the first one has written
	before := f.store.loads
	for range 3 {
		f.look(f.keeper)
	}
	if f.store.loads != before {
		t.Errorf("%d loads, want none", f.store.loads-before)
	}
}

func TestWhoeverIsKilledInBetweenIsContinued(t *testing.T) {
	for name, test := range map[string]struct {
		// interrupt is what happens when the ledger is saved.
		interrupt func(f *fixture) error
		want      int
	}{
		"before the ledger is saved": {func(*fixture) error { return errors.New("killed") }, 0},
		"after the ledger is saved, before the stream is told": {func(f *fixture) error {
			return f.redis.ConfigSet(f.t.Context(), "maxmemory", "1").Err() // from now on Redis takes no writes
		}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			id := f.request(suppress, "ann")
			f.store.before = func() error { return test.interrupt(f) }
			if _, err := f.keeper.Look(t.Context(), time.Now()); err == nil {
				t.Fatal("nothing was interrupted")
			}
			if f.store.saves != test.want || f.ledgered(id) {
				t.Fatalf("%d saves, ledgered: %v", f.store.saves, f.ledgered(id))
			}
			f.store.before = nil
			if err := f.redis.ConfigSet(t.Context(), "maxmemory", "0").Err(); err != nil {
				t.Fatal(err)
			}
			f.look(f.another())
			if !f.ledgered(id) || f.kept("ann") != "suppressed suppressed" || f.store.ledger(t).Len() != 1 {
				t.Errorf("ledgered: %v, %s, %d identifiers", f.ledgered(id), f.kept("ann"), f.store.ledger(t).Len())
			}
		})
	}
}

func TestNothingIsLostWhereTwoSaveAtOnce(t *testing.T) {
	f := newFixture(t)
	f.request(nil, "ann")
	other := f.another()
	inner := true
	f.store.before = func() error {
		if inner {
			inner = false
			f.look(other) // saves first
			return ledger.ErrConflict
		}
		return nil
	}
	f.look(f.keeper)
	if got := f.kept("ann"); got != "erased erased" {
		t.Errorf("ann is %s", got)
	}
	f.store.before = func() error { return ledger.ErrConflict }
	f.request(nil, "bob")
	if _, err := f.keeper.Look(t.Context(), time.Now()); !errors.Is(err, ledger.ErrConflict) {
		t.Errorf("one who always loses: %v, want %v", err, ledger.ErrConflict)
	}
}

func TestWhatTheStreamHasForgottenIsPutBack(t *testing.T) {
	f := newFixture(t)
	for i := range 300 {
		f.request(nil, fmt.Sprint("person-", i))
	}
	f.request(suppress, "ann")
	f.look(f.keeper)
	f.look(f.keeper)
	for name, forget := range map[string]func() error{
		"a Redis that is lost": func() error { return f.redis.FlushDB(t.Context()).Err() },
		"an older backup": func() error {
			ids, err := f.redis.XRange(t.Context(), "weir:{default/shop}:erasure:ledger", "-", "+").Result()
			if err != nil {
				return err
			}
			return f.redis.XDel(t.Context(), "weir:{default/shop}:erasure:ledger", ids[len(ids)-1].ID).Err()
		},
	} {
		t.Run(name, func(t *testing.T) {
			if err := forget(); err != nil {
				t.Fatal(err)
			}
			f.look(f.keeper)
			for _, name := range []string{"person-0", "person-299"} {
				if got := f.kept(name); got != "erased erased" {
					t.Errorf("%s is %s", name, got)
				}
			}
			if got := f.kept("ann"); got != "suppressed suppressed" {
				t.Errorf("ann is %s", got)
			}
		})
	}
}

func TestALedgerForgetsWhomNoBackupHas(t *testing.T) {
	f := newFixture(t)
	f.request(nil, "ann")
	f.request(suppress, "bob")
	f.look(f.keeper)
	f.request(nil, "cara")
	later := time.Now().Add(retention + 25*time.Hour)
	if _, err := f.keeper.Look(t.Context(), later); err != nil {
		t.Fatal(err)
	}
	if got := f.store.ledger(t).Len(); got != 2 {
		t.Errorf("the ledger has %d identifiers, want those of bob and cara", got)
	}
}

func TestAFullLedgerTakesWhatFits(t *testing.T) {
	f := newFixture(t)
	f.keeper.Capacity = 2
	first, second := f.request(suppress, "ann", "anna"), f.request(suppress, "bob")
	done, err := f.keeper.Look(t.Context(), time.Now())
	if full, is := errors.AsType[*ledger.FullError](err); !is || full.Capacity != 2 || done != 1 {
		t.Errorf("%d done, error %v; want 1 and that there is room for 2", done, err)
	}
	if !f.ledgered(first) || f.ledgered(second) {
		t.Errorf("ledgered: %v and %v, want the first alone", f.ledgered(first), f.ledgered(second))
	}
}

func TestWhatWasStoredBeforeTheLedgerKnewIsErased(t *testing.T) {
	f := newFixture(t)
	f.request(nil, "ann")
	ahead := time.Now().Add(10 * time.Minute).UTC().Truncate(time.Millisecond) // by a clock that was wrong
	if err := f.redis.XAdd(t.Context(), &redis.XAddArgs{
		Stream: "weir:{default/shop}:events", ID: stream.At(ahead).String(), Values: []any{"e", "x"},
	}).Err(); err != nil {
		t.Fatal(err)
	}
	f.look(f.keeper)
	ids := event.Identifiers{List: []event.Identifier{person("ann")}}
	if l := f.store.ledger(t); !l.Erased(ids, ahead) || l.Erased(ids, ahead.Add(time.Millisecond)) {
		t.Error("what was stored until then has to be erased, and no more")
	}
}

func TestARedisThatClaimsTheFutureErasesNoMoreThanADayOfIt(t *testing.T) {
	f := newFixture(t)
	f.request(nil, "ann")
	now := time.Now().UTC().Truncate(time.Millisecond)
	if err := f.redis.XAdd(t.Context(), &redis.XAddArgs{
		Stream: "weir:{default/shop}:events", ID: stream.At(now.AddDate(100, 0, 0)).String(), Values: []any{"e", "x"},
	}).Err(); err != nil {
		t.Fatal(err)
	}
	if _, err := f.keeper.Look(t.Context(), now); err != nil {
		t.Fatal(err)
	}
	ids := event.Identifiers{List: []event.Identifier{person("ann")}}
	if l := f.store.ledger(t); !l.Erased(ids, now.Add(24*time.Hour)) || l.Erased(ids, now.Add(25*time.Hour)) {
		t.Error("what arrives within a day has to be erased, and no more")
	}
}
