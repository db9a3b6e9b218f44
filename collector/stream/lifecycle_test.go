package stream

import (
	"testing"
	"time"
)

func TestEraseLeavesNothing(t *testing.T) {
	s, positions := platformStream(t, 50)
	client := &Client{redis: s.redis}
	other := client.Stream("default", "shop-2")
	mustAppend(t, newAppender(t, other, AppenderOptions{}), addition("id", "order"))
	kept := len(s.redis.Keys(t.Context(), other.keys.pattern()).Val())

	mustAppend(t, newAppender(t, s, AppenderOptions{}), addition("one", "order"))
	mustRead(t, s, "pod-1", 10)
	mustSettle(t, s, decided(positions[0], Delivered, 1), retryAt(positions[1], 1, time.Now()))
	if _, err := s.Allow(t.Context(), Rate{EventsPerSecond: 1}, 100); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := client.Erase(t.Context(), "default", "shop"); err != nil {
			t.Fatal(err)
		}
	}
	if left := s.redis.Keys(t.Context(), s.keys.pattern()).Val(); len(left) > 0 {
		t.Errorf("left over: %v", left)
	}
	if left := len(s.redis.Keys(t.Context(), other.keys.pattern()).Val()); left != kept {
		t.Errorf("another property has %d keys, had %d", left, kept)
	}
}
