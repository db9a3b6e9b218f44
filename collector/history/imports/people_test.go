package imports_test

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-dev/weir/collector/config"
	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/event/erasure"
	"github.com/weir-dev/weir/collector/event/wire"
	"github.com/weir-dev/weir/collector/history/imports"
	"github.com/weir-dev/weir/collector/history/rows"
	"github.com/weir-dev/weir/collector/redisserver/redistest"
	"github.com/weir-dev/weir/collector/stream"
)

// personsInRedis are whose events are that a Property takes in, in order.
func personsInRedis(t *testing.T, list []event.Event) (persons []uint64) {
	t.Helper()
	client, err := stream.Dial(redistest.URL(t), stream.DialOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	if err := client.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	s := client.Stream("default", "shop")
	metrics, err := stream.NewMetrics(prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	appender := stream.NewAppender(s, stream.AppenderOptions{Window: time.Hour, JoinedFor: 90 * 24 * time.Hour, Logger: slog.New(slog.DiscardHandler), Metrics: metrics})
	for i := range list {
		e := &list[i]
		addition := stream.Addition{Entry: wire.Encode(e), EventID: e.ID, Identifiers: e.Identifiers(property, nil).Packed()}
		if _, err := appender.Append(t.Context(), []stream.Addition{addition}); err != nil {
			t.Fatal(err)
		}
	}
	entries, err := s.ReadEvents(t.Context(), 0, len(list)+1, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		e, err := wire.Decode(entry.Data)
		if err != nil {
			t.Fatal(err)
		}
		person, _ := e.Whose(property)
		persons = append(persons, rows.Number(person))
	}
	return persons
}

func TestVisitorsAreJoinedAsLiveOnesAre(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 5))
	var lines []string
	for n := range 400 {
		rest := `"properties":{"n":1}`
		if r.IntN(4) > 0 {
			rest += fmt.Sprintf(`,"anonymousId":"c%d"`, r.IntN(25))
		}
		if r.IntN(3) == 0 {
			rest += fmt.Sprintf(`,"userId":"u%d"`, r.IntN(15))
		}
		if r.IntN(4) == 0 {
			rest += fmt.Sprintf(`,"context":{"traits":{"email":"p%d@example.com"}}`, r.IntN(15))
		}
		lines = append(lines, track(n, fmt.Sprint("m", n), rest))
	}
	p := newPlace(t)
	apart := shop()
	apart.JoinIdentities = false
	p.Property = apart
	p.run(file(t, "a.json", lines...))
	var list []event.Event
	for _, row := range p.events() {
		e, err := row.Restore()
		if err != nil {
			t.Fatal(err)
		}
		e.Person = event.Person{}
		list = append(list, e)
	}
	want := personsInRedis(t, slices.DeleteFunc(list, func(e event.Event) bool { return len(e.Identifiers(property, nil).List) == 0 }))

	p.exec("TRUNCATE TABLE events")
	p.Property = shop()
	p.run(file(t, "a.json", reversed(lines)...)) // in the order of time, whatever that of the lines
	var got []uint64
	for _, row := range p.events() {
		if row.Visitor != 0 {
			got = append(got, row.Visitor)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("visitors (-in Redis +imported):\n%s", diff)
	}
}

func TestErasedPersonsDoNotComeBack(t *testing.T) {
	var ledger erasure.Ledger
	erase := func(client string, at time.Time, suppress bool) {
		e := event.Event{ClientID: client}
		ledger.Add(erasure.Entry{Digest: ledger.Salt.Digest(e.Identifiers(property, nil).List[0]), At: at, Suppress: suppress})
	}
	second := time.Date(2026, time.October, 1, 0, 2, 0, 0, time.UTC)
	erase("gone", second, false)
	erase("suppressed", second, true)
	p := newPlace(t)
	p.Erased = ledger.Erased
	refreshed := 0
	p.Refresh = func(context.Context) error { refreshed++; return nil }
	report := p.run(file(t, "a.json",
		track(1, "a", `"anonymousId":"gone"`), track(2, "b", `"anonymousId":"gone"`), track(3, "c", `"anonymousId":"gone"`),
		track(3, "d", `"anonymousId":"suppressed"`), track(3, "e", `"anonymousId":"other"`)))
	var got []string
	for _, row := range p.events() {
		got = append(got, row.EventID)
	}
	slices.Sort(got)
	if diff := cmp.Diff([]string{"c", "e"}, got); diff != "" || report.Erased != 3 || refreshed == 0 {
		t.Errorf("report %+v, refreshed %d times; events (-want +got):\n%s", report, refreshed, diff)
	}
}

func TestWhatTellsOfVisitorsIsImportedAsLongAsItIsKept(t *testing.T) {
	p := newPlace(t)
	p.Property.Retention = config.Retention{Days: 90, IdentifiersDays: 30}
	lines := []string{
		track(1, "old", `"anonymousId":"c1","userId":"u1","context":{"page":{"url":"https://shop.example/?gclid=G"}}`),
		track(60*24*30, "young", `"anonymousId":"c1","userId":"u1"`),
	}
	if report := p.run(file(t, "a.json", lines...)); report.Nobodys != 1 || report.Imported != 2 {
		t.Errorf("report %+v", report)
	}
	list := p.events()
	if old := list[0]; old.Visitor != 0 || old.ClientID != "" || old.Identity != "" || len(old.Identifiers) > 0 || old.Touch == "" {
		t.Errorf("the old one is %+v, want one of nobody, who came by a click", old)
	}
	if young := list[1]; young.Visitor == 0 || young.ClientID != "c1" {
		t.Errorf("the young one is %+v, want its visitor's", young)
	}
}

// FuzzALine has any line read as each format: nothing panics, and no error repeats what stands there.
func FuzzALine(f *testing.F) {
	for _, seed := range []string{
		track(1, "secret", `"anonymousId":"secret"`), `{"event_id":"secret","event":"purchase","received_at":"2026-10-01T00:00:00Z","value":"secret","class":"human"}`,
		`{"type":"secret"}`, `{"type":"track","receivedAt":"secret"}`, `secret`, `{"received_at":{"secret":1}}`,
		`{"event_id":"e","event":"x","received_at":"2026-10-01T00:00:00Z","delivery":[{"platform":"secret,","status":"secret","updated_at":"secret"}]}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, line []byte) { imports.CheckLine(t, shop(), now, line) })
}
