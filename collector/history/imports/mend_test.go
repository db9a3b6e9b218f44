package imports_test

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/weir-dev/weir/collector/analytics"
	"github.com/weir-dev/weir/collector/clickhouse"
	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/history/rows"
	"github.com/weir-dev/weir/collector/stream"
)

// whence is where a row's visitor comes from.
type whence struct {
	At     uint64 `ch:"at"`
	Origin string `ch:"origin"`
	Age    uint32 `ch:"origin_age"`
}

// wanted is where the visitors of rows come from, found out one row after the other.
func wanted(list []rows.Event) []whence {
	latest, found := map[uint64]rows.Event{}, make([]whence, 0, len(list))
	for _, row := range list {
		one := whence{At: row.At}
		if row.Visitor != 0 && row.Touch != "" {
			latest[row.Visitor] = row
		}
		touch, known := latest[row.Visitor]
		if age := stream.Position(row.At).Milliseconds() - stream.Position(touch.At).Milliseconds(); known && row.Visitor != 0 && age <= analytics.TouchLookback.Milliseconds() {
			one.Origin, one.Age = touch.Touch, uint32(age)
		}
		found = append(found, one)
	}
	return found
}

// TestVisitorsComeFromWhereAllTheirEventsTell: also those of events that came in live, before and after those that are imported,
// and as what is prepared beside the rows has it.
func TestVisitorsComeFromWhereAllTheirEventsTell(t *testing.T) {
	for seed := range uint64(2) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 1))
			p := newPlace(t)
			var parts [3][]string
			var live []rows.Event
			begin := time.Date(2026, time.June, 20, 0, 0, 0, 0, time.UTC)
			for n := range 2000 {
				at := begin.Add(time.Duration(r.Int64N(120*24*3_600_000)) * time.Millisecond)
				client, source := fmt.Sprint("c", r.IntN(60)), ""
				if r.IntN(3) == 0 {
					source = fmt.Sprintf(`it's "%d"`, r.IntN(5))
				}
				part := r.IntN(4)
				if part == 3 {
					e := event.Event{ID: fmt.Sprint(n), Name: "seen", ClientID: client, Context: event.Context{UTMSource: source}}
					live = append(live, rows.FromEvent(property, stream.At(at)+stream.Position(n), &e))
					continue
				}
				text := at.Format("2006-01-02T15:04:05.000Z")
				parts[part] = append(parts[part], fmt.Sprintf(`{"type":"track","event":"seen","messageId":"%d","anonymousId":%q,"receivedAt":%q,"context":{"campaign":{"source":%q}}}`, n, client, text, source))
			}
			p.mixed(live)
			for i, lines := range parts {
				p.Memory = 1 << (14 + 6*i)
				p.run(file(t, "a.json", lines...))
			}
			want := wanted(p.events())
			for _, prepared := range []bool{false, true} {
				got, err := clickhouse.Select[whence](context.Background(), p.client, clickhouse.Query{
					SQL:      "SELECT at, origin, origin_age FROM events WHERE visitor >= 0 ORDER BY at",
					Settings: clickhouse.Settings{"optimize_use_projections": prepared},
				})
				if err != nil {
					t.Fatal(err)
				}
				if diff := gocmp.Diff(want, got); diff != "" {
					t.Fatalf("where visitors come from, prepared %t (-want +got):\n%s", prepared, diff)
				}
			}
			p.checkPrepared(want)
		})
	}
}

// mixed adds rows that came in live, in blocks of a month, with the origins that they had without what is imported.
func (p *place) mixed(live []rows.Event) {
	p.t.Helper()
	slices.SortFunc(live, func(a, b rows.Event) int { return cmp.Compare(a.At, b.At) })
	months := map[time.Month][]rows.Event{}
	for i, from := range wanted(live) {
		row := live[i]
		row.Origin, row.OriginAge = from.Origin, from.Age
		month := stream.Position(row.At).Time().Month()
		months[month] = append(months[month], row)
	}
	for _, some := range months {
		p.add(some...)
	}
}

// checkPrepared asks the projection that is in the order of visitors, which it fails without.
func (p *place) checkPrepared(want []whence) {
	p.t.Helper()
	sum := uint64(0)
	for _, one := range want {
		sum += uint64(len(one.Origin))
	}
	got, err := clickhouse.One[uint64](context.Background(), p.client, clickhouse.Query{
		SQL:      "SELECT sum(length(origin)) AS n FROM events WHERE visitor > 0",
		Settings: clickhouse.Settings{"force_optimize_projection": true, "force_optimize_projection_name": "visitors", "optimize_use_projections": true},
	})
	if err != nil {
		p.t.Fatal(err)
	}
	if got != sum {
		p.t.Errorf("the projection's origins have %d bytes in all, want %d", got, sum)
	}
}
