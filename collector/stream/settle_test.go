package stream

import (
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-dev/weir/collector/redisserver"
	"github.com/weir-dev/weir/collector/redisserver/redistest"
)

func statuses(records []Record) []string {
	got := []string{}
	for _, r := range records {
		got = append(got, r.Status.String())
	}
	return got
}

func TestSettleRecordsInOneEntry(t *testing.T) {
	s, positions := platformStream(t, 4)
	mustRead(t, s, "pod-1", 10)
	now := time.Now()
	// In another order than the stream's, so that the first is not the lowest.
	settlements := []Settlement{
		decided(positions[2], Delivered, 1), retryAt(positions[0], 1, now), decided(positions[1], Failed, 3), decided(positions[3], Skipped, 0),
	}
	settlements[0].Latency = 123 * time.Millisecond
	settlements[1].Reason = "server_error"
	settlements[2].Reason = "rejected"
	mustSettle(t, s, settlements...)
	want := []Record{}
	for _, settlement := range settlements {
		want = append(want, settlement.Record)
	}
	if diff := cmp.Diff(want, allRecords(t, s)); diff != "" {
		t.Errorf("records (-want +got):\n%s", diff)
	}
	if n := s.redis.XLen(t.Context(), s.keys.deliveries()).Val(); n != 1 {
		t.Errorf("%d entries, want 1", n)
	}
	if pending, waiting := open(t, s); pending != 0 || waiting != 1 {
		t.Errorf("open = %d pending, %d waiting, want the retry alone", pending, waiting)
	}
}

func TestDueHandsOutUnderALease(t *testing.T) {
	s, positions := platformStream(t, 3)
	mustRead(t, s, "pod-1", 10)
	start := time.Date(2026, 5, 6, 7, 8, 9, 0, time.UTC)
	mustSettle(t, s, retryAt(positions[0], 1, start.Add(2*time.Second)), retryAt(positions[1], 4, start.Add(time.Second)), retryAt(positions[2], 1, start.Add(time.Hour)))

	due := func(after, lease time.Duration) []Position {
		return positionsOf(mustDue(t, s, start.Add(after), lease))
	}
	none := []Position{}
	if got := due(999*time.Millisecond, time.Minute); len(got) != 0 {
		t.Errorf("before the time = %v, want none", got)
	}
	taken := mustDue(t, s, start.Add(2*time.Second), time.Minute)
	want := []Delivery{
		{Entry: Entry{positions[1], []byte("entry of filled-1")}, Attempts: 4},
		{Entry: Entry{positions[0], []byte("entry of filled-0")}, Attempts: 1},
	}
	if diff := cmp.Diff(want, taken); diff != "" {
		t.Errorf("due (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(none, due(61*time.Second, time.Minute)); diff != "" {
		t.Errorf("under the lease (-want +got):\n%s", diff)
	}
	mustSettle(t, s, decided(positions[1], Delivered, 5))
	if diff := cmp.Diff([]Position{positions[0]}, due(62*time.Second, time.Minute)); diff != "" {
		t.Errorf("after the lease (-want +got):\n%s", diff)
	}
	mustSettle(t, s, decided(positions[0], Delivered, 2), decided(positions[2], Expired, 1))
	if pending, waiting := open(t, s); pending != 0 || waiting != 0 {
		t.Errorf("open = %d, %d, want none", pending, waiting)
	}
	for _, key := range s.keys.retries("meta") {
		if s.redis.Exists(t.Context(), key).Val() != 0 {
			t.Errorf("%s is left over", key)
		}
	}
}

func TestDueReportsTrimmedEvents(t *testing.T) {
	s, positions := platformStream(t, 2)
	mustRead(t, s, "pod-1", 10)
	mustSettle(t, s, retryAt(positions[0], 1, time.Now()), retryAt(positions[1], 1, time.Now()))
	if err := s.redis.XDel(t.Context(), s.keys.events(), positions[0].String()).Err(); err != nil {
		t.Fatal(err)
	}
	taken, gone, err := s.Due(t.Context(), "meta", time.Now().Add(time.Second), time.Minute, 10)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]Position{positions[1]}, positionsOf(taken)); diff != "" {
		t.Errorf("taken (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]Position{positions[0]}, gone); diff != "" {
		t.Errorf("gone (-want +got):\n%s", diff)
	}
	if _, waiting := open(t, s); waiting != 1 {
		t.Errorf("%d waiting, want 1", waiting)
	}
}

func TestAnEventIsSettledOnce(t *testing.T) {
	now := time.Now()
	for name, test := range map[string]struct {
		settle func(t *testing.T, s *Stream, p Position)
		want   []string
		open   int64
	}{
		"when the same settlement is sent again": {
			func(t *testing.T, s *Stream, p Position) {
				mustSettle(t, s, decided(p, Delivered, 1))
				mustSettle(t, s, decided(p, Delivered, 1))
			}, []string{"delivered"}, 0,
		},
		"when it stands twice in one call": {
			func(t *testing.T, s *Stream, p Position) {
				mustSettle(t, s, decided(p, Delivered, 1))
				mustSettle(t, s, decided(p, Delivered, 1), decided(p, Failed, 1))
			}, []string{"delivered"}, 0,
		},
		"when another deliverer that lost its pending entry comes later": {
			func(t *testing.T, s *Stream, p Position) {
				mustSettle(t, s, decided(p, Delivered, 1))
				mustSettle(t, s, decided(p, Failed, 1))
			}, []string{"delivered"}, 0,
		},
		"and a late retry does not open it again": {
			func(t *testing.T, s *Stream, p Position) {
				mustSettle(t, s, decided(p, Delivered, 1))
				mustSettle(t, s, retryAt(p, 1, now))
			}, []string{"delivered"}, 0,
		},
		"and a late postponement does not open it again": {
			func(t *testing.T, s *Stream, p Position) {
				mustSettle(t, s, decided(p, Delivered, 1))
				if err := s.Postpone(t.Context(), "meta", []Delivery{{Entry: Entry{Position: p}}}, now); err != nil {
					t.Fatal(err)
				}
			}, []string{"delivered"}, 0,
		},
		"by the deliverer whose pending entry was taken over while the event waits": {
			func(t *testing.T, s *Stream, p Position) {
				mustSettle(t, s, retryAt(p, 1, now))
				mustSettle(t, s, decided(p, Delivered, 1))
			}, []string{"retrying", "delivered"}, 0,
		},
		"though it is retried several times": {
			func(t *testing.T, s *Stream, p Position) {
				mustSettle(t, s, retryAt(p, 1, now))
				mustSettle(t, s, retryAt(p, 2, now))
				mustSettle(t, s, decided(p, Expired, 2))
			}, []string{"retrying", "retrying", "expired"}, 0,
		},
		"and stays open until then": {
			func(t *testing.T, s *Stream, p Position) {
				mustSettle(t, s, retryAt(p, 1, now))
			}, []string{"retrying"}, 1,
		},
		"and not at all where no one was handed it": {
			func(t *testing.T, s *Stream, p Position) {
				mustSettle(t, s, decided(p+1, Delivered, 1))
			}, []string{}, 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, positions := platformStream(t, 1)
			mustRead(t, s, "pod-1", 10)
			test.settle(t, s, positions[0])
			if diff := cmp.Diff(test.want, statuses(allRecords(t, s))); diff != "" {
				t.Errorf("records (-want +got):\n%s", diff)
			}
			if pending, waiting := open(t, s); pending+waiting != test.open {
				t.Errorf("open = %d pending, %d waiting, want %d together", pending, waiting, test.open)
			}
		})
	}
}

func TestSettleIsExactUnderConcurrency(t *testing.T) {
	s, positions := platformStream(t, 700)
	mustRead(t, s, "pod-1", 700)
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			var settlements []Settlement
			for _, p := range positions {
				settlements = append(settlements, decided(p, Delivered, 1))
			}
			if err := s.Settle(t.Context(), "meta", settlements); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	seen := map[Position]int{}
	for _, r := range allRecords(t, s) {
		seen[r.Event]++
	}
	for _, p := range positions {
		if seen[p] != 1 {
			t.Errorf("event %s has %d records, want 1", p, seen[p])
		}
	}
}

func TestSettleAfterAnUnclearAnswer(t *testing.T) {
	server := redistest.Start(t, redisserver.Options{})
	direct := dial(t, server.URL()).Stream("default", "shop")
	positions := fill(t, direct, 2)
	if _, err := direct.EnsureGroup(t.Context(), "meta", GroupState{}); err != nil {
		t.Fatal(err)
	}
	mustRead(t, direct, "pod-1", 2)
	p := newProxy(t, server.URL())
	through := dial(t, p.address).Stream("default", "shop")
	settlements := []Settlement{decided(positions[0], Delivered, 1), retryAt(positions[1], 1, time.Now())}
	p.swallow.Store(1)
	if err := through.Settle(t.Context(), "meta", settlements); err == nil {
		t.Fatal("Settle = nil, though its answer was lost")
	}
	settlements[1].Attempts = 1
	if err := through.Settle(t.Context(), "meta", settlements); err != nil {
		t.Fatal(err)
	}
	got := map[Position]Status{}
	for _, r := range allRecords(t, direct) {
		got[r.Event] = r.Status
	}
	if diff := cmp.Diff(map[Position]Status{positions[0]: Delivered, positions[1]: Retrying}, got); diff != "" {
		t.Errorf("last statuses (-want +got):\n%s", diff)
	}
	if pending, waiting := open(t, direct); pending != 0 || waiting != 1 {
		t.Errorf("open = %d pending, %d waiting, want the retry alone", pending, waiting)
	}
}

func TestPostponedEventsComeAgainWithoutARecord(t *testing.T) {
	s, positions := platformStream(t, 2)
	start := time.Now()
	mustRead(t, s, "pod-1", 10)
	mustSettle(t, s, retryAt(positions[1], 3, start))
	held := append([]Delivery{{Entry: Entry{Position: positions[0]}}}, mustDue(t, s, start.Add(time.Second), time.Second)...)
	if err := s.Postpone(t.Context(), "meta", held, start.Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if got := mustDue(t, s, start.Add(59*time.Second), time.Second); len(got) != 0 {
		t.Errorf("due before = %v, want none", got)
	}
	got := map[Position]int{}
	for _, d := range mustDue(t, s, start.Add(61*time.Second), time.Second) {
		got[d.Position] = d.Attempts
	}
	if diff := cmp.Diff(map[Position]int{positions[0]: 0, positions[1]: 3}, got); diff != "" {
		t.Errorf("attempts (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"retrying"}, statuses(allRecords(t, s))); diff != "" {
		t.Errorf("records (-want +got):\n%s", diff)
	}
}

// What was handed out and put back without an attempt is told from what waits for another one.
func TestPutBackEventsAreNotThoseThatWereAttempted(t *testing.T) {
	s, positions := platformStream(t, 3)
	start := time.Now()
	mustRead(t, s, "pod-1", 10)
	mustSettle(t, s, retryAt(positions[1], 1, start))
	back := []Delivery{{Entry: Entry{Position: positions[2]}}, {Entry: Entry{Position: positions[0]}}}
	if err := s.PutBack(t.Context(), "meta", back); err != nil {
		t.Fatal(err)
	}
	later := start.Add(time.Second)
	if got := positionsOf(mustDue(t, s, later, time.Minute)); !slices.Equal(got, positions[1:2]) {
		t.Errorf("due = %v, want the one that was attempted, %v", got, positions[1:2])
	}
	var unsent []Position
	for range 3 {
		taken, gone, err := s.Unsent(t.Context(), "meta", later, time.Minute, 1)
		if err != nil || len(gone) > 0 {
			t.Fatal(gone, err)
		}
		unsent = append(unsent, positionsOf(taken)...)
	}
	if want := []Position{positions[0], positions[2]}; !slices.Equal(unsent, want) {
		t.Errorf("unsent = %v, want %v, each once", unsent, want)
	}
	if got := positionsOf(mustDue(t, s, later.Add(time.Minute), time.Minute)); len(got) != 3 {
		t.Errorf("due behind the leases = %v, want all", got)
	}
}

func TestRecordNeedsNoGroup(t *testing.T) {
	s := newStream(t)
	want := []Record{
		{Event: At(time.UnixMilli(2000)), Platform: "old", Status: Skipped, Reason: "platform_removed", At: time.UnixMilli(5000).UTC()},
		{Event: At(time.UnixMilli(1000)) + 7, Platform: "old", Status: Skipped, Reason: "platform_removed", At: time.UnixMilli(5000).UTC()},
	}
	if err := s.Record(t.Context(), "old", want); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, allRecords(t, s)); diff != "" {
		t.Errorf("records (-want +got):\n%s", diff)
	}
}

func TestSettleRefusesPending(t *testing.T) {
	s, positions := platformStream(t, 1)
	mustRead(t, s, "pod-1", 1)
	err := s.Settle(t.Context(), "meta", []Settlement{decided(positions[0], Pending, 0)})
	if err == nil || !strings.Contains(err.Error(), "must be retrying or final") {
		t.Errorf("Settle = %v, want that pending is no settlement", err)
	}
}

func TestDeliveriesGoOnWhenRedisIsFull(t *testing.T) {
	s, positions := platformStream(t, 2)
	mustRead(t, s, "pod-1", 10)
	if err := s.redis.ConfigSet(t.Context(), "maxmemory", "1").Err(); err != nil {
		t.Fatal(err)
	}
	mustSettle(t, s, decided(positions[0], Delivered, 1), retryAt(positions[1], 1, time.Now()))
	mustDue(t, s, time.Now().Add(time.Second), time.Minute)
	mustSettle(t, s, decided(positions[1], Delivered, 2))
	result, err := s.Trim(t.Context(), TrimPolicy{Age: time.Nanosecond})
	if err != nil || result.Removed == 0 {
		t.Errorf("Trim = %+v, %v, want room", result, err)
	}
}

// Pending entries of other events between those that are settled are left alone, however many there are.
func TestSettleAmongManyPendingEntries(t *testing.T) {
	s, positions := platformStream(t, 60)
	mustRead(t, s, "pod-1", 59)
	mustSettle(t, s, decided(positions[0], Delivered, 1), decided(positions[58], Delivered, 1), decided(positions[59], Delivered, 1))
	if pending, waiting := open(t, s); pending != 57 || waiting != 0 {
		t.Errorf("open = %d pending, %d waiting, want 57 pending", pending, waiting)
	}
	if got := allRecords(t, s); len(got) != 2 || got[0].Event != positions[0] || got[1].Event != positions[58] {
		t.Errorf("records = %v, want those of the events that were pending", got)
	}
}
