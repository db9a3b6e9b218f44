package archive

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-dev/weir/collector/clickhouse"
	"github.com/weir-dev/weir/collector/clickhouse/clickhousetest"
	"github.com/weir-dev/weir/collector/event/wire"
	"github.com/weir-dev/weir/collector/stream"
)

// BenchmarkBacklog archives a past with two deliveries of each event, beside the Redis and the ClickHouse of which it reads and
// to which it writes: alone, and while further events come.
func BenchmarkBacklog(b *testing.B) {
	for name, live := range map[string]int{"alone": 0, "beside 1000 new events a second": 1000} {
		b.Run(name, func(b *testing.B) { benchmarkBacklog(b, live) })
	}
}

// benchmarkBacklog has so many events a second come beside.
func benchmarkBacklog(b *testing.B, live int) {
	const past = 400_000
	s := newShop(b)
	begin := stream.At(time.Now().Add(-48 * time.Hour))
	err := s.stream.Import(b.Context(), func(yield func([]stream.Entry, []stream.Record) bool) {
		const some = 1000
		for from := 0; from < past; from += some {
			var entries []stream.Entry
			var records []stream.Record
			for i := from; i < from+some; i++ {
				e := s.event()
				e.ClientID = fmt.Sprint("client-", s.made*7919%50_000)
				e.Context.PageURL = fmt.Sprint("https://shop.example/products/", s.made%300, "?ref=", s.made%10)
				at := begin + stream.Position(i*100)<<20
				entries = append(entries, stream.Entry{Position: at, Data: wire.Encode(&e)})
				for _, platform := range e.Platforms {
					records = append(records, stream.Record{Event: at, Platform: platform, Status: stream.Delivered, Attempts: 1, Latency: 120 * time.Millisecond, At: at.Time().Add(time.Second)})
				}
			}
			if !yield(entries, records) {
				return
			}
		}
	})
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		quiet := s.beside(live)
		a := s.archiver()
		a.limit, a.timing = blockLimit, usual()
		began, own, theirs := time.Now(), ownTime(b), childrensTime(b)
		stop := run(b, a)
		most, ticks := uint64(0), time.NewTicker(200*time.Millisecond)
		for done := false; !done; <-ticks.C {
			var memory runtime.MemStats
			runtime.ReadMemStats(&memory)
			most = max(most, memory.HeapAlloc)
			state, err := s.stream.ArchiveState(b.Context())
			if err != nil {
				b.Fatal(err)
			}
			done = state.Events >= begin+stream.Position((past-1)*100)<<20 && state.RecordsIntent.Token == "" && counted(a.options.Metrics.rows, Records) == 2*past
		}
		took := time.Since(began)
		own, theirs = ownTime(b)-own, childrensTime(b)-theirs
		ticks.Stop()
		quiet()
		stop()
		b.ReportMetric(past/took.Seconds(), "events/s")
		// Where others keep the machine busy, what it takes of the processors tells more than how long it takes.
		b.ReportMetric(float64(own.Nanoseconds())/past/1000, "own-cpu-µs/event")
		b.ReportMetric(float64(theirs.Nanoseconds())/past/1000, "servers-cpu-µs/event")
		b.ReportMetric(past/counted(a.options.Metrics.blocks, Events), "events/block")
		b.ReportMetric(2*past/counted(a.options.Metrics.blocks, Records), "records/block")
		b.ReportMetric(float64(most)/(1<<20), "MB")
		for _, table := range []string{"events", "records"} {
			clickhousetest.Exec(b, s.address, "TRUNCATE TABLE "+table)
		}
		if _, err := s.stream.BeginArchive(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}

// beside appends so many events a second until it is told to be quiet.
func (s *shop) beside(live int) (quiet func()) {
	ctx, cancel := context.WithCancel(s.t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		const ticks = 20
		for live > 0 && pause(ctx, time.Second/ticks) {
			if err := s.tryAppend(ctx, live/ticks); err != nil && ctx.Err() == nil {
				s.t.Error(err)
			}
		}
	}()
	return func() {
		cancel()
		<-done
	}
}

// ownTime is how much of the processors this process has used.
func ownTime(b *testing.B) time.Duration {
	b.Helper()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// childrensTime is the same of this process's children that run, which are the servers; 0 where there is no /proc.
func childrensTime(b *testing.B) (sum time.Duration) {
	b.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		b.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // it has ended
		}
		_, behind, _ := strings.Cut(string(text), ") ") // the name may have anything in it
		fields := strings.Fields(behind)
		if len(fields) < 13 || fields[1] != strconv.Itoa(os.Getpid()) {
			continue
		}
		for _, ticks := range fields[11:13] {
			n, err := strconv.Atoi(ticks)
			if err != nil {
				b.Fatal(err)
			}
			sum += time.Duration(n) * 10 * time.Millisecond
		}
	}
	return sum
}

// counted is the value of a lane's counter.
func counted(counter *prometheus.CounterVec, lane Lane) float64 {
	registry := prometheus.NewRegistry()
	registry.MustRegister(counter)
	families, err := registry.Gather()
	if err != nil {
		return -1
	}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			for _, label := range metric.GetLabel() {
				if label.GetValue() == string(lane) {
					return metric.GetCounter().GetValue()
				}
			}
		}
	}
	return 0
}

// BenchmarkInsert sends blocks of events, without reading them: what is left is ClickHouse and the way to it.
func BenchmarkInsert(b *testing.B) {
	s := newShop(b)
	client, err := clickhouse.Dial(s.address, clickhouse.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer client.Close()
	s.append(5000)
	a := s.archiver()
	source := &events{property: property, stream: a.options.Stream, touches: &touches{client: client}, names: &names{client: client}, faulty: a.faultyEvents}
	block, err := source.Read(b.Context(), 0, blockLimit)
	if err != nil {
		b.Fatal(err)
	}
	table, n := eventsTable(client, a.options.Metrics), 0
	for b.Loop() {
		n++
		if err := table.Insert(b.Context(), block.Rows, fmt.Sprint("block-", n)); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(n*len(block.Rows))/b.Elapsed().Seconds(), "events/s")
}
