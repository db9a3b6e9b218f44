package stream

import (
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
		if err := collector.AddCounts(t.Context(), counts, slot.Add(time.Minute)); err != nil {
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
