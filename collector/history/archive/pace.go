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
	// delay is for how long entries are gathered, longest where there are too many parts or blocks take long.
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

// blocksALook is after how many blocks parts are looked at: far fewer than make many parts.
const blocksALook = 20

// A block that takes more than half of the delay takes too long: the server has no processors left for as many. One that takes less than
// a sixteenth leaves room for twice as many, and for others.
const tooLong, roomy = 2, 16

// pace is for how long entries are gathered for a block. It is safe for concurrent use.
type pace struct {
	least, most time.Duration
	gauge       prometheus.Gauge

	mu sync.Mutex
	// crowded is what the number of parts asks for, slow what the time asks for that blocks take. The longer one counts.
	crowded, slow time.Duration
}

func newPace(t timing, gauge prometheus.Gauge) *pace {
	p := &pace{least: t.delay, most: t.longest, gauge: gauge, crowded: t.delay, slow: t.delay}
	gauge.Set(t.delay.Seconds())
	return p
}

// now returns how long it is.
func (p *pace) now() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return max(p.crowded, p.slow)
}

// pressed says that parts make it longer than usual. Then full blocks wait too, which those do not for whom the server is merely slow:
// they are as large as blocks get.
func (p *pace) pressed() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.crowded > p.least
}

// see has it go with the number of parts.
func (p *pace) see(parts uint64) {
	switch {
	case parts > manyParts:
		p.slower()
	case parts < fewParts:
		p.set(&p.crowded, func(delay time.Duration) time.Duration { return delay / 2 })
	}
}

// slower makes blocks larger and fewer.
func (p *pace) slower() {
	p.set(&p.crowded, func(delay time.Duration) time.Duration { return 2 * delay })
}

// took has it go with how long a block took to be sent; 0 is that there was nothing to send.
func (p *pace) took(sending time.Duration) {
	p.set(&p.slow, func(delay time.Duration) time.Duration {
		switch {
		case sending > delay/tooLong:
			return 2 * delay
		case sending < delay/roomy:
			return delay / 2
		}
		return delay
	})
}

func (p *pace) set(delay *time.Duration, change func(time.Duration) time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	*delay = min(max(change(*delay), p.least), p.most)
	p.gauge.Set(max(p.crowded, p.slow).Seconds())
}

// paced is a table whose pace goes with how long its blocks take.
type paced[Row any] struct {
	Table[Row]
	pace *pace
	// clock is [time.Now].
	clock func() time.Time
}

// Insert implements [Table].
func (t *paced[Row]) Insert(ctx context.Context, rows []Row, token string) error {
	began := t.clock()
	err := t.Table.Insert(ctx, rows, token)
	if err == nil || ctx.Err() == nil { // one that was given up because the archive ends says nothing of the server
		t.pace.took(t.clock().Sub(began))
	}
	return err
}

// partsOf returns how many parts that partition of a database has that has most, on any server.
func partsOf(ctx context.Context, client *clickhouse.Client, cluster schema.Cluster) (uint64, error) {
	return clickhouse.One[uint64](ctx, client, clickhouse.Query{
		SQL: "SELECT max(parts) FROM (SELECT count() AS parts FROM " + cluster.System("parts") +
			" WHERE database = {database:String} AND active GROUP BY hostName(), table, partition_id)",
		Parameters: map[string]any{"database": client.Database()},
	})
}
