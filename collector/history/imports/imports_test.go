package imports_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-dev/weir/collector/bots"
	"github.com/weir-dev/weir/collector/clickhouse"
	"github.com/weir-dev/weir/collector/clickhouse/clickhousetest"
	"github.com/weir-dev/weir/collector/config"
	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/history/imports"
	"github.com/weir-dev/weir/collector/history/rows"
	"github.com/weir-dev/weir/collector/history/schema"
)

// now is when the tests import.
var now = time.Date(2026, time.November, 20, 14, 30, 0, 0, time.UTC)

const property = "default/shop"

func shop() config.Property {
	return config.Property{
		Namespace: "default", Name: "shop", Currency: "EUR", TimeZone: "Europe/Berlin", JoinIdentities: true,
		Retention: config.Retention{Days: 90}, History: &config.History{RetentionDays: 1100},
		EventAliases: map[string]string{"Bought": "purchase"}, Exclude: config.Exclude{ClientIDs: []string{"staff"}},
	}
}

// exportLine is a line of an export of Weir's own, of an event of a class.
func exportLine(id, class string) string {
	return fmt.Sprintf(`{"event_id":%q,"event":"purchase","received_at":"2026-10-01T00:00:00.123Z","value":"9.90","currency":"EUR","client_id":"c1","class":%q}`, id, class)
}

// place is a history to import into.
type place struct {
	t      testing.TB
	client *clickhouse.Client
	url    string
	imports.Options
	bad []imports.Bad
}

func newPlace(t testing.TB) *place {
	t.Helper()
	return placeAt(t, clickhousetest.Shared(t))
}

func placeAt(t testing.TB, url string) *place {
	t.Helper()
	client, err := clickhouse.Dial(url, clickhouse.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	if _, err := schema.Ensure(t.Context(), client); err != nil {
		t.Fatal(err)
	}
	detector, err := bots.New()
	if err != nil {
		t.Fatal(err)
	}
	p := &place{t: t, client: client, url: url}
	p.Options = imports.Options{
		Property: shop(), Client: client, Bots: detector, Workers: 2, TempDir: t.TempDir(), Now: func() time.Time { return now },
		Bad: func(b imports.Bad) { p.bad = append(p.bad, b) },
	}
	return p
}

// file writes lines to a file.
func file(t testing.TB, name string, lines ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// run imports files.
func (p *place) run(paths ...string) imports.Report {
	p.t.Helper()
	p.Paths = paths
	report, err := imports.Run(context.Background(), p.Options)
	if err != nil {
		p.t.Fatal(err)
	}
	return report
}

// events are all that the history has, in order.
func (p *place) events() []rows.Event {
	p.t.Helper()
	list, err := clickhouse.Select[rows.Event](context.Background(), p.client, clickhouse.Query{SQL: "SELECT * FROM events ORDER BY at"})
	if err != nil {
		p.t.Fatal(err)
	}
	return list
}

func (p *place) exec(sql string) {
	p.t.Helper()
	if err := p.client.Exec(context.Background(), clickhouse.Query{SQL: sql}); err != nil {
		p.t.Fatal(err)
	}
}

// add puts rows into the history as an archive would.
func (p *place) add(list ...rows.Event) {
	p.t.Helper()
	if err := clickhouse.Insert(context.Background(), p.client, schema.Events, list, ""); err != nil {
		p.t.Fatal(err)
	}
}

// track is a message of Segment's at a number of minutes after the first of October 2026.
func track(minute int, id, rest string) string {
	at := time.Date(2026, time.October, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(minute) * time.Minute).Format("2006-01-02T15:04:05.000Z")
	return fmt.Sprintf(`{"type":"track","event":"Seen","messageId":%q,"receivedAt":%q,"timestamp":%q,%s}`, id, at, at, rest)
}

// many are messages of some visitors.
func many(from, to int) (lines []string) {
	for n := from; n < to; n++ {
		lines = append(lines, track(n*7, fmt.Sprint("m", n), fmt.Sprintf(`"anonymousId":"c%d","context":{"campaign":{"source":"s%d"}}`, n%13, n%5)))
	}
	return lines
}

func TestWhatIsImportedAgainIsThereOnce(t *testing.T) {
	all := many(0, 3000)
	for name, again := range map[string][][]string{
		"the same file":                       {all},
		"a part of it":                        {all[100:900]},
		"its parts, the last first":           {all[2000:], all[1000:2000], all[:1000]},
		"the same lines twice in one file":    {append(append([]string{}, all[:50]...), all[:50]...)},
		"the same lines, the last come first": {reversed(all)},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t)
			p.Memory = 1 << 16 // so that they are sorted in files
			first := p.run(file(t, "a.json", all...))
			if first.Imported != 3000 || first.There != 0 {
				t.Fatalf("at first there are %+v", first)
			}
			want := p.events()
			if len(want) != 3000 {
				t.Fatalf("the history has %d events", len(want))
			}
			for _, lines := range again {
				if report := p.run(file(t, "b.json", lines...)); report.Imported != 0 || report.There == 0 {
					t.Errorf("again: %+v", report)
				}
			}
			if diff := cmp.Diff(want, p.events()); diff != "" {
				t.Errorf("the history (-before +after):\n%s", diff)
			}
		})
	}
}

func reversed(lines []string) []string {
	list := make([]string, len(lines))
	for i := range lines {
		list[len(lines)-1-i] = lines[i]
	}
	return list
}

func TestPartsInAnyOrderMakeTheWhole(t *testing.T) {
	all := many(0, 900)
	whole, parts := newPlace(t), newPlace(t)
	whole.run(file(t, "a.json", all...))
	parts.run(file(t, "a.json", all[300:600]...))
	parts.run(file(t, "a.json", all[500:900]...))
	parts.run(file(t, "a.json", all[:400]...))
	if diff := cmp.Diff(whole.events(), parts.events()); diff != "" {
		t.Errorf("the history (-whole +parts):\n%s", diff)
	}
}

func TestAnEventThatCameInLiveIsNotAddedAgain(t *testing.T) {
	p := newPlace(t)
	line := track(1, "order-1", `"anonymousId":"c1"`)
	p.run(file(t, "a.json", line))
	live := p.events()[0]
	p.exec("TRUNCATE TABLE events")
	live.At &^= 1<<20 - 1
	live.At |= 3
	p.add(live)
	if report := p.run(file(t, "b.json", line, track(1, "order-2", `"anonymousId":"c1"`))); report.There != 1 || report.Imported != 1 {
		t.Errorf("report %+v", report)
	}
}

// TestIdsAreToldApartByClass as those of live events are: a test takes no real event's place.
func TestIdsAreToldApartByClass(t *testing.T) {
	human, test, bot := exportLine("dbl-1", "human"), exportLine("dbl-1", "test"), exportLine("dbl-1", "bot")
	for name, runs := range map[string][][]string{
		"in one file":                       {{test, human, bot}},
		"each in an import of its own":      {{test}, {human}, {bot}},
		"the real one first":                {{human}, {bot, test}},
		"together, and each alone again":    {{bot, human, test}, {human}, {test}},
		"and what is there twice counts so": {{test, test, human, human, bot}},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t)
			for _, lines := range runs {
				p.run(file(t, "a.json", lines...))
			}
			got := map[string]int{}
			for _, row := range p.events() {
				got[event.Class(row.Class).String()]++
			}
			if diff := cmp.Diff(map[string]int{"human": 1, "test": 1, "bot": 1}, got); diff != "" {
				t.Errorf("events by class (-want +got):\n%s", diff)
			}
			if report := p.run(file(t, "b.json", bot, test, human)); report.There != 3 || report.Imported != 0 || report.Repeated != 0 {
				t.Errorf("again: %+v", report)
			}
		})
	}
}
