package quality

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

// BenchmarkJudge judges a Property with fifty busy events, of which four have currencies, as a query pod does every five minutes: what
// that takes of the processor, and what it holds of memory.
func BenchmarkJudge(b *testing.B) {
	list := products(60)
	for i := range MostEvents - len(list) {
		list = append(list, product{name: fmt.Sprintf("event %d", i), hourly: 100, client: .9, email: .1, click: .2})
	}
	made := &shop{zone: zone(b, "Europe/Berlin"), products: list, noise: .1, began: simulated.Add(-5 * 7 * 24 * time.Hour)}
	source := newRecord(made)
	if _, err := NewJudge(source, made.zone).At(b.Context(), simulated.Add(time.Hour)); err != nil { // so that all is made up
		b.Fatal(err)
	}
	at := simulated
	before := heap()
	judge := NewJudge(copied{source}, made.zone)
	if _, err := judge.At(b.Context(), at); err != nil {
		b.Fatal(err)
	}
	held := float64(heap() - before)
	for b.Loop() {
		if _, err := judge.At(b.Context(), at); err != nil {
			b.Fatal(err)
		}
		if at = at.Add(SlotLength); at.After(simulated.Add(time.Hour)) {
			at = simulated
		}
	}
	b.ReportMetric(held/1024, "KiB-held") // at the end: the loop forgets it
	runtime.KeepAlive(judge)
}

// heap is how much memory is in use.
func heap() uint64 {
	var stats runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}

// copied gives periods away that nobody else has, as Redis does.
type copied struct{ *record }

func (c copied) Slots(ctx context.Context, starts []time.Time) ([]Period, error) {
	return copies(c.record.Slots(ctx, starts))
}

func (c copied) Hours(ctx context.Context, starts []time.Time) ([]Period, error) {
	return copies(c.record.Hours(ctx, starts))
}

func copies(list []Period, err error) ([]Period, error) {
	for i := range list {
		events := map[string]*Counts{}
		for name, c := range list[i].Events {
			own := *c
			own.Currencies = slices.Clone(c.Currencies)
			events[strings.Clone(name)] = &own
		}
		list[i].Events = events
	}
	return list, err
}

// BenchmarkTally counts an event, as a collector does for each that it is sent.
func BenchmarkTally(b *testing.B) {
	tally := NewTally()
	for b.Loop() {
		tally.Stored(slotStart, tally.Observe(slotStart, "purchase", Traits{Client: true, Email: true, Currency: "EUR"}))
	}
}
