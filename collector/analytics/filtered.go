package analytics

import (
	"context"
	"math/bits"

	"github.com/weir-dev/weir/collector/analytics/columns"
	"github.com/weir-dev/weir/collector/event"
)

// totaller counts the rows that a filter keeps.
type totaller struct {
	*snapshot
	selection *selection
	// kinds are nil where all rows are kept.
	kinds []rowKind
	// parts are what each worker counts with. What is in them is lost with the next count.
	parts []totalsPart
}

// totalsPart has room for all visitors, and for a chunk's rows.
type totalsPart struct {
	visitors, buyers bitset
	buffer, sold     []uint16
	money            []columns.Money
	totals           totals
	counts           [allKinds]int
}

// newTotaller returns what counts the rows that a filter keeps. It fails with [ErrTooCostly] or [ErrBusy].
func (s *snapshot) newTotaller(f *selection) (t totaller, err error) {
	t = totaller{snapshot: s, selection: f}
	if !f.all() {
		if t.kinds, err = s.kinds(); err != nil {
			return t, err
		}
	}
	return t, t.grow(1)
}

// grow makes room for a number of workers.
func (t *totaller) grow(workers int) error {
	for len(t.parts) < workers {
		if err := t.reservation.grow(int64(len(t.VisitorKeys)/4 + totalBytes*len(t.Currencies))); err != nil {
			return err
		}
		part := totalsPart{buyers: newBitset(len(t.VisitorKeys))}
		if !t.selection.all() {
			part.visitors = newBitset(len(t.VisitorKeys))
			part.buffer, part.sold = make([]uint16, columns.ChunkRows), make([]uint16, columns.ChunkRows)
		}
		t.parts = append(t.parts, part)
	}
	return nil
}

// count counts those of the rows that are kept.
func (t *totaller) count(ctx context.Context, rows columns.RowRange) (totals, error) {
	if t.selection.all() {
		return t.totalsOf(ctx, rows, t.parts[0].buyers)
	}
	ranges := t.split(rows)
	if err := t.grow(len(ranges)); err != nil {
		return totals{}, err
	}
	parts := t.parts[:len(ranges)]
	if err := together(len(parts), func(part int) error { return t.countPart(ctx, ranges[part], &parts[part]) }); err != nil {
		return totals{}, err
	}
	all := &parts[0]
	for i := range parts[1:] {
		all.merge(&parts[1+i])
	}
	all.totals.setCounts(&all.counts)
	all.totals.visitors, all.totals.buyers = all.visitors.countSomeone(), all.buyers.countSomeone()
	return all.totals, nil
}

// countPart counts what one worker has to.
func (t *totaller) countPart(ctx context.Context, rows columns.RowRange, p *totalsPart) error {
	kinds, visitors := t.kinds, p.visitors
	clear(visitors)
	clear(p.buyers)
	p.counts, p.totals = [allKinds]int{}, totals{}
	return rows.Each(ctx, func(c columns.ChunkRange) {
		sold := p.sold[:0]
		for _, row := range t.selection.rows(&c, p.buffer) {
			k := kinds[c.Name[row]]
			p.counts[k%allKinds]++
			visitors.put(c.Visitor[row])
			if k.isSale() {
				sold = append(sold, row)
			}
		}
		p.money = c.Money(sold, p.money)
		for i, row := range sold {
			if kinds[c.Name[row]] == purchaseKind {
				p.buyers.put(c.Visitor[row])
				p.totals.bought.Add(p.money[i])
			} else {
				p.totals.refunded.Add(p.money[i])
			}
		}
	})
}

// merge adds what another worker has counted.
func (p *totalsPart) merge(o *totalsPart) {
	p.visitors.merge(o.visitors)
	p.buyers.merge(o.buyers)
	p.totals.bought.Merge(o.totals.bought)
	p.totals.refunded.Merge(o.totals.refunded)
	for k, rows := range o.counts {
		p.counts[k] += rows
	}
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

// merge adds what another set of the same size has.
func (s bitset) merge(o bitset) {
	for i, word := range o {
		s[i] |= word
	}
}

// countSomeone returns how many visitors are in the set, without nobody.
func (s bitset) countSomeone() int {
	count := -s.bit(0)
	for _, word := range s {
		count += bits.OnesCount64(word)
	}
	return count
}
