package analytics

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"
)

// BenchmarkLookUp looks through all events: of those that are asked for one is the oldest, the others are not there.
func BenchmarkLookUp(b *testing.B) {
	for _, count := range []int{1, 100} {
		ids := func(oldest func(Record) string, other func(n int) string) []string {
			v, _ := filled()
			page, err := v.Listing(b.Context(), ListingQuery{Range: lastDays(30), Events: []string{"purchase"}, Ascending: true, Limit: 1})
			mustNot(b, err)
			list := []string{oldest(page.Records[0])}
			for n := range count - 1 {
				list = append(list, other(n))
			}
			return list
		}
		for name, query := range map[string]func() ListingQuery{
			"event_id": func() ListingQuery {
				return ListingQuery{EventIDs: ids(func(r Record) string { return r.EventID }, func(n int) string { return uuid.UUID{1, byte(n)}.String() })}
			},
			"order_id": func() ListingQuery {
				return ListingQuery{OrderIDs: ids(func(r Record) string { return r.OrderID }, func(n int) string { return fmt.Sprint("B-", n) })}
			},
			"visitor": func() ListingQuery {
				return ListingQuery{Visitors: ids(func(r Record) string { return r.Visitor }, func(n int) string {
					return visitorID("client", fmt.Appendf(nil, "%08x-0000-4000-8000-%012x", n, n*7919))
				})}
			},
		} {
			b.Run(fmt.Sprint(name, "=", count), func(b *testing.B) {
				q := query()
				q.Range, q.AnyClass, q.Limit, q.Count = lastDays(30), true, 1000, true
				benchmarkQuery(b, func(v *View) error { _, err := v.Listing(b.Context(), q); return err })
			})
		}
	}
}

// BenchmarkCount counts all events of a listing of which a page is asked for.
func BenchmarkCount(b *testing.B) {
	benchmarkQuery(b, func(v *View) error {
		_, err := v.Listing(b.Context(), ListingQuery{Range: lastDays(30), Limit: 100, Count: true})
		return err
	})
}

func BenchmarkDeliveries(b *testing.B) {
	for name, length := range map[string]time.Duration{"in all": benchDays * 24 * time.Hour, "days": 24 * time.Hour, "hours": time.Hour} {
		q := DeliveriesQuery{}
		for from := lastDays(benchDays).From; from.Before(lastDays(benchDays).To); from = from.Add(length) {
			q.Ranges = append(q.Ranges, Range{from, from.Add(length)})
		}
		b.Run(name, func(b *testing.B) {
			benchmarkQuery(b, func(v *View) error { _, err := v.Deliveries(b.Context(), q); return err })
		})
	}
}

// someFilters keep some of the events by what stands in their row, and by where their visitor comes from.
var someFilters = map[string]Filter{
	"all": nil, "channel": {ByChannel: {"Paid Search"}}, "campaign": {ByCampaign: {"campaign 7"}}, "page": {ByPage: {"/products/42"}},
	"channel, page, event": {ByChannel: {"Direct", "Paid Search"}, ByPage: {"/products/42"}, ByEvent: {"pageview", "add_to_cart", "purchase"}},
}

func BenchmarkFilteredFunnel(b *testing.B) {
	for _, window := range []time.Duration{0, 24 * time.Hour} {
		for name, filter := range someFilters {
			b.Run(fmt.Sprint("window=", window, "/", name), func(b *testing.B) {
				q := funnelOf(lastDays(30), []string{"pageview", "add_to_cart", "purchase"}, window)
				q.Filter = filter
				benchmarkQuery(b, func(v *View) error { _, err := v.Funnel(b.Context(), q); return err })
			})
		}
	}
	b.Run("alternatives", func(b *testing.B) {
		q := FunnelQuery{Range: lastDays(30), Steps: [][]string{{"pageview", "lead"}, {"add_to_cart", "lead"}, {"purchase", "refund"}}}
		benchmarkQuery(b, func(v *View) error { _, err := v.Funnel(b.Context(), q); return err })
	})
}

func BenchmarkFilteredAttribution(b *testing.B) {
	for _, model := range []Model{FirstTouch, LastTouch, Linear} {
		for name, filter := range someFilters {
			b.Run(fmt.Sprint(model, "/", name), func(b *testing.B) {
				q := AttributionQuery{
					Range: lastDays(30), Model: model, ConversionEvent: "purchase", Lookback: 30 * 24 * time.Hour, GroupBy: ByChannel, Filter: filter,
				}
				benchmarkQuery(b, func(v *View) error { _, err := v.Attribution(b.Context(), q); return err })
			})
		}
	}
}
