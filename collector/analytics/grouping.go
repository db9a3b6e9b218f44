package analytics

import (
	"slices"

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

// members are rows of a chunk side by side with the group that each is in.
type members struct {
	rows   []uint16
	groups []uint32
	// sales are the groups' money where it is not that of the rows.
	sales     []columns.Sale
	withSales bool
}

// grouper has the room that it takes to part a chunk's rows. The zero value is ready for use.
type grouper struct {
	rows   []uint16
	groups []uint32
	// nones are groups for rows without a product, 0 each.
	nones []uint32
	sales []columns.Sale
}

// part calls visit for some of a chunk's rows, which are in stream order, and their groups. A row comes as often as it has a
// group.
func (r *grouper) part(g *grouping, c *columns.ChunkRange, rows []uint16, visit func(*members)) {
	if g.by == ByProduct {
		r.partByProduct(c, rows, visit)
		return
	}
	r.groups = slices.Grow(r.groups[:0], columns.ChunkRows)[:len(rows)]
	m := members{rows: rows, groups: r.groups}
	switch g.by {
	case ByEvent:
		m.groups = r.valuesOf(c, &c.Name, rows)
	case ByPage:
		m.groups = r.valuesOf(c, &c.Page, rows)
	default:
		origins := g.Origins(c)
		for i, row := range rows {
			m.groups[i] = g.ofTouch[origins.Touch(row)]
		}
	}
	visit(&m)
}

// valuesOf returns what rows have in a column. Those of all rows stand side by side already.
func (r *grouper) valuesOf(c *columns.ChunkRange, column *[columns.ChunkRows]uint32, rows []uint16) []uint32 {
	if len(rows) == c.To-c.From {
		return column[c.From:c.To]
	}
	for i, row := range rows {
		r.groups[i] = column[row]
	}
	return r.groups
}

// partByProduct is part for products: those first, and then the rows without one.
func (r *grouper) partByProduct(c *columns.ChunkRange, rows []uint16, visit func(*members)) {
	products, sales := c.Products(), c.Sales()
	var without rowSet
	if len(rows) < c.To-c.From {
		without.add(rows)
		products, sales = r.keep(&without, products, sales)
	} else {
		without.addAll(c.From, c.To)
	}
	visit(&members{rows: products.Rows, groups: products.Products, sales: sales, withSales: true})
	without.remove(products.Rows)
	if r.nones == nil {
		r.nones = make([]uint32, columns.ChunkRows)
	}
	r.rows = without.take(r.rows[:0])
	visit(&members{rows: r.rows, groups: r.nones[:len(r.rows)]})
}

// keep returns the products and sales of some rows.
func (r *grouper) keep(kept *rowSet, products columns.ProductRows, sales []columns.Sale) (columns.ProductRows, []columns.Sale) {
	r.rows, r.groups, r.sales = r.rows[:0], r.groups[:0], r.sales[:0]
	for i, row := range products.Rows {
		if kept.bit(row) != 0 {
			r.rows, r.groups = append(r.rows, row), append(r.groups, products.Products[i])
		}
	}
	for i := range sales {
		if kept.bit(sales[i].Row) != 0 {
			r.sales = append(r.sales, sales[i])
		}
	}
	return columns.ProductRows{Rows: r.rows, Products: r.groups}, r.sales
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
