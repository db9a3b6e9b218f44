package stream

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-dev/weir/collector/redisserver"
	"github.com/weir-dev/weir/collector/redisserver/redistest"
)

func TestCountsAddUpInTheirSlotAndHour(t *testing.T) {
	server := redistest.Start(t, redisserver.Options{Loopback: true})
	collector, query := asUser(t, server, AppendAccess, "collector"), asUser(t, server, ReadAccess, "query")
	slot := time.Now().UTC().Truncate(time.Hour)
	next := slot.Add(CountSlot)
	for _, counts := range [][]Count{
		{{Slot: slot, InSlot: "spurchase", InHour: "0purchase", Count: 2}, {Slot: slot, InSlot: "+", InHour: "+", Count: 1}},
		{{Slot: next, InSlot: "spurchase", InHour: "0purchase", Count: 3}},
		{{Slot: slot.Add(-2 * time.Hour), InSlot: "spurchase", InHour: "1purchase", Count: 5}}, // Redis was away: the slot is not asked for any more
		{},
	} {
		if _, err := collector.AddCounts(t.Context(), counts, slot.Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
	}
	slots, err := query.SlotCounts(t.Context(), []time.Time{slot, next, slot.Add(-2 * time.Hour)})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]map[string]int64{{"spurchase": 2, "+": 1}, {"spurchase": 3}, {}}, slots); diff != "" {
		t.Errorf("slots (-want +got):\n%s", diff)
	}
	hours, err := query.HourCounts(t.Context(), []time.Time{slot.Add(-2 * time.Hour), slot, slot.Add(time.Hour)})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]map[string]int64{{"1purchase": 5}, {"0purchase": 5, "+": 1}, {}}, hours); diff != "" {
		t.Errorf("hours (-want +got):\n%s", diff)
	}
	admin := dial(t, server.URL()).Stream("default", "shop")
	for key, want := range map[string]time.Duration{admin.keys.slotCounts(slot): slotCountsKept, admin.keys.hourCounts(slot): hourCountsKept} {
		if ttl := admin.redis.PTTL(t.Context(), key).Val(); ttl <= want-time.Minute || ttl > want {
			t.Errorf("%s lives for %s, want %s", key, ttl, want)
		}
	}
}

func TestCountsThatAreNoNumbersArePassedOver(t *testing.T) {
	s := newStream(t)
	slot := time.Unix(1_700_000_000, 0).UTC().Truncate(CountSlot)
	if err := s.redis.HSet(t.Context(), s.keys.slotCounts(slot), "a", "many", "b", "99999999999999999999", "c", "7").Err(); err != nil {
		t.Fatal(err)
	}
	got, err := s.SlotCounts(t.Context(), []time.Time{slot})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]map[string]int64{{"c": 7}}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestMembersOfAGroupAreBoundedWhoeverCounts has three collectors count members of their own, some of which are others' too.
func TestMembersOfAGroupAreBoundedWhoeverCounts(t *testing.T) {
	server := redistest.Start(t, redisserver.Options{Loopback: true})
	slot := time.Now().UTC().Truncate(CountSlot)
	for c := range 3 {
		collector := asUser(t, server, AppendAccess, "collector")
		var counts []Count
		for i := range 10 {
			name := fmt.Sprint(c*5 + i)
			counts = append(counts, Count{Slot: slot, InSlot: "s" + name, InHour: "0" + name, Count: 1, Place: Place{Group: "n", Member: name, Most: 12, Instead: "other"}})
		}
		counts = append(counts, Count{Slot: slot, InSlot: "spurchase", InHour: "0purchase", Count: 1})
		if _, err := collector.AddCounts(t.Context(), counts, slot); err != nil {
			t.Fatal(err)
		}
	}
	want := map[string]int64{"0purchase": 3, "0other": 30 - 5 - 2*7}
	for i := range 12 {
		want[fmt.Sprint("0", i)] = 2
	}
	for i := range 5 {
		want[fmt.Sprint("0", i)] = 1
	}
	hours, err := asUser(t, server, ReadAccess, "query").HourCounts(t.Context(), []time.Time{slot})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]map[string]int64{want}, hours); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// stall has Redis do nothing else for a time, and returns when it does.
func stall(t *testing.T, s *Stream, d time.Duration) {
	t.Helper()
	busy := "local t = redis.call('TIME'); local ends = t[1] * 1000000 + t[2] + ARGV[1]; repeat t = redis.call('TIME') until t[1] * 1000000 + t[2] > ends"
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		s.redis.Eval(context.WithoutCancel(t.Context()), busy, nil, d.Microseconds())
	}()
	t.Cleanup(func() { <-ended })
	for {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		err := s.redis.Ping(ctx).Err()
		cancel()
		if err != nil {
			return
		}
	}
}

// TestOfCountsThatRedisDoesNotAnswerNobodyKnows has Redis stand still: what it was sent it does all the same when it goes on.
// Valkey leaves undone what was sent by who has gone since.
func TestOfCountsThatRedisDoesNotAnswerNobodyKnows(t *testing.T) {
	address := redistest.URL(t)
	s, slot := dial(t, address).Stream("default", "shop"), time.Now().UTC().Truncate(CountSlot)
	if _, err := s.SlotCounts(t.Context(), []time.Time{slot}); err != nil { // from now on it has a connection
		t.Fatal(err)
	}
	want := 1
	if s.redis.InfoMap(t.Context(), "server").Val()["Server"]["server_name"] == "valkey" {
		want = 0
	}
	counts := []Count{{Slot: slot, InSlot: "spurchase", InHour: "0purchase", Count: 1}}
	stall(t, dial(t, address).Stream("default", "shop"), time.Second)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	fates, err := s.AddCounts(ctx, counts, slot)
	if diff := cmp.Diff([]Fate{Unclear}, fates); err == nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	for deadline := time.Now().Add(10 * time.Second); ; {
		slots, err := s.SlotCounts(t.Context(), []time.Time{slot})
		if err == nil && int(slots[0]["spurchase"]) == want {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("Redis has counted %v, %v", slots, err)
		}
	}
}

func TestCountsThatSurelyDidNotArriveAreToldFromOthers(t *testing.T) {
	server := redistest.Start(t, redisserver.Options{Loopback: true})
	slot := time.Now().UTC().Truncate(CountSlot)
	counts := []Count{{Slot: slot, InSlot: "spurchase", InHour: "0purchase", Count: 1}}
	denied := asUser(t, server, ReadAccess, "query")
	client, err := Dial("redis://127.0.0.1:1", DialOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	for name, s := range map[string]*Stream{"Redis refuses them": denied, "nothing listens": client.Stream("default", "shop")} {
		fates, err := s.AddCounts(t.Context(), counts, slot)
		if diff := cmp.Diff([]Fate{Uncounted}, fates); err == nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", name, err, diff)
		}
	}
}
