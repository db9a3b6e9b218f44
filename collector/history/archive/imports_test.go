package archive

import (
	"testing"
	"time"

	"github.com/weir-dev/weir/collector/clickhouse"
	"github.com/weir-dev/weir/collector/clickhouse/clickhousetest"
	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/event/wire"
	"github.com/weir-dev/weir/collector/history/rows"
	"github.com/weir-dev/weir/collector/history/schema"
	"github.com/weir-dev/weir/collector/stream"
)

// beyond is up to where it is noted that the history alone has events.
func (s *shop) beyond() stream.Position {
	s.t.Helper()
	position, err := s.stream.Beyond(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	return position
}

// visit appends an event of a visitor's, who comes from nowhere in particular.
func (s *shop) visit(client string) {
	s.t.Helper()
	e := s.event()
	e.ClientID, e.Context = client, event.Context{}
	if _, err := s.appender.Append(s.t.Context(), []stream.Addition{{Entry: wire.Encode(&e), EventID: e.ID}}); err != nil {
		s.t.Fatal(err)
	}
}

// newestOrigin is where the newest event comes from.
func (s *shop) newestOrigin() string {
	return clickhousetest.Exec(s.t, s.address, "SELECT toString(origin) FROM events ORDER BY at DESC LIMIT 1")
}

func TestWhatIsImportedWhileTheArchiveRunsIsWhereVisitorsComeFrom(t *testing.T) {
	s := newShop(t)
	run(t, s.archiver())
	s.visit("somebody")
	s.settled()
	if origin := s.newestOrigin(); origin != "" {
		t.Fatalf("before the import the visitor comes from %q", origin)
	}
	now, err := s.stream.Now(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	campaign := s.event()
	campaign.ClientID, campaign.Context = "somebody", event.Context{UTMSource: "newsletter", UTMMedium: "email"}
	at := stream.At(now.Add(-time.Hour)) + schema.Imported
	imported := []rows.Event{rows.FromEvent(property, at, &campaign)}
	if err := clickhouse.Insert(t.Context(), s.direct, schema.Events, imported, ""); err != nil {
		t.Fatal(err)
	}
	for _, note := range []gapRow{{Begin: uint64(at)}, {}} {
		if err := clickhouse.Insert(t.Context(), s.direct, schema.Gaps, []gapRow{note}, ""); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "later events come from what was imported", func() bool {
		s.visit("somebody")
		s.settled()
		return s.newestOrigin() != ""
	})
	if got := s.beyond(); got != at {
		t.Errorf("what the history alone has ends at %s, want %s", got, at)
	}
}

func TestWhatWasTrimmedIsNotNotedAsMissing(t *testing.T) {
	s := newShop(t)
	s.append(300)
	stop := run(t, s.archiver())
	s.settled()
	stop()
	for more := true; more; {
		result, err := s.stream.Trim(t.Context(), stream.TrimPolicy{MaxEvents: 100, Archived: true})
		if err != nil {
			t.Fatal(err)
		}
		more = result.More
	}
	run(t, s.archiver())
	s.append(1)
	s.settled()
	if got := s.beyond(); got != 0 {
		t.Errorf("the history has more than Redis up to %s, which trimming itself tells", got)
	}
}
