package analytics

import (
	"context"
	"math/bits"

	"github.com/weir-dev/weir/collector/analytics/columns"
	"github.com/weir-dev/weir/collector/event"
)

// totaller counts the rows that a filter keeps. Of what it counts with there is one for each worker.
type totaller struct {
	*snapshot
	selection *selection
	// kinds are nil where all rows are kept.
	kinds []rowKind
	// visitors and buyers have room for all visitors. What is in them is lost with the next count.
	visitors, buyers bitset
}

// newTotaller returns what counts the rows that a filter keeps. It fails with [ErrTooCostly] or [ErrBusy].
func (s *snapshot) newTotaller(f *selection) (t totaller, err error) {
	t = totaller{snapshot: s, selection: f}
	if err := s.reservation.grow(int64(len(s.VisitorKeys)/4 + totalBytes*len(s.Currencies))); err != nil {
		return t, err
	}
	t.buyers = newBitset(len(s.VisitorKeys))
	if !f.all() {
		t.visitors = newBitset(len(s.VisitorKeys))
		t.kinds, err = s.kinds()
	}
	return t, err
}

// count counts those of the rows that are kept.
func (t *totaller) count(ctx context.Context, rows columns.RowRange) (totals, error) {
	if t.selection.all() {
		return t.totalsOf(ctx, rows, t.buyers)
	}
	return t.filtered(ctx, rows)
}

// filtered is count for the rows of a filter that does not keep all.
func (t *totaller) filtered(ctx context.Context, rows columns.RowRange) (totals, error) {
	var result totals
	var counts [allKinds]int
	kinds, visitors := t.kinds, t.visitors
	clear(visitors)
	clear(t.buyers)
	buffer := make([]uint16, columns.ChunkRows)
	err := rows.Each(ctx, func(c columns.ChunkRange) {
		for _, row := range t.selection.rows(&c, buffer) {
			k, visitor := kinds[c.Name[row]], c.Visitor[row]
			counts[k%allKinds]++
			visitors.put(visitor)
			switch k {
			case purchaseKind:
				t.buyers.put(visitor)
				c.AddValue(row, &result.bought)
			case refundKind:
				c.AddValue(row, &result.refunded)
			}
		}
	})
	result.setCounts(&counts)
	result.visitors, result.buyers = visitors.countSomeone(), t.buyers.countSomeone()
	return result, err
}

// setCounts notes how many rows there are of each kind.
func (t *totals) setCounts(counts *[allKinds]int) {
	t.purchases, t.addToCarts, t.pageviews, t.refunds = counts[purchaseKind], counts[addToCartKind], counts[pageviewKind], counts[refundKind]
	for _, count := range counts[:humanKinds] {
		t.classes[event.Human] += count
	}
	copy(t.classes[event.Human+1:], counts[humanKinds:goneKind])
}

// put puts n into the set.
func (s bitset) put(n uint32) { s[n>>6] |= 1 << (n & 63) }

// countSomeone returns how many visitors are in the set, without nobody.
func (s bitset) countSomeone() int {
	count := -s.bit(0)
	for _, word := range s {
		count += bits.OnesCount64(word)
	}
	return count
}
