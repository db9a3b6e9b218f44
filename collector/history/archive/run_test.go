package archive

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"github.com/weir-dev/weir/collector/clickhouse"
	"github.com/weir-dev/weir/collector/clickhouse/clickhousetest"
	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/event/wire"
	"github.com/weir-dev/weir/collector/redisserver"
	"github.com/weir-dev/weir/collector/redisserver/redistest"
	"github.com/weir-dev/weir/collector/stream"
)

func TestBothStreamsAreCopied(t *testing.T) {
	s := newShop(t)
	s.append(1234)
	s.deliver(s.positions(0))
	run(t, s.archiver())
	s.settled()
	s.complete(s.positions(0), s.recorded())
	s.append(10)
	s.settled()
	s.complete(s.positions(0), s.recorded())
	s.rightOrigins()
}

func TestAPropertyThatIsIdleInsertsNothing(t *testing.T) {
	s := newShop(t)
	proxy := clickhousetest.StartProxy(t, s.address)
	s.through = proxy.URL()
	s.append(3)
	run(t, s.archiver())
	s.settled()
	inserts := func() (n int) {
		for _, sql := range proxy.Requests() {
			if strings.HasPrefix(sql, "INSERT") {
				n++
			}
		}
		return n
	}
	before := inserts()
	for range 5 {
		s.settled() // it goes on looking
	}
	if after := inserts(); after != before || before != 1 {
		t.Errorf("there are %d INSERTs, and %d before nothing happened, want 1", after, before)
	}
}

// TestKilledAtEachStatement lets an archive come as far as each of its statements, kills it there, and starts another.
func TestKilledAtEachStatement(t *testing.T) {
	for name, cut := range map[string]clickhousetest.Fault{"before ClickHouse has it": {CutBefore: true}, "when ClickHouse has answered": {CutAfter: true}} {
		t.Run(name, func(t *testing.T) {
			s := newShop(t)
			proxy := clickhousetest.StartProxy(t, s.address)
			s.through = proxy.URL()
			for at, ended := 1, false; !ended; at++ {
				s.append(250)
				s.deliver(s.positions(0)[len(s.positions(0))-50:])
				ctx, kill := context.WithCancel(t.Context())
				fault, seen := cut, atomic.Int64{}
				fault.Matching = func(sql string) bool {
					if strings.Contains(sql, "system.parts") || seen.Add(1) != int64(at) {
						return false
					}
					kill()
					return true
				}
				proxy.Add(fault)
				done := make(chan struct{})
				go func() { defer close(done); s.archiver().Run(ctx) }()
				now, err := s.stream.Now(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				eventually(t, "the archive is killed, or has archived all", func() bool {
					state, err := s.stream.ArchiveState(t.Context())
					ended = err == nil && ctx.Err() == nil && state.Current.After(now)
					return ctx.Err() != nil || ended
				})
				kill()
				<-done
				proxy.Heal()
			}
			run(t, s.archiver())
			s.settled()
			s.complete(s.positions(0), s.recorded())
			s.rightOrigins()
		})
	}
}

func TestWhateverIsWrongWithClickHousePasses(t *testing.T) {
	insert := func(sql string) bool { return strings.HasPrefix(sql, "INSERT") }
	for name, test := range map[string]struct {
		fault clickhousetest.Fault
		want  Problem
	}{
		"it is away":                      {clickhousetest.Fault{CutBefore: true}, HistoryUnreachable},
		"what answers is something else":  {clickhousetest.Fault{Nonsense: "hello"}, HistoryUnreachable},
		"it denies":                       {clickhousetest.Fault{Code: 516}, HistoryAccessDenied},
		"it lacks a right":                {clickhousetest.Fault{Matching: insert, Code: 497}, HistoryAccessDenied},
		"its disk is full":                {clickhousetest.Fault{Matching: insert, Code: 243}, HistoryDiskFull},
		"its tables take no writes":       {clickhousetest.Fault{Matching: insert, Code: 242}, HistoryUnreachable},
		"it has too many parts":           {clickhousetest.Fault{Matching: insert, Code: 252}, HistoryTooManyParts},
		"the table is missing":            {clickhousetest.Fault{Matching: insert, Code: 60}, HistoryUnreachable},
		"no answer to INSERTs comes back": {clickhousetest.Fault{Matching: insert, CutAfter: true}, HistoryUnreachable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newShop(t)
			proxy := clickhousetest.StartProxy(t, s.address)
			s.through = proxy.URL()
			proxy.Add(test.fault)
			s.append(150)
			a := s.archiver()
			run(t, a)
			eventually(t, "the operator is told", func() bool {
				paused, err := s.stream.PausedPlatforms(t.Context(), []string{stream.ArchiveName})
				return err == nil && paused[stream.ArchiveName] == string(test.want)
			})
			if test.want == HistoryTooManyParts {
				eventually(t, "blocks become fewer", a.pace.pressed)
			}
			s.deliver(s.positions(0))
			s.append(150)
			proxy.Heal()
			s.settled()
			s.complete(s.positions(0), s.recorded())
			if test.want == HistoryTooManyParts {
				eventually(t, "blocks come as usual again", func() bool { return !a.pace.pressed() })
			}
			if n := s.log.count("nothing is archived"); n != 1 {
				t.Errorf("it is logged %d times that nothing is archived, want once:\n%s", n, &s.log.text)
			}
			if s.log.count("the archive goes on") != 1 {
				t.Errorf("it is not logged once that the archive goes on:\n%s", &s.log.text)
			}
		})
	}
}

func TestAnOldClickHouseIsNotWrittenTo(t *testing.T) {
	if got := problemOf(&clickhouse.Problem{Kind: clickhouse.TooOld}); got != HistoryVersionTooOld {
		t.Errorf("the problem is %s, want %s", got, HistoryVersionTooOld)
	}
	if got := problemOf(errors.New("redis: connection refused")); got != RedisUnreachable {
		t.Errorf("the problem is %s, want %s", got, RedisUnreachable)
	}
}

func TestOfTwoArchivesTheLatestWorks(t *testing.T) {
	s := newShop(t)
	s.append(300)
	stopFirst := run(t, s.archiver())
	stopSecond := run(t, s.archiver())
	for range 5 {
		s.append(200)
		s.deliver(s.positions(0)[:50])
	}
	s.settled()
	eventually(t, "one stands by", func() bool { return s.log.count("stands by") == 1 })
	s.complete(s.positions(0), s.recorded())
	stopSecond()
	s.append(200)
	s.settled() // by the first, after a while
	stopFirst()
	s.complete(s.positions(0), s.recorded())
	s.rightOrigins()
	if n := s.log.count("stands by"); n != 1 {
		t.Errorf("%d times one stood by, want once:\n%s", n, &s.log.text)
	}
}

// backup is a Redis's keys.
func backup(t *testing.T, c *redis.Client) (restore func()) {
	t.Helper()
	keys, err := c.Keys(t.Context(), "*").Result()
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]string{}
	for _, key := range keys {
		if values[key], err = c.Dump(t.Context(), key).Result(); err != nil {
			t.Fatal(err)
		}
	}
	return func() {
		t.Helper()
		now, err := c.Keys(t.Context(), "*").Result()
		if err == nil && len(now) > 0 {
			err = c.Del(t.Context(), now...).Err()
		}
		for key, value := range values {
			if err == nil {
				err = c.Restore(t.Context(), key, 0, value).Err()
			}
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestNothingThatIsSomewhereIsLost(t *testing.T) {
	exec := func(t *testing.T, s *shop, sql string) {
		t.Helper()
		clickhousetest.Exec(t, s.address, sql)
	}
	for name, test := range map[string]struct {
		// meanwhile happens while nothing is archived, between two parts of what is; saved is Redis as it was after the first part
		// of the first.
		meanwhile func(t *testing.T, s *shop, c *redis.Client, saved func())
		// forgotten says that Redis has lost the first part, lacks that it has lost something, which the history has.
		forgotten, lacks bool
	}{
		"Redis is restored to a backup": {func(_ *testing.T, _ *shop, _ *redis.Client, saved func()) { saved() }, false, true},
		"Redis is emptied": {func(t *testing.T, _ *shop, c *redis.Client, _ func()) {
			if err := c.FlushAll(t.Context()).Err(); err != nil {
				t.Fatal(err)
			}
		}, true, true},
		"the notes are lost": {func(t *testing.T, _ *shop, c *redis.Client, _ func()) {
			if err := c.Del(t.Context(), "weir:{default/shop}:archive").Err(); err != nil {
				t.Fatal(err)
			}
		}, false, false},
		"the tables are emptied": {func(t *testing.T, s *shop, _ *redis.Client, _ func()) {
			exec(t, s, "TRUNCATE TABLE events")
			exec(t, s, "TRUNCATE TABLE records")
		}, false, false},
		"the tables are restored to a backup": {func(t *testing.T, s *shop, _ *redis.Client, _ func()) {
			middle := s.positions(0)[300]
			exec(t, s, fmt.Sprintf("ALTER TABLE events DELETE WHERE at > %d SETTINGS mutations_sync = 2", uint64(middle)))
			exec(t, s, fmt.Sprintf("ALTER TABLE records DELETE WHERE entry > %d SETTINGS mutations_sync = 2", uint64(s.recorded()[400].Entry)))
		}, false, false},
		"rows are missing in between, and so are the notes": {func(t *testing.T, s *shop, c *redis.Client, _ func()) {
			list := s.positions(0)
			exec(t, s, fmt.Sprintf("ALTER TABLE events DELETE WHERE at > %d AND at <= %d SETTINGS mutations_sync = 2", uint64(list[100]), uint64(list[330])))
			if err := c.Del(t.Context(), "weir:{default/shop}:archive").Err(); err != nil {
				t.Fatal(err)
			}
		}, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			address := redistest.URL(t)
			s := open(t, address, clickhousetest.Shared(t))
			options, err := redis.ParseURL(address)
			if err != nil {
				t.Fatal(err)
			}
			c := redis.NewClient(options)
			t.Cleanup(func() { _ = c.Close() })
			s.append(250)
			s.deliver(s.positions(0))
			stop := run(t, s.archiver())
			s.settled()
			saved := backup(t, c)
			s.append(250)
			s.deliver(s.positions(0)[250:])
			s.settled()
			stop()
			events, records := s.positions(0), s.recorded()
			newest := last(events)
			test.meanwhile(t, s, c, saved)
			s.append(150)
			s.deliver(s.positions(0)[len(s.positions(0))-150:])
			run(t, s.archiver())
			s.settled()
			union := func(a []Place, b []Place) []Place {
				all := slices.Concat(a, b)
				slices.SortFunc(all, func(x, y Place) int { return cmp.Or(cmp.Compare(x.Entry, y.Entry), cmp.Compare(x.Nth, y.Nth)) })
				return slices.Compact(all)
			}
			events = slices.Compact(slices.Sorted(slices.Values(slices.Concat(events, s.positions(0)))))
			s.complete(events, union(records, s.recorded()))
			if left := len(s.positions(0)); test.forgotten != (left == 150) {
				t.Errorf("the stream has %d events", left)
			}
			if got := s.beyond(); got != map[bool]stream.Position{true: newest}[test.lacks] {
				t.Errorf("it is noted that Redis lacks events up to %s, where %s was the last one before", got, newest)
			}
		})
	}
}

func TestABlockLiesInOneMonth(t *testing.T) {
	s := newShop(t)
	end := stream.At(time.Date(2026, 2, 1, 0, 0, 0, 0, time.UTC))
	var entries []stream.Entry
	var records []stream.Record
	for i := range stream.Position(100) {
		e := s.event()
		at := end + (i-50)<<20
		entries = append(entries, stream.Entry{Position: at, Data: wire.Encode(&e)})
		records = append(records, stream.Record{Event: at, Platform: "crm", Status: stream.Delivered, Attempts: 1, At: at.Time()})
	}
	err := s.stream.Import(t.Context(), func(yield func([]stream.Entry, []stream.Record) bool) {
		for i := range entries {
			if !yield(entries[i:i+1], records[i:i+1]) {
				return
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	run(t, s.archiver())
	s.settled()
	s.complete(s.positions(0), s.recorded())
	s.rightOrigins()
}

// gaps are those that the history notes.
func (s *shop) gaps() []gapRow {
	s.t.Helper()
	list, err := clickhouse.Select[gapRow](s.t.Context(), s.direct, clickhouse.Query{SQL: "SELECT begin, end FROM gaps ORDER BY begin"})
	if err != nil {
		s.t.Fatal(err)
	}
	return list
}

func TestWhatIsTrimmedBeforeItIsArchivedIsAGap(t *testing.T) {
	s := newShop(t)
	trim := func(to int64) {
		t.Helper()
		for more := true; more; {
			result, err := s.stream.Trim(t.Context(), stream.TrimPolicy{MaxEvents: to, Archived: true})
			if err != nil {
				t.Fatal(err)
			}
			more = result.More
		}
	}
	s.append(300)
	trim(100) // a past of which a part is gone
	first := s.positions(0)
	stop := run(t, s.archiver())
	s.settled()
	want := []gapRow{{1, uint64(first[0] - 1)}}
	if got := s.gaps(); !slices.Equal(got, want) {
		t.Errorf("the gaps are %v, want %v", got, want)
	}
	stop()
	s.append(400)
	trim(150)
	second := s.positions(0)
	for range 3 {
		stop := run(t, s.archiver())
		s.settled()
		stop()
	}
	want = append(want, gapRow{uint64(last(first) + 1), uint64(second[0] - 1)})
	if got := s.gaps(); !slices.Equal(got, want) {
		t.Errorf("the gaps are %v, want %v", got, want)
	}
	s.complete(slices.Concat(first, second), nil)

	// What goes once it is archived is none.
	run(t, s.archiver())
	s.settled()
	trim(10)
	s.append(20)
	s.settled()
	if got := s.gaps(); !slices.Equal(got, want) {
		t.Errorf("the gaps are %v, want %v", got, want)
	}
}

func TestWhatIsNotArchived(t *testing.T) {
	address := redistest.URL(t)
	s := open(t, address, clickhousetest.Shared(t))
	s.erased = func(e *event.Event, _ time.Time) bool { return e.ClientID == "erased" }
	add := func(e event.Event, entry []byte) stream.Position {
		t.Helper()
		if _, err := s.appender.Append(t.Context(), []stream.Addition{{Entry: entry, EventID: e.ID}}); err != nil {
			t.Fatal(err)
		}
		return last(s.positions(0))
	}
	fine, erased := s.event(), s.event()
	erased.ClientID = "erased"
	unreadable := add(event.Event{ID: uuid.NewString()}, []byte{8, 99})
	hidden := add(erased, wire.Encode(&erased))
	kept := add(fine, wire.Encode(&fine))
	s.deliver([]stream.Position{kept, hidden, unreadable, kept + 5})
	if err := s.stream.Record(t.Context(), "another", []stream.Record{{Event: kept, At: kept.Time()}}); err != nil {
		t.Fatal(err)
	}
	run(t, s.archiver())
	s.settled()
	var records []Place
	for _, place := range s.recorded() {
		if place.Nth == 0 && len(records) < 2 {
			records = append(records, place) // of the event that is kept, on both platforms
		}
	}
	s.complete([]stream.Position{kept}, records)
	s.append(1)
	s.settled()
	if n := s.log.count("an entry is left out of the history"); n != 1 {
		t.Errorf("%d entries are told to be left out, want 1:\n%s", n, &s.log.text)
	}
}

// TestCurrentIsTheTruth looks, again and again while events come, that what was accepted before the time that is noted is there.
func TestCurrentIsTheTruth(t *testing.T) {
	s := newShop(t)
	run(t, s.archiver())
	for range 20 {
		s.append(30)
		state, err := s.stream.ArchiveState(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		there := s.stored("SELECT at AS place, toUInt16(0) AS nth, count() AS n FROM events GROUP BY place")
		for _, p := range s.positions(0) {
			if p.Time().Before(state.Current) && there[Place{Entry: p}] != 1 {
				t.Fatalf("event %s is not there, and all before %s is said to be", p, state.Current)
			}
		}
	}
}

func TestRecordsOfLongAgoFindTheirEvents(t *testing.T) {
	s := newShop(t)
	s.append(400)
	list := s.positions(0)
	stop := run(t, s.archiver())
	s.settled()
	stop()
	s.deliver([]stream.Position{list[0], list[399], list[200]}) // of which nobody has the names in memory
	run(t, s.archiver())
	s.settled()
	s.complete(list, s.recorded())
	unnamed := clickhousetest.Exec(t, s.address, "SELECT count() FROM records AS r LEFT JOIN events AS e ON r.at = e.at WHERE r.name != e.name")
	if unnamed != "0" {
		t.Errorf("%s records have another name than their events", unnamed)
	}
}

func TestRedisThatIsAwayComesBack(t *testing.T) {
	server := redistest.Start(t, redisserver.Options{Persist: true})
	s := open(t, server.URL(), clickhousetest.Shared(t))
	s.append(200)
	run(t, s.archiver())
	s.settled()
	if err := server.Kill(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it is told", func() bool { return s.log.count("nothing is archived") == 1 })
	if err := server.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.append(100)
	s.settled()
	s.complete(s.positions(0), s.recorded())
}
