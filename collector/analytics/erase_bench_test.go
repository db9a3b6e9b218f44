package analytics

import (
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/weir-dev/weir/collector/analytics/columns"
	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/stream"
)

// forgetful is a view of its own for what takes events out, made once: of events like those of the other benchmarks, which
// are not encoded and decoded, since that would take most of the time.
var forgetful = sync.OnceValue(func() *View {
	v := NewView(Options{Property: testProperty, Currency: "EUR", Logger: slog.New(slog.DiscardHandler)})
	s := newShopper(*benchEvents)
	for n := 0; n < *benchEvents; {
		var d decoded
		for ; len(d.rows) < readCount && n < *benchEvents; n++ {
			visitor := s.IntN(s.total/20 + 1)
			row := columns.Row{
				Position: stream.At(begin.Add(time.Duration(n)*s.step)) + stream.Position(n&1023), Name: "pageview", Value: columns.NoValue,
				Visitor: event.Person{byte(visitor), byte(visitor >> 8), byte(visitor >> 16)}, IsSomeone: true,
				ClientID: fmt.Sprint("client ", visitor), EventID: fmt.Sprint("event ", n), Platforms: "meta\x00crm",
			}
			if s.IntN(10) == 0 {
				row.Name, row.Value, row.Currency = "purchase", 10_000, "EUR"
			}
			if s.IntN(4) == 0 {
				row.Touch, row.IsTouch = columns.Touch{Source: "google", Campaign: fmt.Sprint("campaign ", s.IntN(50))}, true
			}
			d.rows = append(d.rows, row)
		}
		if err := v.add(d); err != nil {
			panic(err)
		}
	}
	return v
})

// longestWait calls work and returns how long a query that began meanwhile had to wait at most until it could.
func longestWait(v *View, work func()) (longest time.Duration) {
	done, asked := make(chan struct{}), make(chan time.Duration)
	go func() {
		var longest time.Duration
		for {
			select {
			case <-done:
				asked <- longest
				return
			default:
			}
			began := time.Now()
			_, end, err := v.read()
			if err != nil {
				panic(err)
			}
			longest = max(longest, time.Since(began))
			end()
		}
	}()
	work()
	close(done)
	return <-asked
}

// BenchmarkErase takes events out that are spread over all of the view; others in each round.
func BenchmarkErase(b *testing.B) {
	for _, count := range []int{1000, 100_000} {
		b.Run(fmt.Sprint("events=", count), func(b *testing.B) {
			v, round, longest := forgetful(), 0, time.Duration(0)
			for b.Loop() {
				b.StopTimer()
				round++
				var positions []stream.Position
				rows := v.table.All()
				every := rows.Len() / count
				for i := range count {
					c, row := rows.At(rows.First + uint64(i*every+round%every))
					positions = append(positions, c.Position[row])
				}
				b.StartTimer()
				longest = max(longest, longestWait(v, func() {
					if err := v.Erase(positions); err != nil {
						b.Fatal(err)
					}
				}))
			}
			b.ReportMetric(float64(longest.Microseconds())/1000, "longest-wait-ms")
		})
	}
}

// BenchmarkAnonymize makes a hundredth of the events nobody's in each round, while there are any.
func BenchmarkAnonymize(b *testing.B) {
	v, round, longest := forgetful(), 0, time.Duration(0)
	for b.Loop() {
		round++
		before := begin.Add(time.Duration(round) * benchDays * 24 * time.Hour / 100)
		longest = max(longest, longestWait(v, func() { v.Anonymize(stream.At(before)) }))
	}
	b.ReportMetric(float64(longest.Microseconds())/1000, "longest-wait-ms")
}
