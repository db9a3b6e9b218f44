package stream

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"github.com/weir-dev/weir/collector/redisserver/redistest"
)

// While a function runs Redis serves nobody else. So one call, with the most that it takes and whatever somebody with the
// role's password has prepared, may take no longer than so many appends of a hundred events each.
const mostAppends = 50

// The most that functions take, and a time beyond all plans.
const mostAdditions, mostEvents, mostTrimmed, latest = 512, 1000, 1000, 9999999999999

// TestWhatOneCallCosts compares the time of Redis's main thread, call by call in turn with the appends.
func TestWhatOneCallCosts(t *testing.T) {
	appendOf := func(events int, field func(i int) string, size int) []any {
		args := []any{week.Milliseconds(), time.Now().UnixMilli(), string(newID()), "", 2 * events}
		for i := range 2 * events {
			args = append(args, field(i))
		}
		for range 2 * events {
			args = append(args, string(newID())[:4])
		}
		for i := range events {
			args = append(args, strings.Repeat("e", size), fmt.Sprint("id-", i))
		}
		return args
	}
	fresh := func(int) string { return string(newID())[:fieldSize] }
	numbered := func(i int) string { return fmt.Sprintf("%06d", i) }
	appendKeys := func(k keys) []string { return []string{k.events(), k.claims(), k.batches(), k.clock()} }
	trimKeys := func(k keys) []string {
		return []string{k.events(), k.deliveries(), k.retryPrefix(), k.claims(), k.clock()}
	}
	group := func(k keys) []string { return append([]string{k.events()}, k.retries("meta")...) }
	for name, c := range map[string]struct {
		prepare  func(*testing.T, *Stream)
		function string
		keys     func(keys) []string
		args     func(k keys) []any
	}{
		"weir_append of the most events, each with an order": {
			nil, functionAppend, appendKeys, func(keys) []any { return appendOf(mostAdditions, fresh, 400) },
		},
		"weir_append of the most bytes": {
			nil, functionAppend, appendKeys, func(keys) []any { return appendOf(8, fresh, 1<<20) },
		},
		"weir_append where all eight buckets have claims under each field": {
			fillBuckets(2 * mostAdditions), functionAppend, appendKeys, func(keys) []any { return appendOf(mostAdditions, numbered, 400) },
		},
		"weir_due of the most events": {
			waiting(20_000, 1), functionDue, group, func(keys) []any { return []any{0, latest, latest, mostEvents} },
		},
		"weir_due of events as large as there are": {
			waiting(32, 1<<20), functionDue, group, func(keys) []any { return []any{0, latest, latest, mostEvents} },
		},
		"weir_trim that takes back what waits": {
			waiting(20_000, 1), functionTrim, trimKeys, func(keys) []any { return []any{0, 0, 1, mostTrimmed} },
		},
		"weir_trim of delivered events": {
			stored(20_000, 400), functionTrim, trimKeys, func(keys) []any { return []any{0, "", 0, mostTrimmed} },
		},
		"weir_trim of delivered events as large as there are": {
			stored(32, 1<<20), functionTrim, trimKeys, func(keys) []any { return []any{0, "", 0, mostTrimmed} },
		},
		"weir_trim that has nothing to do, where events are as large as there are": {
			stored(32, 1<<20), functionTrim, trimKeys, func(keys) []any { return []any{"", "", 0, mostTrimmed} },
		},
		"weir_trim at a ceiling, where events are as large as there are": {
			stored(32, 1<<20), functionTrim, trimKeys, func(keys) []any { return []any{"", "", 1, mostTrimmed} },
		},
		"weir_replay where somebody has made records of a megabyte": {
			func(t *testing.T, s *Stream) { put(t, s, s.keys.deliveries(), "d", 32, 1<<20) },
			functionReplay,
			func(k keys) []string { return append([]string{k.events(), k.deliveries()}, k.retries("meta")...) },
			func(keys) []any { return []any{"meta", "0-0", "head", 1, 1, "head", "1-1", 1, "record"} },
		},
	} {
		t.Run(name, func(t *testing.T) {
			client, ctx := dial(t, redistest.URL(t)), t.Context()
			other := keysOf("default", "other")
			const rounds = 3
			var unit, took []time.Duration
			for i := range rounds {
				s := client.Stream("default", fmt.Sprint("shop-", i))
				if _, err := s.EnsureGroup(ctx, "meta", GroupState{}); err != nil {
					t.Fatal(err)
				}
				if c.prepare != nil {
					c.prepare(t, s)
				}
				hundred := appendOf(50, fresh, 400)
				unit = append(unit, mainThread(t, s, func() error { return s.redis.FCall(ctx, functionAppend, appendKeys(other), hundred...).Err() }))
				args := c.args(s.keys)
				took = append(took, mainThread(t, s, func() error { return s.redis.FCall(ctx, c.function, c.keys(s.keys), args...).Err() }))
				if err := client.Erase(ctx, "default", fmt.Sprint("shop-", i)); err != nil {
					t.Fatal(err)
				}
			}
			slices.Sort(unit)
			slices.Sort(took)
			ratio := float64(took[rounds/2]) / float64(unit[rounds/2])
			t.Logf("%s, as long as %.1f appends; most %s", took[rounds/2], ratio, took[rounds-1])
			if ratio > mostAppends {
				t.Errorf("it takes as long as %.0f appends of a hundred digests, want %d at most", ratio, mostAppends)
			}
		})
	}
}

func newID() []byte {
	id := uuid.New()
	return id[:]
}

// mainThread returns what of the time of Redis's main thread a call takes.
func mainThread(t *testing.T, s *Stream, call func() error) time.Duration {
	t.Helper()
	before := usedByMainThread(t, s)
	if err := call(); err != nil && err != redis.Nil {
		t.Fatal(err)
	}
	return usedByMainThread(t, s) - before
}

func usedByMainThread(t *testing.T, s *Stream) time.Duration {
	t.Helper()
	text, err := s.redis.Info(t.Context(), "cpu").Result()
	if err != nil {
		t.Fatal(err)
	}
	var used float64
	for _, field := range []string{"used_cpu_sys_main_thread", "used_cpu_user_main_thread"} {
		seconds, err := strconv.ParseFloat(infoField(text, field), 64)
		if err != nil {
			t.Fatal(err)
		}
		used += seconds
	}
	return time.Duration(used * float64(time.Second))
}

// put appends entries of a size to one of a property's streams.
func put(t *testing.T, s *Stream, key, field string, n, size int) []string {
	t.Helper()
	var ids []string
	for from := 0; from < n; from += 100 {
		pipe := s.redis.Pipeline()
		for i := from; i < min(n, from+100); i++ {
			id := fmt.Sprintf("%d-0", 1000+i)
			ids = append(ids, id)
			pipe.XAdd(t.Context(), &redis.XAddArgs{Stream: key, ID: id, Values: []any{field, strings.Repeat("x", size)}})
		}
		if _, err := pipe.Exec(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	return ids
}

func stored(n, size int) func(*testing.T, *Stream) {
	return func(t *testing.T, s *Stream) {
		put(t, s, s.keys.events(), "e", n, size)
		for {
			taken := mustRead(t, s, "pod", 50)
			if len(taken) == 0 {
				return
			}
			var positions []Position
			for _, d := range taken {
				positions = append(positions, d)
			}
			if err := s.Acknowledge(t.Context(), "meta", positions); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// waiting stores events that wait for another attempt.
func waiting(n, size int) func(*testing.T, *Stream) {
	return func(t *testing.T, s *Stream) {
		ids := put(t, s, s.keys.events(), "e", n, size)
		for _, key := range []string{s.keys.due("meta"), s.keys.open("meta")} {
			pipe := s.redis.Pipeline()
			for i, id := range ids {
				pipe.ZAdd(t.Context(), key, redis.Z{Score: float64(1000 + i), Member: id})
			}
			if _, err := pipe.Exec(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// fillBuckets makes claims under numbered fields in all buckets, as many bytes as a call reads at most.
func fillBuckets(fields int) func(*testing.T, *Stream) {
	return func(t *testing.T, s *Stream) {
		ctx := t.Context()
		for slot := range claimSlots {
			name := fmt.Sprint(week.Milliseconds()/2-int64(slot), ":", time.Now().UnixMilli())
			if err := s.redis.HSet(ctx, s.keys.claims(), fmt.Sprint(slot), name).Err(); err != nil {
				t.Fatal(err)
			}
			pipe := s.redis.Pipeline()
			for i := range fields {
				pipe.HSet(ctx, fmt.Sprint(s.keys.claims(), ":", slot), fmt.Sprintf("%06d", i), strings.Repeat("\x01\x02\x03\x04\x00\x01", 3))
			}
			if _, err := pipe.Exec(ctx); err != nil {
				t.Fatal(err)
			}
		}
	}
}
