package archive

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/errgroup"

	"github.com/weir-dev/weir/collector/clickhouse"
	"github.com/weir-dev/weir/collector/clickhouse/clickhousetest"
	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/event/wire"
	"github.com/weir-dev/weir/collector/history/schema"
	"github.com/weir-dev/weir/collector/redisserver/redistest"
	"github.com/weir-dev/weir/collector/stream"
)

var (
	tenants     = flag.Int("tenants", 200, "how many Properties BenchmarkTenants has")
	tenantsBusy = flag.Int("tenants-busy", 20, "how many of them are busy")
	tenantsCalm = flag.Int("tenants-calm", 100, "how many of the others have an event now and then")
	busyRate    = flag.Float64("tenants-busy-rate", 10, "events a second of each busy one")
	calmRate    = flag.Float64("tenants-calm-rate", 0.2, "events a second of each calm one")
	tenantsFor  = flag.Duration("tenants-for", time.Minute, "how long is measured")
	mostDelay   = flag.Duration("tenants-longest", usual().longest, "the longest delay of a block; 1s leaves the pace out")
)

// tenant is one Property of many.
type tenant struct {
	stream   *stream.Stream
	appender *stream.Appender
	archive  *Archive
	rate     float64 // events a second
	latest   atomic.Pointer[appended]
}

// appended is an event that was appended at a time.
type appended struct {
	at    stream.Position
	since time.Time
}

// estate is many Properties on a Redis and a ClickHouse.
type estate struct {
	server   *clickhousetest.Server
	redisURL string
	tenants  []*tenant
}

// BenchmarkTenants runs an archive for each of many Properties, beside one Redis and one ClickHouse, while their events come one by one,
// each with two deliveries.
func BenchmarkTenants(b *testing.B) {
	e := newEstate(b)
	for b.Loop() {
		ctx, end := context.WithCancel(b.Context())
		var running sync.WaitGroup
		for _, one := range e.tenants {
			running.Go(func() { one.archive.Run(ctx) })
			if one.rate > 0 {
				running.Go(func() { one.load(ctx) })
			}
		}
		pause(ctx, 15*time.Second) // until the paces have found theirs
		before := e.used(b)
		waits, parts := e.watch(ctx, *tenantsFor)
		after := e.used(b)
		e.report(b, before, after)
		if len(waits) == 0 {
			b.Fatal("no event was seen to come")
		}
		b.ReportMetric(waits[len(waits)/2].Seconds(), "visible-p50-s")
		b.ReportMetric(waits[len(waits)*99/100].Seconds(), "visible-p99-s")
		b.ReportMetric(float64(parts), "parts")
		end()
		running.Wait()
		e.look(b)
	}
}

func newEstate(b *testing.B) *estate {
	b.Helper()
	e := &estate{server: clickhousetest.Start(b), redisURL: redistest.URL(b)}
	shared, err := stream.Dial(e.redisURL, stream.DialOptions{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = shared.Close() })
	if err := shared.Load(b.Context()); err != nil {
		b.Fatal(err)
	}
	e.tenants = make([]*tenant, *tenants)
	var group errgroup.Group
	group.SetLimit(runtime.GOMAXPROCS(0))
	for i := range e.tenants {
		group.Go(func() (err error) {
			e.tenants[i], err = e.tenant(b, shared, i)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		b.Fatal(err)
	}
	return e
}

// tenant makes the i-th Property, with a connection of its own to each server, as its pod has.
func (e *estate) tenant(b *testing.B, shared *stream.Client, i int) (*tenant, error) {
	name := fmt.Sprint("shop-", i)
	database := schema.Database("default", name)
	client, err := clickhouse.Dial(e.server.URL(database), clickhouse.Options{})
	if err != nil {
		return nil, err
	}
	b.Cleanup(client.Close)
	clickhousetest.Exec(b, e.server.URL(""), "CREATE DATABASE "+schema.Quote(database))
	for _, statement := range schema.Creates(database, "") {
		clickhousetest.Exec(b, e.server.URL(database), statement)
	}
	own, err := stream.Dial(e.redisURL, stream.DialOptions{})
	if err != nil {
		return nil, err
	}
	b.Cleanup(func() { _ = own.Close() })
	metrics, err := NewMetrics(prometheus.NewRegistry())
	if err != nil {
		return nil, err
	}
	one := &tenant{stream: shared.Stream("default", name)}
	one.appender = stream.NewAppender(one.stream, stream.AppenderOptions{Window: time.Hour, JoinedFor: time.Hour})
	one.archive = New(Options{
		Property: "default/" + name, Stream: own.Stream("default", name).Opening(wire.Identity), Client: client, Metrics: metrics, Logger: slog.New(slog.DiscardHandler),
	})
	one.archive.timing.longest = *mostDelay
	one.archive.pace = newPace(one.archive.timing, metrics.delayedBy.WithLabelValues())
	switch {
	case i < *tenantsBusy:
		one.rate = *busyRate
	case i < *tenantsBusy+*tenantsCalm:
		one.rate = *calmRate
	}
	return one, nil
}

// load appends events at random, as visitors come, and notes their deliveries.
func (o *tenant) load(ctx context.Context) {
	for after := stream.Position(0); pause(ctx, time.Duration(rand.ExpFloat64()/o.rate*float64(time.Second))); {
		e := event.Event{
			DeliveryID: uuid.New(), Name: "pageview", ClientID: fmt.Sprint("client-", rand.N(1000)), Platforms: []string{"meta", "crm"},
			Context: event.Context{PageURL: fmt.Sprint("https://shop.example/products/", rand.N(300))},
		}
		e.ID = e.DeliveryID.String()
		if _, err := o.appender.Append(ctx, []stream.Addition{{Entry: wire.Encode(&e), EventID: e.ID}}); err != nil {
			continue
		}
		added := time.Now()
		entries, err := o.stream.ReadEvents(ctx, after, 10, 0)
		if err != nil {
			continue
		}
		for _, entry := range entries {
			after = entry.Position
			for _, platform := range e.Platforms {
				_ = o.stream.Record(ctx, platform, []stream.Record{{Event: after, Platform: platform, Status: stream.Delivered, Attempts: 1, Latency: 100 * time.Millisecond, At: added}})
			}
		}
		o.latest.Store(&appended{after, added})
	}
}

// watch returns, sorted, for how long events were not in their table, of some that came during a period, and how many parts the
// partition had that had most.
func (e *estate) watch(ctx context.Context, period time.Duration) (waits []time.Duration, parts uint64) {
	var mu sync.Mutex
	var waiting sync.WaitGroup
	for began := time.Now(); time.Since(began) < period; pause(ctx, 250*time.Millisecond) {
		one := e.tenants[rand.N(max(*tenantsBusy+*tenantsCalm, 1))]
		waiting.Go(func() {
			if took, seen := one.visible(ctx, began.Add(period)); seen {
				mu.Lock()
				waits = append(waits, took)
				mu.Unlock()
			}
		})
		if rand.N(40) == 0 {
			parts = max(parts, e.parts(ctx))
		}
	}
	parts = max(parts, e.parts(ctx))
	waiting.Wait()
	slices.Sort(waits)
	return waits, parts
}

// visible returns how long the next event that comes before a time takes to be in its table.
func (o *tenant) visible(ctx context.Context, before time.Time) (took time.Duration, seen bool) {
	last := o.latest.Load()
	for o.latest.Load() == last {
		if !pause(ctx, 20*time.Millisecond) || time.Now().After(before) {
			return 0, false
		}
	}
	for event := o.latest.Load(); ; {
		// What is confirmed is there: to ask ClickHouse would be a load of its own.
		if state, err := o.stream.ArchiveState(ctx); err == nil && state.Events >= event.at {
			return time.Since(event.since), true
		}
		if !pause(ctx, max(20*time.Millisecond, time.Since(event.since)/10)) {
			return 0, false
		}
	}
}

func (e *estate) parts(ctx context.Context) uint64 {
	client := e.tenants[0].archive.options.Client
	parts, _ := clickhouse.One[uint64](ctx, client, clickhouse.Query{
		SQL: "SELECT max(n) FROM (SELECT count() AS n FROM system.parts WHERE active AND database LIKE 'weir%' GROUP BY database, table, partition_id)",
	})
	return parts
}

// usage is what has been done, and what that has taken of the processors.
type usage struct {
	at                     time.Time
	own, clickhouse, redis time.Duration
	events, blocks         float64
}

func (e *estate) used(b *testing.B) usage {
	b.Helper()
	u := usage{at: time.Now(), own: ownTime(b), redis: e.redisTime(b)}
	u.clickhouse = childrensTime(b) - u.redis
	for _, one := range e.tenants {
		u.events += counted(one.archive.options.Metrics.rows, Events)
		for _, lane := range []Lane{Events, Records} {
			u.blocks += counted(one.archive.options.Metrics.blocks, lane)
		}
	}
	return u
}

func (e *estate) redisTime(b *testing.B) (sum time.Duration) {
	b.Helper()
	options, err := redis.ParseURL(e.redisURL)
	if err != nil {
		b.Fatal(err)
	}
	client := redis.NewClient(options)
	defer client.Close()
	text, err := client.Info(b.Context(), "cpu").Result()
	if err != nil {
		b.Fatal(err)
	}
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		if name == "used_cpu_sys" || name == "used_cpu_user" {
			seconds, err := strconv.ParseFloat(value, 64)
			if err != nil {
				b.Fatal(err)
			}
			sum += time.Duration(seconds * float64(time.Second))
		}
	}
	return sum
}

func (e *estate) report(b *testing.B, before, after usage) {
	b.Helper()
	seconds := after.at.Sub(before.at).Seconds()
	blocks := after.blocks - before.blocks
	b.ReportMetric((after.events-before.events)/seconds, "events/s")
	b.ReportMetric(blocks/seconds, "inserts/s")
	b.ReportMetric((after.clickhouse-before.clickhouse).Seconds()/seconds, "clickhouse-cpus")
	b.ReportMetric((after.clickhouse-before.clickhouse).Seconds()*1000/blocks, "clickhouse-ms/insert")
	b.ReportMetric((after.redis-before.redis).Seconds()/seconds, "redis-cpus")
	b.ReportMetric((after.own-before.own).Seconds()/seconds, "own-cpus")
	var delays []time.Duration
	for _, one := range e.tenants {
		if one.rate > 0 {
			delays = append(delays, one.archive.pace.now())
		} else if n := counted(one.archive.options.Metrics.blocks, Events) + counted(one.archive.options.Metrics.blocks, Records); n > 0 {
			b.Errorf("%s has nothing and has inserted %v blocks", one.archive.options.Property, n)
		}
	}
	slices.Sort(delays)
	b.ReportMetric(delays[len(delays)/2].Seconds(), "delay-p50-s")
	b.ReportMetric(delays[len(delays)-1].Seconds(), "delay-max-s")
	b.ReportMetric(residentMB(b, "self"), "own-MB")
	b.ReportMetric(serverMB(b), "clickhouse-MB")
}

// look reports what it costs ClickHouse that an archive looks at its parts.
func (e *estate) look(b *testing.B) {
	b.Helper()
	before := e.used(b)
	for _, one := range e.tenants {
		if _, err := partsOf(b.Context(), one.archive.options.Client, ""); err != nil {
			b.Fatal(err)
		}
	}
	took := e.used(b).clickhouse - before.clickhouse
	b.ReportMetric(took.Seconds()*1000/float64(len(e.tenants)), "clickhouse-ms/look")
}

// residentMB is what a process has of the memory; 0 where there is no /proc.
func residentMB(b *testing.B, process string) float64 {
	b.Helper()
	text, err := os.ReadFile(filepath.Join("/proc", process, "statm"))
	fields := strings.Fields(string(text))
	if err != nil || len(fields) < 2 {
		return 0
	}
	pages, err := strconv.Atoi(fields[1])
	if err != nil {
		b.Fatal(err)
	}
	return float64(pages*os.Getpagesize()) / (1 << 20)
}

// serverMB is the same of ClickHouse, which is the largest process that this one has started.
func serverMB(b *testing.B) (most float64) {
	b.Helper()
	files, err := filepath.Glob("/proc/self/task/*/children")
	if err != nil {
		b.Fatal(err)
	}
	for _, file := range files {
		children, err := os.ReadFile(file)
		if err != nil {
			continue // the thread has ended
		}
		for child := range strings.FieldsSeq(string(children)) {
			most = max(most, residentMB(b, child))
		}
	}
	return most
}
