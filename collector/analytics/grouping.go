package analytics

import (
	"github.com/weir-dev/weir/collector/analytics/columns"
	"github.com/weir-dev/weir/collector/event"
)

// grouping parts rows by what they have in a dimension. A group's number is that of the event's name, of the page or of the
// product; among these 0 is none. What touches have is numbered here. Its methods may be called at once.
type grouping struct {
	*snapshot
	by Dimension
	// ofTouch has the groups of touches by their numbers, names those groups' names; nil for the other dimensions.
	ofTouch []uint32
	names   []string
}

// groupNameBytes is about what a group of touches takes.
const groupNameBytes = 64

// grouped parts rows by a dimension. It fails with [ErrTooCostly] or [ErrBusy].
func (s *snapshot) grouped(by Dimension) (grouping, error) {
	g := grouping{snapshot: s, by: by}
	switch by {
	case ByEvent, ByPage, ByProduct:
		return g, nil
	}
	if err := s.reservation.growFor(len(s.Touches), groupOfBytes+groupNameBytes); err != nil {
		return grouping{}, err
	}
	known := groups{numbers: map[string]uint32{}}
	g.ofTouch = make([]uint32, len(s.Touches))
	g.ofTouch[0] = known.number(directGroup(by))
	s.EachTouch(func(number uint32, touch columns.Touch) { g.ofTouch[number] = known.number(groupName(touch, by)) })
	g.names = known.names
	return g, nil
}

// size is the number above all groups'.
func (g *grouping) size() int {
	switch g.by {
	case ByEvent:
		return len(g.Names)
	case ByPage:
		return len(g.Pages)
	case ByProduct:
		return len(g.Products)
	default:
		return len(g.names)
	}
}

// name returns the name of a group that a row is in.
func (g *grouping) name(group uint32) string {
	switch {
	case g.by == ByEvent:
		return g.Names[group].Event
	case g.ofTouch != nil:
		return g.names[group]
	case group == 0:
		return none
	case g.by == ByPage:
		return g.Pages[group]
	default:
		return g.Products[group]
	}
}

// members are rows of a chunk side by side with the groups that they are in; a row stands there for each of its groups.
type members struct {
	rows   []uint16
	groups []uint32
}

// members notes the groups of some of a chunk's rows, which are in stream order.
func (g *grouping) members(c *columns.ChunkRange, rows []uint16, into *members) {
	if g.by == ByProduct {
		into.ofProducts(c.Products(), rows)
		return
	}
	if cap(into.groups) < columns.ChunkRows {
		into.groups = make([]uint32, columns.ChunkRows)
	}
	into.rows, into.groups = rows, into.groups[:len(rows)]
	switch g.by {
	case ByEvent:
		for i, row := range rows {
			into.groups[i] = c.Name[row]
		}
	case ByPage:
		for i, row := range rows {
			into.groups[i] = c.Page[row]
		}
	default:
		origins := g.Origins(c)
		for i, row := range rows {
			into.groups[i] = g.ofTouch[origins.Touch(row)]
		}
	}
}

// ofProducts is members for products.
func (m *members) ofProducts(products columns.ProductRows, rows []uint16) {
	m.rows, m.groups = m.rows[:0], m.groups[:0]
	at := 0
	for _, row := range rows {
		for at < len(products.Rows) && products.Rows[at] < row {
			at++
		}
		if at == len(products.Rows) || products.Rows[at] != row {
			m.rows, m.groups = append(m.rows, row), append(m.groups, 0)
		}
		for ; at < len(products.Rows) && products.Rows[at] == row; at++ {
			m.rows, m.groups = append(m.rows, row), append(m.groups, products.Products[at])
		}
	}
}

// earnings are the money of a group, and how many pieces of a product were sold.
type earnings struct {
	bought, refunded columns.Sums
	quantity         event.Sum
}

func (e *earnings) merge(o *earnings) {
	e.bought.Merge(o.bought)
	e.refunded.Merge(o.refunded)
	e.quantity.Merge(o.quantity)
}

// of returns the sums that a purchase or a refund adds to.
func (e *earnings) of(k rowKind) *columns.Sums {
	if k == purchaseKind {
		return &e.bought
	}
	return &e.refunded
}

// sell notes a product of a purchase or a refund.
func (e *earnings) sell(k rowKind, currency uint16, sale *columns.Sale) {
	if currency != 0 && sale.Amount != columns.NoValue {
		e.of(k).Of(currency).Add(sale.Amount)
	}
	if k == purchaseKind {
		e.quantity.Add(sale.Quantity)
	} else {
		e.quantity.Add(-sale.Quantity)
	}
}
