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
	"github.com/weir-dev/weir/collector/history/schema"
	"github.com/weir-dev/weir/collector/stream"
)

// deliveryRow counts deliveries of a kind.
type deliveryRow struct {
	Key      string `ch:"key"`
	Platform string `ch:"to"`
	Status   uint8  `ch:"status"`
	Reason   string `ch:"reason"`
	// Latency is that of delivered ones in milliseconds, -1 for the others and for those without an attempt.
	Latency int64 `ch:"took"`
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

// tally counts the deliveries of the events of a class that a condition about their name keeps, by a key, which is SQL given that of
// a position.
func (e *Engine) tally(ctx context.Context, m moment, key func(at string) string, kept string, parameters map[string]any, into map[string]platformTallies) error {
	at := func(key, platform string) *deliveryTally {
		if into[key] == nil {
			into[key] = platformTallies{}
		}
		return into[key].of(platform)
	}
	named, err := all[namedRow](ctx, e, clickhouse.Query{SQL: namedSQL(key, kept), Parameters: parameters})
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
	found, err := all[deliveryRow](ctx, e, clickhouse.Query{SQL: deliveriesSQL(key, kept), Parameters: parameters})
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

// namedSQL counts events by key and the platforms that they name.
func namedSQL(key func(at string) string, kept string) string {
	count := func(at, in string) string {
		return "SELECT " + key(at) + " AS key, platforms, count() AS events FROM events WHERE " + ofClass + " AND platforms != '' AND " + in + " AND " + kept +
			" GROUP BY key, platforms"
	}
	return "SELECT key, toString(platforms) AS listed, toInt64(sum(events)) AS rows FROM (" +
		count(quarterAt, inQuarters) + " UNION ALL " + count("at", inEdges) + ") GROUP BY key, listed"
}

// deliveriesSQL counts deliveries by kind. Nearly all have one record, the first, and are counted by it; of the others the first is
// taken out of the count and the one that counts is put in.
func deliveriesSQL(key func(at string) string, kept string) string {
	const kind = " GROUP BY key, to, status, reason, took"
	count := func(at, in string) string {
		return "SELECT " + key(at) + " AS key, toString(platform) AS to, status, toString(reason) AS reason, " + schema.Took + " AS took, toInt64(count()) AS count" +
			" FROM records WHERE again = 0 AND status <= {expired:UInt8} AND " + in + " AND " + kept + kind
	}
	const changes = "(record, 1)], arrayMap(r -> (r, -1), arrayFilter(r -> r.8 = 0, said))"
	several := countingSQL(inRange + " AND " + kept + " AND at IN (SELECT at FROM records WHERE again = 1 AND " + knownRecords + " AND " + inRange + " AND " + kept + ")")
	return "SELECT key, to, status, reason, took, sum(count) AS rows FROM (" + count(quarterAt, inQuarters) +
		" UNION ALL " + count("at", inEdges+" AND entry <= {records:UInt64}") +
		" UNION ALL SELECT key, to, status, reason, " + schema.Took + " AS took, toInt64(sum(change)) AS count FROM (SELECT " + key("at") +
		" AS key, toString(platform) AS to, changed.1.3 AS status, changed.1.6 AS reason, changed.1.4 AS attempts, changed.1.5 AS latency, changed.2 AS change" +
		" FROM (SELECT at, platform, name, arrayJoin(arrayConcat([" + changes + ")) AS changed FROM (" + several + ")))" + kind +
		")" + kind + " HAVING rows != 0"
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
		parameters, kept := b.parameters(m), everything
		parameters["class"] = int(event.Human)
		if len(q.Events) > 0 {
			parameters["names"] = q.Events
			kept = "has({names:Array(String)}, name)"
		}
		found := map[string]platformTallies{}
		key := func(at string) string { return "toString(" + b.key(at) + ")" }
		if err := e.tally(ctx, m, key, kept, parameters, found); err != nil {
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
