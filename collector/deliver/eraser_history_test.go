package deliver

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/weir-dev/weir/collector/clickhouse"
	"github.com/weir-dev/weir/collector/clickhouse/clickhousetest"
	"github.com/weir-dev/weir/collector/config"
	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/event/erasure"
	"github.com/weir-dev/weir/collector/history/forget"
	"github.com/weir-dev/weir/collector/history/rows"
	"github.com/weir-dev/weir/collector/history/schema"
	"github.com/weir-dev/weir/collector/stream"
)

// Known makes the ledger that of a forgetter too.
func (l *testLedger) Known(context.Context) ([]erasure.Entry, erasure.Salt, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ledger.Entries(), l.ledger.Salt, nil
}

// remembering is a property with a history, in which there are events that Redis has no more.
type remembering struct {
	*harness
	test      *testing.T
	client    *clickhouse.Client
	forgetter *forget.Forgetter
}

func newRemembering(t *testing.T, past ...event.Event) remembering {
	t.Helper()
	h := newHarness(t)
	h.property.History = &config.History{RetentionDays: 400}
	r := remembering{harness: h, test: t}
	address := clickhousetest.Shared(t)
	var err error
	if r.client, err = clickhouse.Dial(address, clickhouse.Options{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.client.Close)
	if _, err := schema.Ensure(t.Context(), r.client); err != nil {
		t.Fatal(err)
	}
	for _, table := range []string{schema.Events, schema.Records} { // what was removed is gone within seconds
		clickhousetest.Exec(t, address, "ALTER TABLE "+table+" MODIFY SETTING old_parts_lifetime = 3, cleanup_delay_period = 1, cleanup_delay_period_random_add = 0, max_cleanup_delay_period = 1")
		clickhousetest.Exec(t, address, "DETACH TABLE "+table+" SYNC") // its tasks go by that from now on
		clickhousetest.Exec(t, address, "ATTACH TABLE "+table)
	}
	var table []rows.Event
	for i := range past {
		table = append(table, rows.FromEvent("default/shop", stream.At(time.Now().Add(-100*24*time.Hour))+stream.Position(i), &past[i]))
	}
	if err := clickhouse.Insert(t.Context(), r.client, schema.Events, table, ""); err != nil {
		t.Fatal(err)
	}
	r.forgetter = forget.New(forget.Options{Client: r.client, Ledger: h.keepLedger(), Erasures: h.stream, Logger: slog.New(slog.DiscardHandler)})
	t.Cleanup(r.forgetter.Wait)
	return r
}

func (r remembering) forget() {
	r.t.Helper()
	if err := r.forgetter.Step(r.t.Context()); err != nil {
		r.t.Fatal(err)
	}
}

// left are the ids of the events that Redis and the history have.
func (r remembering) left() (redis, history []string) {
	r.t.Helper()
	for _, entry := range r.entries() {
		redis = append(redis, decoded(r.test, entry).ID)
	}
	history, err := clickhouse.Select[string](r.t.Context(), r.client, clickhouse.Query{SQL: "SELECT event_id FROM events WHERE at NOT IN (SELECT at FROM erased)"})
	if err != nil {
		r.t.Fatal(err)
	}
	slices.Sort(redis)
	slices.Sort(history)
	return redis, history
}

func (r remembering) state(id string) stream.ErasureState {
	r.t.Helper()
	state, err := r.stream.Erasure(r.t.Context(), id)
	if err != nil && !errors.Is(err, stream.ErrNoErasure) {
		r.t.Fatal(err)
	}
	return state
}

// TestAnErasureIsDoneWhenTheHistoryHasDoneIt has Ada in both, and Bob, who is nobody's; the archive comes late.
func TestAnErasureIsDoneWhenTheHistoryHasDoneIt(t *testing.T) {
	const ada = "ada@example.com"
	for name, test := range map[string]struct {
		linked bool
		// waiting are what Redis has until the archive comes, left what both have in the end.
		waiting, redis, history []string
		linkedCount             int64
	}{
		"the subject's own": {
			waiting: []string{"bob", "telephone", "watch"}, redis: []string{"bob", "telephone", "watch"}, history: []string{"old-bob", "old-telephone", "old-watch"},
		},
		"and what either has seen with it": {
			linked: true, waiting: []string{"bob", "known", "telephone", "watch"}, redis: []string{"bob"}, history: []string{"old-bob"}, linkedCount: 2,
		},
	} {
		t.Run(name, func(t *testing.T) {
			// By Redis she has a telephone, by the history alone a watch too.
			r := newRemembering(t, person{client: "watch.3", email: ada}.event("old-known"), person{client: "watch.3"}.event("old-watch"),
				person{client: "telephone.1"}.event("old-telephone"), person{client: "bob.2"}.event("old-bob"))
			r.visits(r.joiner(), person{client: "telephone.1", email: ada}.event("known"), person{client: "telephone.1"}.event("telephone"),
				person{client: "watch.3"}.event("watch"), person{client: "bob.2"}.event("bob"))
			r.start("one", nil)
			id := r.requestErasure(stream.ErasureRequest{Identifiers: person{email: ada}.identifiers(), Linked: test.linked})
			r.awaitFor(time.Minute, "that it waits for the history", func() string {
				state := r.state(id)
				return cmp.Diff([]any{stream.UnhiddenHistory, true}, []any{state.Unhidden, state.Hidden.IsZero()})
			})
			redis, _ := r.left()
			if diff := cmp.Diff(test.waiting, redis); diff != "" {
				t.Errorf("Redis's events meanwhile (-want +got):\n%s", diff)
			}
			r.awaitFor(time.Minute, "that it is hidden", func() string {
				r.forget()
				return cmp.Diff(false, r.state(id).Hidden.IsZero())
			})
			redis, history := r.left()
			if diff := cmp.Diff([][]string{test.redis, test.history}, [][]string{redis, history}, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("events of Redis and of the history (-want +got):\n%s", diff)
			}
			state := r.state(id)
			if state.Linked != test.linkedCount || state.Unhidden != "" || len(state.History.Linked) > 0 {
				t.Errorf("hidden: %+v", state)
			}
			r.purge(id)
		})
	}
}

// purge has Redis's files rewritten again and again, and waits until the erasure counts as purged.
func (r remembering) purge(id string) {
	r.t.Helper()
	waited := false
	r.awaitFor(time.Minute, "that it is purged", func() string {
		hidden, err := r.stream.HiddenErasures(r.t.Context(), 10)
		if err == nil {
			_, err = r.stream.NotePurged(r.t.Context(), hidden)
		}
		if err != nil {
			r.t.Fatal(err)
		}
		state := r.state(id)
		waited = waited || state.Unpurged == stream.UnpurgedHistory
		if !state.Purged.IsZero() != state.History.Purged {
			r.t.Fatalf("%+v", state)
		}
		r.forget()
		return cmp.Diff(false, state.Purged.IsZero())
	})
	if left, err := clickhouse.One[uint64](r.t.Context(), r.client, clickhouse.Query{SQL: "SELECT count() FROM erased"}); left != 0 || err != nil || !waited {
		r.t.Errorf("%d positions are left out by answers in the end, %v; it was said to wait for the history: %t", left, err, waited)
	}
}
