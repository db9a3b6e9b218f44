package stream

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"github.com/weir-dev/weir/collector/event/wire"
	"github.com/weir-dev/weir/collector/redisserver/redistest"
)

// While a function runs Redis serves nobody else. So one call, with the most that it takes and whatever somebody with the
// role's password has prepared, may take no longer than so many appends of fifty events each, with a hundred digests: some
// hundred milliseconds. What takes longest takes two thirds of that.
const mostAppends = 120

// The most that functions take, and a time beyond all plans.
const mostAdditions, mostEvents, mostTrimmed, latest = 512, 1000, 1000, 9999999999999

// TestWhatOneCallCosts compares the time of Redis's main thread, call by call in turn with the appends. Of an append that is the
// mean of some, one behind the other: a single one takes twice as long where what came before it has emptied the caches.
func TestWhatOneCallCosts(t *testing.T) {
	appendOf := func(events int, field func(i int) string, size int) []any {
		args := []any{week.Milliseconds(), time.Now().UnixMilli(), string(newID()), "", week.Milliseconds(), 2 * events, "", ""}
		for i := range 2 * events {
			args = append(args, field(i))
		}
		for range 2 * events {
			args = append(args, string(newID())[:4])
		}
		for i := range events {
			args = append(args, strings.Repeat("e", size), fmt.Sprint("id-", i), identifiersOf(i))
		}
		return args
	}
	ofBatch := func(id string, args []any) []any { args[2] = id; return args }
	fresh := func(int) string { return string(newID())[:fieldSize] }
	numbered := func(i int) string { return fmt.Sprintf("%06d", i) }
	appendKeys := func(k keys) []string {
		return []string{k.events(), k.dedup(), k.batches(), k.clock(), k.join(), k.seal(wire.Device), k.seal(wire.Identity)}
	}
	trimKeys := func(k keys) []string {
		return []string{k.events(), k.deliveries(), k.retryPrefix(), k.dedup(), k.clock(), k.join(), k.archive()}
	}
	eraseKeys := func(k keys) []string {
		return []string{k.events(), k.deliveries(), k.retryPrefix(), k.dedup(), k.erasureState("")}
	}
	eraseOf := func(events, erasures int) []any {
		by, args := make([]byte, erasures), []any{events}
		for i := range by {
			by[i] = byte(i + 1)
		}
		for i := range events {
			args = append(args, fmt.Sprint(1000+i, "-0"), strings.Repeat("p", 9), strings.Repeat("d", 8*digestSize), by)
		}
		for i := range erasures {
			args = append(args, fmt.Sprint("erasure-", i), "head")
		}
		return args
	}
	group := func(k keys) []string { return append([]string{k.events()}, k.retries("meta")...) }
	for name, c := range map[string]struct {
		prepare  func(*testing.T, *Stream)
		function string
		keys     func(keys) []string
		args     func(k keys) []any
		// refused are words of the error, "" where it is no error.
		refused string
	}{
		"weir_append of the most events, each with an order": {
			nil, functionAppend, appendKeys, func(keys) []any { return appendOf(mostAdditions, fresh, 400) }, "",
		},
		"weir_append of the most bytes": {
			nil, functionAppend, appendKeys, func(keys) []any { return appendOf(8, fresh, 1<<20) }, "",
		},
		"weir_append where all eight buckets have deduplication keys under each field": {
			fillBuckets(2 * mostAdditions), functionAppend, appendKeys, func(keys) []any { return appendOf(mostAdditions, numbered, 400) }, "",
		},
		"weir_append of people with the most identifiers, which all eight buckets have": {
			fillJoins(mostAdditions), functionAppend, appendKeys, func(keys) []any { return appendOf(mostAdditions, fresh, 400) }, "",
		},
		"weir_append where an identifier in one bucket has eight megabytes": {
			func(t *testing.T, s *Stream) {
				fillJoins(1)(t, s)
				if err := s.redis.HSet(t.Context(), s.keys.join()+":0", identifiersOf(0)[1:9], strings.Repeat("x", 8<<20)).Err(); err != nil {
					t.Fatal(err)
				}
			}, functionAppend, appendKeys, func(keys) []any { return appendOf(1, fresh, 400) },
			"the identifiers of these events have more than 4194304 bytes",
		},
		"weir_due of the most events": {
			waiting(20_000, 1), functionDue, group, func(keys) []any { return []any{0, latest, latest, mostEvents} }, "",
		},
		"weir_due of events as large as there are": {
			waiting(16, 1<<20), functionDue, group, func(keys) []any { return []any{0, latest, latest, mostEvents} }, "",
		},
		"weir_retain that takes back what waits": {
			waiting(20_000, 1), functionRetain, trimKeys, func(keys) []any { return []any{0, 0, 1, mostTrimmed, ""} }, "",
		},
		"weir_retain of delivered events": {
			stored(20_000, 400), functionRetain, trimKeys, func(keys) []any { return []any{0, "", 0, mostTrimmed, ""} }, "",
		},
		"weir_retain of delivered events as large as there are": {
			stored(16, 1<<20), functionRetain, trimKeys, func(keys) []any { return []any{0, "", 0, mostTrimmed, ""} }, "",
		},
		"weir_retain that has nothing to do, where events are as large as there are": {
			stored(16, 1<<20), functionRetain, trimKeys, func(keys) []any { return []any{"", "", 0, mostTrimmed, ""} }, "",
		},
		"weir_retain at a ceiling, where events are as large as there are": {
			stored(16, 1<<20), functionRetain, trimKeys, func(keys) []any { return []any{"", "", 1, mostTrimmed, ""} }, "",
		},
		"weir_retain at a ceiling, of what the archive has not confirmed": {
			func(t *testing.T, s *Stream) {
				stored(20_000, 400)(t, s)
				put(t, s, s.keys.deliveries(), recordField, 20_000, 400)
			}, functionRetain, trimKeys, func(keys) []any { return []any{"", "", 1, mostTrimmed, "1"} }, "",
		},
		"weir_retain of entries with thousands of fields that the archive has not confirmed": {
			func(t *testing.T, s *Stream) {
				putFields(t, s, s.keys.events(), 100, 2000)
				putFields(t, s, s.keys.deliveries(), 100, 2000)
			}, functionRetain, trimKeys, func(keys) []any { return []any{0, 0, 1, mostTrimmed, "1"} }, "",
		},
		"weir_count of the most counters, with the longest names": {
			nil, functionCount, func(k keys) []string { return []string{k.hourCounts(time.Now())} }, func(keys) []any {
				args := []any{1000}
				for i := range mostEvents {
					name := fmt.Sprintf("%06d", i) + strings.Repeat("n", 1000)
					args = append(args, "0"+name, 1, "#", "@"+name, mostEvents, "0")
				}
				return args
			}, "",
		},
		"weir_archive_begin where somebody has written megabytes": {
			poisonedArchive, functionArchiveBegin, func(k keys) []string { return []string{k.archive()} }, func(keys) []any { return nil }, "",
		},
		"weir_archive_note where somebody has written megabytes": {
			poisonedArchive, functionArchiveNote, func(k keys) []string { return []string{k.archive()} },
			func(keys) []any { return []any{1, 1, "events", "1-1", "2-1", "token", "records", "1-1", "", ""} }, "",
		},
		"weir_replay where somebody has made records of a megabyte": {
			func(t *testing.T, s *Stream) { put(t, s, s.keys.deliveries(), "d", 16, 1<<20) },
			functionReplay,
			func(k keys) []string { return append([]string{k.events(), k.deliveries()}, k.retries("meta")...) },
			func(keys) []any { return []any{"meta", "0-0", "head", 1, 1, "head", "1-1", 1, "record"} }, "",
		},
		"weir_append where somebody has written a megabyte of tables for its batch": {
			func(t *testing.T, s *Stream) {
				prepareBatch(t, s, "\xdd\x00\x0f\xff\x00"+strings.Repeat("\x90", 1<<20-256))
			}, functionAppend, appendKeys, func(keys) []any { return ofBatch(zeros, appendOf(1, fresh, 1)) },
			"data string too short",
		},
		"weir_append where somebody has written eight megabytes for its batch": {
			func(t *testing.T, s *Stream) { prepareBatch(t, s, strings.Repeat("\x00", 8<<20)) },
			functionAppend, appendKeys, func(keys) []any { return ofBatch(zeros, appendOf(1, fresh, 1)) },
			"what is remembered of this batch has more than 2359296 bytes",
		},
		"weir_append of events whose orders begin alike, and whose ids are as long as there are": {
			nil, functionAppend, appendKeys, func(keys) []any {
				args := appendOf(mostAdditions, func(i int) string {
					if i%2 == 1 {
						return "orders"
					}
					return fresh(i)
				}, 1)
				args[3] = "1"
				for i := range mostAdditions {
					args[len(args)-2-3*i] = strings.Repeat("i", 4096)
				}
				return args
			}, "",
		},
		"weir_due of a platform with a name without end": {
			nil, functionDue, func(k keys) []string {
				return append([]string{k.events(), k.due(strings.Repeat(":retry:", 1<<14))}, group(k)[2:]...)
			}, func(keys) []any { return []any{0, latest, latest, mostEvents} }, "a platform must have a name of at most 255 bytes",
		},
		"weir_due where somebody has written a megabyte for an event's attempts": {
			func(t *testing.T, s *Stream) {
				waiting(1, 1)(t, s)
				if err := s.redis.HSet(t.Context(), s.keys.attempts("meta"), "1000-0", strings.Repeat("1", 1<<20)+"x").Err(); err != nil {
					t.Fatal(err)
				}
			}, functionDue, group, func(keys) []any { return []any{0, latest, latest, mostEvents} }, "",
		},
		"weir_due of entries with thousands of fields": {
			func(t *testing.T, s *Stream) {
				waiting(100, 1)(t, s)
				if err := s.redis.Del(t.Context(), s.keys.events()).Err(); err != nil {
					t.Fatal(err)
				}
				putFields(t, s, s.keys.events(), 100, 2000)
			}, functionDue, group, func(keys) []any { return []any{0, latest, latest, mostEvents} }, "",
		},
		"weir_replay of records with thousands of fields": {
			func(t *testing.T, s *Stream) { putFields(t, s, s.keys.deliveries(), 100, 2000) },
			functionReplay,
			func(k keys) []string { return append([]string{k.events(), k.deliveries()}, k.retries("meta")...) },
			func(keys) []any { return []any{"meta", "0-0", "head", 1, 1, "head", "1-1", 1, "record"} }, "",
		},
		"weir_retain of entries with thousands of fields": {
			func(t *testing.T, s *Stream) { putFields(t, s, s.keys.events(), 100, 2000) },
			functionRetain, trimKeys, func(keys) []any { return []any{0, 0, 1, mostTrimmed, ""} }, "",
		},
		"weir_erase of the most events, by the most erasures": {
			stored(20_000, 400), functionErase, eraseKeys, func(keys) []any { return eraseOf(eraseCap, erasureCap) }, "",
		},
		"weir_erase of events as large as there are": {
			stored(16, 1<<20), functionErase, eraseKeys, func(keys) []any { return eraseOf(16, 1) }, "",
		},
		"weir_erase of entries with thousands of fields": {
			func(t *testing.T, s *Stream) { putFields(t, s, s.keys.events(), 100, 2000) }, functionErase, eraseKeys,
			func(keys) []any { return eraseOf(100, 1) }, "",
		},
		"weir_erase where all eight buckets have 64 KiB of deduplication keys under each field": {
			func(t *testing.T, s *Stream) {
				stored(300, 400)(t, s)
				fillBuckets(8)(t, s)
				for slot := range dedupSlots {
					for i := range 8 {
						key, field := fmt.Sprint(s.keys.dedup(), ":", slot), fmt.Sprintf("%06d", i)
						if err := s.redis.HSet(t.Context(), key, field, strings.Repeat("restTT", 10_000)).Err(); err != nil {
							t.Fatal(err)
						}
					}
				}
			}, functionErase, eraseKeys, func(keys) []any {
				args := eraseOf(eraseCap, 1)
				for i := range eraseCap {
					digests := ""
					for d := range 8 {
						digests += fmt.Sprintf("%06dREST", d)
					}
					args[3+4*i] = digests
				}
				return args
			}, "",
		},
		"weir_erase where there are as many groups as may be, which hold all events": {
			func(t *testing.T, s *Stream) {
				stored(300, 400)(t, s)
				for i := range 127 { // and meta
					name := fmt.Sprint("group-", i)
					if err := s.redis.XGroupCreate(t.Context(), s.keys.events(), name, "0").Err(); err != nil {
						t.Fatal(err)
					}
					if _, err := s.Read(t.Context(), name, "c", 300, 0); err != nil {
						t.Fatal(err)
					}
				}
			}, functionErase, eraseKeys, func(keys) []any { return eraseOf(eraseCap, erasureCap) }, "",
		},
		"weir_erase where there are thousands of groups": {
			manyGroups, functionErase, eraseKeys, func(keys) []any { return eraseOf(1, 1) }, "the stream has more than 128 groups",
		},
		"weir_requests where somebody asks with megabytes": {
			func(t *testing.T, s *Stream) { put(t, s, s.keys.erasureRequests(), requestField, 16, 1<<20) },
			functionRequests, func(k keys) []string { return []string{k.erasureRequests()} }, func(keys) []any { return []any{mostEvents} }, "",
		},
		"weir_requests of as many as there may be": {
			func(t *testing.T, s *Stream) { put(t, s, s.keys.erasureRequests(), requestField, 2000, 500) },
			functionRequests, func(k keys) []string { return []string{k.erasureRequests()} }, func(keys) []any { return []any{mostEvents} }, "",
		},
		"weir_replace_records of the most entries": {
			func(t *testing.T, s *Stream) { put(t, s, s.keys.deliveries(), recordField, 1000, 4000) },
			functionReplace, func(k keys) []string { return []string{k.deliveries(), k.erasureState("")} }, func(keys) []any {
				args := []any{latest, "meta", "head", mostEvents, mostEvents}
				args[0] = fmt.Sprint(latest, "-0")
				for i := range mostEvents {
					args = append(args, fmt.Sprint(1000+i, "-0"))
				}
				for range mostEvents {
					args = append(args, strings.Repeat("r", 4000))
				}
				for i := range 4000 {
					args = append(args, fmt.Sprint("erasure-", i), 1, "1")
				}
				return args
			}, "",
		},
		"weir_replace_records where somebody has written thousands of fields since": {
			func(t *testing.T, s *Stream) { putFields(t, s, s.keys.deliveries(), 100, 2000) },
			functionReplace, func(k keys) []string { return []string{k.deliveries(), k.erasureState("")} },
			func(keys) []any { return []any{"0-0", "meta", "head", 1, 0, "1-1"} }, "",
		},
		"weir_hide of the most erasures": {
			func(t *testing.T, s *Stream) {
				for i := range mostEvents {
					if err := s.redis.ZAdd(t.Context(), s.keys.openErasures(), redis.Z{Score: 1, Member: fmt.Sprint("erasure-", i)}).Err(); err != nil {
						t.Fatal(err)
					}
				}
			}, functionHide,
			func(k keys) []string {
				return []string{k.openErasures(), k.hiddenErasures(), k.erasureState(""), k.clock()}
			},
			func(keys) []any {
				var args []any
				for i := range mostEvents {
					args = append(args, fmt.Sprint("erasure-", i), 1)
				}
				return args
			}, "",
		},
		"weir_retain where there are thousands of groups": {
			manyGroups, functionRetain, trimKeys, func(keys) []any { return []any{0, 0, 1, mostTrimmed, ""} }, "the stream has more than 128 groups",
		},
		"weir_ensure_group where there are thousands of groups": {
			manyGroups, functionEnsureGroup, group, func(keys) []any { return []any{"meta", "0-0", 0, 0} }, "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			client, ctx := dial(t, redistest.URL(t)), t.Context()
			other := keysOf("default", "other")
			var hundredEach, call least
			for round := 0; round < fewestRounds || round < mostRounds && call.in(hundredEach) > mostAppends; round++ {
				s := client.Stream("default", fmt.Sprint("shop-", round))
				if _, err := s.EnsureGroup(ctx, "meta", GroupState{}); err != nil {
					t.Fatal(err)
				}
				if c.prepare != nil {
					c.prepare(t, s)
				}
				appends := make([][]any, appendsInARound)
				for i := range appends {
					appends[i] = appendOf(50, fresh, 400)
				}
				hundredEach.note(mainThread(t, s, func() error {
					for _, hundred := range appends {
						if err := s.redis.FCall(ctx, functionAppend, appendKeys(other), hundred...).Err(); err != nil {
							return err
						}
					}
					return nil
				}) / appendsInARound)
				args := c.args(s.keys)
				call.note(mainThread(t, s, func() error {
					err := s.redis.FCall(ctx, c.function, c.keys(s.keys), args...).Err()
					if c.refused != "" {
						if err == nil || !strings.Contains(err.Error(), c.refused) {
							t.Fatalf("got %v, want it to be refused: %s", err, c.refused)
						}
						return nil
					}
					return err
				}))
				if err := client.Erase(ctx, "default", fmt.Sprint("shop-", round)); err != nil {
					t.Fatal(err)
				}
			}
			t.Logf("%s, as long as %.1f appends of %s; all rounds: %s", call.min(), call.in(hundredEach), hundredEach.min(), call)
			if call.in(hundredEach) > mostAppends {
				t.Errorf("it takes as long as %.0f appends of a hundred digests, want %d at most", call.in(hundredEach), mostAppends)
			}
		})
	}
}

// A call is measured in a few rounds, and where the least is not within the bound, in more: what is noise goes with them, what is the call's own stays.
const appendsInARound, fewestRounds, mostRounds = 10, 3, 12

// least are measurements of the same. The least of them counts: what else the machine does, and memory that has to be got
// first, only add to a time.
type least []time.Duration

func (l *least) note(took time.Duration) { *l = append(*l, took) }

func (l least) min() time.Duration { return slices.Min(l) }

// in says as long as how many of another it is.
func (l least) in(unit least) float64 { return float64(l.min()) / float64(unit.min()) }

// poisonedArchive has megabytes in each field that is noted of the archive.
func poisonedArchive(t *testing.T, s *Stream) {
	t.Helper()
	for _, field := range []string{"epoch", "events", "records", "lost", "lost:records"} {
		if err := s.redis.HSet(t.Context(), s.keys.archive(), field, strings.Repeat("1", 8<<20)).Err(); err != nil {
			t.Fatal(err)
		}
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
	if err := call(); err != nil && !errors.Is(err, redis.Nil) {
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

// zeros is a batch's id.
var zeros = strings.Repeat("\x00", 16)

// prepareBatch writes what a call with the id zeros remembers.
func prepareBatch(t *testing.T, s *Stream, value string) {
	t.Helper()
	pipe := s.redis.Pipeline()
	for period := range 5 {
		pipe.HSet(t.Context(), fmt.Sprintf("%s:%d:00", s.keys.batches(), period), zeros, value)
	}
	if _, err := pipe.Exec(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// putFields appends entries with so many fields, the ids as of put.
func putFields(t *testing.T, s *Stream, key string, n, fields int) {
	t.Helper()
	values := make([]any, 2*fields)
	for i := range values {
		values[i] = "x"
	}
	pipe := s.redis.Pipeline()
	for i := range n {
		pipe.XAdd(t.Context(), &redis.XAddArgs{Stream: key, ID: fmt.Sprintf("%d-0", 1000+i), Values: values})
	}
	if _, err := pipe.Exec(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func manyGroups(t *testing.T, s *Stream) {
	pipe := s.redis.Pipeline()
	for i := range 5000 {
		pipe.XGroupCreateMkStream(t.Context(), s.keys.events(), fmt.Sprint("g", i), "0")
	}
	if _, err := pipe.Exec(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func stored(n, size int) func(*testing.T, *Stream) {
	return func(t *testing.T, s *Stream) {
		put(t, s, s.keys.events(), "e", n, size)
		for {
			taken := mustRead(t, s, "pod", min(500, max(1, (1<<20)/size)))
			if len(taken) == 0 {
				return
			}
			if err := s.Acknowledge(t.Context(), "meta", taken); err != nil {
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

// identifiersOf are the most identifiers that an event may have, no two of them alike.
func identifiersOf(i int) string {
	told := []byte{1}
	for place := range 12 {
		told = fmt.Appendf(told, "%05d-%02d", i, place)
	}
	return string(told)
}

// fillJoins has all buckets know the identifiers of a number of events.
func fillJoins(events int) func(*testing.T, *Stream) {
	return func(t *testing.T, s *Stream) {
		pipe := s.redis.Pipeline()
		for slot := range dedupSlots {
			pipe.HSet(t.Context(), s.keys.join(), fmt.Sprint(slot), fmt.Sprint(week.Milliseconds()/2-int64(slot), ":", time.Now().UnixMilli()))
			for i := range events {
				for told := identifiersOf(i)[1:]; told != ""; told = told[8:] {
					pipe.HSet(t.Context(), fmt.Sprint(s.keys.join(), ":", slot), told[:8], "somebody\x00\x00\x00\x00\x00\x01")
				}
			}
		}
		if _, err := pipe.Exec(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// fillBuckets makes deduplication keys under numbered fields in all buckets, as many bytes as a call reads at most.
func fillBuckets(fields int) func(*testing.T, *Stream) {
	return func(t *testing.T, s *Stream) {
		ctx := t.Context()
		for slot := range dedupSlots {
			name := fmt.Sprint(week.Milliseconds()/2-int64(slot), ":", time.Now().UnixMilli())
			if err := s.redis.HSet(ctx, s.keys.dedup(), fmt.Sprint(slot), name).Err(); err != nil {
				t.Fatal(err)
			}
			pipe := s.redis.Pipeline()
			for i := range fields {
				pipe.HSet(ctx, fmt.Sprint(s.keys.dedup(), ":", slot), fmt.Sprintf("%06d", i), strings.Repeat("\x01\x02\x03\x04\x00\x01", 3))
			}
			if _, err := pipe.Exec(ctx); err != nil {
				t.Fatal(err)
			}
		}
	}
}
