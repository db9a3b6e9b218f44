package analytics

import (
	"cmp"
	"context"
	"slices"
	"strings"

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
			Share:           RateOf(int64(t.count), int64(all)),
			FirstReceivedAt: t.first.Time(), LastReceivedAt: t.last.Time(),
			Deliveries: t.deliveries.stats(),
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
	deliveries  deliveryTallies
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
			t.deliveries.count(c.Chunk, n.Rows)
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
		t.deliveries.count(c.Chunk, one)
	}
}

// tallyBytes is about what a tally takes beside its deliveries.
const tallyBytes = 1 << 10

// prepare makes the tallies of the names that are to be counted.
func (ts *tallies) prepare(page []uint32) error {
	if err := ts.reservation.growFor(len(page), tallyBytes); err != nil {
		return err
	}
	for _, name := range page {
		ts.byName[name] = &tally{deliveries: newDeliveryTallies(ts.snapshot, nil)}
	}
	return nil
}

// begin notes where the first event is.
func (t *tally) begin(first stream.Position) {
	if t.count == 0 {
		t.first = first
	}
}

// countVisitors returns the number of visitors of each name of a page.
func (s *snapshot) countVisitors(ctx context.Context, rows columns.RowRange, page []uint32, byName []*tally) ([]int, error) {
	if err := s.reservation.growFor(len(s.Names), 4); err != nil {
		return nil, err
	}
	// places is by a name's number its place in the page plus 1, 0 for none.
	places, counts := make([]uint32, len(s.Names)), make([]uint32, len(page))
	for i, name := range page {
		places[name], counts[i] = uint32(i)+1, uint32(byName[name].count)
	}
	visitors, err := s.newDistinct(counts, counts)
	if err != nil {
		return nil, err
	}
	err = rows.Each(ctx, func(c columns.ChunkRange) {
		index := c.Index()
		if index == nil {
			for row := c.From; row < c.To; row++ {
				if place := places[c.Name[row]]; place != 0 {
					visitors.add(place-1, c.Visitor[row])
				}
			}
			return
		}
		for i := range index.Names {
			n := &index.Names[i]
			if place := places[n.Name]; place != 0 {
				for _, row := range n.Rows {
					visitors.add(place-1, c.Visitor[row])
				}
			}
		}
	})
	if err != nil {
		return nil, err
	}
	return s.countDistinct(ctx, []distinct{visitors})
}
