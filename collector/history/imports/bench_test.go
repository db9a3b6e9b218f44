package imports_test

import (
	"bufio"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weir-dev/weir/collector/clickhouse/clickhousetest"
	"github.com/weir-dev/weir/collector/history/imports"
)

var benchEvents = flag.Int("import-events", 200_000, "how many events BenchmarkImport imports")

// past writes messages of three years, of as many visitors as a tenth of them, in the order of time as buckets have them.
func past(to io.Writer, events int) error {
	out, r := bufio.NewWriterSize(to, 1<<20), rand.New(rand.NewPCG(7, 7))
	const span = 3 * 365 * 24 * time.Hour
	for n := range events {
		at := now.Add(-span + span/time.Duration(events)*time.Duration(n) - time.Hour)
		text, client := at.Format("2006-01-02T15:04:05.000Z"), r.IntN(1+events/10)
		name, extra := "page", `"name":"Home"`
		if n%20 == 0 {
			name, extra = "track", `"event":"Order Completed","properties":{"order_id":"`+fmt.Sprint(n)+`","total":49.9,"currency":"EUR","products":[{"product_id":"p-1","price":24.95,"quantity":2}]}`
		}
		source := ""
		if n%4 == 0 {
			source = "?utm_source=google&utm_medium=cpc&utm_campaign=c" + fmt.Sprint(r.IntN(50))
		}
		user := "null"
		if client%5 == 0 {
			user = fmt.Sprintf(`"u-%d"`, client)
		}
		fmt.Fprintf(out, `{"type":%q,%s,"messageId":"ajs-next-%d-%x","anonymousId":"anon-%d","userId":%s,"channel":"browser","context":{"ip":"203.0.113.7",`+
			`"library":{"name":"analytics.js","version":"next-1.70.0"},"locale":"de-CH","page":{"path":"/p/%d","referrer":"","search":"%s","title":"A shop","url":"https://shop.example/p/%d%s"},`+
			`"userAgent":"Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/131.0 Safari/537.36"},"integrations":{},`+
			`"originalTimestamp":%q,"sentAt":%q,"timestamp":%q,"receivedAt":%q,"version":2}`+"\n",
			name, extra, at.UnixMilli(), r.Uint64(), client, user, n%300, source, n%300, source, text, text, text, text)
	}
	return out.Flush()
}

// BenchmarkImport imports a past of three years as Segment stores it. It reports the most that the heap had beside events a second.
func BenchmarkImport(b *testing.B) {
	for b.Loop() {
		p := placeAt(b, clickhousetest.Shared(b))
		from, to := io.Pipe()
		go func() { to.CloseWithError(past(to, *benchEvents)) }()
		var most atomic.Uint64
		p.Progress = func(imports.Progress) {
			var stats runtime.MemStats
			runtime.ReadMemStats(&stats)
			most.Store(max(most.Load(), stats.HeapInuse))
		}
		p.Input, p.Paths = from, []string{"-"}
		started := time.Now()
		report := p.run("-")
		if report.Imported != int64(*benchEvents) {
			b.Fatalf("report %+v, %v", report, p.bad)
		}
		b.ReportMetric(float64(*benchEvents)/time.Since(started).Seconds(), "events/s")
		b.ReportMetric(float64(most.Load()>>20), "MiB-heap")
	}
}
