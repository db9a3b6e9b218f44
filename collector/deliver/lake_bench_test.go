package deliver

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weir-dev/weir/collector/platforms"
)

// BenchmarkLake measures events a second from a filled stream into files of a local server, settled and all, and the most memory
// that the process has in use meanwhile.
func BenchmarkLake(b *testing.B) {
	for _, rows := range []int{10_000, 100_000} {
		b.Run(fmt.Sprint(rows, " rows a file"), func(b *testing.B) {
			const events = 200_000
			sink := httptest.NewServer(bucketSink())
			b.Cleanup(sink.Close)
			s := newLakeSite(b, func(p *platforms.Platform) { p.S3.RowsPerFile, p.Endpoint = rows, sink.URL })
			var rates []float64
			var most atomic.Uint64
			for round := range b.N {
				s.property.Platforms[0].S3.Prefix = fmt.Sprint("round-", round)
				fill(b, s.harness, events)
				delivered := func() int {
					return int(s.metric("weir_deliveries_total", map[string]string{"platform": "lake", "status": "delivered"}))
				}
				want, start := delivered()+events, time.Now()
				r := s.start("one", func(e *Engine) { e.timing, e.timing.flush = defaultTiming(), time.Nanosecond })
				for delivered() < want {
					var memory runtime.MemStats
					runtime.ReadMemStats(&memory)
					most.Store(max(most.Load(), memory.HeapInuse))
					<-time.After(5 * time.Millisecond)
				}
				rates = append(rates, events/time.Since(start).Seconds())
				r.stop()
			}
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(median(rates), "events/s")
			b.ReportMetric(float64(most.Load())/(1<<20), "MiB-most")
		})
	}
}

// bucketSink takes each object once and forgets it; there is nothing else in it.
func bucketSink() http.Handler {
	var taken sync.Map
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			return
		}
		switch _, again := taken.LoadOrStore(r.URL.Path, true); {
		case r.Method == http.MethodGet:
			_, _ = io.WriteString(w, "<ListBucketResult></ListBucketResult>")
		case again:
			w.WriteHeader(http.StatusPreconditionFailed)
		}
	})
}
