package analytics

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/weir-dev/weir/collector/analytics/columns"
	"github.com/weir-dev/weir/collector/stream"
)

// EventStats returns a page of the numbers of the event names of a range, the largest count first, ties by name. It
// fails with [ErrReplaying], [ErrTooCostly], [ErrBusy] or where the context ends.
func (v *View) EventStats(ctx context.Context, q StatsQuery) (Stats, error) {
	return runQuery(ctx, v, nil, func(ctx context.Context, s *snapshot) (Stats, error) { return s.eventStats(ctx, q) })
}

func (s *snapshot) eventStats(ctx context.Context, q StatsQuery) (Stats, error) {
	rows := s.in(q.Range)
	result := Stats{CompleteFrom: s.completeFrom}
	// Names are counted first, so that only those of the page cost more than a number each.
	if err := s.reservation.growFor(len(s.Names), 16); err != nil {
		return Stats{}, err
	}
	counts, err := s.countNames(ctx, rows)
	if err != nil {
		return Stats{}, err
	}
	all := 0
	for name, count := range counts {
		switch {
		case count == 0: // whose name may be another's meanwhile
		case s.Names[name].Class != q.Class:
			counts[name] = 0
		default:
			all += int(count)
		}
	}
	page := s.statsPage(counts, q, &result)
	tally := tallies{snapshot: s, byName: make([]*tally, len(s.Names))}
	if err := tally.prepare(page); err != nil {
		return Stats{}, err
	}
	if err := rows.Each(ctx, tally.count); err != nil {
		return Stats{}, err
	}
	unique, err := s.countVisitors(ctx, rows, page, tally.byName)
	if err != nil {
		return Stats{}, err
	}
	for i, name := range page {
		t := tally.byName[name]
		result.Events = append(result.Events, EventStats{
			Event: s.Names[name].Event, Count: t.count, UniqueVisitors: unique[i],
			Value: t.values.In(s.reporting).Total, ValueByCurrency: byCode(t.values, s.Currencies),
			Share:           rateOf(int64(t.count), int64(all)),
			FirstReceivedAt: t.first.Time(), LastReceivedAt: t.last.Time(),
			Deliveries: t.deliveries(s),
		})
	}
	return result, nil
}

// countNames returns by the number of a name how many rows have it.
func (s *snapshot) countNames(ctx context.Context, rows columns.RowRange) ([]uint32, error) {
	counts := make([]uint32, len(s.Names))
	err := rows.Each(ctx, func(c columns.ChunkRange) {
		index := c.Index()
		if index == nil {
			for _, name := range c.Name[c.From:c.To] {
				counts[name]++
			}
			return
		}
		for i := range index.Names {
			counts[index.Names[i].Name] += uint32(len(index.Names[i].Rows))
		}
	})
	return counts, err
}

// statsPage returns the numbers of a page's names in order, and notes in the result what follows it.
func (s *snapshot) statsPage(counts []uint32, q StatsQuery, result *Stats) []uint32 {
	inOrder := func(a, b StatsPlace) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), strings.Compare(a.Event, b.Event))
	}
	place := func(name uint32) StatsPlace { return StatsPlace{int(counts[name]), s.Names[name].Event} }
	// page is kept in order, and has one name more than asked for where there are so many.
	var page []uint32
	for number, count := range counts {
		name := uint32(number)
		if count == 0 {
			continue
		}
		at := place(name)
		if q.After != (StatsPlace{}) && inOrder(at, q.After) <= 0 {
			continue
		}
		result.OtherNames++
		result.OtherCount += int(count)
		if len(page) > q.Limit {
			if inOrder(at, place(page[q.Limit])) > 0 {
				continue
			}
			page = page[:q.Limit]
		}
		i, _ := slices.BinarySearchFunc(page, at, func(name uint32, at StatsPlace) int { return inOrder(place(name), at) })
		page = slices.Insert(page, i, name)
	}
	if len(page) > q.Limit {
		page = page[:q.Limit]
		result.Next = place(page[q.Limit-1])
	}
	result.OtherNames -= len(page)
	for _, name := range page {
		result.OtherCount -= int(counts[name])
	}
	return page
}

// tally counts the events of one name.
type tally struct {
	count       int
	values      columns.Sums
	first, last stream.Position
	byPlatform  map[string]*deliveryTally
	// byList holds for a list of platforms, by its number, the tallies of its places.
	byList [][]*deliveryTally
	// reservation pays for what grows with what is counted.
	reservation *reservation
}

// deliveryTally counts the deliveries of one name to one platform.
type deliveryTally struct {
	counts    [stream.Expired + 1]int
	latencies latencies
	// skipped counts those that were skipped by the number of their reason; nil where none was.
	skipped map[uint16]int
}

// tallies counts rows by the number of their name.
type tallies struct {
	*snapshot
	byName []*tally
}

func (ts *tallies) count(c columns.ChunkRange) {
	c.Lock()
	defer c.Unlock()
	if index := c.Index(); index != nil {
		for i := range index.Names {
			n := &index.Names[i]
			t := ts.byName[n.Name]
			if t == nil {
				continue
			}
			t.begin(c.Position[n.Rows[0]])
			t.count += len(n.Rows)
			t.last = c.Position[n.Rows[len(n.Rows)-1]]
			t.values.Merge(n.Values)
			t.countDeliveries(c.Chunk, n.Rows, ts.Platforms)
		}
		return
	}
	for i := c.From; i < c.To; i++ {
		t := ts.byName[c.Name[i]]
		if t == nil {
			continue
		}
		t.begin(c.Position[i])
		t.count++
		t.last = c.Position[i]
		one := []uint16{uint16(i)}
		c.AddValues(c.Name[i], one, &t.values)
		t.countDeliveries(c.Chunk, one, ts.Platforms)
	}
}

// tallyBytes is about what a tally takes beside its deliveries, and deliveryTallyBytes what one of those takes.
const (
	tallyBytes         = 1 << 10
	deliveryTallyBytes = 256
)

// prepare makes the tallies of the names that are to be counted.
func (ts *tallies) prepare(page []uint32) error {
	if err := ts.reservation.growFor(len(page), tallyBytes); err != nil {
		return err
	}
	for _, name := range page {
		ts.byName[name] = &tally{byPlatform: map[string]*deliveryTally{}, reservation: ts.reservation}
	}
	return nil
}

// begin notes where the first event is.
func (t *tally) begin(first stream.Position) {
	if t.count == 0 {
		t.first = first
	}
}

// countDeliveries counts the deliveries of some rows of a chunk.
func (t *tally) countDeliveries(c *columns.Chunk, rows []uint16, lists []columns.PlatformList) {
	for len(rows) > 0 {
		// Hardly ever does a property's list of platforms change.
		list, same := c.Platforms[rows[0]], 1
		for same < len(rows) && c.Platforms[rows[same]] == list {
			same++
		}
		for place, d := range t.listed(list, lists) {
			d.count(c.Deliveries[place], rows[:same], t.reservation)
		}
		rows = rows[same:]
	}
}

// listed returns the tallies of the platforms of a list.
func (t *tally) listed(list uint16, lists []columns.PlatformList) []*deliveryTally {
	if int(list) >= len(t.byList) {
		t.byList = append(t.byList, make([][]*deliveryTally, int(list)+1-len(t.byList))...)
	}
	if t.byList[list] == nil && lists[list] != "" {
		for _, name := range lists[list].All() {
			if t.byPlatform[name] == nil {
				_ = t.reservation.grow(deliveryTallyBytes) // where it fails the query ends with this chunk
				t.byPlatform[name] = &deliveryTally{}
			}
			t.byList[list] = append(t.byList[list], t.byPlatform[name])
		}
	}
	return t.byList[list]
}

func (t *deliveryTally) count(deliveries *[columns.ChunkRows]columns.Delivery, rows []uint16, reservation *reservation) {
	for _, row := range rows {
		d := deliveries[row]
		status := d.Status()
		t.counts[status]++
		if status == stream.Skipped {
			if t.skipped == nil {
				t.skipped = map[uint16]int{}
			}
			t.skipped[d.ReasonNumber()]++
		}
		if status == stream.Delivered && d.Attempts() > 0 {
			t.latencies.add(d.Latency(), reservation)
		}
	}
}

// deliveries returns what was counted in a snapshot, by platform.
func (t *tally) deliveries(s *snapshot) []DeliveryStats {
	var result []DeliveryStats
	for _, name := range slices.Sorted(maps.Keys(t.byPlatform)) {
		d := t.byPlatform[name]
		reasons := [stream.Expired + 1]map[string]int{stream.Skipped: d.skippedByReason(s)}
		result = append(result, DeliveryStats{
			Platform: name, Counts: d.counts, Reasons: reasons, LatencyP50: d.latencies.percentile(50), LatencyP95: d.latencies.percentile(95),
		})
	}
	return result
}

// skippedByReason returns how many were skipped for each reason, nil where none was.
func (t *deliveryTally) skippedByReason(s *snapshot) map[string]int {
	if t.skipped == nil {
		return nil
	}
	byReason := make(map[string]int, len(t.skipped))
	for number, count := range t.skipped {
		byReason[s.ReasonText(number)] += count
	}
	return byReason
}

// uniques finds the number of visitors of some names.
type uniques struct {
	// counts is by a name's place in the page, as are the sets of visitors of frequent names and the lists of those of
	// others: a set takes room for all visitors, so that it is only for names that many have.
	counts []int
	sets   []bitset
	lists  [][]uint32
	// places is by a name's number its place in the page plus 1, 0 for none.
	places []uint32
}

// frequent is how many visitors there are at most for each event of a name that gets a set.
const frequent = 8

// countVisitors returns the number of visitors of each name of a page.
func (s *snapshot) countVisitors(ctx context.Context, rows columns.RowRange, page []uint32, byName []*tally) ([]int, error) {
	u := uniques{
		counts: make([]int, len(page)), sets: make([]bitset, len(page)), lists: make([][]uint32, len(page)),
		places: make([]uint32, len(s.Names)),
	}
	if err := s.reservation.grow(int64(4*len(s.Names) + 4*len(s.VisitorKeys))); err != nil {
		return nil, err
	}
	for i, name := range page {
		u.places[name] = uint32(i) + 1
		count := byName[name].count
		if count >= len(s.VisitorKeys)/frequent {
			if err := s.reservation.growFor(len(s.VisitorKeys)/64+1, 8); err != nil {
				return nil, err
			}
			u.sets[i] = newBitset(len(s.VisitorKeys))
			continue
		}
		if err := s.reservation.growFor(count, 4); err != nil {
			return nil, err
		}
		u.lists[i] = make([]uint32, 0, count)
	}
	err := rows.Each(ctx, func(c columns.ChunkRange) {
		index := c.Index()
		if index == nil {
			for i := c.From; i < c.To; i++ {
				u.add(c.Name[i], c.Chunk, []uint16{uint16(i)})
			}
			return
		}
		for i := range index.Names {
			u.add(index.Names[i].Name, c.Chunk, index.Names[i].Rows)
		}
	})
	if err != nil {
		return nil, err
	}
	return u.counts, u.countLists(ctx, len(s.VisitorKeys))
}

// add notes the visitors of a name's rows.
func (u *uniques) add(name uint32, c *columns.Chunk, rows []uint16) {
	i := int(u.places[name]) - 1
	if i < 0 {
		return
	}
	if set := u.sets[i]; set != nil {
		for _, row := range rows {
			if visitor := c.Visitor[row]; visitor != 0 && set.add(visitor) {
				u.counts[i]++
			}
		}
		return
	}
	for _, row := range rows {
		u.lists[i] = append(u.lists[i], c.Visitor[row])
	}
}

// countLists counts the visitors of the names without a set: one mark per visitor tells for which name they
// were counted last.
func (u *uniques) countLists(ctx context.Context, limit int) error {
	countedFor := make([]uint32, limit)
	for i, visitors := range u.lists {
		if err := ctx.Err(); err != nil {
			return err
		}
		for _, visitor := range visitors {
			if visitor != 0 && countedFor[visitor] != uint32(i)+1 {
				countedFor[visitor] = uint32(i) + 1
				u.counts[i]++
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

func (l *latencies) add(ms uint32, reservation *reservation) {
	page := int(ms / latencyPage)
	if page >= len(l.pages) {
		_ = reservation.growFor(page+1-len(l.pages), 16) // where it fails the query ends with this chunk
		l.pages = append(l.pages, make([]*[latencyPage]uint32, page+1-len(l.pages))...)
	}
	if l.pages[page] == nil {
		_ = reservation.grow(4 * latencyPage)
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
