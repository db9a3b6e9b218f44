package archive

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-dev/weir/collector/clickhouse"
	"github.com/weir-dev/weir/collector/history/schema"
)

// timing is how long an archive waits for what.
type timing struct {
	// delay is for how long entries are gathered, longest where there are too many parts.
	delay, longest time.Duration
	// Between attempts it waits backoff, then twice as long each time up to mostBackoff, and half as long again or less by chance.
	backoff, mostBackoff time.Duration
	// beat is how often it notes that it is at work, measure how often lags and parts are looked at, imports whether something was
	// imported.
	beat, measure, imports time.Duration
	// standby is for how long another archive must not have been at work before one that was deposed takes over from it.
	standby time.Duration
}

func usual() timing {
	return timing{
		delay: time.Second, longest: 30 * time.Second, backoff: 200 * time.Millisecond, mostBackoff: 5 * time.Second,
		beat: time.Second, measure: 5 * time.Second, imports: 10 * time.Second, standby: 10 * time.Second,
	}
}

// after returns how long to wait after so many failures, at least one.
func (t *timing) after(failures int) time.Duration {
	wait := t.backoff
	for ; failures > 1 && wait < t.mostBackoff; failures-- {
		wait *= 2
	}
	wait = min(wait, t.mostBackoff)
	return wait/2 + rand.N(wait)
}

// pause waits, and says whether ctx has not ended.
func pause(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// ClickHouse delays INSERTs itself where a partition has a thousand parts, and refuses them where it has three thousand.
const fewParts, manyParts = 100, 300

// pace is for how long entries are gathered for a block. It is safe for concurrent use.
type pace struct {
	least, most time.Duration
	gauge       prometheus.Gauge

	mu    sync.Mutex
	delay time.Duration
}

func newPace(t timing, gauge prometheus.Gauge) *pace {
	p := &pace{least: t.delay, most: t.longest, gauge: gauge, delay: t.delay}
	gauge.Set(t.delay.Seconds())
	return p
}

// now returns how long it is.
func (p *pace) now() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.delay
}

// pressed says that it is longer than usual.
func (p *pace) pressed() bool { return p.now() > p.least }

// see has it go with the number of parts.
func (p *pace) see(parts uint64) {
	switch {
	case parts > manyParts:
		p.slower()
	case parts < fewParts:
		p.set(func(delay time.Duration) time.Duration { return max(delay/2, p.least) })
	}
}

// slower makes blocks larger and fewer.
func (p *pace) slower() {
	p.set(func(delay time.Duration) time.Duration { return min(2*delay, p.most) })
}

func (p *pace) set(change func(time.Duration) time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.delay = change(p.delay)
	p.gauge.Set(p.delay.Seconds())
}

// partsOf returns how many parts that partition of a database has that has most, on any server.
func partsOf(ctx context.Context, client *clickhouse.Client, cluster schema.Cluster) (uint64, error) {
	return clickhouse.One[uint64](ctx, client, clickhouse.Query{
		SQL: "SELECT max(parts) FROM (SELECT count() AS parts FROM " + cluster.System("parts") +
			" WHERE database = {database:String} AND active GROUP BY hostName(), table, partition_id)",
		Parameters: map[string]any{"database": client.Database()},
	})
}
