package analytics

import "github.com/weir-dev/weir/collector/analytics/columns"

// breakPart is what one worker counts.
type breakPart struct {
	*breaker
	rows             columns.RowRange
	counts           []groupCounts
	earned           map[uint32]*earnings
	visitors, buyers distinct

	// buffer and grouper are for the chunk at hand; sold are the places among the members of rows whose money counts.
	buffer  []uint16
	grouper grouper
	sold    []int
}

// tally counts events and money.
func (p *breakPart) tally(c *columns.ChunkRange, m *members) {
	kinds, counts := p.kinds, p.counts
	p.sold = p.sold[:0]
	for i, group := range m.groups {
		k := kinds[c.Name[m.rows[i]]]
		counts[group][k%8]++
		if k.isSale() {
			p.sold = append(p.sold, i)
		}
	}
	p.earn(c, m)
}

// tallyAndSee is tally and see where each group has a set, which is that of its number.
func (p *breakPart) tallyAndSee(c *columns.ChunkRange, m *members) {
	kinds, counts, sets, stride := p.kinds, p.counts, p.visitors.sets, p.visitors.stride
	p.sold = p.sold[:0]
	for i, group := range m.groups {
		row := m.rows[i]
		k, visitor := kinds[c.Name[row]], c.Visitor[row]
		counts[group][k%8]++
		sets[int(group)*stride+int(visitor>>6)] |= 1 << (visitor & 63)
		if k.isSale() {
			p.sold = append(p.sold, i)
		}
	}
	for _, i := range p.sold {
		if row := m.rows[i]; kinds[c.Name[row]] == purchaseKind {
			p.buyers.add(m.groups[i], c.Visitor[row])
		}
	}
	p.earn(c, m)
}

// earn counts the money of what was sold. It is looked up apart, behind each other, since it seldom is in the processor's
// cache.
func (p *breakPart) earn(c *columns.ChunkRange, m *members) {
	if !m.withSales {
		for _, i := range p.sold {
			row := m.rows[i]
			c.AddValue(row, p.earningsOf(p.earned, m.groups[i]).of(p.kinds[c.Name[row]]))
		}
		return
	}
	for i := range m.sales {
		sale := &m.sales[i]
		if k := p.kinds[c.Name[sale.Row]]; k.isSale() {
			p.earningsOf(p.earned, sale.Product).sell(k, c.Currency[sale.Row], sale)
		}
	}
}

// see notes the visitors of the groups that are asked for.
func (p *breakPart) see(c *columns.ChunkRange, m *members) {
	kinds, places := p.kinds, p.places
	for i, group := range m.groups {
		place := places[group]
		if place == 0 {
			continue
		}
		row := m.rows[i]
		visitor := c.Visitor[row]
		p.visitors.add(place-1, visitor)
		if kinds[c.Name[row]] == purchaseKind {
			p.buyers.add(place-1, visitor)
		}
	}
}
