package stream

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/event/erasure"
	"github.com/weir-dev/weir/collector/redisserver"
	"github.com/weir-dev/weir/collector/redisserver/redistest"
)

// TestEraseRecordsKeepsTheLastRecordOfEach goes through what may stand in the same entries as an erased event's records: in
// each case event 1 is the erased one.
func TestEraseRecordsKeepsTheLastRecordOfEach(t *testing.T) {
	at := func(n int) Position { return At(time.UnixMilli(int64(1000 * n))) }
	of := func(n int, status Status, attempts int, reason string) Record {
		return Record{Event: at(n), Platform: "meta", Status: status, Attempts: attempts, Reason: reason, At: at(n).Time().Add(time.Duration(attempts) * time.Second)}
	}
	for name, c := range map[string]struct {
		entries [][]Record
		want    []Record
		removed int64
	}{
		"nothing of it": {
			entries: [][]Record{{of(2, Delivered, 1, ""), of(3, Failed, 1, "http_400")}},
			want:    []Record{of(2, Delivered, 1, ""), of(3, Failed, 1, "http_400")},
		},
		"an entry of its own": {
			entries: [][]Record{{of(1, Delivered, 1, "")}, {of(2, Delivered, 1, "")}},
			want:    []Record{of(2, Delivered, 1, "")}, removed: 1,
		},
		"others beside it, which are said again": {
			entries: [][]Record{{of(2, Delivered, 1, ""), of(1, Delivered, 1, ""), of(3, Failed, 2, "http_400")}, {of(4, Skipped, 0, "consent")}},
			want:    []Record{of(4, Skipped, 0, "consent"), of(2, Delivered, 1, ""), of(3, Failed, 2, "http_400")}, removed: 1,
		},
		"another's attempt, of which a later entry says how it ended": {
			entries: [][]Record{{of(1, Retrying, 1, "http_503"), of(2, Retrying, 1, "http_503")}, {of(2, Delivered, 2, "")}},
			want:    []Record{of(2, Delivered, 2, "")}, removed: 1,
		},
		"another's attempts in several such entries, of which the last counts": {
			entries: [][]Record{
				{of(1, Retrying, 1, "http_503"), of(2, Retrying, 1, "http_503"), of(3, Delivered, 1, "")},
				{of(1, Delivered, 2, ""), of(2, Retrying, 2, "timeout")},
			},
			want: []Record{of(3, Delivered, 1, ""), of(2, Retrying, 2, "timeout")}, removed: 2,
		},
		"another's end that a replay took back": {
			entries: [][]Record{{of(1, Failed, 1, "http_400"), of(2, Failed, 1, "http_400")}, {of(2, Retrying, 1, ReasonReplayed)}},
			want:    []Record{of(2, Retrying, 1, ReasonReplayed)}, removed: 1,
		},
		"several of its own": {
			entries: [][]Record{{of(1, Retrying, 1, "http_503")}, {of(1, Retrying, 2, "http_503")}, {of(1, Failed, 3, "http_503")}},
			want:    nil, removed: 3,
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, ctx := newStream(t), t.Context()
			for _, records := range c.entries {
				if err := s.Record(ctx, "meta", records); err != nil {
					t.Fatal(err)
				}
			}
			if err := s.Record(ctx, "crm", []Record{{Event: at(2), Platform: "crm", Status: Delivered, At: at(2).Time()}}); err != nil {
				t.Fatal(err)
			}
			erased := map[Position][]string{at(1): {"one"}}
			for _, most := range []int{1, keptAtOnce} { // in several passes; and it may be done again
				if err := s.eraseRecords(ctx, erased, func(id string) bool { return id == "one" }, most); err != nil {
					t.Fatal(err)
				}
			}
			var got []Record
			crm := 0
			for _, r := range allRecords(t, s) {
				if r.Platform == "crm" {
					crm++
					continue
				}
				got = append(got, r)
			}
			order := func(a, b Record) int { return int(int64(a.Event) - int64(b.Event)) }
			slices.SortFunc(got, order)
			slices.SortFunc(c.want, order)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("records (-want +got):\n%s", diff)
			}
			state, _ := s.Erasure(ctx, "one")
			if state.Records != c.removed || crm != 1 {
				t.Errorf("%d records are counted, want %d; the other platform has %d", state.Records, c.removed, crm)
			}
		})
	}
}

// A deliverer that is killed has erased events, and its successor knows of them what was announced.
func TestEraseRecordsLearnsWhatHasBeenAnnounced(t *testing.T) {
	s, ctx := newStream(t), t.Context()
	positions := fill(t, s, 4)
	for _, p := range positions {
		if err := s.Record(ctx, "meta", []Record{decided(p, Delivered, 1).Record}); err != nil {
			t.Fatal(err)
		}
	}
	err := s.EraseEvents(ctx, []ErasedEvent{
		{Position: positions[2], EventID: "x", Erasures: []string{"ours", "others"}},
		{Position: positions[0], EventID: "y", Erasures: []string{"others"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.EraseRecords(ctx, map[Position][]string{}, func(id string) bool { return id == "ours" }); err != nil {
		t.Fatal(err)
	}
	var left []Position
	for _, r := range allRecords(t, s) {
		left = append(left, r.Event)
	}
	if diff := cmp.Diff([]Position{positions[0], positions[1], positions[3]}, left); diff != "" {
		t.Errorf("events with records (-want +got):\n%s", diff)
	}
	for id, want := range map[string][2]int64{"ours": {1, 1}, "others": {2, 0}} {
		state, err := s.Erasure(ctx, id)
		if got := [2]int64{state.Events, state.Records}; got != want || err != nil {
			t.Errorf("%s: events and records %v, %v, want %v", id, got, err, want)
		}
	}
}

// Whatever deliverers and replays write while records are erased, each event's last record stays the last, and what is
// under way ends once.
func TestRecordsAreErasedWhileOthersAreWritten(t *testing.T) {
	s, ctx := newStream(t), t.Context()
	const events, gone = 400, 100
	if _, err := s.EnsureGroup(ctx, "meta", GroupState{}); err != nil {
		t.Fatal(err)
	}
	positions := fill(t, s, events)
	taken, err := s.Read(ctx, "meta", "pod", events, 0)
	if err != nil || len(taken) != events {
		t.Fatalf("%d events were taken, %v", len(taken), err)
	}
	var first []Settlement
	for _, p := range positions {
		first = append(first, retryAt(p, 1, time.UnixMilli(1)))
	}
	if err := s.Settle(ctx, "meta", first); err != nil {
		t.Fatal(err)
	}
	erased := map[Position][]string{}
	for i := 0; i < events; i += events / gone {
		erased[positions[i]] = []string{"one"}
	}
	var writers sync.WaitGroup
	writers.Go(func() {
		for i, p := range positions {
			if _, doomed := erased[p]; doomed {
				continue
			}
			if err := s.Settle(ctx, "meta", []Settlement{decided(p, Status(2+i%3), 2)}); err != nil {
				t.Error(err)
			}
		}
	})
	var doomed []ErasedEvent
	for p := range erased {
		doomed = append(doomed, ErasedEvent{Position: p, EventID: "x", Erasures: []string{"one"}})
	}
	if err := s.EraseEvents(ctx, doomed); err != nil {
		t.Fatal(err)
	}
	if err := s.EraseRecords(ctx, erased, func(string) bool { return true }); err != nil {
		t.Fatal(err)
	}
	writers.Wait()
	last := map[Position]Record{}
	for _, r := range allRecords(t, s) {
		last[r.Event] = r
	}
	for i, p := range positions {
		r, found := last[p]
		if _, doomed := erased[p]; doomed == found {
			t.Errorf("event %d has the record %+v, and is erased: %v", i, r, doomed)
		} else if found && (r.Status != Status(2+i%3) || r.Attempts != 2) {
			t.Errorf("the last record of event %d is %+v", i, r)
		}
	}
}

// What failed is put back by a replay once, and what was erased is not, whose records stood in the same entry.
func TestAReplayAfterAnErasurePutsOthersBack(t *testing.T) {
	s, ctx := newStream(t), t.Context()
	if _, err := s.EnsureGroup(ctx, "meta", GroupState{}); err != nil {
		t.Fatal(err)
	}
	positions := fill(t, s, 4)
	if _, err := s.Read(ctx, "meta", "pod", 4, 0); err != nil {
		t.Fatal(err)
	}
	var settlements []Settlement
	for i, p := range positions {
		settlements = append(settlements, decided(p, []Status{Failed, Failed, Delivered, Failed}[i], 1))
	}
	if err := s.Settle(ctx, "meta", settlements); err != nil {
		t.Fatal(err)
	}
	if err := s.EraseEvents(ctx, []ErasedEvent{{Position: positions[0], EventID: "filled-0", Erasures: []string{"one"}}}); err != nil {
		t.Fatal(err)
	}
	if err := s.EraseRecords(ctx, map[Position][]string{}, func(string) bool { return true }); err != nil {
		t.Fatal(err)
	}
	request := ReplayRequest{Platform: "meta", To: time.Now().Add(time.Hour), Statuses: []Status{Failed}, Now: time.Now()}
	for _, want := range []int{2, 0} {
		if n, err := s.Replay(ctx, request); n != want || err != nil {
			t.Errorf("Replay = %d, %v, want %d", n, err, want)
		}
	}
	due := mustDue(t, s, time.Now().Add(time.Second), time.Minute)
	if diff := cmp.Diff([]Position{positions[1], positions[3]}, positionsOf(due)); diff != "" {
		t.Errorf("events put back (-want +got):\n%s", diff)
	}
}

func TestErasedEventsAreGoneFromEachGroup(t *testing.T) {
	s, ctx := newStream(t), t.Context()
	for _, group := range []string{"meta", "dead"} {
		if _, err := s.EnsureGroup(ctx, group, GroupState{}); err != nil {
			t.Fatal(err)
		}
	}
	const events = 700 // of more than one call
	positions := fill(t, s, events)
	for from := 0; from < events; from += 100 {
		if _, err := s.Read(ctx, "dead", "pod", 100, 0); err != nil {
			t.Fatal(err)
		}
	}
	var doomed []ErasedEvent
	for i, p := range positions[:events-1] {
		doomed = append(doomed, ErasedEvent{Position: p, EventID: fmt.Sprint("filled-", i), Erasures: []string{fmt.Sprint("e-", i%400)}})
	}
	slices.Reverse(doomed)
	for range 2 { // it may be done again
		if err := s.EraseEvents(ctx, doomed); err != nil {
			t.Fatal(err)
		}
	}
	if left := allEvents(t, s); len(left) != 1 || left[0].Position != positions[events-1] {
		t.Errorf("%d events are left, want the last", len(left))
	}
	groups, err := s.Groups(ctx)
	if err != nil || groups[0].Platform != "dead" || groups[0].Pending != 1 || groups[1].Pending != 0 {
		t.Errorf("groups %+v, %v, want the last event to be pending at dead", groups, err)
	}
	counted := int64(0)
	for i := range 400 {
		state, err := s.Erasure(ctx, fmt.Sprint("e-", i))
		if err != nil || !slices.Equal(state.Platforms, []string{"dead"}) {
			t.Errorf("%+v, %v, want the platform that was busy with it", state, err)
		}
		counted += state.Events
	}
	if counted != events-1 {
		t.Errorf("%d events are counted, want %d", counted, events-1)
	}
	a := newAppender(t, s, AppenderOptions{})
	if got := mustAppend(t, a, addition("filled-5", ""), addition("filled-699", "")); got[0].Duplicate || !got[1].Duplicate {
		t.Errorf("appended again: %+v, want the last alone to be a repeat", got)
	}
}

func TestAnEventOfMoreErasuresThanOneCallCountsGoes(t *testing.T) {
	s, ctx := newStream(t), t.Context()
	positions := fill(t, s, 3)
	var many []string
	for i := range 1000 {
		many = append(many, fmt.Sprint("e-", i))
	}
	doomed := []ErasedEvent{
		{Position: positions[0], EventID: "a", Erasures: many[:10]}, {Position: positions[1], EventID: "b", Erasures: many}, {Position: positions[2], EventID: "c", Erasures: many[500:]},
	}
	if err := s.EraseEvents(ctx, doomed); err != nil {
		t.Fatal(err)
	}
	if left := allEvents(t, s); len(left) != 0 {
		t.Errorf("%d events are left", len(left))
	}
}

func TestEraseJoinsTakesIdentifiersAndWhomTheyStandFor(t *testing.T) {
	s, ctx := newStream(t), t.Context()
	a := newAppender(t, s, AppenderOptions{})
	id := func(n byte) event.Identifier { return event.Identifier{n, 9, 9} }
	joined := func(ids ...event.Identifier) Addition {
		one := addition(uuid.NewString(), "")
		one.Identifiers = event.Identifiers{List: ids, Client: -1}.Packed()
		return one
	}
	mustAppend(t, a, joined(id(1), id(2)), joined(id(3), id(4)), joined(id(5), id(6)))
	err := s.EraseJoins(ctx, func(one event.Identifier) []string {
		switch one {
		case id(1): // for which 2 stands
			return []string{"first"}
		case id(6): // which stands for 5
			return []string{"second", "third"}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	left := s.redis.HKeys(ctx, s.keys.join()+":0").Val()
	slices.Sort(left)
	want := []string{}
	for _, one := range []event.Identifier{id(3), id(4), id(5)} {
		want = append(want, string(one[:]))
	}
	if diff := cmp.Diff(want, left); diff != "" {
		t.Errorf("identifiers (-want +got):\n%s", diff)
	}
	for erasure, want := range map[string]int64{"first": 2, "second": 1, "third": 1} {
		if state, err := s.Erasure(ctx, erasure); state.Identifiers != want || err != nil {
			t.Errorf("%s: %+v, %v, want %d identifiers", erasure, state, err, want)
		}
	}
}

// A repeated order is answered with the id of the event that had it first, and the answer is remembered for two minutes.
func TestEraseRepliesForgetsBatchesThatName(t *testing.T) {
	s, ctx := newStream(t), t.Context()
	a := newAppender(t, s, AppenderOptions{})
	mustAppend(t, a, addition("ada-1", "order-1"), addition("bob-1", "order-2"))
	for i := range 20 {
		mustAppend(t, a, addition(fmt.Sprint("again-", i), "order-1"))
		mustAppend(t, a, addition(fmt.Sprint("more-", i), "order-2"), addition("bob-1", ""))
	}
	if err := s.EraseReplies(ctx, func(id string) bool { return id == "ada-1" }); err != nil {
		t.Fatal(err)
	}
	ids := map[string]int{}
	batches := 0
	for _, key := range s.redis.Keys(ctx, "*batches:*").Val() {
		for _, reply := range s.redis.HGetAll(ctx, key).Val() {
			batches++
			for _, id := range repliedIDs(reply) {
				ids[id]++
			}
		}
	}
	if diff := cmp.Diff(map[string]int{"bob-1": 20}, ids); diff != "" || batches != 21 {
		t.Errorf("%d batches are remembered, want 21; ids in their replies (-want +got):\n%s", batches, diff)
	}
}

func FuzzRepliedIDs(f *testing.F) {
	f.Add("r\x00\x01d\x00\x02id")
	f.Add("r\x00\x01d\xff\xff")
	f.Fuzz(func(t *testing.T, packed string) {
		n := 0
		for _, id := range repliedIDs(packed) {
			n += len(id)
		}
		if n > len(packed) {
			t.Errorf("%q has ids of %d bytes", packed, n)
		}
	})
}

func TestTheLockSaysWhoErases(t *testing.T) {
	s, ctx := newStream(t), t.Context()
	if err := s.LockErasures(ctx, ""); err == nil {
		t.Error("an empty lock is written down")
	}
	if err := s.LockErasures(ctx, "one"); err != nil {
		t.Fatal(err)
	}
	lock, err := s.ErasureLock(ctx)
	if lock != "one" || err != nil {
		t.Errorf("the lock is %q, %v", lock, err)
	}
	if err := s.UnlockErasures(context.WithoutCancel(ctx)); err != nil {
		t.Fatal(err)
	}
	if lock, err = s.ErasureLock(ctx); lock != "" || err != nil {
		t.Errorf("the lock is %q, %v, want none", lock, err)
	}
}

// TestEachRoleMayDoItsPartOfAnErasure goes the whole way with the roles' own users.
func TestEachRoleMayDoItsPartOfAnErasure(t *testing.T) {
	server := redistest.Start(t, redisserver.Options{Loopback: true})
	operator := dial(t, server.URL()).Stream("default", "shop")
	collect, deliver := asUser(t, server, AppendAccess, "collect"), asUser(t, server, DeliverAccess, "deliver")
	query, fetch := asUser(t, server, ReadAccess, "query"), asUser(t, server, FetchAccess, "fetch")
	ctx := t.Context()
	id := event.Identifier{1}
	one := addition("an-event", "an-order")
	one.Identifiers = event.Identifiers{List: []event.Identifier{id, {2}}, Client: -1}.Packed()
	mustAppend(t, newAppender(t, collect, AppenderOptions{}), one)
	position := allEvents(t, operator)[0].Position
	if _, err := deliver.EnsureGroup(ctx, "meta", GroupState{}); err != nil {
		t.Fatal(err)
	}
	if err := deliver.Record(ctx, "meta", []Record{decided(position, Failed, 1).Record, decided(position+1, Failed, 1).Record}); err != nil {
		t.Fatal(err)
	}
	rejections := NewRejections(collect, slog.New(slog.DiscardHandler))
	rejections.Add(Rejection{ID: "1", EventID: "an-event", Answer: []byte(`{}`)})
	if err := rejections.Close(ctx); err != nil {
		t.Fatal(err)
	}
	asked := ErasureRequest{ID: uuid.NewString(), Origin: "api:test", Identifiers: []event.Identifier{id}}
	var open []OpenErasure
	doomed := []ErasedEvent{{Position: position, EventID: "an-event", OrderID: "an-order", Erasures: []string{asked.ID}}}
	for i, step := range []func() error{
		func() error { return query.RequestErasure(ctx, asked) },
		func() error { return collect.RequestErasure(ctx, asked) },
		func() error { return deliver.RequestErasure(ctx, asked) },
		func() error {
			requests, err := operator.ErasureRequests(ctx, 10)
			for _, r := range requests {
				err = errors.Join(err, operator.Ledgered(ctx, r, []erasure.Entry{entryOfLedger(1, time.Now())}))
			}
			return err
		},
		func() error { _, _, err := collect.ReadLedger(ctx, 0, 10); return err },
		func() error { _, _, err := deliver.ReadLedger(ctx, 0, 10); return err },
		func() error { _, _, err := query.ReadLedger(ctx, 0, 10); return err },
		func() error { _, err := collect.Erasure(ctx, asked.ID); return err },
		func() error { _, err := query.Erasure(ctx, asked.ID); return err },
		func() (err error) { open, err = deliver.OpenErasures(ctx, 10); return err },
		func() error { return deliver.LockErasures(ctx, "one") },
		func() error { _, err := deliver.ErasureLock(ctx); return err },
		func() error { return deliver.EraseRejections(ctx, func(id string) bool { return id == "an-event" }) },
		func() error { return deliver.EraseReplies(ctx, func(string) bool { return true }) },
		func() error { return deliver.EraseEvents(ctx, doomed) },
		func() error { return fetch.EraseEvents(ctx, doomed) },
		func() error {
			return deliver.EraseJoins(ctx, func(one event.Identifier) []string {
				if one == id {
					return []string{asked.ID}
				}
				return nil
			})
		},
		func() error {
			return deliver.EraseRecords(ctx, map[Position][]string{}, func(id string) bool { return id == asked.ID })
		},
		func() error { return deliver.NoteLinked(ctx, asked.ID, 0) },
		func() error { return deliver.NoteForwarded(ctx, []Forwarding{{ErasureID: asked.ID, Platform: "crm"}}) },
		func() error { return deliver.HideErasures(ctx, open) },
		func() error { return deliver.UnlockErasures(ctx) },
	} {
		if err := step(); err != nil {
			t.Errorf("step %d: %v, want that the role may do it", i, err)
		}
	}
	state, err := query.Erasure(ctx, asked.ID)
	if err != nil || state.Hidden.IsZero() || state.Events != 1 || state.Records != 1 || state.Identifiers != 2 {
		t.Errorf("%+v, %v, want an event, a record and two identifiers to be erased", state, err)
	}
	if left, err := query.Rejections(ctx, 10); len(left) != 0 || err != nil {
		t.Errorf("rejections %v, %v, want none", left, err)
	}
}
