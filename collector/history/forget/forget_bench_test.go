package forget_test

import (
	"flag"
	"fmt"
	"testing"

	"github.com/weir-dev/weir/collector/clickhouse/clickhousetest"
	"github.com/weir-dev/weir/collector/event/erasure"
	"github.com/weir-dev/weir/collector/history/rows"
	"github.com/weir-dev/weir/collector/stream"
)

var (
	benchRows     = flag.Int("rows", 1_000_000, "how many events there are")
	benchVisitors = flag.Int("visitors", 100_000, "how many visitors these have")
)

// BenchmarkFindingOnePerson looks for one person among all, hides the events, and removes them. One event of ten has an identifier
// beside the visitor.
func BenchmarkFindingOnePerson(b *testing.B) {
	h := newHistory(b)
	for from := 0; from < *benchRows; from += 1_000_000 {
		clickhousetest.Exec(b, h.address, fmt.Sprintf(`INSERT INTO events (at, name, visitor, client_id, delivery_low, touch, origin, page, platforms, identifiers, entry, identity)
			SELECT bitShiftLeft(toUInt64(1770000000000) + number * 300, 20), ['pageview', 'purchase'][1 + number %% 2], cityHash64(number %% %d), concat('c', toString(number %% %d)),
			sipHash64(number), if(number %% 5 = 0, 'google\x1fcpc\x1f\x1fPaid Search', ''), 'google\x1fcpc\x1f\x1fPaid Search', '/a', 'meta,crm', if(number %% 10 = 0, [sipHash64(number %% %d)], []),
			randomPrintableASCII(60, number), '' FROM numbers(%d, %d)`, *benchVisitors, *benchVisitors, *benchVisitors, from, min(1_000_000, *benchRows-from)))
	}
	b.ResetTimer()
	for n := 0; b.Loop(); n++ {
		var visitor uint64
		if _, err := fmt.Sscan(clickhousetest.Exec(b, h.address, fmt.Sprintf("SELECT cityHash64(%d)", n+5)), &visitor); err != nil {
			b.Fatal(err)
		}
		h.Add(erasure.Entry{Digest: h.Salt.Digest(rows.PersonOf(visitor)), Suppress: true})
		h.open = []stream.HistoryErasure{{ID: "one"}}
		began := b.Elapsed()
		h.interrupt = func(step string) error {
			if step == "note" && !h.open[0].Hidden {
				b.ReportMetric((b.Elapsed() - began).Seconds(), "s-until-hidden")
			}
			return nil
		}
		h.step(h.forgetter())
		b.ReportMetric((b.Elapsed() - began).Seconds(), "s-until-removed")
		if left := clickhousetest.Exec(b, h.address, fmt.Sprintf("SELECT count() FROM events WHERE visitor = %d", visitor)); left != "0" {
			b.Fatalf("%s events are left", left)
		}
	}
}
