package imports_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/event/document"
	"github.com/weir-dev/weir/collector/history/imports"
	"github.com/weir-dev/weir/collector/history/rows"
	"github.com/weir-dev/weir/collector/stream"
)

var update = flag.Bool("update", false, "write the golden files of testdata/lines anew")

// TestALineBecomesARow has pairs of a line, as Segment, RudderStack or an export of Weir's has it, and what becomes of it.
func TestALineBecomesARow(t *testing.T) {
	paths, err := filepath.Glob("testdata/lines/*.json")
	if err != nil || len(paths) == 0 {
		t.Fatalf("there are no lines: %v", err)
	}
	p := newPlace(t)
	p.SkipBad = 1
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".json"), func(t *testing.T) {
			p.bad = nil
			p.exec("TRUNCATE TABLE events")
			p.exec("TRUNCATE TABLE records")
			report := p.run(path)
			got := told(t, report, p.bad, p.events())
			golden := strings.TrimSuffix(path, ".json") + ".golden"
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("what becomes of the line (-want +got):\n%s", diff)
			}
			if strings.Contains(got, "jane") {
				t.Errorf("it tells of a person: %s", got)
			}
		})
	}
}

// told is what became of a line, as a text.
func told(t *testing.T, report imports.Report, bad []imports.Bad, events []rows.Event) string {
	t.Helper()
	var b strings.Builder
	fmt.Fprintf(&b, "imported %d, no event %d, too old %d, bad %d, records %d\n", report.Imported, report.NoEvents, report.TooOld, report.Bad, report.Records)
	for _, one := range bad {
		fmt.Fprintln(&b, one)
	}
	for i := range events {
		row := &events[i]
		e, err := row.Restore()
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "at %s, imported %t, %s, %s, event_id %q, delivery %s\n", stream.Position(row.At).Time().Format("2006-01-02T15:04:05.000Z"),
			row.At&(1<<19) != 0, row.Name, e.Class, e.ID, e.DeliveryID)
		fmt.Fprintf(&b, "visitor %x, identifiers %x, touch %q, origin %q after %d ms, page %q, platforms %q\n",
			row.Visitor, row.Identifiers, row.Touch, row.Origin, row.OriginAge, row.Page, row.Platforms)
		fmt.Fprintf(&b, "happened %s, value %v %s, order %q, client %q, country %q, e-mail known %t, anonymous %t, address %q, user agent %q\n",
			e.OccurredAt.Format("2006-01-02T15:04:05.000Z"), e.Value, e.Currency, e.OrderID, e.ClientID, e.Country, !e.User.Get(event.EmailLower).IsZero(),
			e.Anonymous, e.Context.IP, e.Context.UserAgent)
		text, err := json.Marshal(map[string]any{"members": document.MembersOf(&e), "context": document.ContextOf(&e.Context)},
			document.Options, jsontext.WithIndent(" "), json.OmitZeroStructFields(true))
		if err != nil {
			t.Fatal(err)
		}
		b.Write(text)
		b.WriteByte('\n')
	}
	return b.String()
}
