package archive

import (
	"context"
	"flag"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weir-dev/weir/collector/clickhouse/clickhousetest"
	"github.com/weir-dev/weir/collector/redisserver"
	"github.com/weir-dev/weir/collector/redisserver/redistest"
	"github.com/weir-dev/weir/collector/stream"
)

var (
	kills     = flag.Int("kills", 4, "how often something is killed under load")
	killsSeed = flag.Uint64("kills-seed", 0, "in what order; 0 for another one each time")
)

// TestKilledUnderLoad kills the archive, Redis and ClickHouse, at random moments while events and records come, and compares all
// that Redis has with all that ClickHouse has.
func TestKilledUnderLoad(t *testing.T) {
	seed := *killsSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	r := rand.New(rand.NewPCG(seed, 1))
	redis := redistest.Start(t, redisserver.Options{Persist: true})
	clickhouse := clickhousetest.Start(t)
	s := open(t, redis.URL(), clickhouse.Database(t))
	s.limit = 1000
	stop := run(t, s.archiver())

	// The load is of what is told of as accepted, and of what may have been.
	ctx, end := context.WithCancel(t.Context())
	var load sync.WaitGroup
	var done atomic.Int64
	load.Go(func() {
		var after stream.Position
		for pause(ctx, time.Millisecond) {
			if s.tryAppend(ctx, 50) != nil {
				continue
			}
			entries, err := s.stream.ReadEvents(ctx, after, 100, 0)
			if err != nil || len(entries) == 0 {
				continue
			}
			var list []stream.Position
			for _, entry := range entries {
				list = append(list, entry.Position)
			}
			if s.tryDeliver(ctx, list) == nil {
				after = last(list)
				done.Add(int64(len(list)))
			}
		}
	})
	killed := map[string]int{}
	for n := range *kills {
		pause(t.Context(), time.Duration(r.IntN(400))*time.Millisecond)
		what := []string{"archive", "archive", "redis", "clickhouse"}[n%4]
		killed[what]++
		switch what {
		case "archive":
			stop()
			stop = run(t, s.archiver())
		case "redis":
			if err := redis.Kill(); err != nil {
				t.Fatal(err)
			}
			pause(t.Context(), time.Duration(r.IntN(100))*time.Millisecond)
			if err := redis.Restart(t.Context()); err != nil {
				t.Fatal(err)
			}
		case "clickhouse":
			clickhouse.Kill()
			pause(t.Context(), time.Duration(r.IntN(100))*time.Millisecond)
			clickhouse.Restart()
		}
		if n%20 == 19 {
			t.Logf("%d kills, %d events delivered", n+1, done.Load())
		}
	}
	pause(t.Context(), 200*time.Millisecond)
	end()
	load.Wait()
	s.settled()
	events, records := s.positions(0), s.recorded()
	s.complete(events, records)
	s.rightOrigins()
	if len(events) == 0 || len(records) == 0 || !slices.IsSorted(events) {
		t.Errorf("there are %d events and %d records", len(events), len(records))
	}
	t.Logf("-kills-seed %d: %v killed, %d events and %d records are there once", seed, killed, len(events), len(records))
}
