package forget_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/weir-dev/weir/collector/clickhouse"
	"github.com/weir-dev/weir/collector/clickhouse/clickhousetest"
	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/event/erasure"
	"github.com/weir-dev/weir/collector/history/forget"
	"github.com/weir-dev/weir/collector/history/rows"
	"github.com/weir-dev/weir/collector/history/schema"
	"github.com/weir-dev/weir/collector/stream"
)

const property = "default/shop"

var noon = time.Date(2026, 5, 10, 12, 0, 0, 0, time.UTC)

// history is a property's history, its ledger and its erasures, as a test has them.
type history struct {
	t       testing.TB
	client  *clickhouse.Client
	cluster schema.Cluster
	address string
	proxy   *clickhousetest.Proxy
	erasure.Ledger
	open  []stream.HistoryErasure
	parts map[string][]erasure.Entry
	notes []stream.HistoryNote
	// passed is how long everything has run, limits are those of the forgetter.
	passed time.Duration
	// wall is the forgetter's own clock, zero for that of its limits.
	wall time.Time
	// current is up to when everything that was received is there.
	current time.Time
	limits  forget.Limits
	// interrupt is called at each step that can be seen from outside; its error is the step's.
	interrupt func(step string) error
}

func newHistory(t testing.TB) *history {
	t.Helper()
	return newHistoryIn(t, clickhousetest.Shared(t), "", nil)
}

// newHistoryIn is one in a database whose tables are spread over a cluster, "" for none.
func newHistoryIn(t testing.TB, address string, cluster schema.Cluster, settings clickhouse.Settings) *history {
	t.Helper()
	proxy := clickhousetest.StartProxy(t, address)
	client, err := clickhouse.Dial(proxy.URL(), clickhouse.Options{Settings: settings})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	h := &history{t: t, client: client, cluster: cluster, address: address, proxy: proxy, parts: map[string][]erasure.Entry{}, interrupt: func(string) error { return nil }}
	h.Salt[3] = 9
	h.makeTables()
	return h
}

func (h *history) Known(context.Context) ([]erasure.Entry, erasure.Salt, error) {
	return h.Entries(), h.Salt, h.interrupt("ledger")
}

func (h *history) HistoryErasures(context.Context) ([]stream.HistoryErasure, error) {
	return slices.Clone(h.open), h.interrupt("erasures")
}

func (h *history) ErasureEntries(_ context.Context, ids []string) (map[string][]erasure.Entry, error) {
	return h.parts, h.interrupt("entries")
}

func (h *history) NoteHistory(_ context.Context, notes []stream.HistoryNote) error {
	if err := h.interrupt("note"); err != nil {
		return err
	}
	for _, note := range notes {
		at := slices.IndexFunc(h.open, func(one stream.HistoryErasure) bool { return one.ID == note.ID })
		h.notes = append(h.notes, note)
		switch note.Step {
		case stream.HistoryFound:
			h.open[at].Found = true
		case stream.HistoryHidden:
			h.open[at].Hidden = true
		case stream.HistoryPurged:
			h.open = slices.Delete(h.open, at, at+1)
		}
	}
	return nil
}

// forgetter is a process that begins.
func (h *history) forgetter() *forget.Forgetter {
	return forget.New(forget.Options{
		Client: h.client, Cluster: h.cluster, Ledger: h, Erasures: h, Logger: slog.New(slog.DiscardHandler), Monotonic: func() time.Duration { return h.passed },
		Wall: func() time.Time {
			if h.wall.IsZero() {
				return h.limits.Now
			}
			return h.wall
		},
		Settled: func(context.Context) error { return h.interrupt("settled") },
		Current: func(context.Context) (time.Time, error) { return h.current, nil },
		Limits:  func(context.Context) (forget.Limits, error) { return h.limits, h.interrupt("limits") },
	})
}

// rounds are as many steps as it takes until there is nothing to be done but to wait.
const rounds = 5

func (h *history) steps(f *forget.Forgetter) error {
	for range rounds {
		if err := f.Step(h.t.Context()); err != nil {
			f.Wait()
			return err
		}
		f.Wait()
	}
	return nil
}

func (h *history) step(f *forget.Forgetter) {
	h.t.Helper()
	if err := h.steps(f); err != nil {
		h.t.Fatal(err)
	}
}

// erase stands an event's first identifier in the ledger, at noon.
func (h *history) erase(id string, e event.Event, follow bool) {
	entry := erasure.Entry{Digest: h.Salt.Digest(who(e)), At: noon}
	h.Add(entry)
	h.parts[id] = append(h.parts[id], entry)
	for i := range h.open {
		if h.open[i].ID == id {
			h.open[i] = stream.HistoryErasure{ID: id, Ledgered: h.open[i].Ledgered.Add(time.Second)}
			return
		}
	}
	h.open = append(h.open, stream.HistoryErasure{ID: id, Ledgered: noon, Follow: follow})
}

// insert inserts events, each so long before noon.
func (h *history) insert(events map[time.Duration]event.Event) {
	h.t.Helper()
	var table []rows.Event
	var records []rows.Record
	for before, e := range events {
		at := stream.At(noon.Add(-before))
		e.Name, e.OrderID = "lead", before.String() // by which it is told here
		table = append(table, rows.FromEvent(property, at, &e))
		records = append(records, rows.FromRecord(at+1, 0, &stream.Record{Event: at, Platform: "crm", Status: stream.Delivered}, e.Name))
	}
	if err := errors.Join(clickhouse.Insert(h.t.Context(), h.client, schema.Events, table, ""), clickhouse.Insert(h.t.Context(), h.client, schema.Records, records, "")); err != nil {
		h.t.Fatal(err)
	}
}

func (h *history) ask(sql string) []string {
	h.t.Helper()
	list, err := clickhouse.Select[string](h.t.Context(), h.client, clickhouse.Query{SQL: sql})
	if err != nil {
		h.t.Fatal(err)
	}
	return list
}

// left are the events that are left, of which each has its record.
func (h *history) left() []string {
	h.t.Helper()
	left := h.ask("SELECT order_id FROM events ORDER BY at DESC")
	if records := h.ask("SELECT toString(count()) FROM records WHERE at IN (SELECT at FROM events)"); records[0] != fmt.Sprint(len(left)) {
		h.t.Errorf("%d events have %s records", len(left), records[0])
	}
	if others := h.ask("SELECT toString(count()) FROM records WHERE at NOT IN (SELECT at FROM events)"); others[0] != "0" {
		h.t.Errorf("%s records are of no event", others[0])
	}
	return left
}

func (h *history) want(what string, want ...string) {
	h.t.Helper()
	if diff := cmp.Diff(want, h.left(), cmpopts.EquateEmpty()); diff != "" {
		h.t.Errorf("%s: events that are left (-want +got):\n%s", what, diff)
	}
}

// who is an event's first identifier.
func who(e event.Event) event.Person { return e.Identifiers(property, nil).List[0] }

func client(id string) event.Event { return event.Event{ClientID: id} }
func user(id string) event.Event   { return event.Event{UserID: id} }

func email(n byte) event.Event {
	return event.Event{User: event.Hashes{event.EmailLower: event.Hash{n}}}
}

func TestWhoseRowsGo(t *testing.T) { whoseRowsGo(t, newHistory) }

func whoseRowsGo(t *testing.T, newHistory func(testing.TB) *history) {
	t.Helper()
	both := func(c, u string) event.Event { return event.Event{ClientID: c, UserID: u} }
	known := client("b")
	known.Person = who(client("a"))
	anonymous := both("a", "u")
	anonymous.Anonymous = true
	bot := client("a")
	bot.Class = event.Bot
	contact := email(1)
	contact.ClientID = "c"
	tests := map[string]struct {
		events map[time.Duration]event.Event
		who    event.Event
		change func(*erasure.Entry)
		want   []string
	}{
		"the subject's":                          {map[time.Duration]event.Event{time.Hour: client("a"), time.Minute: client("b")}, client("a"), nil, []string{"1m0s"}},
		"those with another identifier too":      {map[time.Duration]event.Event{time.Hour: both("a", "u"), time.Minute: both("b", "u")}, client("a"), nil, []string{"1m0s"}},
		"those that have it beside their person": {map[time.Duration]event.Event{time.Hour: contact, time.Minute: email(2)}, email(1), nil, []string{"1m0s"}},
		"not those of who only was joined":       {map[time.Duration]event.Event{time.Hour: known, time.Minute: client("a")}, client("a"), nil, []string{"1h0m0s"}},
		"those of nobody that have it":           {map[time.Duration]event.Event{time.Hour: anonymous, time.Minute: client("b")}, user("u"), nil, []string{"1m0s"}},
		"those that are no human's":              {map[time.Duration]event.Event{time.Hour: bot, time.Minute: client("b")}, client("a"), nil, []string{"1m0s"}},
		"not later ones":                         {map[time.Duration]event.Event{time.Hour: client("a"), -time.Hour: client("a")}, client("a"), nil, []string{"-1h0m0s"}},
		"later ones where they are suppressed": {
			map[time.Duration]event.Event{time.Hour: client("a"), -time.Hour: client("a")}, client("a"), func(e *erasure.Entry) { e.Suppress = true }, nil,
		},
		"nobody's of whom nothing is known": {map[time.Duration]event.Event{time.Hour: {}, time.Minute: client("b")}, client("a"), nil, []string{"1m0s", "1h0m0s"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			h := newHistory(t)
			h.insert(test.events)
			h.erase("one", test.who, false)
			if test.change != nil {
				entry := h.Entries()[0]
				test.change(&entry)
				h.Add(entry)
			}
			h.step(h.forgetter())
			h.want("after a step", test.want...)
			if !slices.ContainsFunc(h.notes, func(note stream.HistoryNote) bool { return note.Step == stream.HistoryHidden }) {
				t.Error("it is not noted as hidden")
			}
		})
	}
}

// Whoever is killed is followed by one that knows nothing of it.
// TestAnImportedEventGoesWithItsVisitor: an export says whose an event was, and not by what that was known.
func TestAnImportedEventGoesWithItsVisitor(t *testing.T) {
	h := newHistory(t)
	visitor := rows.Number(who(client("ada")))
	var table []rows.Event
	for order, at := range map[string]stream.Position{"imported": stream.At(noon.Add(-time.Hour)) | schema.Imported, "live, and told by others": stream.At(noon.Add(-time.Hour))} {
		table = append(table, rows.Event{At: uint64(at), Name: "lead", OrderID: order, Visitor: visitor, Identifiers: []uint64{0}})
	}
	if err := clickhouse.Insert(t.Context(), h.client, schema.Events, table, ""); err != nil {
		t.Fatal(err)
	}
	h.erase("one", client("ada"), false)
	h.step(h.forgetter())
	if got := h.ask("SELECT order_id FROM events"); len(got) != 1 || got[0] != "live, and told by others" {
		t.Errorf("left are %q", got)
	}
}

func TestWhoeverIsKilledBetweenTwoStatementsIsFollowed(t *testing.T) {
	for name, isKilled := range map[string]bool{"by another one": true, "by itself": false} {
		t.Run(name, func(t *testing.T) {
			for at := 1; ; at++ {
				h := newHistory(t)
				h.insertOrigins()
				h.erase("one", client("a"), false)
				statements := 0
				h.proxy.Add(clickhousetest.Fault{CutBefore: true, Matching: func(string) bool { statements++; return statements >= at }})
				f := h.forgetter()
				err := h.steps(f)
				h.proxy.Heal()
				if isKilled {
					f = h.forgetter()
				}
				h.step(f)
				h.want(fmt.Sprint("killed at statement ", at), "1h0m0s", "3h0m0s")
				if origins := h.ask("SELECT concat(origin, toString(origin_age)) FROM events WHERE origin != '' OR origin_age != 0"); len(origins) > 0 {
					t.Errorf("killed at statement %d: rows come from what was erased: %q", at, origins)
				}
				if err == nil {
					return
				}
			}
		})
	}
}

// insertOrigins inserts an event that comes from the touch of another: by the user, whom both have.
func (h *history) insertOrigins() {
	touch, from := client("a"), user("u")
	touch.Context.UTMSource, touch.UserID, from.Person = "x", "u", who(client("a"))
	touch.Person = from.Person
	h.insert(map[time.Duration]event.Event{3 * time.Hour: client("b"), 2 * time.Hour: touch, time.Hour: from})
	clickhousetest.Exec(h.t, h.address, "ALTER TABLE events UPDATE origin = '"+rows.FromEvent(property, 1, &touch).Touch+
		"', origin_age = 3600000 WHERE order_id = '1h0m0s' SETTINGS mutations_sync = 2")
}

func TestWhatWasSeenWithASubjectIsFoundBeforeTheSubjectGoes(t *testing.T) {
	h := newHistory(t)
	contact := email(1)
	contact.ClientID, contact.UserID = "a", "u"
	h.insert(map[time.Duration]event.Event{
		5 * time.Hour: contact, 4 * time.Hour: user("u"), 3 * time.Hour: email(1), 2 * time.Hour: client("b"), time.Hour: {UserID: "u", ClientID: "other"},
	})
	h.erase("linked", client("a"), true)
	h.Add(erasure.Entry{Digest: h.Salt.Digest(who(client("b"))), At: noon})
	h.open = append(h.open, stream.HistoryErasure{ID: "plain", Ledgered: noon})
	h.parts["plain"] = []erasure.Entry{{Digest: h.Salt.Digest(who(client("b"))), At: noon}}
	h.open = append(h.open, stream.HistoryErasure{ID: "shares", Ledgered: noon})
	h.parts["shares"] = []erasure.Entry{{Digest: h.Salt.Digest(who(email(1))), At: noon}}
	h.Add(h.parts["shares"][0])
	f := h.forgetter()
	h.current = noon.Add(-time.Minute)
	h.step(f)
	if h.open[0].Found {
		t.Error("it is said what was seen with the subject while later events have still to come")
	}
	h.current = noon
	h.step(f)
	h.want("before it is known", "1h0m0s", "4h0m0s", "5h0m0s")
	hidden := func() (ids []string) {
		for _, one := range h.notes {
			if one.Step == stream.HistoryHidden {
				ids = append(ids, one.ID)
			}
		}
		slices.Sort(ids)
		return ids
	}
	if diff := cmp.Diff([]string{"plain"}, hidden()); diff != "" {
		t.Errorf("hidden (-want +got):\n%s", diff)
	}
	var linked []event.Identifier
	for _, note := range h.notes {
		if note.Step == stream.HistoryFound {
			linked = append(linked, note.Linked...)
		}
	}
	want := []event.Identifier{who(user("u")), who(email(1))}
	if diff := cmp.Diff(want, linked, cmpopts.SortSlices(func(a, b event.Identifier) bool { return a.String() < b.String() })); diff != "" {
		t.Errorf("seen with the subject (-want +got):\n%s", diff)
	}
	h.step(f)
	h.want("while it is asked for", "1h0m0s", "4h0m0s", "5h0m0s")
	h.erase("linked", user("u"), false)
	h.erase("linked", email(1), false)
	h.step(f)
	h.want("when all of it stands in the ledger")
	if diff := cmp.Diff([]string{"linked", "plain", "shares"}, hidden()); diff != "" {
		t.Errorf("hidden in the end (-want +got):\n%s", diff)
	}
}

func TestAnErasureIsPurgedWhenNoFileHasItAnyMore(t *testing.T) {
	h := newHistory(t)
	h.insert(map[time.Duration]event.Event{2 * time.Hour: client("a"), time.Hour: client("b")})
	h.erase("one", client("a"), false)
	f := h.forgetter()
	h.step(f)
	h.step(f)
	if len(h.open) == 0 {
		t.Fatal("it is purged while old parts are there")
	}
	if got := h.ask("SELECT toString(count()) FROM erased"); got[0] != "1" {
		t.Errorf("%s positions are left out by answers, want 1", got[0])
	}
	for _, table := range []string{schema.Events, schema.Records} {
		clickhousetest.Exec(t, h.address, "ALTER TABLE "+table+" MODIFY SETTING old_parts_lifetime = 1, cleanup_delay_period = 1, cleanup_delay_period_random_add = 0, max_cleanup_delay_period = 1")
		clickhousetest.Exec(t, h.address, "DETACH TABLE "+table+" SYNC") // its tasks go by that from now on
		clickhousetest.Exec(t, h.address, "ATTACH TABLE "+table)
	}
	h.eventually("it is purged", func() bool { h.step(f); return len(h.open) == 0 })
	if got := h.ask("SELECT toString(count()) FROM erased"); got[0] != "0" {
		t.Errorf("%s positions are left out by answers in the end", got[0])
	}
}

func (h *history) eventually(what string, holds func() bool) {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(h.t.Context(), time.Minute)
	defer cancel()
	ticker := time.NewTicker(200 * time.Millisecond)
	defer ticker.Stop()
	for !holds() {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			h.t.Fatalf("not yet: %s", what)
		}
	}
}

func TestWhatComesBackGoesAgain(t *testing.T) { whatComesBackGoesAgain(t, newHistory) }

func whatComesBackGoesAgain(t *testing.T, newHistory func(testing.TB) *history) {
	t.Helper()
	for name, test := range map[string]struct {
		comeBack func(h *history)
		passes   time.Duration
		another  bool
	}{
		"as with an import, within a minute": {passes: 2 * time.Minute},
		"before another one begins":          {another: true},
		"in a table that was made anew": {comeBack: func(h *history) {
			clickhousetest.Exec(h.t, h.address, "TRUNCATE TABLE "+h.cluster.Local(schema.Events))
		}},
		"without a sign of it, within two days": {passes: 48 * time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHistory(t)
			past := map[time.Duration]event.Event{2 * time.Hour: client("a"), time.Hour: client("b")}
			h.insert(past)
			h.erase("one", client("a"), false)
			f := h.forgetter()
			h.step(f)
			if test.comeBack != nil {
				h.insert(map[time.Duration]event.Event{40 * time.Minute: client("c")})
				h.passed += 2 * time.Minute
				h.step(f)
				test.comeBack(h)
				clickhousetest.Exec(t, h.address, "TRUNCATE TABLE "+h.cluster.Local(schema.Records))
				h.recreate()
				h.insert(past)
			} else {
				h.insert(map[time.Duration]event.Event{3 * time.Hour: client("a")})
			}
			h.passed += test.passes
			if test.another {
				f = h.forgetter()
			}
			h.step(f)
			h.want("in the end", "1h0m0s")
		})
	}
}

// recreate makes the table of events anew, as whoever restores it.
func (h *history) recreate() {
	h.t.Helper()
	clickhousetest.Exec(h.t, h.address, "DROP TABLE "+h.cluster.Local(schema.Events)+" SYNC")
	h.makeTables()
}
