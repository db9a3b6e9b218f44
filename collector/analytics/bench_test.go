package analytics

import (
	"flag"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/event/wire"
	"github.com/weir-dev/weir/collector/stream"
)

var benchEvents = flag.Int("events", 1_000_000, "how many events the benchmarks' view holds")

// benchDays is how long the benchmarks' events took to come; queries ask for all of them.
const benchDays = 30

// shopper makes up entries as a shop's server would send them: one visitor in twenty events, two platforms, and every second
// page that of one of a thousand products.
type shopper struct {
	*rand.Rand
	total int
	step  time.Duration
}

func newShopper(total int) *shopper {
	return &shopper{rand.New(rand.NewPCG(1, 2)), total, benchDays * 24 * time.Hour / time.Duration(total)}
}

func (s *shopper) uuid() (id uuid.UUID) {
	for i := range id {
		id[i] = byte(s.Uint32())
	}
	return id
}

func (s *shopper) entry(n int) stream.Entry {
	visitor := s.IntN(s.total/20 + 1)
	e := event.Event{
		DeliveryID: s.uuid(), ID: s.uuid().String(), Name: "pageview", Platforms: []string{"meta", "crm"},
		ClientID: fmt.Sprintf("%08x-0000-4000-8000-%012x", visitor, visitor*7919),
		Context:  event.Context{PageURL: fmt.Sprint("https://shop.example/pages/", s.IntN(200))},
	}
	product := fmt.Sprint("P-", s.IntN(1000))
	if s.IntN(2) == 0 {
		e.Context.PageURL, e.ContentID = "https://shop.example/products/"+product, product
	}
	value := event.Amount(s.IntN(20_000)) * 100
	switch p := s.IntN(100); {
	case p < 3:
		e.Name, e.Value, e.Currency, e.OrderID = "purchase", &value, "EUR", fmt.Sprint("A-", n)
		e.Contents = []event.Item{{ID: product, Price: &value}, {ID: fmt.Sprint("P-", s.IntN(1000)), Price: &value}}
	case p < 15:
		e.Name, e.Value, e.Currency = "add_to_cart", &value, "EUR"
		e.Contents = []event.Item{{ID: product, Price: &value}}
	}
	switch s.IntN(10) {
	case 0:
		e.Context.UTMSource, e.Context.UTMMedium, e.Context.UTMCampaign = "google", "cpc", fmt.Sprint("campaign ", s.IntN(50))
	case 1:
		e.Context.Referrer = "https://www.google.com/"
	case 2:
		e.Context.ClickIDs = map[string]string{"fbclid": "IwAR0"}
	}
	return stream.Entry{Position: stream.At(begin.Add(time.Duration(n)*s.step)) + stream.Position(n&1023), Data: wire.Encode(&e)}
}

func (s *shopper) records(entries []stream.Entry) []stream.Record {
	var records []stream.Record
	for _, platform := range []string{"meta", "crm"} {
		for _, entry := range entries {
			latency := time.Duration(40+s.IntN(200)) * time.Millisecond
			records = append(records, stream.Record{
				Event: entry.Position, Platform: platform, Status: stream.Delivered, Attempts: 1, Latency: latency,
				At: entry.Position.Time().Add(latency),
			})
		}
	}
	return records
}

// filled is a view to query, made once for all benchmarks.
var filled = sync.OnceValues(func() (*View, float64) {
	before := heap()
	v := NewView(Options{Property: testProperty, Currency: "EUR", Logger: slog.New(slog.DiscardHandler)})
	s := newShopper(*benchEvents)
	for n := 0; n < *benchEvents; {
		var batch []stream.Entry
		for ; len(batch) < readCount && n < *benchEvents; n++ {
			batch = append(batch, s.entry(n))
		}
		if err := v.AddEvents(batch); err != nil {
			panic(err)
		}
		v.AddRecords(s.records(batch))
	}
	return v, (heap() - before) / float64(*benchEvents)
})

func heap() float64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}

func lastDays(count int) Range {
	to := begin.AddDate(0, 0, benchDays)
	return Range{to.AddDate(0, 0, -count), to}
}

func benchmarkQuery(b *testing.B, query func(*View) error) {
	v, bytes := filled()
	for b.Loop() {
		if err := query(v); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(bytes, "heap-B/event")
}

func BenchmarkSummary(b *testing.B) {
	benchmarkQuery(b, func(v *View) error { _, err := v.Summary(b.Context(), lastDays(30), nil); return err })
}

func BenchmarkDaily(b *testing.B) {
	var days []Range
	for from := lastDays(30).From; from.Before(lastDays(30).To); from = from.AddDate(0, 0, 1) {
		days = append(days, Range{from, from.AddDate(0, 0, 1)})
	}
	benchmarkQuery(b, func(v *View) error { _, err := v.Series(b.Context(), days, nil); return err })
}

func BenchmarkEventStats(b *testing.B) {
	benchmarkQuery(b, func(v *View) error {
		_, err := v.EventStats(b.Context(), StatsQuery{Range: lastDays(30), Limit: 1000})
		return err
	})
}

func BenchmarkFunnel(b *testing.B) {
	steps := []string{"pageview", "add_to_cart", "purchase"}
	for _, window := range []time.Duration{0, 24 * time.Hour, 7 * 24 * time.Hour} {
		b.Run(fmt.Sprint("window=", window), func(b *testing.B) {
			benchmarkQuery(b, func(v *View) error {
				_, err := v.Funnel(b.Context(), funnelOf(lastDays(30), steps, window))
				return err
			})
		})
	}
}

func BenchmarkAttribution(b *testing.B) {
	for _, model := range []Model{FirstTouch, LastTouch, Linear} {
		b.Run(string(model), func(b *testing.B) {
			q := AttributionQuery{Range: lastDays(30), Model: model, ConversionEvent: "purchase", Lookback: 30 * 24 * time.Hour, GroupBy: ByChannel}
			benchmarkQuery(b, func(v *View) error { _, err := v.Attribution(b.Context(), q); return err })
		})
	}
}

func BenchmarkListing(b *testing.B) {
	benchmarkQuery(b, func(v *View) error {
		_, err := v.Listing(b.Context(), ListingQuery{Range: lastDays(1), Limit: 100})
		return err
	})
}

// BenchmarkReplay adds batches of entries, decoding included, and the records of two platforms.
func BenchmarkReplay(b *testing.B) {
	s := newShopper(1_000_000)
	var entries []stream.Entry
	for n := range 100_000 {
		entries = append(entries, s.entry(n))
	}
	records := s.records(entries)
	for b.Loop() {
		v := NewView(Options{Property: testProperty, Currency: "EUR", Logger: slog.New(slog.DiscardHandler)})
		for from := 0; from < len(entries); from += readCount {
			if err := v.AddEvents(entries[from : from+readCount]); err != nil {
				b.Fatal(err)
			}
		}
		v.AddRecords(records)
	}
	b.ReportMetric(float64(len(entries)*b.N)/b.Elapsed().Seconds(), "events/s")
}
