package columns

import (
	"cmp"
	"slices"

	"github.com/weir-dev/weir/collector/event"
)

// ChunkIndex is what is known beforehand of a full chunk: its rows by name, and their values added up. It spares the
// queries that count names from looking at every row.
type ChunkIndex struct {
	// rows are the chunk's rows ordered by name; those of one name stand in stream order.
	rows    [ChunkRows]uint16
	Names   []IndexedName
	touches TouchRows
	// Classes are the numbers of rows.
	Classes ClassCounts
}

// ClassCounts are numbers of rows by [event.Class].
type ClassCounts [event.Classes]int

// TouchRows are rows of somebody that are a touch, in stream order. What attribution needs of them stands side by side
// here, since few of a chunk's rows are one.
type TouchRows struct {
	Rows []uint16
	// Visitors and Touches are what the chunk's columns hold in those rows.
	Visitors, Touches []uint32
}

// add adds a row of the chunk where it is a touch of somebody.
func (t *TouchRows) add(c *Chunk, row int) {
	if c.Touch[row] == 0 || c.Visitor[row] == 0 {
		return
	}
	t.Rows = append(t.Rows, uint16(row))
	t.Visitors, t.Touches = append(t.Visitors, c.Visitor[row]), append(t.Touches, c.Touch[row])
}

// clone takes no more room than it needs.
func (t *TouchRows) clone() TouchRows {
	return TouchRows{slices.Clip(slices.Clone(t.Rows)), slices.Clip(slices.Clone(t.Visitors)), slices.Clip(slices.Clone(t.Touches))}
}

// IndexedName is one name of a full chunk.
type IndexedName struct {
	Name uint32
	// Rows are a part of the index's.
	Rows []uint16
	// First are the rows that are the first of their visitor; nothing where they have to be looked for.
	First FirstRows
	// Values has an element for each currency of the rows that have a value and a currency.
	Values Sums
}

// FirstRows are the rows of a name that are the first of their visitor, in stream order, and whose they are.
type FirstRows struct {
	Rows     []uint16
	Visitors []uint32
}

// newChunkIndex looks at a full chunk; names are by number.
func newChunkIndex(c *Chunk, names []Name) *ChunkIndex {
	s := &ChunkIndex{}
	counts := map[uint32]int{}
	for _, name := range c.Name {
		counts[name]++
	}
	delete(counts, noName)
	for name, count := range counts {
		s.Names = append(s.Names, IndexedName{Name: name})
		s.Classes[names[name].Class] += count
	}
	slices.SortFunc(s.Names, func(a, b IndexedName) int { return cmp.Compare(a.Name, b.Name) })
	places, from := make(map[uint32]*IndexedName, len(s.Names)), 0
	for i := range s.Names {
		n := &s.Names[i]
		n.Rows = s.rows[from : from : from+counts[n.Name]]
		from += counts[n.Name]
		places[n.Name] = n
	}
	for row, name := range c.Name {
		n := places[name]
		if n == nil {
			continue
		}
		n.Rows = append(n.Rows, uint16(row))
		if currency := c.Currency[row]; currency != 0 && c.Value[row] != NoValue {
			n.Values.Of(currency).Add(c.Value[row])
		}
		s.touches.add(c, row)
	}
	for i := range s.Names {
		s.Names[i].First = c.firstRowsOf(s.Names[i].Rows)
	}
	s.touches = s.touches.clone()
	return s
}

// stepsBack is how many rows of the same visitors are looked at for each of a name's rows, at most.
const stepsBack = 64

// firstRowsOf returns those of a name's rows that are the chunk's first of their visitor with the name; nothing where they are
// more than half, so that leaving out the others would not be worth their room, or where finding them would take too long.
func (c *Chunk) firstRowsOf(rows []uint16) FirstRows {
	var f FirstRows
	steps := stepsBack * len(rows)
	for _, row := range rows {
		first := c.isFirst(uint32(row), &steps)
		if steps < 0 {
			return FirstRows{}
		}
		if first {
			f.Rows, f.Visitors = append(f.Rows, row), append(f.Visitors, c.Visitor[row])
		}
	}
	if 2*len(f.Rows) > len(rows) {
		return FirstRows{}
	}
	return FirstRows{slices.Clip(slices.Clone(f.Rows)), slices.Clip(slices.Clone(f.Visitors))}
}

// isFirst says whether a row is somebody's, and the chunk's first of that visitor with its name. It takes the rows that it
// looks at from steps, and ends where those are less than none.
func (c *Chunk) isFirst(row uint32, steps *int) bool {
	if c.Visitor[row] == 0 {
		return false
	}
	for at := row; c.Back[at] <= at && *steps >= 0; *steps-- {
		if at -= c.Back[at]; c.Name[at] == c.Name[row] {
			return false
		}
	}
	return true
}

// Of returns what is known of a name, nothing where no row has it.
func (s *ChunkIndex) Of(name uint32) IndexedName {
	i, found := slices.BinarySearchFunc(s.Names, name, func(n IndexedName, name uint32) int { return cmp.Compare(n.Name, name) })
	if !found {
		return IndexedName{}
	}
	return s.Names[i]
}
