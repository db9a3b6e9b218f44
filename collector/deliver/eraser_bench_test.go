package deliver

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/event/erasure"
	"github.com/weir-dev/weir/collector/event/wire"
	"github.com/weir-dev/weir/collector/stream"
)

// BenchmarkSweep goes through a property's events, the identifiers that are joined, and the records of a platform for a
// thousand subjects, of whom there is nothing. An event a second is what one costs.
func BenchmarkSweep(b *testing.B) {
	const events, visitors, subjects, settled = 200_000, 50_000, 1000, 100
	h := newHarness(b)
	s := h.stream
	var entries []stream.Entry
	var records []stream.Record
	begin := time.Now().Add(-time.Hour)
	for i := range events {
		n := strconv.Itoa(i % visitors)
		e := buys(person{client: "1700000000." + n, user: "user-" + n, email: n + "@example.com"}.event(""), "order-"+strconv.Itoa(i))
		e.Platforms, e.Contents = []string{"meta"}, []event.Item{{ID: "sku-1", Name: "A thing"}, {ID: "sku-2", Name: "Another"}}
		e.Context.PageURL, e.Context.UserAgent = "https://shop.example/checkout/thanks", "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36"
		at := stream.At(begin.Add(time.Duration(i) * time.Millisecond))
		entries = append(entries, stream.Entry{Position: at, Data: wire.Encode(&e)})
		records = append(records, stream.Record{Event: at, Platform: "meta", Status: stream.Delivered, Attempts: 1, At: at.Time().Add(time.Second)})
	}
	if err := s.Import(b.Context(), func(yield func([]stream.Entry, []stream.Record) bool) {
		for i := 0; i < events && yield(entries[i:i+settled], records[i:i+settled]); i += settled {
		}
	}); err != nil {
		b.Fatal(err)
	}
	entries, records = nil, nil
	pipe := h.redis().Pipeline()
	for i := range visitors {
		for _, id := range (person{client: fmt.Sprint("1700000000.", i), user: fmt.Sprint("user-", i)}).identifiers() {
			pipe.HSet(b.Context(), "weir:{default/shop}:join:0", string(id[:]), string(id[:])+"123456")
		}
	}
	if _, err := pipe.Exec(b.Context()); err != nil {
		b.Fatal(err)
	}
	var open []stream.OpenErasure
	ledger, salt := map[string][]erasure.Entry{}, erasure.Salt{1}
	for i := range subjects {
		id := fmt.Sprint("erasure-", i)
		open = append(open, stream.OpenErasure{ID: id})
		for _, one := range (person{user: "nobody-" + id}).identifiers() {
			ledger[id] = append(ledger[id], erasure.Entry{Digest: salt.Digest(one), At: time.Now()})
		}
	}
	fresh := func() *sweep {
		return &sweep{stream: s, erasures: newErasures("default/shop", salt, open, ledger), erased: map[stream.Position][]string{}}
	}
	for name, c := range map[string]struct {
		of  int
		run func() error
	}{
		"events":      {events, func() error { _, err := fresh().events(b.Context(), 0); return err }},
		"identifiers": {2 * visitors, func() error { return s.EraseJoins(b.Context(), fresh().erasures.ofIdentifier) }},
		"records": {events, func() error {
			return s.EraseRecords(b.Context(), map[stream.Position][]string{1: {"erasure-1"}}, func(string) bool { return true })
		}},
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if err := c.run(); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(c.of)*float64(b.N)/b.Elapsed().Seconds(), name+"/s")
			b.ReportMetric(0, "ns/op")
		})
	}
}
