package analytics

import (
	"cmp"
	"slices"

	"github.com/weir-dev/weir/collector/event"
)

// seal is what is known beforehand of a full chunk: its rows by name, and their values added up. It spares the
// questions that count names from looking at every row.
type seal struct {
	// rows are the chunk's rows ordered by name; those of one name stand in stream order.
	rows  [chunkRows]uint16
	names []sealedName
	// touched are the rows that are a touch, in stream order.
	touched []uint16
}

// sealedName is one name of a sealed chunk.
type sealedName struct {
	name uint32
	// rows are a part of the seal's.
	rows []uint16
	// values has an element for each currency of the rows that have a value and a currency.
	values []sealedValue
}

// sealedValue adds up the values in one currency.
type sealedValue struct {
	currency uint16
	sum      event.Sum
}

// newSeal looks at a full chunk.
func newSeal(c *chunk) *seal {
	s := &seal{}
	counts := map[uint32]int{}
	for _, name := range c.name {
		counts[name]++
	}
	for name := range counts {
		s.names = append(s.names, sealedName{name: name})
	}
	slices.SortFunc(s.names, func(a, b sealedName) int { return cmp.Compare(a.name, b.name) })
	places, from := make(map[uint32]*sealedName, len(s.names)), 0
	for i := range s.names {
		n := &s.names[i]
		n.rows = s.rows[from : from : from+counts[n.name]]
		from += counts[n.name]
		places[n.name] = n
	}
	for row, name := range c.name {
		n := places[name]
		n.rows = append(n.rows, uint16(row))
		if currency := c.currency[row]; currency != 0 && c.value[row] != noValue {
			n.add(currency, c.value[row])
		}
		if c.touch[row] != 0 {
			s.touched = append(s.touched, uint16(row))
		}
	}
	s.touched = slices.Clip(slices.Clone(s.touched))
	return s
}

func (n *sealedName) add(currency uint16, value event.Amount) {
	i := slices.IndexFunc(n.values, func(v sealedValue) bool { return v.currency == currency })
	if i < 0 {
		i = len(n.values)
		n.values = append(n.values, sealedValue{currency: currency})
	}
	n.values[i].sum.Add(value)
}

// sum returns the values in one currency.
func (n *sealedName) sum(currency uint32) event.Sum {
	for _, v := range n.values {
		if uint32(v.currency) == currency {
			return v.sum
		}
	}
	return event.Sum{}
}

// of returns what is known of a name, nothing where no row has it.
func (s *seal) of(name uint32) sealedName {
	i, found := slices.BinarySearchFunc(s.names, name, func(n sealedName, name uint32) int { return cmp.Compare(n.name, name) })
	if !found {
		return sealedName{}
	}
	return s.names[i]
}

// whole says whether the stretch is all of a full chunk, so that its seal tells about it.
func (c *stretch) whole() bool { return c.to-c.from == chunkRows }

// named returns the stretch's rows with a name, in stream order. They are put into buffer where they have to be
// looked for.
func (c *stretch) named(name uint32, buffer []uint16) []uint16 {
	if c.whole() {
		return c.sealed.of(name).rows
	}
	buffer = buffer[:0]
	for i := c.from; i < c.to; i++ {
		if c.name[i] == name {
			buffer = append(buffer, uint16(i))
		}
	}
	return buffer
}

// touched returns the stretch's rows that are a touch, in stream order. They are put into buffer where they have to
// be looked for.
func (c *stretch) touched(buffer []uint16) []uint16 {
	if c.whole() {
		return c.sealed.touched
	}
	buffer = buffer[:0]
	for i := c.from; i < c.to; i++ {
		if c.touch[i] != 0 {
			buffer = append(buffer, uint16(i))
		}
	}
	return buffer
}
