package analytics

import (
	"context"
	"maps"
	"slices"

	"github.com/weir-dev/weir/collector/analytics/columns"
	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/stream"
)

// Deliveries returns what became of the deliveries of events that were received in ranges, which follow one another and do not
// overlap. It fails with [ErrReplaying], [ErrTooCostly], [ErrBusy] or where the context ends.
func (v *View) Deliveries(ctx context.Context, q DeliveriesQuery) (Deliveries, error) {
	return runQuery(ctx, v, namesOf(event.Human, q.Events...), func(ctx context.Context, s *snapshot) (Deliveries, error) { return s.deliveriesOf(ctx, q) })
}

func (s *snapshot) deliveriesOf(ctx context.Context, q DeliveriesQuery) (Deliveries, error) {
	result := Deliveries{Ranges: make([][]DeliveryStats, len(q.Ranges)), CompleteFrom: s.completeFrom}
	names := s.named(event.Human, false, len(q.Events) > 0)
	own, all := newDeliveryTallies(s, q.Platforms), newDeliveryTallies(s, q.Platforms)
	buffer := make([]uint16, 0, columns.ChunkRows)
	for i, r := range q.Ranges {
		rows := s.in(r)
		err := rows.Each(ctx, func(c columns.ChunkRange) {
			found := names.rows(&c, buffer)
			c.Lock()
			defer c.Unlock()
			own.count(c.Chunk, found)
		})
		if err != nil {
			return Deliveries{}, err
		}
		result.Ranges[i] = own.stats()
		own.moveTo(&all)
	}
	result.Totals = all.stats()
	return result, nil
}

// deliveryTallies count the deliveries of some events, by platform.
type deliveryTallies struct {
	*snapshot
	// platforms are those whose deliveries are counted; empty for all.
	platforms  []string
	byPlatform map[string]*deliveryTally
	// byList holds for a list of platforms, by its number, the tallies of its places, nil for one that is not counted.
	byList [][]*deliveryTally
}

// deliveryTally counts deliveries to one platform.
type deliveryTally struct {
	counts    [stream.Expired + 1]int
	latencies latencies
	// reasons counts those that have a reason.
	reasons map[statusReason]int
}

// statusReason is a status and the number of the reason for it.
type statusReason struct {
	status stream.Status
	reason uint16
}

// What the tally of a platform takes beside latencies, about, its statistics in an answer, and a reason in one of both.
const (
	deliveryTallyBytes = 256
	deliveryStatsBytes = 512
	reasonBytes        = 64
)

func newDeliveryTallies(s *snapshot, platforms []string) deliveryTallies {
	return deliveryTallies{snapshot: s, platforms: platforms, byPlatform: map[string]*deliveryTally{}}
}

// count counts the deliveries of some rows of a chunk. The caller holds its lock.
func (t *deliveryTallies) count(c *columns.Chunk, rows []uint16) {
	for len(rows) > 0 {
		// Hardly ever does a property's list of platforms change.
		list, same := c.Platforms[rows[0]], 1
		for same < len(rows) && c.Platforms[rows[same]] == list {
			same++
		}
		for place, d := range t.listed(list) {
			if d != nil {
				d.count(c.Deliveries[place], rows[:same], t.reservation)
			}
		}
		rows = rows[same:]
	}
}

// listed returns the tallies of the platforms of a list.
func (t *deliveryTallies) listed(list uint16) []*deliveryTally {
	if int(list) >= len(t.byList) {
		t.byList = append(t.byList, make([][]*deliveryTally, int(list)+1-len(t.byList))...)
	}
	if t.byList[list] == nil && t.Platforms[list] != "" {
		for _, name := range t.Platforms[list].All() {
			if len(t.platforms) > 0 && !slices.Contains(t.platforms, name) {
				t.byList[list] = append(t.byList[list], nil)
				continue
			}
			t.byList[list] = append(t.byList[list], t.of(name))
		}
	}
	return t.byList[list]
}

// of returns the tally of a platform.
func (t *deliveryTallies) of(platform string) *deliveryTally {
	d := t.byPlatform[platform]
	if d == nil {
		_ = t.reservation.grow(deliveryTallyBytes) // where it fails the query ends with this chunk
		d = &deliveryTally{reasons: map[statusReason]int{}}
		t.byPlatform[platform] = d
	}
	return d
}

func (t *deliveryTally) count(deliveries *[columns.ChunkRows]columns.Delivery, rows []uint16, reservation *reservation) {
	for _, row := range rows {
		d := deliveries[row]
		status := d.Status()
		t.counts[status]++
		if reason := d.ReasonNumber(); reason != 0 {
			t.addReason(statusReason{status, reason}, 1, reservation)
		}
		if status == stream.Delivered && d.Attempts() > 0 {
			t.latencies.add(d.Latency(), reservation)
		}
	}
}

func (t *deliveryTally) addReason(reason statusReason, count int, reservation *reservation) {
	before := len(t.reasons)
	t.reasons[reason] += count
	if len(t.reasons) > before {
		_ = reservation.grow(reasonBytes) // where it fails the query ends with this chunk
	}
}

// moveTo adds what was counted to other tallies and begins anew.
func (t *deliveryTallies) moveTo(to *deliveryTallies) {
	for platform, d := range t.byPlatform {
		if d.counted() == 0 {
			continue
		}
		sum := to.of(platform)
		for status, count := range d.counts {
			sum.counts[status] += count
		}
		for reason, count := range d.reasons {
			sum.addReason(reason, count, t.reservation)
		}
		d.latencies.moveTo(&sum.latencies, t.reservation)
		d.counts = [stream.Expired + 1]int{}
		clear(d.reasons)
	}
}

// counted is how many deliveries were counted.
func (t *deliveryTally) counted() (count int) {
	for _, of := range t.counts {
		count += of
	}
	return count
}

// stats returns what was counted, by platform.
func (t *deliveryTallies) stats() []DeliveryStats {
	var result []DeliveryStats
	for _, name := range slices.Sorted(maps.Keys(t.byPlatform)) {
		d := t.byPlatform[name]
		if d.counted() == 0 {
			continue
		}
		_ = t.reservation.grow(int64(deliveryStatsBytes + reasonBytes*len(d.reasons))) // as above
		stats := DeliveryStats{
			Platform: name, Counts: d.counts, LatencyP50: d.latencies.percentile(50), LatencyP95: d.latencies.percentile(95),
		}
		for reason, count := range d.reasons {
			if stats.Reasons[reason.status] == nil {
				stats.Reasons[reason.status] = map[string]int{}
			}
			stats.Reasons[reason.status][t.ReasonText(reason.reason)] += count
		}
		result = append(result, stats)
	}
	return result
}
