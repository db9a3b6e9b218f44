package analytics

import (
	"slices"

	"github.com/weir-dev/weir/collector/analytics/columns"
	"github.com/weir-dev/weir/collector/event"
)

// selection keeps the rows of a [Filter] in one snapshot. Its methods may be called at once.
type selection struct {
	snapshot *snapshot
	// names, pages, products and touches have the numbers of what is kept, nil for any. 0 is none among the pages, the products
	// and the touches.
	names, pages, products, touches bitset
	// every has a chunk's rows.
	every []uint16
}

// selecting returns what a filter keeps. It fails with [ErrTooCostly] or [ErrBusy].
func (s *snapshot) selecting(filter Filter) (selection, error) {
	f := selection{snapshot: s, every: make([]uint16, columns.ChunkRows)}
	for row := range f.every {
		f.every[row] = uint16(row)
	}
	// A touch costs a bit in the set, and a byte while it is looked at.
	if err := s.reservation.grow(int64((len(s.Names)+len(s.Pages)+len(s.Products))/8 + 2*len(s.Touches))); err != nil {
		return selection{}, err
	}
	var origins []Dimension
	s.lookUp(func(table *columns.Table) {
		for by, values := range filter {
			if len(values) == 0 {
				continue
			}
			switch by {
			case ByEvent:
				f.names = newBitset(len(s.Names))
				for class := range event.Classes {
					f.names.addNumbers(len(s.Names), values, func(value string) uint32 {
						return table.NameNumber(columns.Name{Event: value, Class: event.Class(class)})
					})
				}
			case ByPage:
				f.pages = newBitset(len(s.Pages))
				f.pages.addNumbers(len(s.Pages), values, numberedFromNone(table.PageNumber))
			case ByProduct:
				f.products = newBitset(len(s.Products))
				f.products.addNumbers(len(s.Products), values, numberedFromNone(table.ProductNumber))
			default:
				origins = append(origins, by)
			}
		}
	})
	if len(origins) > 0 {
		f.touches = s.touchesOf(filter, origins)
	}
	return f, nil
}

// addNumbers adds the numbers of values, those that are below limit: others came after the snapshot.
func (s bitset) addNumbers(limit int, values []string, number func(string) uint32) {
	for _, value := range values {
		if n := number(value); n < uint32(limit) {
			s.add(n)
		}
	}
}

// numberedFromNone numbers values where 0 is the number of none.
func numberedFromNone(number func(string) uint32) func(string) uint32 {
	return func(value string) uint32 {
		switch value {
		case none:
			return 0
		case "":
			return columns.NoNumber
		default:
			return number(value)
		}
	}
}

// touchesOf returns the touches that have one of the filter's values in each of some dimensions.
func (s *snapshot) touchesOf(filter Filter, origins []Dimension) bitset {
	kept := newBitset(len(s.Touches))
	isKept := func(name func(Dimension) string) bool {
		return !slices.ContainsFunc(origins, func(by Dimension) bool { return !slices.Contains(filter[by], name(by)) })
	}
	if isKept(directGroup) {
		kept.add(0)
	}
	s.EachTouch(func(number uint32, touch columns.Touch) {
		if isKept(func(by Dimension) string { return groupName(touch, by) }) {
			kept.add(number)
		}
	})
	return kept
}

// all says that every row is kept.
func (f *selection) all() bool {
	return f.names == nil && f.pages == nil && f.products == nil && f.touches == nil
}

// keep returns those of a chunk's rows that are kept, in order. It puts them into buffer, which the rows may stand in and which
// has room for them, unless every row is kept.
func (f *selection) keep(c *columns.ChunkRange, rows, buffer []uint16) []uint16 {
	buffer = buffer[:cap(buffer)]
	if f.names != nil {
		kept := 0
		for _, row := range rows {
			buffer[kept] = row
			kept += f.names.bit(c.Name[row])
		}
		rows = buffer[:kept]
	}
	if f.pages != nil {
		kept := 0
		for _, row := range rows {
			buffer[kept] = row
			kept += f.pages.bit(c.Page[row])
		}
		rows = buffer[:kept]
	}
	if f.touches != nil {
		kept, origins := 0, f.snapshot.Origins(c)
		for _, row := range rows {
			buffer[kept] = row
			kept += f.touches.bit(origins.Touch(row))
		}
		rows = buffer[:kept]
	}
	if f.products != nil && len(rows) > 0 {
		rows = f.keepProducts(c, rows, buffer)
	}
	return rows
}

// keepProducts is keep for the products alone.
func (f *selection) keepProducts(c *columns.ChunkRange, rows, buffer []uint16) []uint16 {
	var kept, has rowSet
	products := c.Products()
	for i, row := range products.Rows {
		if f.products.bit(products.Products[i]) != 0 {
			kept.addOne(row)
		}
		has.addOne(row)
	}
	withNone := f.products.bit(0)
	left := 0
	for _, row := range rows {
		buffer[left] = row
		left += kept.bit(row) | withNone&^has.bit(row)
	}
	return buffer[:left]
}

// named returns the kept rows of a range with a name, in stream order. They are put into buffer unless every row is kept.
func (f *selection) named(c *columns.ChunkRange, name uint32, buffer []uint16) []uint16 {
	return f.keep(c, c.Named(name, buffer), buffer)
}

// addValues adds the values of a name's rows, which are those that named has returned, to sums.
func (f *selection) addValues(c *columns.ChunkRange, name uint32, rows []uint16, sums *columns.Sums) {
	if f.all() {
		c.AddValues(name, rows, sums)
		return
	}
	for _, row := range rows {
		c.AddValue(row, sums)
	}
}

// rows returns the kept rows of a range, of whatever class, in stream order. They are put into buffer, which has room for a
// chunk's, unless every row is kept; they must not be changed.
func (f *selection) rows(c *columns.ChunkRange, buffer []uint16) []uint16 {
	return f.keep(c, f.every[c.From:c.To], buffer)
}
