package columns

import (
	"slices"

	"github.com/weir-dev/weir/collector/stream"
)

const (
	// chunksAtOnce is how many chunks one [Table.Erase] changes at most: readers wait for no more than that.
	chunksAtOnce = 8
	// maxUnread is how many positions of erased events may wait for their event.
	maxUnread = 200_000
)

// All returns the rows that the table has, those that are hidden and not given back yet among them.
func (t *Table) All() RowRange {
	return RowRange{chunks: t.chunks, base: t.base, First: t.base, End: t.next}
}

// Find returns the ordinals of those events that are among the rows; positions are in order, as are the ordinals.
func (s *RowRange) Find(positions []stream.Position) []uint64 {
	ordinals, left := make([]uint64, 0, len(positions)), *s
	for _, position := range positions {
		if left.First = left.Search(position); left.First == left.End {
			break
		}
		if c, row := left.At(left.First); c.Position[row] == position {
			ordinals = append(ordinals, left.First)
		}
	}
	return ordinals
}

// PassOver has those events of the positions passed over that have not been read yet: they are erased, and may have been on
// their way. It says whether there was room to remember them.
func (t *Table) PassOver(positions []stream.Position) bool {
	for _, position := range positions {
		if position <= t.last {
			continue
		}
		if len(t.unread) >= maxUnread {
			return false
		}
		t.unread[position] = struct{}{}
		t.dropEarly(position)
	}
	return true
}

// Erase takes events out, as though there had never been any: their rows stay, as ones that count for nothing and belong to
// nobody, so that the others keep their ordinals. It changes a few chunks and returns the ordinals that are left for
// another call; they are in order. After each call the table is that of the events that are left. No reader may be at work.
func (t *Table) Erase(ordinals []uint64) (left []uint64) {
	var chunks []*Chunk
	var visitors []uint32
	var before int64
	for len(ordinals) > 0 && len(chunks) < chunksAtOnce {
		number := ordinals[0] >> chunkBits
		end, _ := slices.BinarySearch(ordinals, (number+1)<<chunkBits)
		if ordinals[0] >= t.base { // else the chunk has been dropped meanwhile
			c, _ := t.rowAt(ordinals[0])
			before += t.fullSize(c)
			visitors = t.eraseRows(c, ordinals[:end], visitors)
			chunks = append(chunks, c)
		}
		ordinals = ordinals[end:]
	}
	slices.Sort(visitors)
	for _, visitor := range slices.Compact(visitors) {
		t.relink(visitor)
	}
	for _, c := range chunks {
		t.reindex(c)
		t.full += t.fullSize(c)
	}
	t.full -= before
	t.renumber()
	return ordinals
}

// rowAt returns where the row with an ordinal is kept.
func (t *Table) rowAt(ordinal uint64) (c *Chunk, row int) {
	offset := ordinal - t.base
	return t.chunks[offset>>chunkBits], int(offset & (ChunkRows - 1))
}

// fullSize is what the chunk takes where it is full, which is what the table remembers.
func (t *Table) fullSize(c *Chunk) int64 {
	if c.index == nil {
		return 0
	}
	return c.size()
}

// reindex makes a full chunk's index anew.
func (t *Table) reindex(c *Chunk) {
	if c.index != nil {
		c.index = newChunkIndex(c, t.names.values)
	}
}

// eraseRows takes everything out of a chunk's rows but the position and, until they are linked anew, whose events they
// were; these visitors are appended to a list.
func (t *Table) eraseRows(c *Chunk, ordinals []uint64, visitors []uint32) []uint32 {
	c.Lock()
	defer c.Unlock()
	for _, ordinal := range ordinals {
		_, at := t.rowAt(ordinal)
		if c.Name[at] == noName {
			continue
		}
		t.release(c, at)
		c.Name[at], c.Touch[at], c.Value[at] = t.names.acquire(t.names.values[noName]), 0, NoValue
		c.Page[at], c.origin[at] = 0, origin{}
		c.Currency[at] = uint16(t.currencies.acquire(""))
		c.Platforms[at] = uint16(t.platforms.acquire(""))
		for _, column := range c.Deliveries {
			column[at] = Delivery{}
		}
		if c.Visitor[at] != 0 {
			visitors = append(visitors, c.Visitor[at])
		}
		if ordinal >= t.first {
			t.erased++
		}
	}
	c.products.remove(func(row uint16) bool { return c.Name[row] == noName }, t.products)
	c.editDetails(func(row int, detail []byte) []byte {
		if c.Name[row] == noName {
			return nil
		}
		return detail
	})
	return visitors
}

// relink leads each of a visitor's events that are left to the one before, and to where the visitor comes from. Where none is left the visitor goes; where none
// has the client id that the visitor has, that goes.
func (t *Table) relink(visitor uint32) {
	floor, v := max(t.base, t.anonymous), t.visitors
	var newer *uint32 // what leads back from the event behind
	var newerAt uint64
	var left []uint64 // from the newest to the oldest
	hasClientID := false
	for at := v.last[visitor]; ; {
		c, row := t.rowAt(at)
		back := c.Back[row]
		if c.Name[row] == noName {
			c.Visitor[row], c.Back[row] = 0, 0
		} else {
			if newer == nil {
				v.last[visitor] = at
			} else {
				*newer = uint32(newerAt - at)
			}
			newer, newerAt = &c.Back[row], at
			left = append(left, at)
			hasClientID = hasClientID || !c.hasOwnClientID(row)
		}
		if uint64(back) > at-floor { // the one before is dropped or nobody's, or there is none
			break
		}
		at -= uint64(back)
	}
	if newer == nil {
		v.forget(visitor)
		return
	}
	*newer = NoPrevious
	for _, at := range slices.Backward(left) {
		c, row := t.rowAt(at)
		t.setOrigin(c, row, at)
	}
	if !hasClientID {
		v.text -= lengthOf(v.clientIDs[visitor])
		v.clientIDs[visitor] = ""
	}
}

// erasedIn counts the rows of erased events from one ordinal to before another.
func (t *Table) erasedIn(first, end uint64) (count int) {
	for ordinal := first; t.erased > count && ordinal < end; ordinal++ {
		if c, row := t.rowAt(ordinal); c.Name[row] == noName {
			count++
		}
	}
	return count
}

// Events is how many events are retained.
func (t *Table) Events() int { return int(t.next-t.first) - t.erased }

// NewestBefore returns the position of the newest retained event before a position, 0 where there is none.
func (t *Table) NewestBefore(position stream.Position) stream.Position {
	rows := t.Rows()
	for at := rows.Search(position); at > t.first; at-- {
		if c, row := t.rowAt(at - 1); c.Name[row] != noName {
			return c.Position[row]
		}
	}
	return 0
}
