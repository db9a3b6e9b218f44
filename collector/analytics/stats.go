package analytics

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/weir-dev/weir/collector/stream"
)

// EventStats returns the numbers of every event name of a range, the largest count first, ties by name. It
// fails with [ErrReplaying] or where the context ends.
func (v *View) EventStats(ctx context.Context, r Range) (Stats, error) {
	s, done, err := v.read()
	if err != nil {
		return Stats{}, err
	}
	defer done()
	rows := s.in(r)
	tally := tallies{snapshot: s, byName: make([]*tally, len(s.names))}
	if err := rows.each(ctx, tally.count); err != nil {
		return Stats{}, err
	}
	unique, err := s.uniqueByName(ctx, rows, tally.byName)
	if err != nil {
		return Stats{}, err
	}
	var result []EventStats
	for name, t := range tally.byName {
		if t == nil {
			continue
		}
		result = append(result, EventStats{
			Event: s.names[name], Count: t.count, UniqueVisitors: unique[name],
			Value: t.values.in(s.reporting), ValueByCurrency: t.values.byCode(s.currencies),
			Share:           rateOf(int64(t.count), int64(rows.len())),
			FirstReceivedAt: t.first.Time(), LastReceivedAt: t.last.Time(),
			Deliveries: t.deliveries(),
		})
	}
	slices.SortFunc(result, func(a, b EventStats) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), strings.Compare(a.Event, b.Event))
	})
	return Stats{Events: result, CompleteFrom: s.completeFrom}, nil
}

// tally counts the events of one name.
type tally struct {
	count       int
	values      currencySums
	first, last stream.Position
	byPlatform  map[string]*deliveryTally
	// byList holds for a list of platforms, by its number, the tallies of its places.
	byList [][]*deliveryTally
}

// deliveryTally counts the deliveries of one name to one platform.
type deliveryTally struct {
	counts    [stream.Expired + 1]int
	latencies latencies
}

// tallies counts rows by the number of their name.
type tallies struct {
	*snapshot
	byName []*tally
}

func (ts *tallies) count(c stretch) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.whole() {
		for i := range c.sealed.names {
			n := &c.sealed.names[i]
			t := ts.of(n.name, c.position[n.rows[0]])
			t.count += len(n.rows)
			t.last = c.position[n.rows[len(n.rows)-1]]
			t.values.merge(n.values)
			t.countDeliveries(c.chunk, n.rows, ts.platforms)
		}
		return
	}
	for i := c.from; i < c.to; i++ {
		t := ts.of(c.name[i], c.position[i])
		t.count++
		t.last = c.position[i]
		if c.currency[i] != 0 && c.value[i] != noValue {
			t.values.of(c.currency[i]).add(c.value[i])
		}
		t.countDeliveries(c.chunk, []uint16{uint16(i)}, ts.platforms)
	}
}

// of returns the tally of a name; first is where its first event is if it is new.
func (ts *tallies) of(name uint32, first stream.Position) *tally {
	if ts.byName[name] == nil {
		ts.byName[name] = &tally{first: first, byPlatform: map[string]*deliveryTally{}}
	}
	return ts.byName[name]
}

// countDeliveries counts the deliveries of some rows of a chunk.
func (t *tally) countDeliveries(c *chunk, rows []uint16, lists []string) {
	for len(rows) > 0 {
		// Hardly ever does a property's list of platforms change.
		list, same := c.platforms[rows[0]], 1
		for same < len(rows) && c.platforms[rows[same]] == list {
			same++
		}
		for slot, d := range t.listed(list, lists) {
			d.count(c.deliveries[slot], rows[:same])
		}
		rows = rows[same:]
	}
}

// listed returns the tallies of the platforms of a list.
func (t *tally) listed(list uint16, lists []string) []*deliveryTally {
	if int(list) >= len(t.byList) {
		t.byList = append(t.byList, make([][]*deliveryTally, int(list)+1-len(t.byList))...)
	}
	if t.byList[list] == nil && lists[list] != "" {
		for name := range strings.SplitSeq(lists[list], platformSeparator) {
			if t.byPlatform[name] == nil {
				t.byPlatform[name] = &deliveryTally{}
			}
			t.byList[list] = append(t.byList[list], t.byPlatform[name])
		}
	}
	return t.byList[list]
}

func (t *deliveryTally) count(deliveries *[chunkRows]delivery, rows []uint16) {
	for _, row := range rows {
		d := deliveries[row]
		status := d.status()
		t.counts[status]++
		if status == stream.Delivered && d.attempts > 0 {
			t.latencies.add(d.latency())
		}
	}
}

// deliveries returns what was counted, by platform.
func (t *tally) deliveries() []DeliveryStats {
	var result []DeliveryStats
	for _, name := range slices.Sorted(maps.Keys(t.byPlatform)) {
		d := t.byPlatform[name]
		result = append(result, DeliveryStats{
			Platform: name, Counts: d.counts, LatencyP50: d.latencies.percentile(50), LatencyP95: d.latencies.percentile(95),
		})
	}
	return result
}

// uniques finds the number of visitors per name.
type uniques struct {
	// counts is by a name's number, as are the sets of visitors of frequent names and the lists of those of others: a
	// set takes room for all visitors, so that it is only for names that many have.
	counts []int
	sets   []numberSet
	lists  [][]uint32
}

// frequent is how many visitors there are at most for each event of a name that gets a set.
const frequent = 8

// uniqueByName returns the number of visitors per number of a name.
func (s *snapshot) uniqueByName(ctx context.Context, rows span, byName []*tally) ([]int, error) {
	u := uniques{counts: make([]int, len(byName)), sets: make([]numberSet, len(byName)), lists: make([][]uint32, len(byName))}
	for name, t := range byName {
		if t != nil && t.count >= len(s.keys)/frequent {
			u.sets[name] = make(numberSet, len(s.keys)/64+1)
		}
	}
	err := rows.each(ctx, func(c stretch) {
		if !c.whole() {
			for i := c.from; i < c.to; i++ {
				u.add(c.name[i], c.chunk, []uint16{uint16(i)})
			}
			return
		}
		for i := range c.sealed.names {
			u.add(c.sealed.names[i].name, c.chunk, c.sealed.names[i].rows)
		}
	})
	if err != nil {
		return nil, err
	}
	return u.counts, u.countLists(ctx, len(s.keys))
}

// add notes the visitors of a name's rows.
func (u *uniques) add(name uint32, c *chunk, rows []uint16) {
	if set := u.sets[name]; set != nil {
		for _, row := range rows {
			if visitor := c.visitor[row]; visitor != 0 && set.add(visitor) {
				u.counts[name]++
			}
		}
		return
	}
	for _, row := range rows {
		u.lists[name] = append(u.lists[name], c.visitor[row])
	}
}

// countLists counts the visitors of the names without a set: one mark per visitor tells for which name they
// were counted last.
func (u *uniques) countLists(ctx context.Context, limit int) error {
	countedFor := make([]uint32, limit)
	for name, visitors := range u.lists {
		if err := ctx.Err(); err != nil {
			return err
		}
		for _, visitor := range visitors {
			if visitor != 0 && countedFor[visitor] != uint32(name)+1 {
				countedFor[visitor] = uint32(name) + 1
				u.counts[name]++
			}
		}
	}
	return nil
}

// latencies counts milliseconds exactly, in pages that are made when a latency falls into them.
type latencies struct {
	pages []*[latencyPage]uint32
	total int
}

const latencyPage = 256

func (l *latencies) add(ms uint32) {
	page := int(ms / latencyPage)
	if page >= len(l.pages) {
		l.pages = append(l.pages, make([]*[latencyPage]uint32, page+1-len(l.pages))...)
	}
	if l.pages[page] == nil {
		l.pages[page] = new([latencyPage]uint32)
	}
	l.pages[page][ms%latencyPage]++
	l.total++
}

// percentile returns the smallest latency that at least percent of all do not exceed, nil where there is none.
func (l *latencies) percentile(percent int) *time.Duration {
	wanted := (l.total*percent + 99) / 100
	if wanted == 0 {
		return nil
	}
	seen := 0
	for page, counts := range l.pages {
		if counts == nil {
			continue
		}
		for ms, count := range counts {
			if seen += int(count); seen >= wanted {
				latency := time.Duration(page*latencyPage+ms) * time.Millisecond
				return &latency
			}
		}
	}
	return nil
}
