package lake

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/stream"
)

// purchase is the n-th of many events that look like a shop's.
func purchase(n int) event.Event {
	amount := event.Amount(n)
	id := uuid.UUID{byte(n), byte(n >> 8), byte(n >> 16), 7}
	return event.Event{
		ID: id.String(), DeliveryID: id, Name: "purchase", Value: &amount, Currency: "EUR", OrderID: id.String(),
		ClientID: fmt.Sprint(n%20_000, ".", n%977), User: event.Hashes{event.EmailLower: event.Hash{byte(n), 1, byte(n >> 8)}},
		Contents: []event.Item{{ID: fmt.Sprint("sku-", n%500), Quantity: &amount, Price: &amount, Name: "Lamp"}},
		Context:  event.Context{PageURL: fmt.Sprint("https://shop.example/p/", n%500), UTMSource: "newsletter"},
	}
}

// BenchmarkFile measures how many events a second become rows of files of a size and are put to a server that takes all, the
// bytes of a row, and what the process has in use when a file is ready.
func BenchmarkFile(b *testing.B) {
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			b.Error(err)
		}
	}))
	b.Cleanup(server.Close)
	for _, rows := range []int{10_000, 100_000, 1_000_000} {
		b.Run(fmt.Sprint(rows, " rows"), func(b *testing.B) {
			bucket := NewBucket(BucketOptions{Bucket: "b", Region: "r", Endpoint: server.URL, PathStyle: true, AccessKeyID: "a", SecretAccessKey: "s", Client: server.Client()})
			l := New(bucket, "p/", func(*event.Event, time.Time) bool { return false })
			day, size := Day("2026-11-24"), 0
			runtime.GC()
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			most := uint64(0)
			for b.Loop() {
				encoder := NewEncoder()
				for n := range rows {
					e := purchase(n)
					row, err := RowOf(&e, stream.Position(n)<<20, "default/shop", true)
					if err == nil {
						err = encoder.Add(row)
					}
					if err != nil {
						b.Fatal(err)
					}
				}
				b.StopTimer()
				runtime.GC()
				runtime.ReadMemStats(&after)
				most = max(most, after.HeapAlloc-before.HeapAlloc)
				b.StartTimer()
				data, err := encoder.Close(1)
				if err == nil {
					err = l.Append(context.Background(), day, 0, 1, data)
				}
				if err != nil {
					b.Fatal(err)
				}
				size = len(data)
			}
			b.ReportMetric(float64(rows)*float64(b.N)/b.Elapsed().Seconds(), "events/s")
			b.ReportMetric(float64(size)/float64(rows), "bytes/row")
			b.ReportMetric(float64(most)/(1<<20), "MiB-held")
		})
	}
}
