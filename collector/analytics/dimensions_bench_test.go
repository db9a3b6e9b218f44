package analytics

import (
	"fmt"
	"slices"
	"syscall"
	"testing"
	"time"
)

// benchFilters keep some of the benchmarks' events in each dimension.
var benchFilters = []Filter{
	{ByEvent: {"add_to_cart", "purchase"}},
	{ByChannel: {"Paid Search", "Organic Search"}},
	{ByChannel: {Direct}},
	{ByCampaign: {"campaign 7"}},
	{ByPage: {"/pages/7", "/products/P-7"}},
	{ByProduct: {"P-7", "P-8"}},
}

// benchmarkBeside asks a query in turn with one that has neither filter nor groups, and reports how many times as long it takes,
// of the fastest each, and how many times as long the processors are busy with it, in the median.
func benchmarkBeside(b *testing.B, plain, query func(*View) error) {
	v, _ := filled()
	var took, busy [2][]time.Duration
	for b.Loop() {
		for i, ask := range []func(*View) error{plain, query} {
			began, beganBusy := time.Now(), processorTime(b)
			if err := ask(v); err != nil {
				b.Fatal(err)
			}
			took[i], busy[i] = append(took[i], time.Since(began)), append(busy[i], processorTime(b)-beganBusy)
		}
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(slices.Min(took[1]).Microseconds())/1000, "ms")
	b.ReportMetric(float64(slices.Min(took[1]))/float64(slices.Min(took[0])), "times-plain")
	b.ReportMetric(float64(middle(busy[1]).Microseconds())/1000, "cpu-ms")
	b.ReportMetric(float64(middle(busy[1]))/float64(middle(busy[0])), "cpu-times-plain")
}

// middle is the median of some times.
func middle(times []time.Duration) time.Duration {
	return slices.Sorted(slices.Values(times))[len(times)/2]
}

// processorTime is how long processors have been busy for the process.
func processorTime(b *testing.B) time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

func BenchmarkFilteredSummary(b *testing.B) {
	for _, filter := range benchFilters {
		ask := func(filter Filter) func(*View) error {
			return func(v *View) error { _, err := v.Summary(b.Context(), lastDays(30), filter); return err }
		}
		b.Run(fmt.Sprint(filter), func(b *testing.B) { benchmarkBeside(b, ask(nil), ask(filter)) })
	}
}

func BenchmarkFilteredSeries(b *testing.B) {
	var days []Range
	for from := lastDays(30).From; from.Before(lastDays(30).To); from = from.AddDate(0, 0, 1) {
		days = append(days, Range{from, from.AddDate(0, 0, 1)})
	}
	for _, filter := range benchFilters {
		ask := func(filter Filter) func(*View) error {
			return func(v *View) error { _, err := v.Series(b.Context(), days, filter); return err }
		}
		b.Run(fmt.Sprint(filter), func(b *testing.B) { benchmarkBeside(b, ask(nil), ask(filter)) })
	}
}

func BenchmarkBreakdown(b *testing.B) {
	for _, by := range []Dimension{ByEvent, ByChannel, BySource, ByMedium, ByCampaign, ByPage, ByProduct} {
		plain := func(v *View) error { _, err := v.Summary(b.Context(), lastDays(30), nil); return err }
		ask := func(v *View) error {
			_, err := v.Breakdown(b.Context(), BreakdownQuery{Range: lastDays(30), By: by, Order: OrderEvents, Limit: 1000})
			return err
		}
		b.Run(string(by), func(b *testing.B) { benchmarkBeside(b, plain, ask) })
	}
}
