package stream

import (
	"fmt"
	"testing"
	"time"

	"github.com/weir-dev/weir/collector/redisserver/redistest"
)

func TestClusterSpreadsProperties(t *testing.T) {
	client := dial(t, redistest.StartCluster(t).URL)
	ctx := t.Context()
	if err := client.Check(ctx); err != nil {
		t.Errorf("Check = %v, want nil", err)
	}
	for i := range 12 {
		s := client.Stream("default", fmt.Sprint("shop-", i))
		a := newAppender(t, s, AppenderOptions{})
		mustAppend(t, a, addition("one", "order"), addition("two", "order"), addition("three", ""))
		if n := len(allEvents(t, s)); n != 2 {
			t.Errorf("property %d has %d events, want 2", i, n)
		}
		if _, err := s.EnsureGroup(ctx, "meta", GroupState{}); err != nil {
			t.Fatal(err)
		}
		taken := mustRead(t, s, "pod-1", 10)
		mustSettle(t, s, decided(taken[0], Delivered, 1), retryAt(taken[1], 1, time.Now()))
		if due := mustDue(t, s, time.Now().Add(time.Second), time.Minute); len(due) != 1 {
			t.Errorf("property %d has %d due events, want 1", i, len(due))
		}
		if records := allRecords(t, s); len(records) != 2 {
			t.Errorf("property %d has %d records, want 2", i, len(records))
		}
		if _, err := s.Allow(ctx, Rate{EventsPerSecond: 5}, 1); err != nil {
			t.Error(err)
		}
		trimAll(t, s, TrimPolicy{MaxEvents: 1})
		if err := client.Erase(ctx, "default", fmt.Sprint("shop-", i)); err != nil {
			t.Error(err)
		}
		if bounds, err := s.Bounds(ctx); err != nil || bounds != (Bounds{}) {
			t.Errorf("property %d after deletion: Bounds = %+v, %v", i, bounds, err)
		}
	}
}
