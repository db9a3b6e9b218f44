package analytics

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/stream"
)

// EventStats returns the numbers of every event name of a range, the largest count first, ties by name. It
// fails only where the context ends.
func (v *View) EventStats(ctx context.Context, r Range) ([]EventStats, error) {
	s, done := v.read()
	defer done()
	rows := s.in(r)
	tally := tallies{snapshot: s, byName: make([]*tally, len(s.names))}
	err := rows.each(ctx, tally.count)
	if err != nil {
		return nil, err
	}
	unique, err := s.uniqueByName(ctx, rows, tally.byName)
	if err != nil {
		return nil, err
	}
	var result []EventStats
	for name, t := range tally.byName {
		if t == nil {
			continue
		}
		result = append(result, EventStats{
			Event: s.names[name], Count: t.count, UniqueVisitors: unique[name], Value: t.value,
			Share:           rateOf(int64(t.count), int64(rows.len())),
			FirstReceivedAt: t.first.Time(), LastReceivedAt: t.last.Time(),
			Deliveries: t.deliveries(),
		})
	}
	slices.SortFunc(result, func(a, b EventStats) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), strings.Compare(a.Event, b.Event))
	})
	return result, nil
}

// tally counts the events of one name.
type tally struct {
	count       int
	value       event.Sum
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
	for i := c.from; i < c.to; i++ {
		t := ts.byName[c.name[i]]
		if t == nil {
			t = &tally{first: c.position[i], byPlatform: map[string]*deliveryTally{}}
			ts.byName[c.name[i]] = t
		}
		t.count++
		t.last = c.position[i]
		if uint32(c.currency[i]) == ts.reporting && c.value[i] != noValue {
			t.value.Add(c.value[i])
		}
		for slot, d := range t.listed(c.platforms[i], ts.platforms) {
			d.count(c.deliveries[slot][i])
		}
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

func (t *deliveryTally) count(d delivery) {
	status := d.status()
	t.counts[status]++
	if status == stream.Delivered && d.attempts > 0 {
		t.latencies.add(d.latency())
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

// uniqueByName returns the number of visitors per number of a name. The visitors' numbers are first put side
// by side for each name, so that one mark per visitor suffices to tell who has been counted.
func (s *snapshot) uniqueByName(ctx context.Context, rows span, byName []*tally) ([]int, error) {
	next := make([]int, len(byName)+1)
	for name, t := range byName {
		next[name+1] = next[name]
		if t != nil {
			next[name+1] += t.count
		}
	}
	visitors := make([]uint32, rows.len())
	err := rows.each(ctx, func(c stretch) {
		for i := c.from; i < c.to; i++ {
			name := c.name[i]
			visitors[next[name]] = c.visitor[i]
			next[name]++
		}
	})
	if err != nil {
		return nil, err
	}
	// Each name's next is now where the name behind it began.
	unique := make([]int, len(byName))
	countedFor := make([]uint32, len(s.keys))
	from := 0
	for name := range byName {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		for _, visitor := range visitors[from:next[name]] {
			if visitor != 0 && countedFor[visitor] != uint32(name)+1 {
				countedFor[visitor] = uint32(name) + 1
				unique[name]++
			}
		}
		from = next[name]
	}
	return unique, nil
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
