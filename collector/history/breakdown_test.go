package history_test

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/google/uuid"

	"github.com/weir-dev/weir/collector/analytics"
	"github.com/weir-dev/weir/collector/clickhouse"
	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/event/wire"
	"github.com/weir-dev/weir/collector/history/rows"
	"github.com/weir-dev/weir/collector/history/schema"
	"github.com/weir-dev/weir/collector/stream"
)

// TestABreakdownHasTheLargestOfManyGroups asks for few, for more than a statement lists, and for all.
func TestABreakdownHasTheLargestOfManyGroups(t *testing.T) {
	engine, _, client := distant(t)
	view := analytics.NewView(analytics.Options{Property: property, Currency: "EUR", Logger: slog.New(slog.DiscardHandler)})
	r := rand.New(rand.NewPCG(1, 2))
	var entries []stream.Entry
	var table []rows.Event
	for n := range 2000 {
		e := event.Event{
			DeliveryID: uuid.New(), Name: pick(r, "purchase", "purchase", "refund", "pageview"), ClientID: fmt.Sprint("c", r.IntN(50)),
			Value: new(event.Amount(r.Int64N(50) * 10_000)), Currency: pick(r, "EUR", "EUR", "USD"), Contents: []event.Item{{ID: fmt.Sprint("p", r.IntN(400)), Price: new(event.Amount(r.Int64N(5) * 10_000))}},
		}
		e.ID = e.DeliveryID.String()
		at := stream.At(begin) + stream.Position(n)
		entries, table = append(entries, stream.Entry{Position: at, Data: wire.Encode(&e)}), append(table, rows.FromEvent(property, at, &e))
	}
	if err := view.AddEvents(entries); err != nil {
		t.Fatal(err)
	}
	if err := clickhouse.Insert(t.Context(), client, schema.Events, table, ""); err != nil {
		t.Fatal(err)
	}
	for _, order := range []analytics.Measure{analytics.OrderEvents, analytics.OrderUniqueVisitors, analytics.OrderPurchases, analytics.OrderRevenue} {
		for _, limit := range []int{0, 1, 150, 300, 1000} {
			q := analytics.BreakdownQuery{Range: analytics.Range{To: begin.Add(time.Hour)}, By: analytics.ByProduct, Order: order, Limit: limit}
			want, err := view.Breakdown(t.Context(), q)
			if err != nil {
				t.Fatal(err)
			}
			got, err := engine.Breakdown(t.Context(), q)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got, cmpopts.EquateEmpty(), cmp.Comparer(func(a, b event.Sum) bool { return a == b })); diff != "" {
				t.Errorf("%d by %s (-view +history):\n%s", limit, order, diff)
			}
		}
	}
}
