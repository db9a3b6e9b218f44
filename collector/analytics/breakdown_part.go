package analytics

import "github.com/weir-dev/weir/collector/analytics/columns"

// breakPart is what one worker counts.
type breakPart struct {
	*breaker
	rows columns.RowRange
	// counts and earned are by group.
	counts           []groupCounts
	earned           []*earnings
	visitors, buyers distinct

	// buffer and grouper are for the chunk at hand; sold are rows whose money counts, with their groups and what they are worth.
	buffer     []uint16
	grouper    grouper
	sold       []uint16
	soldGroups []uint32
	money      []columns.Money
}

// tally counts events and money.
func (p *breakPart) tally(c *columns.ChunkRange, m *members) {
	kinds, counts := p.kinds, p.counts
	p.sold, p.soldGroups = p.sold[:0], p.soldGroups[:0]
	for i, group := range m.groups {
		row := m.rows[i]
		k := kinds[c.Name[row]]
		counts[group][k%8]++
		if k.isSale() {
			p.sold, p.soldGroups = append(p.sold, row), append(p.soldGroups, group)
		}
	}
	p.earn(c, m)
}

// tallyAndSee is tally and see where each group has a set, which is that of its number.
func (p *breakPart) tallyAndSee(c *columns.ChunkRange, m *members) {
	kinds, counts, sets, stride := p.kinds, p.counts, p.visitors.sets, p.visitors.stride
	p.sold, p.soldGroups = p.sold[:0], p.soldGroups[:0]
	for i, group := range m.groups {
		row := m.rows[i]
		k, visitor := kinds[c.Name[row]], c.Visitor[row]
		counts[group][k%8]++
		sets[int(group)*stride+int(visitor>>6)] |= 1 << (visitor & 63)
		if k.isSale() {
			p.sold, p.soldGroups = append(p.sold, row), append(p.soldGroups, group)
		}
	}
	for i, row := range p.sold {
		if kinds[c.Name[row]] == purchaseKind {
			p.buyers.add(p.soldGroups[i], c.Visitor[row])
		}
	}
	p.earn(c, m)
}

// earn counts the money of what was sold.
func (p *breakPart) earn(c *columns.ChunkRange, m *members) {
	if m.withSales {
		for i := range m.sales {
			sale := &m.sales[i]
			if k := p.kinds[c.Name[sale.Row]]; k.isSale() {
				p.earningsOf(p.earned, sale.Product).sell(k, c.Currency[sale.Row], sale)
			}
		}
		return
	}
	p.money = c.Money(p.sold, p.money)
	for i, row := range p.sold {
		p.earningsOf(p.earned, p.soldGroups[i]).of(p.kinds[c.Name[row]]).Add(p.money[i])
	}
}

// see notes the visitors of the groups that are asked for.
func (p *breakPart) see(c *columns.ChunkRange, m *members) {
	kinds, places, visitors := p.kinds, p.places, p.visitors
	for i, group := range m.groups {
		place := places[group]
		if place == 0 {
			continue
		}
		row := m.rows[i]
		visitor := c.Visitor[row]
		visitors.add(place-1, visitor)
		if kinds[c.Name[row]] == purchaseKind {
			p.buyers.add(place-1, visitor)
		}
	}
}
