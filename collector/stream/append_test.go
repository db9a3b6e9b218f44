package stream

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"github.com/weir-dev/weir/collector/event/wire"
	"github.com/weir-dev/weir/collector/redisserver"
	"github.com/weir-dev/weir/collector/redisserver/redistest"
)

func inSpace(space uint8, a Addition) Addition {
	a.IDSpace = space
	return a
}

func TestAppendAnswersDuplicates(t *testing.T) {
	s := newStream(t)
	for name, test := range map[string]struct {
		additions []Addition
		want      []Added
	}{
		"with the first event's id where the event_id repeats": {
			[]Addition{addition("a1", ""), addition("a1", "")},
			[]Added{{"a1", false}, {"a1", true}},
		},
		"with the first event's id where the order_id repeats": {
			[]Addition{addition("b1", "order-b"), addition("b2", "order-b")},
			[]Added{{"b1", false}, {"b1", true}},
		},
		"not where an event_id equals another's order_id": {
			[]Addition{addition("c1", "c2"), addition("c2", "")},
			[]Added{{"c1", false}, {"c2", false}},
		},
		"by event_id where both ids match different events": {
			[]Addition{addition("d1", "order-d1"), addition("d2", "order-d2"), addition("d2", "order-d1")},
			[]Added{{"d1", false}, {"d2", false}, {"d2", true}},
		},
		"without recording the other id of a duplicate": {
			[]Addition{addition("e1", "order-e"), addition("e2", "order-e"), addition("e2", "")},
			[]Added{{"e1", false}, {"e1", true}, {"e2", false}},
		},
		"not where one of the ids was public": {
			[]Addition{public("p1"), addition("p1", ""), public("p1"), addition("p2", ""), public("p2")},
			[]Added{{"p1", false}, {"p1", false}, {"p1", true}, {"p2", false}, {"p2", false}},
		},
		"whatever lies between": {
			[]Addition{addition("f1", ""), addition("f2", "order-f"), addition("f3", ""), addition("f1", "order-g"), addition("f4", "order-f")},
			[]Added{{"f1", false}, {"f2", false}, {"f3", false}, {"f1", true}, {"f2", true}},
		},
		"with a long event id verbatim": {
			[]Addition{addition(strings.Repeat("g", 255), "order-h"), addition("h2", "order-h")},
			[]Added{{strings.Repeat("g", 255), false}, {strings.Repeat("g", 255), true}},
		},
		"not where one is a test with the ids of the real event, whichever comes first": {
			[]Addition{inSpace(3, addition("j1", "order-j")), addition("j1", "order-j"), inSpace(1, addition("j1", "order-j")), addition("j2", "order-j")},
			[]Added{{"j1", false}, {"j1", false}, {"j1", false}, {"j1", true}},
		},
		"where tests repeat each other": {
			[]Addition{inSpace(3, addition("k1", "order-k")), inSpace(3, addition("k2", "order-k")), inSpace(3, addition("k1", ""))},
			[]Added{{"k1", false}, {"k1", true}, {"k1", true}},
		},
		"with an event id of any bytes": {
			[]Addition{addition("1:2:3\x00é", "order-i"), addition("i2", "order-i")},
			[]Added{{"1:2:3\x00é", false}, {"1:2:3\x00é", true}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			for _, together := range []bool{true, false} {
				property := s
				if !together {
					property = &Stream{redis: s.redis, keys: keysOf("one-by-one", "shop")}
				}
				a := newAppender(t, property, AppenderOptions{})
				before := len(allEvents(t, property))
				var got []Added
				if together {
					got = mustAppend(t, a, test.additions...)
				} else {
					for _, one := range test.additions {
						got = append(got, mustAppend(t, a, one)...)
					}
				}
				if diff := cmp.Diff(test.want, got); diff != "" {
					t.Errorf("together=%v: answers (-want +got):\n%s", together, diff)
				}
				fresh := 0
				for _, added := range test.want {
					if !added.Duplicate {
						fresh++
					}
				}
				if stored := len(allEvents(t, property)) - before; stored != fresh {
					t.Errorf("together=%v: %d events stored, want %d", together, stored, fresh)
				}
			}
		})
	}
}

func TestAppendKeepsOrderAndBytes(t *testing.T) {
	s := newStream(t)
	a := newAppender(t, s, AppenderOptions{})
	entry := []byte("\x00\r\n$5\r\n*2\xff")
	mustAppend(t, a, Addition{Entry: entry, EventID: "1"}, Addition{Entry: nil, EventID: "2"}, Addition{Entry: []byte("third"), EventID: "3"})
	var got []string
	for _, e := range allEvents(t, s) {
		got = append(got, string(e.Data))
	}
	if diff := cmp.Diff([]string{string(entry), "", "third"}, got); diff != "" {
		t.Errorf("entries (-want +got):\n%s", diff)
	}
}

func TestAppendIsExactUnderConcurrency(t *testing.T) {
	s := newStream(t)
	replicas := []*Appender{newAppender(t, s, AppenderOptions{}), newAppender(t, s, AppenderOptions{})}
	const callers, ids = 64, 300
	answers := make([][]Added, callers)
	var group sync.WaitGroup
	for caller := range callers {
		group.Go(func() {
			for i := range ids {
				// Every caller sends the same orders under event ids of its own, in another sequence.
				n := (i*7 + caller*13) % ids
				added, err := replicas[caller%2].Append(t.Context(), []Addition{addition(fmt.Sprintf("e-%d-%d", caller, n), fmt.Sprint("o-", n))})
				if err != nil {
					t.Error(err)
					return
				}
				added[0].EventID += fmt.Sprint("/", n)
				answers[caller] = append(answers[caller], added[0])
			}
		})
	}
	group.Wait()
	firsts, fresh := map[string]string{}, map[string]int{}
	for _, list := range answers {
		for _, added := range list {
			id, order, _ := strings.Cut(added.EventID, "/")
			if first, seen := firsts[order]; seen && first != id {
				t.Errorf("order %s was answered %s and %s", order, first, id)
			}
			firsts[order] = id
			if !added.Duplicate {
				fresh[order]++
			}
		}
	}
	for order, n := range fresh {
		if n != 1 {
			t.Errorf("order %s was accepted %d times", order, n)
		}
	}
	if stored := len(allEvents(t, s)); stored != ids || len(firsts) != ids {
		t.Errorf("%d events stored for %d orders, want %d", stored, len(firsts), ids)
	}
}

func TestWindow(t *testing.T) {
	// A bucket's beginning and its end are where a mistake would show.
	bucket := time.UnixMilli(int64(week/2/time.Millisecond) * 5600)
	for name, start := range map[string]time.Time{
		"from a bucket's first millisecond": bucket,
		"from a bucket's last millisecond":  bucket.Add(week/2 - time.Millisecond),
		"from within a bucket":              bucket.Add(31 * time.Hour),
	} {
		t.Run(name, func(t *testing.T) {
			s, c := newStreamAt(t, start)
			a := newAppender(t, s, AppenderOptions{})
			mustAppend(t, a, addition("first", "order"))
			for _, step := range []struct {
				after time.Duration
				want  bool
			}{{0, true}, {time.Hour, true}, {3 * 24 * time.Hour, true}, {week - time.Minute, true}, {week, true}} {
				c.set(start.Add(step.after - time.Millisecond))
				if got := mustAppend(t, a, addition("first", ""))[0]; got.Duplicate != step.want {
					t.Errorf("event_id after %s: duplicate = %v, want %v", step.after, got.Duplicate, step.want)
				}
				if got := mustAppend(t, a, addition("", "order"))[0]; got.EventID != "first" || got.Duplicate != step.want {
					t.Errorf("order_id after %s = %+v, want a duplicate of first", step.after, got)
				}
			}
			c.set(start.Add(week + 2*time.Minute))
			if got := mustAppend(t, a, addition("first", "order"))[0]; got.Duplicate {
				t.Error("two minutes after the window the ids are still recorded")
			}
			if got := mustAppend(t, a, addition("second", "order"))[0]; got.EventID != "first" || !got.Duplicate {
				t.Errorf("the ids are recorded anew: got %+v, want a duplicate of first", got)
			}
		})
	}
}

func TestWindowChangesWithoutForgetting(t *testing.T) {
	for name, test := range map[string]struct {
		from, to time.Duration
		// After the change, an id is asked for when it is so old.
		age  time.Duration
		want bool
	}{
		"a longer one finds what a shorter one recorded":  {24 * time.Hour, week, 23 * time.Hour, true},
		"a shorter one finds what lies within it":         {week, 24 * time.Hour, 23 * time.Hour, true},
		"a shorter one forgets what lies before it":       {week, 24 * time.Hour, 25 * time.Hour, false},
		"a much shorter one finds what lies within it":    {week, time.Hour, 50 * time.Minute, true},
		"a longer one keeps on knowing what it has found": {time.Hour, week, 59 * time.Minute, true},
	} {
		t.Run(name, func(t *testing.T) {
			s, c := newStreamAt(t, time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC))
			a := newAppender(t, s, AppenderOptions{Window: test.from})
			mustAppend(t, a, addition("id", "order"))
			a.SetWindow(test.to)
			c.advance(test.age / 2)
			mustAppend(t, a, addition("other", "other"))
			c.advance(test.age / 2)
			if got := mustAppend(t, a, addition("id", ""))[0].Duplicate; got != test.want {
				t.Errorf("event_id: duplicate = %v, want %v", got, test.want)
			}
			if got := mustAppend(t, a, addition("", "order"))[0].Duplicate; got != test.want {
				t.Errorf("order_id: duplicate = %v, want %v", got, test.want)
			}
		})
	}
}

func TestDeduplicationKeysAreFoundAfterTheClockWasFarAhead(t *testing.T) {
	s, c := newStreamAt(t, time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC))
	a := newAppender(t, s, AppenderOptions{})
	mustAppend(t, a, addition("before", ""))
	c.advance(20 * week)
	mustAppend(t, a, addition("ahead", ""))
	c.advance(-20 * week)
	mustAppend(t, a, addition("back", "order"))
	for _, later := range []time.Duration{0, week / 2, week/2 - time.Minute} {
		c.advance(later)
		if got := mustAppend(t, a, addition("back", ""))[0]; !got.Duplicate {
			t.Errorf("%s later the event_id is new", later)
		}
		if got := mustAppend(t, a, addition("another", "order"))[0]; got.EventID != "back" {
			t.Errorf("%s later the order_id is answered with %+v, want a duplicate of back", later, got)
		}
	}
}

func TestAClockThatIsSetBackALittleOpensNoBuckets(t *testing.T) {
	s, c := newStreamAt(t, time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC))
	a := newAppender(t, s, AppenderOptions{})
	for i := range 50 {
		mustAppend(t, a, addition(fmt.Sprint("id-", i), ""))
		c.advance(-time.Second)
	}
	if got := s.redis.HKeys(t.Context(), s.keys.dedup()).Val(); len(got) != 1 {
		t.Errorf("buckets = %v, want one", got)
	}
	c.advance(week - time.Minute)
	for _, id := range []string{"id-0", "id-49"} {
		if got := mustAppend(t, a, addition(id, ""))[0]; !got.Duplicate {
			t.Errorf("%s is not found", id)
		}
	}
}

func TestDeduplicationKeysGoWithTheirBucket(t *testing.T) {
	s, c := newStreamAt(t, time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC))
	a := newAppender(t, s, AppenderOptions{})
	buckets := func() []string {
		t.Helper()
		keys, err := s.redis.Keys(t.Context(), s.keys.dedup()+":*").Result()
		if err != nil {
			t.Fatal(err)
		}
		return keys
	}
	for i := range 8 {
		mustAppend(t, a, addition(fmt.Sprint("id-", i), fmt.Sprint("order-", i)))
		if got, want := len(buckets()), min(i+1, 3); got != want {
			t.Errorf("%d half windows later: %d buckets, want %d", i, got, want)
		}
		c.advance(week / 2)
	}
	a.SetWindow(time.Hour)
	mustAppend(t, a, addition("in a short window", ""))
	if got := s.redis.HKeys(t.Context(), s.keys.dedup()).Val(); len(got) != 3 {
		t.Errorf("buckets = %v, want two of the window before and the new one", got)
	}
	c.advance(2 * week)
	mustAppend(t, a, addition("long after", ""))
	if got := s.redis.HKeys(t.Context(), s.keys.dedup()).Val(); len(got) != 1 {
		t.Errorf("buckets = %v, want the new one alone", got)
	}
}

func TestIdsWhoseDigestsBeginAlikeAreToldApart(t *testing.T) {
	s := newStream(t)
	// send appends events that have an event_id alone; where order is not "" the last has it, and "first" for an event
	// id.
	send := func(batch, order string, rests ...string) (duplicates []any) {
		t.Helper()
		args := []any{"fcall", functionAppend, appendKeys, s.keys.events(), s.keys.dedup(), s.keys.batches(), s.keys.clock(), s.keys.join(),
			s.keys.seal(wire.Device), s.keys.seal(wire.Identity), week.Milliseconds(), 0, strings.Repeat(batch, 16), "1", week.Milliseconds()}
		events := len(rests)
		if order != "" {
			rests = append(rests, order)
		}
		args = append(args, len(rests), "", "")
		for range rests {
			args = append(args, "begins")
		}
		for _, rest := range rests {
			args = append(args, rest)
		}
		for i := range events {
			id := ""
			if order != "" && i == events-1 {
				id = "first"
			}
			args = append(args, "entry", id, "")
		}
		reply, err := s.redis.Do(t.Context(), args...).Slice()
		if err != nil {
			t.Fatal(err)
		}
		return reply
	}
	for i, step := range []struct {
		sentence string
		order    string
		rests    []string
		want     []any
	}{
		{"two in one batch are new", "", []string{"1111", "2222"}, []any{}},
		{"either is known afterwards, a third is new", "", []string{"2222", "3333", "1111"}, []any{int64(0), "d", "", int64(2), "d", ""}},
		{"an order among them is new", "oooo", []string{"4444"}, []any{}},
		{"and answers with its first event", "oooo", []string{"5555"}, []any{int64(0), "d", "first"}},
		{"what a duplicate brings is not recorded, what lies behind the order's id is found", "", []string{"5555", "3333"}, []any{int64(1), "d", ""}},
		{"one that comes twice in a batch is new once", "", []string{"6666", "6666"}, []any{int64(1), "d", ""}},
	} {
		if diff := cmp.Diff(step.want, send(string(rune('a'+i)), step.order, step.rests...)); diff != "" {
			t.Errorf("%s: exceptions (-want +got):\n%s", step.sentence, diff)
		}
	}
	if n := len(allEvents(t, s)); n != 6 {
		t.Errorf("%d events stored, want 6", n)
	}
}

func TestAppendTakesTheMostAtOnceWithoutForgetting(t *testing.T) {
	s, c := newStreamAt(t, time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC))
	a := newAppender(t, s, AppenderOptions{})
	const events = batchCap
	var additions []Addition
	for i := range events {
		additions = append(additions, addition(fmt.Sprint("id-", i), fmt.Sprint("order-", i)))
	}
	for pass := range 3 {
		for i, added := range mustAppend(t, a, additions...) {
			if added.Duplicate != (pass > 0) || added.EventID != fmt.Sprint("id-", i) {
				t.Fatalf("pass %d: event %d = %+v, want a duplicate: %v", pass, i, added, pass > 0)
			}
		}
		c.advance(week / 2) // the next pass finds them in the bucket before
	}
}

// The streams are trimmed, and so are the deduplication keys: Redis would let them expire by its clock, however that
// was set.
func TestEveryKeyButStreamsAndDeduplicationKeysExpires(t *testing.T) {
	s := newStream(t)
	a := newAppender(t, s, AppenderOptions{})
	for i := range 300 {
		mustAppend(t, a, addition(fmt.Sprint("id-", i), fmt.Sprint("order-", i)))
	}
	if _, err := s.Allow(t.Context(), Rate{EventsPerSecond: 10}, 1); err != nil {
		t.Fatal(err)
	}
	for _, key := range s.redis.Keys(t.Context(), "*").Val() {
		if life := s.redis.PTTL(t.Context(), key).Val(); (life <= 0) != (key == s.keys.events() || strings.HasPrefix(key, s.keys.dedup())) {
			t.Errorf("%s lives for %s", key, life)
		}
	}
}

func TestSequenceNumbersStayWithinAPosition(t *testing.T) {
	s := newStream(t)
	at := time.Now().Add(time.Hour).UnixMilli()
	// The server's clock stands an hour behind the stream's last entry, as after a failover.
	if err := s.redis.Do(t.Context(), "XADD", s.keys.events(), fmt.Sprintf("%d-999999", at), eventField, "old").Err(); err != nil {
		t.Fatal(err)
	}
	a := newAppender(t, s, AppenderOptions{})
	mustAppend(t, a, addition("a", ""), addition("b", ""), addition("c", ""))
	var got []string
	for _, e := range allEvents(t, s) {
		got = append(got, e.Position.String())
	}
	want := []string{fmt.Sprintf("%d-999999", at), fmt.Sprintf("%d-1000000", at), fmt.Sprintf("%d-0", at+1), fmt.Sprintf("%d-1", at+1)}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("positions (-want +got):\n%s", diff)
	}
}

func TestResendAfterAnUnclearAnswer(t *testing.T) {
	for name, test := range map[string]struct {
		lose func(*proxy)
	}{
		"where the connection broke":    {func(p *proxy) { p.swallow.Store(1) }},
		"where three connections broke": {func(p *proxy) { p.swallow.Store(3) }},
		"where the answer did not come": {func(p *proxy) { p.silent.Store(true) }},
	} {
		t.Run(name, func(t *testing.T) {
			server := redistest.Start(t, redisserver.Options{})
			direct := dial(t, server.URL()).Stream("default", "shop")
			p := newProxy(t, server.URL())
			a := newAppender(t, dial(t, p.address).Stream("default", "shop"), AppenderOptions{})
			mustAppend(t, a, addition("warm", "warm"))
			test.lose(p)
			// Half of the ids are new, one is recorded: the resend must answer exactly as the first sending would have.
			var got []Added
			var group sync.WaitGroup
			group.Go(func() {
				var err error
				got, err = a.Append(t.Context(), []Addition{addition("new", "new-order"), addition("", ""), addition("x", "warm")})
				if err != nil {
					t.Error(err)
				}
			})
			eventually(t, "an answer is lost", func() bool { return p.swallowed.Load() > 0 })
			p.silent.Store(false)
			group.Wait()
			if t.Failed() {
				return
			}
			if got[0] != (Added{"new", false}) || got[1].Duplicate || got[2] != (Added{"warm", true}) {
				t.Errorf("answers = %+v, want new, a generated id, a duplicate of warm", got)
			}
			if n := len(allEvents(t, direct)); n != 3 {
				t.Errorf("%d events stored, want 3", n)
			}
		})
	}
}

func TestAppendSurvivesARestartOfRedis(t *testing.T) {
	server := redistest.Start(t, redisserver.Options{Persist: true})
	client := dial(t, server.URL())
	s := client.Stream("default", "shop")
	a := newAppender(t, s, AppenderOptions{})
	var mutex sync.Mutex
	accepted := map[string]bool{}
	stop := make(chan struct{})
	var group sync.WaitGroup
	for caller := range 8 {
		group.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				one := addition(fmt.Sprintf("%d-%d", caller, i), "")
				added, err := a.Append(t.Context(), []Addition{one})
				if err != nil {
					if !errors.Is(err, ErrUnavailable) {
						t.Errorf("Append = %v, want ErrUnavailable", err)
					}
					continue
				}
				if added[0].Duplicate {
					t.Errorf("%s was answered as a duplicate", one.EventID)
				}
				mutex.Lock()
				accepted[string(one.Entry)] = true
				mutex.Unlock()
			}
		})
	}
	count := func() int {
		mutex.Lock()
		defer mutex.Unlock()
		return len(accepted)
	}
	awaitCount := func(n int) {
		t.Helper()
		eventually(t, fmt.Sprintf("%d events are accepted", n), func() bool { return count() >= n })
	}
	for range 2 {
		awaitCount(count() + 200)
		if err := server.Kill(); err != nil {
			t.Fatal(err)
		}
		if err := server.Restart(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	awaitCount(count() + 200)
	close(stop)
	group.Wait()
	stored := map[string]int{}
	for _, e := range allEvents(t, s) {
		stored[string(e.Data)]++
	}
	for entry := range accepted {
		if stored[entry] != 1 {
			t.Errorf("%q was accepted and is stored %d times", entry, stored[entry])
		}
	}
	for entry, n := range stored {
		if n != 1 {
			t.Errorf("%q is stored %d times", entry, n)
		}
	}
}

func TestAppendIsUnavailable(t *testing.T) {
	for name, test := range map[string]struct {
		spoil func(*testing.T, *redisserver.Server, *Stream)
		want  error
	}{
		"when Redis is gone": {func(t *testing.T, server *redisserver.Server, _ *Stream) {
			if err := server.Kill(); err != nil {
				t.Fatal(err)
			}
		}, ErrUnavailable},
		"when Redis hangs": {func(t *testing.T, _ *redisserver.Server, s *Stream) {
			if err := s.redis.ClientPause(t.Context(), 20*time.Second).Err(); err != nil {
				t.Fatal(err)
			}
		}, ErrUnavailable},
		"when Redis is full": {func(t *testing.T, _ *redisserver.Server, s *Stream) {
			if err := s.redis.ConfigSet(t.Context(), "maxmemory", "1").Err(); err != nil {
				t.Fatal(err)
			}
		}, ErrUnavailable},
		"when the library is lost": {func(t *testing.T, _ *redisserver.Server, s *Stream) {
			if err := s.redis.FunctionFlush(t.Context()).Err(); err != nil {
				t.Fatal(err)
			}
		}, ErrLibrary},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := redistest.Start(t, redisserver.Options{})
			s := dial(t, server.URL()).Stream("default", "shop")
			a := newAppender(t, s, AppenderOptions{})
			mustAppend(t, a, addition("warm", ""))
			test.spoil(t, server, s)
			begin := time.Now()
			_, err := a.Append(t.Context(), []Addition{addition("lost", "")})
			if !errors.Is(err, ErrUnavailable) || !errors.Is(err, test.want) {
				t.Errorf("Append = %v, want ErrUnavailable and %v", err, test.want)
			}
			if took := time.Since(begin); took < 1500*time.Millisecond || took > 4*time.Second {
				t.Errorf("it took %s to say so, want about %s", took, appendBudget)
			}
		})
	}
}

func TestAppendWaitsForRoom(t *testing.T) {
	s := newStream(t)
	a := newAppender(t, s, AppenderOptions{})
	mustAppend(t, a, addition("warm", ""))
	if err := s.redis.ConfigSet(t.Context(), "maxmemory", "1").Err(); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() {
		_, err := a.Append(t.Context(), []Addition{addition("waits", "")})
		done <- err
	}()
	eventually(t, "the appender notices that Redis is full", func() bool { return a.outage.Load() != nil })
	if err := s.redis.ConfigSet(t.Context(), "maxmemory", "0").Err(); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Errorf("Append = %v, want that it waits for room", err)
	}
}

// sick makes a Redis hang or be slow. It is a [redis.Hook].
type sick struct {
	hangs atomic.Bool
	delay time.Duration
}

func (*sick) DialHook(next redis.DialHook) redis.DialHook { return next }

func (*sick) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (s *sick) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, command redis.Cmder) error {
		delay := s.delay
		if s.hangs.Load() {
			delay = time.Hour
		}
		select {
		case <-time.After(delay):
			return next(ctx, command)
		case <-ctx.Done():
			command.SetErr(ctx.Err())
			return ctx.Err()
		}
	}
}

// callEvery calls with numbers from 0, at an interval, until ended says so, and returns when all calls have.
func callEvery(interval time.Duration, ended func(n int) bool, call func(n int)) {
	var group sync.WaitGroup
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for n := 0; !ended(n); n++ {
		group.Go(func() { call(n) })
		<-ticker.C
	}
	group.Wait()
}

func TestEveryCallerIsToldInTimeThatRedisHangs(t *testing.T) {
	t.Parallel()
	s := newStream(t)
	a := newAppender(t, s, AppenderOptions{})
	hanging := new(sick)
	hanging.hangs.Store(true)
	s.redis.AddHook(hanging)
	// For longer than a caller waits, so that both batches hang, and those behind them hold callers of all ages.
	began := time.Now()
	callEvery(2*time.Millisecond, func(int) bool { return time.Since(began) > appendBudget+time.Second }, func(n int) {
		begin, ctx, want := time.Now(), t.Context(), appendBudget
		if n%100 == 0 {
			var cancel context.CancelFunc
			want -= 200 * time.Millisecond
			ctx, cancel = context.WithTimeout(ctx, want)
			defer cancel()
		}
		if _, err := a.Append(ctx, []Addition{addition("", "")}); !errors.Is(err, ErrUnavailable) {
			t.Errorf("Append = %v, want ErrUnavailable", err)
		}
		if took := time.Since(begin); took < want || took > want+3*appendAttempt {
			t.Errorf("caller %d was told after %s, want %s and about one attempt", n, took, want)
		}
	})
}

func TestASlowRedisTakesEventsAgainAfterALongOutage(t *testing.T) {
	t.Parallel()
	s := newStream(t)
	a := newAppender(t, s, AppenderOptions{})
	slow := &sick{delay: appendAttempt * 2 / 5}
	slow.hangs.Store(true)
	s.redis.AddHook(slow)
	time.AfterFunc(appendBudget+time.Second, func() { slow.hangs.Store(false) })
	var accepted atomic.Bool
	callEvery(20*time.Millisecond, func(n int) bool { return accepted.Load() || n > 500 }, func(int) {
		if _, err := a.Append(t.Context(), []Addition{addition("", "")}); err == nil {
			accepted.Store(true)
		}
	})
	if !accepted.Load() {
		t.Error("no event is taken any more")
	}
}

func TestAdditionsOfACallerThatHasGoneAreNotSent(t *testing.T) {
	s := newStream(t)
	a := newAppender(t, s, AppenderOptions{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := a.Append(ctx, []Addition{addition("", "")}); !errors.Is(err, ErrUnavailable) {
		t.Errorf("Append of a caller that has gone = %v, want ErrUnavailable", err)
	}
	if stored := allEvents(t, s); len(stored) > 0 {
		t.Errorf("%d events are stored", len(stored))
	}
}

func TestCloseCommitsWhatWasHandedIn(t *testing.T) {
	s := newStream(t)
	a := NewAppender(s, AppenderOptions{Window: week})
	var group sync.WaitGroup
	var accepted sync.Map
	for i := range 200 {
		group.Go(func() {
			if _, err := a.Append(t.Context(), []Addition{addition(fmt.Sprint(i), "")}); err == nil {
				accepted.Store(i, true)
			} else if !errors.Is(err, ErrUnavailable) {
				t.Error(err)
			}
		})
	}
	if err := a.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	group.Wait()
	n := 0
	accepted.Range(func(any, any) bool { n++; return true })
	if stored := len(allEvents(t, s)); stored != n {
		t.Errorf("%d events stored, %d accepted", stored, n)
	}
	if _, err := a.Append(t.Context(), []Addition{addition("late", "")}); !errors.Is(err, ErrUnavailable) {
		t.Errorf("Append after Close = %v, want ErrUnavailable", err)
	}
}

// TestBatchesHoldWholeCalls has many append at once what is, all together, more than Redis is given in one call.
func TestBatchesHoldWholeCalls(t *testing.T) {
	for name, c := range map[string]struct {
		size  int
		count func(caller int) int
	}{
		"many events":  {1, func(caller int) int { return 50 + caller*20 }},
		"large events": {512 << 10, func(int) int { return 2 }},
	} {
		t.Run(name, func(t *testing.T) {
			a, entry := newAppender(t, newStream(t), AppenderOptions{}), bytes.Repeat([]byte("x"), c.size)
			var group sync.WaitGroup
			for caller := range 20 {
				group.Go(func() {
					var additions []Addition
					var want []Added
					for i := range c.count(caller) {
						additions = append(additions, Addition{Entry: entry, EventID: fmt.Sprintf("%d-%d", caller, i)})
						want = append(want, Added{EventID: additions[i].EventID})
					}
					added, err := a.Append(t.Context(), append(additions, additions[1]))
					if diff := cmp.Diff(append(want, Added{additions[1].EventID, true}), added); diff != "" || err != nil {
						t.Errorf("answers of caller %d (-want +got):\n%s%v", caller, diff, err)
					}
				})
			}
			group.Wait()
		})
	}
}
