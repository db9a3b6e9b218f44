package history

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weir-dev/weir/collector/analytics"
	"github.com/weir-dev/weir/collector/clickhouse"
	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/history/rows"
	"github.com/weir-dev/weir/collector/stream"
)

// deliveryRow counts deliveries of a kind.
type deliveryRow struct {
	Key      string `ch:"key"`
	Platform string `ch:"to"`
	Status   uint8  `ch:"status"`
	Reason   string `ch:"reason"`
	// Latency is that of delivered ones in milliseconds, -1 for the others and for those without an attempt.
	Latency int64 `ch:"latency"`
	Count   int64 `ch:"rows"`
}

// namedRow is how many events name a list of platforms.
type namedRow struct {
	Key       string `ch:"key"`
	Platforms string `ch:"listed"`
	Count     int64  `ch:"rows"`
}

// platformTallies count deliveries by platform.
type platformTallies map[string]*deliveryTally

// deliveryTally counts deliveries to one platform.
type deliveryTally struct {
	counts    [stream.Expired + 1]int
	reasons   [stream.Expired + 1]map[string]int
	latencies map[int64]int
}

func (t platformTallies) of(platform string) *deliveryTally {
	if t[platform] == nil {
		t[platform] = &deliveryTally{latencies: map[int64]int{}}
	}
	return t[platform]
}

func (t *deliveryTally) addReason(status stream.Status, reason string, count int) {
	if t.reasons[status] == nil {
		t.reasons[status] = map[string]int{}
	}
	t.reasons[status][reason] += count
}

// tally counts the deliveries of the events of a class that a condition about at and name keeps, by a key.
func (e *Engine) tally(ctx context.Context, m moment, key, kept string, parameters map[string]any, into map[string]platformTallies) error {
	at := func(key, platform string) *deliveryTally {
		if into[key] == nil {
			into[key] = platformTallies{}
		}
		return into[key].of(platform)
	}
	named, err := all[namedRow](ctx, e, clickhouse.Query{
		SQL: `SELECT ` + key + ` AS key, toString(platforms) AS listed, toInt64(count()) AS rows
			FROM events WHERE platforms != '' AND class = {class:UInt8} AND ` + kept + ` GROUP BY key, listed`,
		Parameters: parameters,
	})
	if err != nil {
		return err
	}
	for _, row := range named {
		for platform := range strings.SplitSeq(row.Platforms, rows.PlatformSeparator) {
			at(row.Key, platform).counts[stream.Pending] += int(row.Count)
		}
	}
	if len(named) == 0 {
		return nil
	}
	maps.Copy(parameters, m.recordBounds())
	found, err := all[deliveryRow](ctx, e, clickhouse.Query{
		SQL: `SELECT ` + key + ` AS key, toString(platform) AS to, record.3 AS status, record.6 AS reason,
			if(record.3 = 2 AND record.4 > 0, toInt64(least(record.5, {longest:UInt32})), toInt64(-1)) AS latency, toInt64(count()) AS rows
			FROM (` + countingSQL(kept) + `) GROUP BY key, to, status, reason, latency`,
		Parameters: parameters,
	})
	for _, row := range found {
		t, status := at(row.Key, row.Platform), stream.Status(row.Status)
		// Until a record says otherwise a delivery is pending.
		t.counts[stream.Pending] -= int(row.Count)
		t.counts[status] += int(row.Count)
		if row.Reason != "" {
			t.addReason(status, row.Reason, int(row.Count))
		}
		if row.Latency >= 0 {
			t.latencies[row.Latency] += int(row.Count)
		}
	}
	return err
}

// merge adds what others have counted.
func (t platformTallies) merge(others platformTallies) {
	for platform, o := range others {
		sum := t.of(platform)
		for status, count := range o.counts {
			sum.counts[status] += count
			for reason, count := range o.reasons[status] {
				sum.addReason(stream.Status(status), reason, count)
			}
		}
		for latency, count := range o.latencies {
			sum.latencies[latency] += count
		}
	}
}

// stats returns what was counted, by platform: of those that are listed, or of all.
func (t platformTallies) stats(listed []string) (list []analytics.DeliveryStats) {
	for _, platform := range slices.Sorted(maps.Keys(t)) {
		if len(listed) > 0 && !slices.Contains(listed, platform) {
			continue
		}
		d := t[platform]
		p50, p95 := percentiles(d.latencies)
		list = append(list, analytics.DeliveryStats{Platform: platform, Counts: d.counts, Reasons: d.reasons, LatencyP50: p50, LatencyP95: p95})
	}
	return list
}

// percentiles returns the smallest latencies that at least 50 % and 95 % do not exceed, nil where there are none.
func percentiles(latencies map[int64]int) (p50, p95 *time.Duration) {
	total := 0
	for _, count := range latencies {
		total += count
	}
	seen := 0
	for _, ms := range slices.Sorted(maps.Keys(latencies)) {
		seen += latencies[ms]
		latency := time.Duration(ms) * time.Millisecond
		if p50 == nil && 100*seen >= 50*total {
			p50 = &latency
		}
		if p95 == nil && 100*seen >= 95*total {
			p95 = &latency
		}
	}
	return p50, p95
}

// Deliveries returns what became of the deliveries of events that were received in ranges, which follow one another and do not
// overlap.
func (e *Engine) Deliveries(ctx context.Context, q analytics.DeliveriesQuery) (analytics.Deliveries, error) {
	m, err := e.now(ctx)
	if err != nil {
		return analytics.Deliveries{}, err
	}
	result, whole := analytics.Deliveries{Ranges: make([][]analytics.DeliveryStats, len(q.Ranges))}, platformTallies{}
	for _, b := range m.bucketsOf(q.Ranges) {
		parameters, kept := b.parameters(m), inRange
		parameters["class"] = int(event.Human)
		if len(q.Events) > 0 {
			parameters["names"] = q.Events
			kept += " AND has({names:Array(String)}, name)"
		}
		found := map[string]platformTallies{}
		if err := e.tally(ctx, m, "toString("+b.key()+")", kept, parameters, found); err != nil {
			return analytics.Deliveries{}, err
		}
		for _, begin := range b.begins {
			tallies := found[strconv.FormatUint(begin, 10)]
			result.Ranges[b.places[begin]] = tallies.stats(q.Platforms)
			whole.merge(tallies)
		}
	}
	result.Totals = whole.stats(q.Platforms)
	result.CompleteFrom, err = e.completeFrom(ctx)
	return result, err
}
