package columns

import "time"

// TouchLookback is how long a touch tells where the events of its visitor come from.
const TouchLookback = 30 * 24 * time.Hour

// origin is the latest touch of a row's visitor up to and including the row, from [TouchLookback] before it at most. It holds
// as long as the touch's row is there and the visitor's: where that has been dropped or made nobody's the row has no
// origin any more, and need not be written for it.
type origin struct {
	// touch is the touch's number, 0 where there is none. back is how many rows before this one the touch lies.
	touch, back uint32
}

// setOrigin notes where the visitor of a row comes from. The visitor's row before has to be linked, and to know it already:
// where a row is no touch, it comes from where that came from.
func (t *Table) setOrigin(c *Chunk, row int, ordinal uint64) {
	c.origin[row] = origin{}
	if c.Visitor[row] == 0 {
		return
	}
	if c.Touch[row] != 0 {
		c.origin[row] = origin{touch: c.Touch[row]}
		return
	}
	floor, back := max(t.base, t.anonymous), c.Back[row]
	if uint64(back) > ordinal-floor {
		return
	}
	before, at := t.rowAt(ordinal - uint64(back))
	o := before.origin[at]
	if o.touch == 0 || uint64(back)+uint64(o.back) > ordinal-floor {
		return
	}
	o.back += back
	source, at := t.rowAt(ordinal - uint64(o.back))
	if c.Position[row].Milliseconds()-source.Position[at].Milliseconds() <= TouchLookback.Milliseconds() {
		c.origin[row] = o
	}
}

// Origins tell where the rows of a [ChunkRange] come from.
type Origins struct {
	origins *[ChunkRows]origin
	// floor is how many rows before the chunk's row 0 touches count, and wraps around.
	floor uint32
}

// Origins returns where the range's rows come from.
func (s *Snapshot) Origins(c *ChunkRange) Origins {
	return Origins{&c.origin, uint32(c.Ordinal-max(s.First, s.Anonymous)) - uint32(c.From)}
}

// Touch returns the number of the touch that a row comes from, 0 for none.
func (o *Origins) Touch(row uint16) uint32 {
	// Where nothing is of anybody the sum has wrapped around; but there no row has a touch either.
	if at := &o.origins[row&(ChunkRows-1)]; at.back <= o.floor+uint32(row) {
		return at.touch
	}
	return 0
}
