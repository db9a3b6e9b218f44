package analytics

import (
	"cmp"
	"slices"
)

// seal is what is known beforehand of a full chunk: its rows by name, and their values added up. It spares the
// questions that count names from looking at every row.
type seal struct {
	// rows are the chunk's rows ordered by name; those of one name stand in stream order.
	rows    [chunkRows]uint16
	names   []sealedName
	touched touched
}

// touched are rows of somebody that are a touch, in stream order. What attribution asks of them stands side by side
// here, since few of a chunk's rows are one.
type touched struct {
	rows []uint16
	// visitors and touches are what the chunk's columns hold in those rows.
	visitors, touches []uint32
}

// add adds a row of the chunk where it is a touch of somebody.
func (t *touched) add(c *chunk, row int) {
	if c.touch[row] == 0 || c.visitor[row] == 0 {
		return
	}
	t.rows = append(t.rows, uint16(row))
	t.visitors, t.touches = append(t.visitors, c.visitor[row]), append(t.touches, c.touch[row])
}

// clone takes no more room than it needs.
func (t *touched) clone() touched {
	return touched{slices.Clip(slices.Clone(t.rows)), slices.Clip(slices.Clone(t.visitors)), slices.Clip(slices.Clone(t.touches))}
}

// sealedName is one name of a sealed chunk.
type sealedName struct {
	name uint32
	// rows are a part of the seal's.
	rows   []uint16
	firsts firsts
	// values has an element for each currency of the rows that have a value and a currency.
	values currencySums
}

// firsts are the rows of a name that are the first of their visitor, in stream order, and whose they are.
type firsts struct {
	rows     []uint16
	visitors []uint32
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
			n.values.of(currency).add(c.value[row])
		}
		s.touched.add(c, row)
	}
	for i := range s.names {
		s.names[i].firsts = c.firstsOf(s.names[i].rows)
	}
	s.touched = s.touched.clone()
	return s
}

// stepsBack is how many rows of the same visitors are looked at for each of a name's rows, at most.
const stepsBack = 64

// firstsOf returns those of a name's rows that are the chunk's first of their visitor with the name; nothing where they are
// more than half, so that leaving out the others would not be worth their room, or where finding them would take too long.
func (c *chunk) firstsOf(rows []uint16) firsts {
	var f firsts
	steps := stepsBack * len(rows)
	for _, row := range rows {
		first := c.isFirst(uint32(row), &steps)
		if steps < 0 {
			return firsts{}
		}
		if first {
			f.rows, f.visitors = append(f.rows, row), append(f.visitors, c.visitor[row])
		}
	}
	if 2*len(f.rows) > len(rows) {
		return firsts{}
	}
	return firsts{slices.Clip(slices.Clone(f.rows)), slices.Clip(slices.Clone(f.visitors))}
}

// isFirst says whether a row is somebody's, and the chunk's first of that visitor with its name. It takes the rows that it
// looks at from steps, and ends where those are less than none.
func (c *chunk) isFirst(row uint32, steps *int) bool {
	if c.visitor[row] == 0 {
		return false
	}
	for at := row; c.back[at] <= at && *steps >= 0; *steps-- {
		if at -= c.back[at]; c.name[at] == c.name[row] {
			return false
		}
	}
	return true
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

// firsts returns the stretch's first rows of each visitor with a name, or nothing where these have to be looked for.
func (c *stretch) firsts(name uint32) firsts {
	if c.whole() {
		return c.sealed.of(name).firsts
	}
	return firsts{}
}

// touched returns the stretch's rows that are a touch. They are put into buffer where they have to be looked for.
func (c *stretch) touched(buffer *touched) *touched {
	if c.whole() {
		return &c.sealed.touched
	}
	buffer.rows, buffer.visitors, buffer.touches = buffer.rows[:0], buffer.visitors[:0], buffer.touches[:0]
	for i := c.from; i < c.to; i++ {
		buffer.add(c.chunk, i)
	}
	return buffer
}
