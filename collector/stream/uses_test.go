package stream

import (
	"crypto/sha256"
	"encoding/binary"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weir-dev/weir/collector/redisserver"
	"github.com/weir-dev/weir/collector/redisserver/redistest"
)

func hashed(n int) [sha256.Size]byte {
	return sha256.Sum256(binary.BigEndian.AppendUint64(nil, uint64(n)))
}

var firstUse = time.Date(2026, time.November, 24, 12, 0, 0, 123_456_000, time.UTC)

func TestFirstUses(t *testing.T) {
	property := dial(t, redistest.URL(t)).Stream("default", "uses")
	keys, tokens := property.KeyUses(), property.TokenUses()
	for _, step := range []struct {
		sentence string
		uses     *Uses
		of       int
		at       time.Time
		want     bool
	}{
		{"a key's first use is", keys, 1, firstUse, true},
		{"asked again about the same use, it still is", keys, 1, firstUse, true},
		{"a later one is not", keys, 1, firstUse.Add(time.Microsecond), false},
		{"nor is one that is told late", keys, 1, firstUse.Add(-time.Hour), false},
		{"nor is the first one of another process at another time", property.KeyUses(), 1, firstUse.Add(time.Hour), false},
		{"another key's is", keys, 2, firstUse.Add(time.Hour), true},
		{"a token's is, though a key has the hash", tokens, 1, firstUse.Add(time.Hour), true},
		{"another property's is", dial(t, redistest.URL(t)).Stream("default", "uses2").KeyUses(), 1, firstUse, true},
	} {
		got, err := step.uses.FirstUse(t.Context(), hashed(step.of), step.at)
		if err != nil || got != step.want {
			t.Errorf("%s: got %v, %v", step.sentence, got, err)
		}
	}
}

func TestOneOfManyProcessesHasTheFirstUse(t *testing.T) {
	property := dial(t, redistest.URL(t)).Stream("default", "uses-many")
	var first atomic.Int64
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			got, err := property.KeyUses().FirstUse(t.Context(), hashed(1), firstUse.Add(time.Duration(i)*time.Microsecond))
			if err != nil {
				t.Error(err)
			}
			if got {
				first.Add(1)
			}
		})
	}
	all.Wait()
	if got := first.Load(); got != 1 {
		t.Errorf("%d have it, want one", got)
	}
}

func TestUsesAreBounded(t *testing.T) {
	property := dial(t, redistest.URL(t)).Stream("default", "uses-bounded")
	uses := property.KeyUses()
	for i := range maxUses + 10 {
		if got, err := uses.FirstUse(t.Context(), hashed(i), firstUse.Add(time.Duration(i)*time.Second)); err != nil || !got {
			t.Fatalf("key %d: got %v, %v", i, got, err)
		}
	}
	if got, err := property.redis.ZCard(t.Context(), uses.key).Result(); err != nil || got != maxUses {
		t.Errorf("%d are remembered, %v; want %d", got, err, maxUses)
	}
	if got, err := uses.FirstUse(t.Context(), hashed(maxUses+9), firstUse.Add(time.Hour)); err != nil || got {
		t.Errorf("the newest: got %v, %v; want it remembered", got, err)
	}
}

// The roles' own users may do it, each for its own.
func TestRolesMayNoteUses(t *testing.T) {
	server := redistest.Start(t, redisserver.Options{Loopback: true})
	for sentence, row := range map[string]struct {
		access       Access
		keys, tokens bool
	}{
		"a collector of keys": {AppendAccess, true, false}, "a query pod of tokens": {ReadAccess, false, true}, "a deliverer of none": {DeliverAccess, false, false},
	} {
		t.Run(sentence, func(t *testing.T) {
			as := asUser(t, server, row.access, "uses-user-"+string(rune('a'+int(row.access))))
			if got, err := as.KeyUses().FirstUse(t.Context(), hashed(int(row.access)), firstUse); got != row.keys || (err == nil) != row.keys {
				t.Errorf("a key: %v, %v", got, err)
			}
			if got, err := as.TokenUses().FirstUse(t.Context(), hashed(int(row.access)), firstUse); got != row.tokens || (err == nil) != row.tokens {
				t.Errorf("a token: %v, %v", got, err)
			}
		})
	}
}
