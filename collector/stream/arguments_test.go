package stream

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"github.com/weir-dev/weir/collector/event/wire"
	"github.com/weir-dev/weir/collector/redisserver/redistest"
)

// The functions that only callers of an older version call.
const (
	functionDue    = "weir_due"
	functionLease  = "weir_lease"
	functionSettle = "weir_settle"
	functionTrim   = "weir_trim"
)

// call is a function of the library with keys and arguments that it takes.
type call struct {
	keys []string
	args []any
	// repeated is how many of the last arguments belong to one event, 0 where it takes none.
	repeated int
	// empty are the numbers of arguments that may be "", and events is behind how many there need be no more.
	empty  []int
	events int
	// free are the numbers of arguments that may be any short text: names and encoded records.
	free []int
}

func callsOf(k keys) map[string]call {
	retries, digest := k.retries("meta"), strings.Repeat("d", fieldSize)
	return map[string]call{
		functionAppend: {
			keys:  []string{k.events(), k.dedup(), k.batches(), k.clock(), k.join(), k.seal(wire.Device), k.seal(wire.Identity)},
			args:  []any{1000, 1, strings.Repeat("b", 16), "", 1000, 1, "", "", digest, "rest", "entry", "", "\x01" + strings.Repeat("i", 8)},
			free:  []int{3, 10},
			empty: []int{6, 7, 12},
		},
		functionAllow:        {keys: []string{k.rate(0)}, args: []any{10, 1}},
		functionEnsureGroup:  {keys: append([]string{k.events()}, retries...), args: []any{"meta", "0-0", 0, 0, "1-1", 0}, repeated: 2, empty: []int{1}, events: 4},
		functionDestroyGroup: {keys: append([]string{k.events()}, retries...), args: []any{"meta"}},
		functionTake:         {keys: append([]string{k.events()}, retries...), args: []any{1, 2, 3, 1}},
		functionDue:          {keys: append([]string{k.events()}, retries...), args: []any{1, 2, 3, 1}},
		functionLease:        {keys: append([]string{k.events()}, retries...), args: []any{1, 2, 3, 1}},
		functionConclude: {
			keys: append([]string{k.events(), k.deliveries()}, retries...),
			args: []any{"meta", "head", "1-1", "1-1", "1-1", 1, 1, "record", "1 ticket", strings.Repeat("d", digestSize) + "refund 0"}, repeated: 6,
			empty: []int{5, 8, 9}, free: []int{1, 7},
		},
		functionRefund: {
			keys: []string{k.events(), k.due("meta")}, args: []any{"meta", strings.Repeat("d", digestSize), "1-1", 1, "EUR", 1, 1}, free: []int{1, 4}, empty: []int{4},
		},
		functionSettle: {
			keys: append([]string{k.events(), k.deliveries()}, retries...),
			args: []any{"meta", "head", "1-1", "1-1", "1-1", 1, 1, "record"}, repeated: 4, empty: []int{5}, free: []int{1, 7},
		},
		functionReplay: {
			keys: append([]string{k.events(), k.deliveries()}, retries...),
			args: []any{"meta", "0-0", "head", 1, 1, "head", "1-1", 1, "record"}, repeated: 3, events: 6, free: []int{2, 5, 8},
		},
		functionReplayPast: {
			keys: append([]string{k.events(), k.deliveries()}, retries...),
			args: []any{"meta", "0-0", "head", 1, 1, "head", "1-1", 1, "record"}, repeated: 3, events: 6, free: []int{2, 5, 8},
		},
		functionTrim: {
			keys: []string{k.events(), k.deliveries(), k.retryPrefix(), k.dedup(), k.clock(), k.join()}, args: []any{1_000_000_000, 1_000_000_000, 0, 1000}, empty: []int{0, 1},
		},
		functionRetain: {
			keys: []string{k.events(), k.deliveries(), k.retryPrefix(), k.dedup(), k.clock(), k.join(), k.archive()}, args: []any{1_000_000_000, 1_000_000_000, 0, 1000, "1"},
			empty: []int{0, 1, 4},
		},
		functionArchiveBegin: {keys: []string{k.archive()}},
		functionArchiveNote: {
			keys: []string{k.archive()}, args: []any{1, 1, "events", "1-1", "1-1", "token"}, repeated: 4, events: 2, empty: []int{1, 4, 5}, free: []int{5},
		},
		functionSeal: {keys: []string{k.clock(), k.seal(wire.Device)}, args: []any{1, strings.Repeat("k", keyNameSize+wire.SecretSize)}},
		functionDrop: {
			keys: []string{k.clock(), k.seal(wire.Device), k.seal(wire.Identity), k.sealDropped()}, args: []any{1_000_000_000, 1_000_000_000},
		},
		functionRequests: {keys: []string{k.erasureRequests()}, args: []any{10}},
		functionErase: {
			keys:     []string{k.events(), k.deliveries(), k.retryPrefix(), k.dedup(), k.erasureState("")},
			args:     []any{1, "1-1", strings.Repeat("p", 9), strings.Repeat("d", digestSize), "\x01", "4-1", "head"},
			repeated: 2, empty: []int{3}, free: []int{5, 6},
		},
		functionReplace: {
			keys: []string{k.deliveries(), k.erasureState("")}, args: []any{"0-0", "meta", "head", 1, 1, "1-1", "records", "4-1", 1, "1"},
			repeated: 3, empty: []int{1, 9}, events: 7, free: []int{2, 6, 7},
		},
		functionHide: {
			keys: []string{k.openErasures(), k.hiddenErasures(), k.erasureState(""), k.clock()}, args: []any{"4-1", 1}, repeated: 2, free: []int{0},
		},
		functionCount: {
			keys: []string{k.hourCounts(time.Unix(0, 0))}, args: []any{1000, "0ours", 1, "#", "@ours", 64, "0\x00"}, repeated: 6, free: []int{1, 3, 4, 6},
		},
		functionLook: {keys: []string{k.clock()}, args: []any{1, 1}, empty: []int{0}},
	}
}

// TestFunctionsRefuseAbsurdArguments calls each function as somebody would who means harm. Each call ends soon with an
// error, or does nothing, and leaves what is there as it is.
func TestFunctionsRefuseAbsurdArguments(t *testing.T) {
	client := dial(t, redistest.URL(t))
	s := client.Stream("default", "shop")
	fill(t, s, 20)
	s2 := client.Stream("default", "shop2")
	fill(t, s2, 1)
	if _, err := s.EnsureGroup(t.Context(), "meta", GroupState{}); err != nil {
		t.Fatal(err)
	}
	if err := s.redis.Set(t.Context(), s.keys.paused("crm"), "of another type", 0).Err(); err != nil {
		t.Fatal(err)
	}
	before := dump(t, s)
	listed, err := s.redis.FunctionList(t.Context(), redis.FunctionListQuery{LibraryNamePattern: libraryName}).Result()
	if err != nil {
		t.Fatal(err)
	}
	calls := callsOf(s.keys)
	for _, function := range listed[0].Functions {
		if _, found := calls[function.Name]; !found {
			t.Errorf("%s is not tested", function.Name)
		}
	}
	for name, fine := range calls {
		t.Run(name, func(t *testing.T) {
			tries := 0
			try := func(what string, keys []string, args []any) {
				t.Helper()
				tries++
				began := time.Now()
				err := s.redis.FCall(t.Context(), name, keys, args...).Err()
				if err == nil || !strings.HasPrefix(err.Error(), "ERR Weir: ") && !strings.HasPrefix(err.Error(), "NOKEY Weir: ") {
					t.Errorf("%s: %v, want an error that says what would be right", what, err)
				}
				if took := time.Since(began); took > time.Second {
					t.Errorf("%s: took %s", what, took)
				}
			}
			for i := range fine.args {
				for _, absurd := range absurdities(fine, i) {
					if absurd == "" && slices.Contains(fine.empty, i) {
						continue
					}
					args := slices.Clone(fine.args)
					args[i] = absurd
					try(fmt.Sprintf("argument %d is %.40q", i, absurd), fine.keys, args)
				}
				if i != fine.events || i == 0 {
					try(fmt.Sprintf("argument %d and those behind it are missing", i), fine.keys, fine.args[:i])
				}
			}
			if fine.repeated > 0 || name == functionAppend {
				many := slices.Clone(fine.args)
				for range 10_000 {
					many = append(many, fine.args[max(0, len(fine.args)-max(fine.repeated, 3)):]...)
				}
				try("20,000 arguments and more", fine.keys, many)
				try("an argument too many", fine.keys, append(slices.Clone(fine.args), "1"))
			}
			for i, key := range fine.keys {
				for _, other := range []string{
					"", "junk", s.keys.prefix + "junk", s.keys.paused("crm"), s2.keys.events(), key + "x", "weir:{}:events", strings.Repeat("k", 1<<20),
				} {
					keys := slices.Clone(fine.keys)
					keys[i] = other
					try(fmt.Sprintf("key %d is %.40q", i, other), keys, fine.args)
				}
				try(fmt.Sprintf("key %d and those behind it are missing", i), fine.keys[:i], fine.args)
			}
			try("one key twice", append(slices.Clone(fine.keys), fine.keys[0]), fine.args)
			if tries < 10 {
				t.Errorf("%d calls", tries)
			}
		})
	}
	if diff := cmp.Diff(before, dump(t, s)); diff != "" {
		t.Errorf("what Redis has (-before +after):\n%s", diff)
	}
	stats, err := s.redis.Info(t.Context(), "commandstats").Result()
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(stats, "cmdstat_fcall:") || client.Ping(t.Context()) != nil {
		t.Error("Redis does not answer any more")
	}
}

// absurdities are values that an argument must not have.
func absurdities(c call, i int) []any {
	huge := strings.Repeat("9", 3<<20)
	if slices.Contains(c.free, i) {
		if c.args[i] == "" {
			return nil // any text says yes or no
		}
		return []any{huge}
	}
	all := []any{
		"-99999999999999999", "99999999999999999", "1.5", "1e3", "0x10", "nan", "-nan", "inf", "-inf", " 1", "1 ", "one", "\x00", "1\n", "٣", huge, "1-1-1", "-",
	}
	switch text := c.args[i].(type) {
	case string:
		if text == "meta" {
			return []any{"", huge, strings.Repeat("m", 256)}
		}
		if text == "" {
			return slices.DeleteFunc(all, func(one any) bool { return one == "\x00" }) // a time, or an id beside which there would be a digest more
		}
		// Digests and ids of batches are any bytes, of a length of their own.
		return append(slices.DeleteFunc(all, func(one any) bool { return len(one.(string)) == len(text) }), "")
	default:
		return append(all, "")
	}
}

// TestPoisonedDeduplicationKeysHarmNoOthers has a thief write nonsense where deduplication keys and the allowance are.
func TestPoisonedDeduplicationKeysHarmNoOthers(t *testing.T) {
	for name, poison := range map[string]func(s *Stream) error{
		"names of buckets that are none": func(s *Stream) error {
			return s.redis.HSet(t.Context(), s.keys.dedup(), "0", "x", "1", "0:0", "2", "99999999999999999999:1", "junk", "y").Err()
		},
		"deduplication keys that are cut": func(s *Stream) error {
			sum := newAppendCall([]Addition{addition("id", "order")}, time.Now())
			for _, one := range sum.digests {
				if err := s.redis.HSet(t.Context(), s.keys.dedup()+":0", []byte(one.field), "abc").Err(); err != nil {
					return err
				}
			}
			return s.redis.HSet(t.Context(), s.keys.dedup(), "0", fmt.Sprint(week.Milliseconds()/2, ":", time.Now().UnixMilli())).Err()
		},
		"a megabyte of deduplication keys": func(s *Stream) error {
			sum := newAppendCall([]Addition{addition("id", "order")}, time.Now())
			err := s.redis.HSet(t.Context(), s.keys.dedup()+":0", []byte(sum.digests[0].field), strings.Repeat("abcd\x00\x00", 1<<18)).Err()
			if err != nil {
				return err
			}
			return s.redis.HSet(t.Context(), s.keys.dedup(), "0", fmt.Sprint(week.Milliseconds()/2, ":", time.Now().UnixMilli())).Err()
		},
		"an allowance that is no number": func(s *Stream) error { return s.redis.Set(t.Context(), s.keys.rate(0), "x", 0).Err() },
		"an allowance of nan":            func(s *Stream) error { return s.redis.Set(t.Context(), s.keys.rate(0), "nan", 0).Err() },
		"an allowance used up for ever":  func(s *Stream) error { return s.redis.Set(t.Context(), s.keys.rate(0), "1e300", 0).Err() },
	} {
		t.Run(name, func(t *testing.T) {
			s := newStream(t)
			if err := poison(s); err != nil {
				t.Fatal(err)
			}
			a := newAppender(t, s, AppenderOptions{})
			if got := mustAppend(t, a, addition("id", "order"), addition("other", ""))[1]; got.Duplicate {
				t.Errorf("another event: %+v", got)
			}
			if allowed, err := s.Allow(t.Context(), Rate{EventsPerSecond: 10}, 1); err != nil || !allowed.OK {
				t.Errorf("Allow = %+v, %v", allowed, err)
			}
			if n := len(allEvents(t, s)); n != 2 {
				t.Errorf("%d events are stored, want 2", n)
			}
		})
	}
}

// TestWhatAThiefHasPreparedCostsNoMore has one write what makes a call dear before it calls.
func TestWhatAThiefHasPreparedCostsNoMore(t *testing.T) {
	t.Run("a hundred thousand deduplication keys under a field that is asked for five hundred times", func(t *testing.T) {
		s, ctx := newStream(t), t.Context()
		const field, digests = "abcdef", 500
		opened := fmt.Sprint(week.Milliseconds()/2, ":", time.Now().UnixMilli())
		if err := s.redis.HSet(ctx, s.keys.dedup(), "0", opened).Err(); err != nil {
			t.Fatal(err)
		}
		if err := s.redis.HSet(ctx, s.keys.dedup()+":0", field, strings.Repeat("\x01\x02\x03\x04\x00\x01", 1<<17)).Err(); err != nil {
			t.Fatal(err)
		}
		args := []any{week.Milliseconds(), time.Now().UnixMilli(), "0123456789abcdef", "", 1000, digests, "", ""}
		for range digests {
			args = append(args, field)
		}
		for i := range digests {
			args = append(args, fmt.Sprintf("%04d", i))
		}
		for range digests {
			args = append(args, "e", "", "")
		}
		k := s.keys
		keys := []string{k.events(), k.dedup(), k.batches(), k.clock(), k.join(), k.seal(wire.Device), k.seal(wire.Identity)}
		err := s.redis.FCall(ctx, functionAppend, keys, args...).Err()
		if err == nil || !strings.Contains(err.Error(), "the deduplication keys of these events have more than 4194304 bytes") {
			t.Errorf("got %v, want it to be refused", err)
		}
		if n := s.redis.XLen(ctx, s.keys.events()).Val(); n != 0 {
			t.Errorf("%d events are stored of a call that was refused", n)
		}
	})
	t.Run("an id behind which no reader finds an event", func(t *testing.T) {
		for _, id := range []string{"10000000000000-0", "17592186044416000-5", "18446744073709551615-18446744073709551615"} {
			s, ctx := newStream(t), t.Context()
			if err := s.redis.Do(ctx, "XADD", s.keys.events(), id, "e", "x").Err(); err != nil {
				t.Fatal(err)
			}
			results, err := newAppender(t, s, AppenderOptions{}).Append(ctx, []Addition{addition("a", ""), addition("b", "")})
			if err == nil {
				t.Errorf("behind %s two events are taken: %+v", id, results)
			}
			if n := s.redis.XLen(ctx, s.keys.events()).Val(); n > 2 {
				t.Errorf("behind %s there are %d entries, want no more than one that nobody was promised", id, n-1)
			}
		}
	})
	t.Run("what is no id among the events that wait", func(t *testing.T) {
		s, ctx := newStream(t), t.Context()
		fill(t, s, 20)
		if _, err := s.EnsureGroup(ctx, "meta", GroupState{}); err != nil {
			t.Fatal(err)
		}
		for i, id := range []string{"abc", "-", "", "1-1-1", "99999999999999999999-0", "1-99999999", strings.Repeat("9", 1000)} {
			for _, key := range []string{s.keys.due("meta"), s.keys.open("meta")} {
				if err := s.redis.ZAdd(ctx, key, redis.Z{Score: float64(i - 5), Member: id}).Err(); err != nil {
					t.Fatal(err)
				}
			}
		}
		if due, gone, err := s.Due(ctx, "meta", time.Now(), time.Minute, 100); err != nil || len(due)+len(gone) > 0 {
			t.Errorf("due are %v, gone %v: %v; want nothing", due, gone, err)
		}
		for i := range 150 {
			if err := s.redis.ZAdd(ctx, s.keys.open("meta"), redis.Z{Score: -1, Member: fmt.Sprint("x", i)}).Err(); err != nil {
				t.Fatal(err)
			}
		}
		keys := []string{s.keys.events(), s.keys.deliveries(), s.keys.retryPrefix(), s.keys.dedup(), s.keys.clock(), s.keys.join(), s.keys.archive()}
		for range 3 {
			if err := s.redis.FCall(ctx, functionRetain, keys, 0, 0, 0, 1000, "").Err(); err != nil {
				t.Fatal(err)
			}
		}
		if left := s.redis.ZCard(ctx, s.keys.open("meta")).Val() + s.redis.XLen(ctx, s.keys.events()).Val(); left != 0 {
			t.Errorf("%d events and ids are left, want none", left)
		}
	})
	t.Run("an entry in the memory of batches that would keep it for ever", func(t *testing.T) {
		s, ctx := newStream(t), t.Context()
		var memories []string
		for period := range 5 {
			for shard := range 256 {
				memories = append(memories, fmt.Sprintf("%s:%d:%02x", s.keys.batches(), period, shard))
			}
		}
		for _, memory := range memories {
			if err := s.redis.HSet(ctx, memory, "junk", "").Err(); err != nil {
				t.Fatal(err)
			}
		}
		a := newAppender(t, s, AppenderOptions{})
		mustAppend(t, a, addition("id", ""))
		expiring := 0
		for _, memory := range memories {
			if s.redis.PTTL(ctx, memory).Val() > 0 {
				expiring++
			}
		}
		if expiring != 1 {
			t.Errorf("%d of the memory's hashes expire, want the one that was written to", expiring)
		}
	})
	t.Run("groups without number", func(t *testing.T) {
		s, ctx := newStream(t), t.Context()
		fill(t, s, 500)
		const groups, limit = 50, 1000
		for i := range groups {
			if err := s.redis.XGroupCreate(ctx, s.keys.events(), fmt.Sprint("g", i), "0").Err(); err != nil {
				t.Fatal(err)
			}
		}
		keys := []string{s.keys.events(), s.keys.deliveries(), s.keys.retryPrefix(), s.keys.dedup(), s.keys.clock(), s.keys.join(), s.keys.archive()}
		reply, err := s.redis.FCall(ctx, functionRetain, keys, "", "", 1, limit, "").Slice()
		if err != nil {
			t.Fatal(err)
		}
		if removed, more := reply[0].(int64), reply[1].(int64); removed != limit/groups || more != 1 {
			t.Errorf("%d are removed, and more remain: %d; want the limit by the number of groups, and more", removed, more)
		}
	})
	t.Run("a megabyte where the clock is", func(t *testing.T) {
		s, ctx := newStream(t), t.Context()
		if err := s.redis.Set(ctx, s.keys.clock(), strings.Repeat("1", 1<<20), 0).Err(); err != nil {
			t.Fatal(err)
		}
		if got := mustAppend(t, newAppender(t, s, AppenderOptions{}), addition("id", ""))[0]; got.Duplicate {
			t.Errorf("an event: %+v", got)
		}
	})
}
