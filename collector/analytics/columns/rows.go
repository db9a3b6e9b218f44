package columns

import (
	"context"
	"sort"

	"github.com/weir-dev/weir/collector/stream"
)

// RowRange is a range of rows that does not change: a table's at one moment, or those of a range of time. Rows are told by
// ordinals, which follow each other and never repeat.
type RowRange struct {
	chunks []*Chunk
	base   uint64
	// First is the ordinal of the first row, End the one behind the last.
	First, End uint64
}

// Rows returns the rows that the table has now.
func (t *Table) Rows() RowRange {
	return RowRange{chunks: t.chunks, base: t.base, First: t.first, End: t.next}
}

// Len is the number of rows.
func (s *RowRange) Len() int { return int(s.End - s.First) }

// At returns where the row with an ordinal is kept.
func (s *RowRange) At(ordinal uint64) (c *Chunk, row int) {
	offset := ordinal - s.base
	return s.chunks[offset>>chunkBits], int(offset & (ChunkRows - 1))
}

// Search returns the ordinal of the first row at or behind a position, End where there is none.
func (s *RowRange) Search(position stream.Position) uint64 {
	return s.First + uint64(sort.Search(int(s.End-s.First), func(i int) bool {
		c, row := s.At(s.First + uint64(i))
		return c.Position[row] >= position
	}))
}

// Between returns the rows from one position to before another.
func (s *RowRange) Between(from, to stream.Position) RowRange {
	rows := *s
	rows.First, rows.End = s.Search(from), s.Search(to)
	rows.End = max(rows.First, rows.End)
	return rows
}

// Split cuts the rows into a number of parts of about the same length, in stream order and between chunks.
func (s *RowRange) Split(count int) []RowRange {
	parts := make([]RowRange, count)
	for i := range parts {
		parts[i] = *s
		if i > 0 {
			behind := s.First - s.base + uint64(s.Len()/count*i)
			parts[i].First = s.base + behind/ChunkRows*ChunkRows
			parts[i-1].End = parts[i].First
		}
	}
	return parts
}

// milliseconds returns when the row with an ordinal was received.
func (s *RowRange) milliseconds(ordinal uint64) int64 {
	c, row := s.At(ordinal)
	return c.Position[row].Milliseconds()
}

// Each calls visit for the rows chunk by chunk, in stream order. It stops where the context ends.
func (s *RowRange) Each(ctx context.Context, visit func(ChunkRange)) error {
	for left := *s; left.First < left.End; {
		if err := ctx.Err(); err != nil {
			return err
		}
		visit(left.TakeFirst())
	}
	return nil
}

// EachBackwards is Each from the last chunk to the first.
func (s *RowRange) EachBackwards(ctx context.Context, visit func(ChunkRange)) error {
	for left := *s; left.First < left.End; {
		if err := ctx.Err(); err != nil {
			return err
		}
		visit(left.TakeLast())
	}
	return nil
}

// TakeFirst takes those of the rows away that lie in the first chunk, and returns them. There has to be a row.
func (s *RowRange) TakeFirst() ChunkRange {
	c, from := s.At(s.First)
	taken := ChunkRange{Chunk: c, From: from, To: min(ChunkRows, from+s.Len()), Ordinal: s.First}
	s.First += uint64(taken.To - from)
	return taken
}

// TakeLast takes those of the rows away that lie in the last chunk, and returns them. There has to be a row.
func (s *RowRange) TakeLast() ChunkRange {
	c, last := s.At(s.End - 1)
	from := max(0, last+1-s.Len())
	s.End -= uint64(last + 1 - from)
	return ChunkRange{Chunk: c, From: from, To: last + 1, Ordinal: s.End}
}

// ChunkRange is a range of rows within one chunk.
type ChunkRange struct {
	*Chunk
	// From is the first row, To the one behind the last.
	From, To int
	// Ordinal is that of row From.
	Ordinal uint64
}

// Offset returns how many rows of a range lie before its chunk's row 0. It wraps around where the range begins within the
// chunk, so that what is added to it must be a row of the range.
func (c *ChunkRange) Offset(of *RowRange) uint32 { return uint32(c.Ordinal-of.First) - uint32(c.From) }

// Index returns the chunk's index where the range is all of a full chunk, else nil.
func (c *ChunkRange) Index() *ChunkIndex {
	if c.To-c.From < ChunkRows {
		return nil
	}
	return c.index
}

// Named returns the range's rows with a name, in stream order. They are put into buffer where they have to be looked for.
func (c *ChunkRange) Named(name uint32, buffer []uint16) []uint16 {
	if index := c.Index(); index != nil {
		return index.Of(name).Rows
	}
	buffer = buffer[:0]
	for i := c.From; i < c.To; i++ {
		if c.Name[i] == name {
			buffer = append(buffer, uint16(i))
		}
	}
	return buffer
}

// First returns the range's first rows of each visitor with a name, or nothing where these have to be looked for.
func (c *ChunkRange) First(name uint32) FirstRows {
	if index := c.Index(); index != nil {
		return index.Of(name).First
	}
	return FirstRows{}
}

// Touches returns the range's rows that are a touch. They are put into buffer where they have to be looked for.
func (c *ChunkRange) Touches(buffer *TouchRows) *TouchRows {
	if index := c.Index(); index != nil {
		return &index.touches
	}
	buffer.Rows, buffer.Visitors, buffer.Touches = buffer.Rows[:0], buffer.Visitors[:0], buffer.Touches[:0]
	for i := c.From; i < c.To; i++ {
		buffer.add(c.Chunk, i)
	}
	return buffer
}

// AddValues adds the values of a name's rows, which are those that Named has returned, to sums.
func (c *ChunkRange) AddValues(name uint32, rows []uint16, sums *Sums) {
	if index := c.Index(); index != nil {
		sums.Merge(index.Of(name).Values)
		return
	}
	for _, row := range rows {
		c.AddValue(row, sums)
	}
}

// AddValue adds a row's value to sums.
func (c *Chunk) AddValue(row uint16, sums *Sums) { sums.Add(Money{c.Value[row], c.Currency[row]}) }

// Money puts what rows are worth into a buffer. Few rows are asked for, so that each is a miss of the processor's cache: one
// after the other, with nothing between, these are waited for together.
func (c *Chunk) Money(rows []uint16, buffer []Money) []Money {
	buffer = buffer[:0]
	for _, row := range rows {
		buffer = append(buffer, Money{c.Value[row], c.Currency[row]})
	}
	return buffer
}

// CountClasses adds the numbers of the range's rows to counts; names are those of the snapshot, by number.
func (c *ChunkRange) CountClasses(names []Name, counts *ClassCounts) {
	if index := c.Index(); index != nil {
		for class, count := range index.Classes {
			counts[class] += count
		}
		return
	}
	for _, name := range c.Name[c.From:c.To] {
		if name != noName {
			counts[names[name].Class]++
		}
	}
}

// FirstSince counts the rows that are the first of their visitor since the row that lies distance rows before the range:
// those whose visitor's previous event lies further back. Where the range begins before that row, distance wraps around,
// and the rows up to there must be nobody's.
func (c *ChunkRange) FirstSince(distance uint32) int {
	count := 0
	for _, back := range c.Back[c.From:c.To] {
		if back > distance {
			count++
		}
		distance++
	}
	return count
}

// Cursor is a place in a range of rows that only moves forward: behind events that are visited in their order it keeps
// where those begin that are not too old.
type Cursor struct {
	rows RowRange
	at   uint64
}

// NewCursor returns a cursor at the first row.
func NewCursor(rows RowRange) Cursor { return Cursor{rows, rows.First} }

// Advance moves on to the first row that was not received before a moment, given in milliseconds, and returns how many
// rows of the range lie before it. The moments that it is asked for must not decrease. They lie close together, so that
// steps which grow find the place in fewer looks than halving all rows would.
func (t *Cursor) Advance(ms int64) uint32 {
	for step := uint64(1); t.isBefore(t.at, ms); step *= 2 {
		if !t.isBefore(t.at+step, ms) {
			t.at += 1 + uint64(sort.Search(int(step-1), func(i int) bool { return !t.isBefore(t.at+1+uint64(i), ms) }))
			break
		}
		t.at += step
	}
	return uint32(t.at - t.rows.First)
}

func (t *Cursor) isBefore(ordinal uint64, ms int64) bool {
	return ordinal < t.rows.End && t.rows.milliseconds(ordinal) < ms
}
