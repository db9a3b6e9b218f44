package history_test

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/weir-dev/weir/collector/analytics"
	"github.com/weir-dev/weir/collector/clickhouse"
	"github.com/weir-dev/weir/collector/history/forget"
	"github.com/weir-dev/weir/collector/history/rows"
	"github.com/weir-dev/weir/collector/history/schema"
	"github.com/weir-dev/weir/collector/stream"
)

// someDay is the beginning of a day of the past.
func (p *past) someDay() stream.Position {
	return schema.DayOf(stream.At(begin.Add(time.Duration(p.Int64N(p.last.Time().Sub(begin).Milliseconds()+1)) * time.Millisecond)))
}

// TestAnswersAreTheSameBeforeAndAfterWhatIsTooOldLeavesTheTables: they are those of a view that has nothing of it.
func TestAnswersAreTheSameBeforeAndAfterWhatIsTooOldLeavesTheTables(t *testing.T) {
	first := *seed
	if first == 0 {
		first = rand.Uint64()
	}
	kinds := allKinds()
	delete(kinds, "status") // the view has not been told from when on it is complete
	names := slices.Sorted(maps.Keys(kinds))
	for n := range max(1, *questions/50) {
		p := newPast(t, first+uint64(n))
		again := fmt.Sprintf("-seed %d -questions 1", first+uint64(n))
		p.oldest, p.anonymous = p.someDay(), max(p.anonymous, p.someDay())
		p.view = p.viewSince(t, p.oldest)
		f := forget.New(forget.Options{
			Client: p.client, Ledger: &ledgerOf{}, Erasures: &ledgerOf{interrupt: func(stream.HistoryStep) error { return nil }}, Logger: slog.New(slog.DiscardHandler),
			Limits: func(context.Context) (forget.Limits, error) {
				return forget.Limits{Oldest: p.oldest, Anonymous: p.anonymous}, nil
			},
		})
		for _, step := range []func() error{func() error { return nil }, func() error { return steps(t, f) }} {
			if err := step(); err != nil {
				t.Fatalf("%s: %v", again, err)
			}
			for range 15 {
				p.compare(t, pick(p.Rand, names...), again)
			}
		}
		old, err := clickhouse.One[uint64](t.Context(), p.client, clickhouse.Query{
			SQL: "SELECT count() FROM (SELECT at FROM events UNION ALL SELECT at FROM records) WHERE at < {oldest:UInt64}", Parameters: map[string]any{"oldest": uint64(p.oldest)},
		})
		if err != nil || old > 0 {
			t.Fatalf("%s: %d rows are left, %v", again, old, err)
		}
	}
}

// TestAFunnelHasNothingOfWhatIsTooOld: also where what is not kept any more is not nobody's.
func TestAFunnelHasNothingOfWhatIsTooOld(t *testing.T) {
	for seed := range uint64(3) {
		p := newPast(t, seed)
		p.oldest, p.anonymous = p.last, 0
		p.view = p.viewSince(t, p.oldest)
		for range 10 {
			p.compare(t, "funnel", fmt.Sprint("the seed ", seed))
		}
	}
}

// viewSince is a view of the past that has forgotten what was before a position.
func (p *past) viewSince(t *testing.T, oldest stream.Position) *analytics.View {
	t.Helper()
	view := analytics.NewView(analytics.Options{Property: property, Currency: p.currency, Logger: slog.New(slog.DiscardHandler)})
	kept := slices.DeleteFunc(slices.Clone(p.entries), func(one stream.Entry) bool { return slices.Contains(p.erased, one.Position) })
	if err := view.AddEvents(kept); err != nil {
		t.Fatal(err)
	}
	view.AddRecords(p.records)
	view.Forget(max(oldest, p.forgotten))
	view.Anonymize(p.anonymous)
	return view
}

// TestAHistoryThatBeginsWithinAQuarterOfAnHourHasAllVisitorsOfIt: what came before one of its events need not be there any more.
func TestAHistoryThatBeginsWithinAQuarterOfAnHourHasAllVisitorsOfIt(t *testing.T) {
	engine, _, client := distant(t)
	second := begin.Add(10 * time.Minute)
	if err := clickhouse.Insert(t.Context(), client, schema.Events, []rows.Event{
		{At: uint64(stream.At(begin)), Visitor: 7}, {At: uint64(stream.At(second)), Visitor: 7, Since: uint32(10*time.Minute/time.Millisecond) + 1},
		{At: uint64(stream.At(begin.Add(time.Hour))), Visitor: 8},
	}, ""); err != nil {
		t.Fatal(err)
	}
	run(t, client, fmt.Sprint("ALTER TABLE events DELETE WHERE at = ", uint64(stream.At(begin)), " SETTINGS mutations_sync = 2"))
	got, err := engine.Summary(t.Context(), analytics.Range{From: begin, To: begin.Add(2 * time.Hour)}, nil)
	if err != nil || got.Events != 2 || got.UniqueVisitors != 2 {
		t.Errorf("of two events of two visitors there are %d of %d: %v", got.Events, got.UniqueVisitors, err)
	}
}
