package stream

import (
	"context"
	"fmt"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/event/wire"
	"github.com/weir-dev/weir/collector/redisserver"
	"github.com/weir-dev/weir/collector/redisserver/redistest"
)

// entrySize is about what an encoded purchase takes.
const entrySize = 200

// redisCPU is the processor time that the server has used.
func redisCPU(b *testing.B, s *Stream) time.Duration {
	b.Helper()
	info, err := s.redis.Info(context.Background(), "cpu").Result()
	if err != nil {
		b.Fatal(err)
	}
	var total float64
	for _, field := range []string{"used_cpu_user", "used_cpu_sys"} {
		seconds, err := strconv.ParseFloat(infoField(info, field), 64)
		if err != nil {
			b.Fatal(err)
		}
		total += seconds
	}
	return time.Duration(total * float64(time.Second))
}

func redisMemory(b *testing.B, s *Stream) float64 {
	b.Helper()
	info, err := s.redis.Info(context.Background(), "memory").Result()
	if err != nil {
		b.Fatal(err)
	}
	bytes, err := strconv.ParseFloat(infoField(info, "used_memory"), 64)
	if err != nil {
		b.Fatal(err)
	}
	return bytes
}

// BenchmarkAppend appends from 64 callers and reports what Redis spends on an event; "aged" properties look for
// deduplication keys in three buckets.
func BenchmarkAppend(b *testing.B) {
	for _, size := range []int{1, 100} {
		for _, fsync := range []redisserver.Fsync{redisserver.FsyncEverySec, redisserver.FsyncAlways} {
			for _, orders := range []bool{false, true} {
				for _, aged := range []bool{false, true} {
					b.Run(fmt.Sprintf("size=%d/fsync=%s/orders=%v/aged=%v", size, fsync, orders, aged), func(b *testing.B) {
						benchmarkAppend(b, size, fsync, func() Addition { return benchAddition(orders) }, aged)
					})
				}
			}
		}
	}
}

// BenchmarkAppendSealed appends events with a context as a collector does: the device sealed, or the identity as well.
func BenchmarkAppendSealed(b *testing.B) {
	for _, size := range []int{1, 100} {
		for name, seal := range map[string]func(event.Event) wire.Parts{
			"nothing": func(e event.Event) wire.Parts { return wire.Parts{Entry: wire.Encode(&e)} },
			"device":  func(e event.Event) wire.Parts { return wire.Split(&e, false) },
			"both":    func(e event.Event) wire.Parts { return wire.Split(&e, true) },
		} {
			b.Run(fmt.Sprintf("size=%d/sealed=%s", size, name), func(b *testing.B) {
				benchmarkAppend(b, size, redisserver.FsyncEverySec, func() Addition {
					one, parts := benchAddition(false), seal(visit(""))
					one.Entry, one.Sealed = parts.Entry, parts.Sealed
					return one
				}, false)
			})
		}
	}
}

func benchmarkAppend(b *testing.B, size int, fsync redisserver.Fsync, addition func() Addition, aged bool) {
	server := redistest.Start(b, redisserver.Options{Persist: true, Fsync: fsync})
	s := dial(b, server.URL()).Stream("default", "shop")
	options := AppenderOptions{Window: week}
	if aged {
		c := newClock(b, server.URL(), time.Now().Add(-week))
		old := newAppender(b, s, options)
		for range 2 {
			for range 200 {
				var additions []Addition
				for range 500 {
					additions = append(additions, addition())
				}
				mustAppend(b, old, additions...)
			}
			c.advance(week / 2)
		}
		dial(b, server.URL()) // with the library as it is
	}
	a := newAppender(b, s, options)
	cpu := redisCPU(b, s)
	var duplicates atomic.Int64
	b.SetParallelism(32)
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		additions := make([]Addition, size)
		for pb.Next() {
			for i := range additions {
				additions[i] = addition()
			}
			added, err := a.Append(context.Background(), additions)
			if err != nil {
				b.Error(err)
				return
			}
			for _, one := range added {
				if one.Duplicate {
					duplicates.Add(1)
				}
			}
		}
	})
	b.StopTimer()
	events := float64(b.N * size)
	b.ReportMetric(float64(redisCPU(b, s)-cpu)/1e3/events, "redis-µs/event")
	b.ReportMetric(events/b.Elapsed().Seconds(), "events/s")
	if duplicates.Load() > 0 {
		b.Errorf("%d duplicates among unique ids", duplicates.Load())
	}
}

var benchEntry = make([]byte, entrySize)

func benchAddition(order bool) Addition {
	id := uuid.New()
	// A page's event has a client id that is known to nobody else, an order an e-mail address and a phone number as well.
	one := Addition{Entry: benchEntry, EventID: id.String(), Identifiers: append([]byte{1}, id[:8]...)}
	if order {
		one.OrderID = "order-" + one.EventID[:13]
		one.Identifiers = append(append(one.Identifiers, id[4:12]...), id[8:]...)
	}
	return one
}

// BenchmarkMemory reports what an event takes in Redis beside its entry, at several sizes of the bucket: with its
// event_id recorded, with both its ids.
func BenchmarkMemory(b *testing.B) {
	for _, events := range []int{10_000, 100_000, 1_000_000} {
		for name, addition := range map[string]func() Addition{
			"one":  func() Addition { return benchAddition(false) },
			"both": func() Addition { return benchAddition(true) },
		} {
			b.Run(fmt.Sprintf("events=%d/dedup=%s", events, name), func(b *testing.B) {
				for b.Loop() {
					s := dial(b, redistest.URL(b)).Stream("default", "shop")
					a := newAppender(b, s, AppenderOptions{Window: week})
					empty := redisMemory(b, s)
					for done := 0; done < events; done += 500 {
						var additions []Addition
						for range 500 {
							additions = append(additions, addition())
						}
						mustAppend(b, a, additions...)
					}
					b.ReportMetric((redisMemory(b, s)-empty)/float64(events)-entrySize, "bytes/event-above-entry")
				}
			})
		}
	}
}

// BenchmarkReadEvents reports how fast a stream is replayed.
func BenchmarkReadEvents(b *testing.B) {
	s := dial(b, redistest.URL(b)).Stream("default", "shop")
	a := newAppender(b, s, AppenderOptions{Window: week})
	const events = 200_000
	for range events / 500 {
		additions := make([]Addition, 500)
		for i := range additions {
			additions[i] = addition("", "")
			additions[i].Entry = benchEntry
		}
		mustAppend(b, a, additions...)
	}
	for b.Loop() {
		after, read := Position(0), 0
		for {
			entries, err := s.ReadEvents(b.Context(), after, 1000, 0)
			if err != nil {
				b.Fatal(err)
			}
			if len(entries) == 0 {
				break
			}
			read += len(entries)
			after = entries[len(entries)-1].Position
		}
		if read != events {
			b.Fatalf("read %d events, want %d", read, events)
		}
	}
	b.ReportMetric(float64(events*b.N)/b.Elapsed().Seconds(), "events/s")
}

// BenchmarkSettle reports what handing out and settling a delivery costs.
func BenchmarkSettle(b *testing.B) {
	s := dial(b, redistest.URL(b)).Stream("default", "shop")
	a := newAppender(b, s, AppenderOptions{Window: week})
	for done := 0; done < b.N; done += 500 {
		additions := make([]Addition, 500)
		for i := range additions {
			additions[i] = addition("", "")
		}
		mustAppend(b, a, additions...)
	}
	if _, err := s.EnsureGroup(b.Context(), "meta", GroupState{}); err != nil {
		b.Fatal(err)
	}
	cpu := redisCPU(b, s)
	b.ResetTimer()
	for done := 0; done < b.N; {
		deliveries, err := s.Read(b.Context(), "meta", "pod-1", 500, 0)
		if err != nil {
			b.Fatal(err)
		}
		settlements := make([]Settlement, len(deliveries))
		for i, d := range deliveries {
			settlements[i] = decided(d.Position, Delivered, 1)
		}
		mustSettle(b, s, settlements...)
		done += len(deliveries)
	}
	b.StopTimer()
	b.ReportMetric(float64(redisCPU(b, s)-cpu)/1e3/float64(b.N), "redis-µs/event")
}
