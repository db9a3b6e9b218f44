package archive

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-dev/weir/collector/clickhouse"
	"github.com/weir-dev/weir/collector/clickhouse/clickhousetest"
	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/event/wire"
	"github.com/weir-dev/weir/collector/history/schema"
	"github.com/weir-dev/weir/collector/redisserver/redistest"
	"github.com/weir-dev/weir/collector/stream"
)

const property = "default/shop"

// quick is timing in which nothing is waited for long.
func quick() timing {
	return timing{
		delay: 20 * time.Millisecond, longest: time.Second, backoff: 10 * time.Millisecond, mostBackoff: 100 * time.Millisecond,
		beat: 20 * time.Millisecond, measure: 50 * time.Millisecond, imports: 50 * time.Millisecond, standby: 300 * time.Millisecond,
	}
}

// shop is a property with streams and a history.
type shop struct {
	t        testing.TB
	redis    *stream.Client
	stream   *stream.Stream
	appender *stream.Appender
	// address is the URL of the database, through is what archives reach it by.
	address, through string
	direct           *clickhouse.Client
	log              *logged
	limit            int
	made             int
	erased           func(e *event.Event, received time.Time) bool
}

// logged is what archives have logged.
type logged struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logged) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(line)
}

// end is the end of it.
func (l *logged) end() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	text := l.text.String()
	return text[max(0, len(text)-4000):]
}

func (l *logged) count(what string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return bytes.Count(l.text.Bytes(), []byte(what))
}

// open makes a property on servers.
func open(t testing.TB, redisURL, address string) *shop {
	t.Helper()
	client, err := stream.Dial(redisURL, stream.DialOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := client.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	direct, err := clickhouse.Dial(address, clickhouse.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := schema.Ensure(t.Context(), direct); err != nil {
		t.Fatal(err)
	}
	s := &shop{t: t, redis: client, stream: client.Stream("default", "shop"), address: address, through: address, direct: direct, log: &logged{}, limit: 100}
	s.appender = stream.NewAppender(s.stream, stream.AppenderOptions{Window: time.Hour, JoinedFor: time.Hour})
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		if t.Failed() {
			state, err := s.stream.ArchiveState(ctx)
			t.Logf("the archive is at %+v, %v; the end of its log:\n%s", state, err, s.log.end())
		}
		defer cancel()
		_ = s.appender.Close(ctx) // some tests end with a Redis that is away
		_ = client.Close()
		direct.Close()
	})
	return s
}

func newShop(t testing.TB) *shop {
	t.Helper()
	return open(t, redistest.URL(t), clickhousetest.Shared(t))
}

// archiver makes an archive of the shop's, which does not run yet, with a client of its own.
func (s *shop) archiver() *Archive {
	s.t.Helper()
	client, err := clickhouse.Dial(s.through, clickhouse.Options{})
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(client.Close)
	metrics, err := NewMetrics(prometheus.NewRegistry())
	if err != nil {
		s.t.Fatal(err)
	}
	a := New(Options{
		Property: property, Stream: s.redis.Stream("default", "shop").Opening(wire.Identity), Client: client, Erased: s.erased, Metrics: metrics,
		Logger: slog.New(slog.NewTextHandler(s.log, nil)),
	})
	a.timing, a.limit = quick(), s.limit
	a.pace = newPace(quick(), metrics.delayedBy.WithLabelValues())
	return a
}

// run runs an archive until it is stopped, which happens at the end of the test at the latest.
func run(t testing.TB, a *Archive) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		a.Run(ctx)
	}()
	stop = sync.OnceFunc(func() {
		cancel()
		<-done
	})
	t.Cleanup(stop)
	return stop
}

// event makes up an event of some visitor's.
func (s *shop) event() event.Event {
	s.made++
	e := event.Event{
		DeliveryID: uuid.New(), Name: []string{"pageview", "purchase", "lead"}[s.made%3], ClientID: fmt.Sprint("c", s.made%7), Platforms: []string{"meta", "crm"},
	}
	e.ID = e.DeliveryID.String()
	if s.made%5 == 0 {
		e.Context = event.Context{UTMSource: fmt.Sprint("source-", s.made%11), UTMMedium: "cpc"}
	}
	return e
}

// append appends n events.
func (s *shop) append(n int) {
	s.t.Helper()
	if err := s.tryAppend(s.t.Context(), n); err != nil {
		s.t.Fatal(err)
	}
}

func (s *shop) tryAppend(ctx context.Context, n int) error {
	for n > 0 {
		additions := make([]stream.Addition, min(n, 200))
		for i := range additions {
			e := s.event()
			additions[i] = stream.Addition{Entry: wire.Encode(&e), EventID: e.ID}
		}
		if _, err := s.appender.Append(ctx, additions); err != nil {
			return err
		}
		n -= len(additions)
	}
	return nil
}

// deliver notes what became of events on both platforms.
func (s *shop) deliver(positions []stream.Position) {
	s.t.Helper()
	if err := s.tryDeliver(s.t.Context(), positions); err != nil {
		s.t.Fatal(err)
	}
}

func (s *shop) tryDeliver(ctx context.Context, positions []stream.Position) error {
	for _, platform := range []string{"meta", "crm"} {
		for some := range slices.Chunk(positions, 30) {
			var list []stream.Record
			for _, p := range some {
				list = append(list, stream.Record{Event: p, Platform: platform, Status: stream.Delivered, Attempts: 1, Latency: time.Millisecond, At: p.Time().Add(time.Second)})
			}
			if err := s.stream.Record(ctx, platform, list); err != nil {
				return err
			}
		}
	}
	return nil
}

// positions are those of all events that the stream has behind one.
func (s *shop) positions(after stream.Position) []stream.Position {
	s.t.Helper()
	var list []stream.Position
	for {
		entries, err := s.stream.ReadEvents(s.t.Context(), after, 1000, 0)
		if err != nil {
			s.t.Fatal(err)
		}
		if len(entries) == 0 {
			return list
		}
		for _, entry := range entries {
			list = append(list, entry.Position)
		}
		after = last(list)
	}
}

// recorded are the places of all records that the stream has.
func (s *shop) recorded() []Place {
	s.t.Helper()
	var list []Place
	for after := stream.Position(0); ; {
		entries, err := s.stream.ReadRecordEntries(s.t.Context(), after, 1000)
		if err != nil {
			s.t.Fatal(err)
		}
		if len(entries) == 0 {
			return list
		}
		for _, entry := range entries {
			for nth := range entry.Records {
				list = append(list, Place{entry.Position, uint16(nth)})
			}
			after = entry.Position
		}
	}
}

// eventually polls until the condition holds, and fails the test where it does not within two minutes.
func eventually(t testing.TB, what string, condition func() bool) {
	t.Helper()
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	for deadline := time.Now().Add(2 * time.Minute); !condition(); <-ticker.C {
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within two minutes", what)
		}
	}
}

// settled waits until an archive has copied all that there is now. It fails the test where the archive comes no further for two
// minutes.
func (s *shop) settled() {
	s.t.Helper()
	now, err := s.stream.Now(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	var seen stream.ArchiveState
	for done := false; !done; {
		eventually(s.t, "all is archived, or more than before", func() bool {
			state, err := s.stream.ArchiveState(s.t.Context())
			if err != nil {
				return false
			}
			further := state.Events != seen.Events || state.Records != seen.Records
			seen, done = state, state.Current.After(now)
			return done || further
		})
	}
}

// stored is what a table has.
type stored struct {
	Entry uint64 `ch:"place"`
	Nth   uint16 `ch:"nth"`
	Count uint64 `ch:"n"`
}

func (s *shop) stored(sql string) map[Place]uint64 {
	s.t.Helper()
	list, err := clickhouse.Select[stored](s.t.Context(), s.direct, clickhouse.Query{SQL: sql})
	if err != nil {
		s.t.Fatal(err)
	}
	found := map[Place]uint64{}
	for _, one := range list {
		found[Place{stream.Position(one.Entry), one.Nth}] = one.Count
	}
	return found
}

// complete fails unless the history has each of these events, and each record, once, and nothing else.
func (s *shop) complete(events []stream.Position, records []Place) {
	s.t.Helper()
	places := make([]Place, len(events))
	for i, p := range events {
		places[i].Entry = p
	}
	s.each("event", places, s.stored("SELECT at AS place, toUInt16(0) AS nth, count() AS n FROM events GROUP BY place"))
	s.each("record", records, s.stored("SELECT entry AS place, nth, count() AS n FROM records GROUP BY place, nth"))
}

func (s *shop) each(what string, want []Place, got map[Place]uint64) {
	s.t.Helper()
	wrong := 0
	for _, place := range want {
		if got[place] != 1 {
			if wrong++; wrong <= 5 {
				s.t.Errorf("%s %s/%d is there %d times, want once", what, place.Entry, place.Nth, got[place])
			}
		}
	}
	if wrong > 0 {
		s.t.Errorf("of %d %ss %d are not there once", len(want), what, wrong)
	}
	if len(got) != len(want) {
		s.t.Errorf("there are %d %ss, want %d", len(got), what, len(want))
	}
}

// rightOrigins fails unless each event of the history has the origin that it has where all are looked at in their order.
func (s *shop) rightOrigins() {
	s.t.Helper()
	type row struct {
		At      uint64 `ch:"at"`
		Visitor uint64 `ch:"visitor"`
		Touch   string `ch:"touch"`
		Origin  string `ch:"origin"`
		Age     uint32 `ch:"origin_age"`
	}
	list, err := clickhouse.Select[row](s.t.Context(), s.direct, clickhouse.Query{SQL: "SELECT at, visitor, touch, origin, origin_age FROM events ORDER BY at"})
	if err != nil {
		s.t.Fatal(err)
	}
	touches, found := map[uint64]row{}, 0
	for _, one := range list {
		want, age := one.Touch, uint32(0)
		if before, known := touches[one.Visitor]; one.Touch == "" && known && one.Visitor != 0 {
			want, age = before.Touch, uint32(stream.Position(one.At).Milliseconds()-stream.Position(before.At).Milliseconds())
			found++
		}
		if one.Touch != "" {
			touches[one.Visitor] = one
		}
		if one.Origin != want || one.Age != age {
			s.t.Fatalf("event %s comes from %q of %d ms before, want %q of %d", stream.Position(one.At), one.Origin, one.Age, want, age)
		}
	}
	if found == 0 {
		s.t.Error("no event comes from an earlier one")
	}
}
