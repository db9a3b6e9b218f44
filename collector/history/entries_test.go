package history_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/weir-dev/weir/collector/analytics"
	"github.com/weir-dev/weir/collector/clickhouse/clickhousetest"
	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/event/wire"
	"github.com/weir-dev/weir/collector/history/rows"
	"github.com/weir-dev/weir/collector/stream"
)

func TestWholeEventsAreThoseThatWereArchived(t *testing.T) {
	p := newPastIn(t, clickhousetest.Shared(t), 7, 700)
	positions := []stream.Position{1} // which nobody has ever had
	for _, h := range slices.Backward(p.events) {
		positions = append(positions, h.at)
	}
	entries, err := p.history.Entries(t.Context(), positions)
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) != len(p.events) {
		t.Fatalf("there are %d entries, want %d", len(entries), len(p.events))
	}
	for i, want := range slices.Backward(p.events) {
		entry := entries[len(p.events)-1-i]
		got, err := wire.Decode(entry.Data)
		if err != nil {
			t.Fatal(err)
		}
		if want.at < p.anonymous {
			row := rows.FromEvent(property, want.at, &want.Event)
			row.Visitor, row.ClientID, row.Identity = 0, "", ""
			if want.Event, err = row.Restore(); err != nil {
				t.Fatal(err)
			}
		}
		if diff := cmp.Diff(want, happened{entry.Position, got}, cmp.AllowUnexported(happened{}), cmpopts.IgnoreFields(event.Event{}, "Person"), cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("event %s (-want +got):\n%s", want.at, diff)
		}
	}
	bounds, err := p.history.Bounds(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	first, last := p.events[0].at, p.events[len(p.events)-1].at
	if want := (stream.Bounds{First: first, Last: last, Newest: last, Length: int64(len(p.events)), Added: int64(len(p.events))}); bounds != want {
		t.Errorf("the bounds are %+v, want %+v", bounds, want)
	}
}

func TestAllRecordsOfAnEventAreFound(t *testing.T) {
	p := newPastIn(t, clickhousetest.Shared(t), 8, 200)
	for _, h := range p.events {
		var want []stream.Record
		for _, r := range p.records {
			if r.Event == h.at && r.Status <= stream.Expired {
				want = append(want, r)
			}
		}
		got, err := p.history.Attempts(t.Context(), &analytics.Record{Position: h.at})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("records of %s (-want +got):\n%s", h.at, diff)
		}
	}
}
