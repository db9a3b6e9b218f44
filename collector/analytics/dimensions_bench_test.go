package analytics

import (
	"testing"
	"time"
)

// benchFilters keep some of the benchmarks' events in each dimension.
var benchFilters = []struct {
	name   string
	filter Filter
}{
	{"event", Filter{ByEvent: {"add_to_cart", "purchase"}}},
	{"channel", Filter{ByChannel: {"Paid Search", "Organic Search"}}},
	{"campaign", Filter{ByCampaign: {"campaign 7"}}},
	{"page", Filter{ByPage: {"/pages/7", "/products/P-7"}}},
	{"product", Filter{ByProduct: {"P-7", "P-8"}}},
	{"direct", Filter{ByChannel: {Direct}}},
}

func BenchmarkFilteredSummary(b *testing.B) {
	for _, f := range benchFilters {
		b.Run(f.name, func(b *testing.B) {
			benchmarkQuery(b, func(v *View) error { _, err := v.Summary(b.Context(), lastDays(30), f.filter); return err })
		})
	}
}

func BenchmarkFilteredSeries(b *testing.B) {
	var hours []Range
	for from := lastDays(30).From; from.Before(lastDays(30).To); from = from.Add(time.Hour) {
		hours = append(hours, Range{from, from.Add(time.Hour)})
	}
	for _, f := range benchFilters {
		b.Run(f.name, func(b *testing.B) {
			benchmarkQuery(b, func(v *View) error { _, err := v.Series(b.Context(), hours, f.filter); return err })
		})
	}
}

func BenchmarkBreakdown(b *testing.B) {
	for _, by := range []Dimension{ByEvent, ByChannel, BySource, ByMedium, ByCampaign, ByPage, ByProduct} {
		b.Run(string(by), func(b *testing.B) {
			q := BreakdownQuery{Range: lastDays(30), By: by, Order: OrderEvents, Limit: 1000}
			benchmarkQuery(b, func(v *View) error { _, err := v.Breakdown(b.Context(), q); return err })
		})
	}
}
