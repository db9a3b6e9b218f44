package columns

import (
	"encoding/binary"

	"github.com/weir-dev/weir/collector/stream"
)

// AnonymizeBefore has events before a position be nobody's when they are added, and says whether there are rows that
// [Table.Anonymize] has to make so. A lower position than before changes nothing.
func (t *Table) AnonymizeBefore(position stream.Position) (more bool) {
	t.nobodyBefore = max(t.nobodyBefore, position)
	from, end := t.toAnonymize()
	return from < end
}

// toAnonymize returns the ordinals of the first row that has to be made nobody's, and of the one behind the last.
func (t *Table) toAnonymize() (from, end uint64) {
	rows := t.All()
	return max(t.anonymous, t.base), rows.Search(t.nobodyBefore)
}

// Anonymize makes rows of one chunk nobody's that are older than was said, as though they had been so from the start, and
// says whether there are more. No reader may be at work.
func (t *Table) Anonymize() (more bool) {
	from, end := t.toAnonymize()
	if from >= end {
		return false
	}
	c, first := t.rowAt(from)
	to := min(ChunkRows, first+int(end-from))
	before := t.fullSize(c)
	for row := first; row < to; row++ {
		t.visitors.leave(c.Visitor[row], from+uint64(row-first))
		c.Visitor[row], c.Back[row], c.origin[row] = 0, 0, origin{}
	}
	// From other chunks events still lead back to these rows: see [Snapshot.Anonymous].
	for row := to; row < ChunkRows; row++ {
		if back := c.Back[row]; back != NoPrevious && int(back) > row-to {
			c.Back[row] = NoPrevious
		}
	}
	c.anonymizeDetails(first, to)
	t.anonymous = from + uint64(to-first)
	t.reindex(c)
	t.full += t.fullSize(c) - before
	t.renumber()
	return t.anonymous < end
}

// anonymizeDetails takes the client ids out of some rows' details.
func (c *Chunk) anonymizeDetails(from, to int) {
	c.Lock()
	defer c.Unlock()
	c.editDetails(func(row int, detail []byte) []byte {
		if row < from || row >= to {
			return detail
		}
		return withoutClientID(detail)
	})
}

// editDetails replaces each row's details by what edit returns, which must not be longer. The caller holds the lock.
func (c *Chunk) editDetails(edit func(row int, detail []byte) []byte) {
	from, end := uint32(0), 0
	for row := 0; row < ChunkRows && c.Position[row] != 0; row++ {
		detail := c.details[from:c.detailEnd[row]]
		from = c.detailEnd[row]
		end += copy(c.details[end:], edit(row, detail))
		c.detailEnd[row] = uint32(end)
	}
	clear(c.details[end:])
	c.details = c.details[:end]
}

// hasOwnClientID says whether the row's event has another client id than its visitor's, or none.
func (c *Chunk) hasOwnClientID(row int) bool { return c.detail(row)[0]&clientDetail != 0 }

// withoutClientID takes the client id out of a row's details, in place.
func withoutClientID(b []byte) []byte {
	if len(b) == 0 || b[0]&clientDetail == 0 {
		return b
	}
	at := 1 + 16
	if b[0]&uuidDetail == 0 {
		length, size := binary.Uvarint(b[1:])
		at = 1 + size + int(length)
	}
	length, size := binary.Uvarint(b[at:])
	b[0] &^= clientDetail
	return append(b[:at], b[at+size+int(length):]...)
}
