package stream

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/event/wire"
)

// doneBy returns what takes all that a call returns, the last of which must be no error.
func doneBy(t *testing.T) func(results ...any) {
	return func(results ...any) {
		t.Helper()
		if err := results[len(results)-1]; err != nil {
			t.Fatal(err)
		}
	}
}

// collectorCalls has this code call each function that a collector calls, with each form of the arguments. What would go by this
// process's clock goes by the library's.
func collectorCalls(t *testing.T, s *Stream) {
	ctx, done, a := t.Context(), doneBy(t), newAppender(t, s, AppenderOptions{})
	a.witness = func() time.Time { return called }
	a.sealer.witness = a.witness
	mustAppend(t, a, addition("bought", "order-1"))
	mustAppend(t, a, addition("bought", ""), addition("again", "order-1"), public("bought"))
	first, second := addition("first", ""), addition("second", "")
	first.Identifiers, second.Identifiers = []byte("\x01client-1user---1"), []byte("\x01client-2user---1")
	mustAppend(t, a, first, second)
	mustAppend(t, a, sealing(visit("sealed"), true))
	done(s.redis.HDel(ctx, s.keys.seal(wire.Identity), "20758").Err()) // as where Redis has come back without the key
	mustAppend(t, a, sealing(visit("sealed again"), true))
	for key := range 2 {
		done(s.Allow(ctx, Rate{Key: key, EventsPerSecond: 10}, 2))
	}
	place := Place{Group: "names", Member: "one", Most: 1, Instead: "others"}
	counts := []Count{{Slot: called, InSlot: "ours", InHour: "ours", Count: 2}, {Slot: called, InSlot: "none", InHour: "none", Count: 3, Place: place}}
	done(s.AddCounts(ctx, counts, called))
}

// delivererCalls is collectorCalls for a deliverer and what it has delivered.
func delivererCalls(t *testing.T, s *Stream) {
	ctx, done := t.Context(), doneBy(t)
	at := func(n int) Position { return At(called) + Position(n) }
	clock := NewClock(s, func() time.Time { return called }, func() time.Duration { return 0 })
	done(clock.Look(ctx))
	done(clock.Look(ctx))
	// Redis dates records by its own clock. Behind an id of a time to come it goes on counting.
	entry := recordsEntry(s.keys.deliveries(), "meta", []Record{decided(at(0)-1, Skipped, 0).Record})
	entry.ID = "4000000000000-0"
	done(s.redis.XAdd(ctx, entry).Err())

	done(s.EnsureGroup(ctx, "meta", GroupState{}))
	waiting := Delivery{Entry: Entry{Position: at(0)}, Attempts: 1}
	done(s.EnsureGroup(ctx, "crm", GroupState{After: at(1), Passed: 2, Due: called, Waiting: []Delivery{waiting}}))
	done(s.Read(ctx, "meta", "pod", 4, 0))
	purchase, queued, refund := decided(at(0), Delivered, 1), retryAt(at(2), 1, called), decided(at(3), Delivered, 1)
	order, value := OrderKey{ID: "order-1"}, int64(120000)
	purchase.Order = &OrderChange{Key: order, Purchase: &Purchase{State: OrderDelivered, Value: &value, Currency: "EUR", At: called, Target: "pixel"}}
	queued.Ticket = Ticket{ID: "ticket", At: called}
	refund.Order = &OrderChange{Key: order}
	for _, settled := range [][]Settlement{{purchase, decided(at(1), Failed, 2), queued}, {refund}} {
		done(s.Refund(ctx, "meta", order, at(3), 50000, "EUR", called, called.Add(time.Minute)))
		done(s.Settle(ctx, "meta", settled))
	}
	done(s.Due(ctx, "meta", called, time.Minute, 10))
	replay := ReplayRequest{Platform: "meta", From: called.Add(-time.Hour), To: called.Add(time.Hour), Statuses: []Status{Failed}, Now: called}
	done(s.Replay(ctx, replay))
	replay.Past = &archived{records: []Record{{Event: At(called.Add(-time.Minute)), Status: Failed, Attempts: 3, At: called}}}
	done(s.Replay(ctx, replay))
	done(s.Due(ctx, "meta", called, time.Minute, 10))
	done(s.PutBack(ctx, "meta", []Delivery{{Entry: Entry{Position: at(1)}, Attempts: 2}}))
	done(s.Unsent(ctx, "meta", called, time.Minute, 10))
}

// endingCalls is collectorCalls for what erases, archives and trims.
func endingCalls(t *testing.T, s *Stream) {
	ctx, done := t.Context(), doneBy(t)
	const id = "11111111-2222-4333-8444-555555555555"
	text, err := encodeRequest(ErasureRequest{ID: id, Origin: "api:test", Identifiers: []event.Identifier{{1}}})
	done(err)
	done(s.redis.XAdd(ctx, &redis.XAddArgs{Stream: s.keys.erasureRequests(), ID: "4000000000000-0", Values: []any{requestField, text}}).Err())
	done(s.ErasureRequests(ctx, 10))
	done(s.redis.ZAdd(ctx, s.keys.openErasures(), redis.Z{Score: float64(called.UnixMilli()), Member: id}).Err())
	done(s.EraseEvents(ctx, []ErasedEvent{{Position: At(called), EventID: "bought", OrderID: "order-1", Erasures: []string{id}}}))
	done(s.EraseRecords(ctx, map[Position][]string{At(called): {id}}, func(string) bool { return true }))
	done(s.HideErasures(ctx, []OpenErasure{{ID: id, Ledgered: called}}))

	done(s.BeginArchive(ctx))
	records := ArchiveNote{Lane: RecordsLane, Confirmed: 1, Intent: ArchiveIntent{Last: 2, Token: "token"}}
	done(s.NoteArchive(ctx, 1, called, ArchiveNote{Lane: EventsLane, Confirmed: At(called) + 1}, records))
	done(s.NoteArchive(ctx, 1, time.Time{}))
	done(s.Trim(ctx, TrimPolicy{Age: time.Hour, Archived: true}))
	done(s.Trim(ctx, TrimPolicy{HardAge: time.Hour, MaxEvents: 2}))
	done(s.DropKeys(ctx, time.Hour, 24*time.Hour))
	done(s.DestroyGroup(ctx, "meta"))
}
