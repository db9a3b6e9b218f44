package columns

// taken is how many bytes values and visitors have taken that were new, those that have gone among them.
func (t *Table) taken() int64 {
	return t.names.taken + t.touches.taken + t.currencies.taken + t.platforms.taken + t.pages.taken + t.products.taken + t.visitors.taken
}

// EndChunk ends the newest chunk where what its events have brought takes more than a number of bytes beside its columns: the
// rows that are left of it become those of erased events. Memory is given back by the chunk, and so a few events with
// very many values of their own hold no more than they should. Readers may be at work.
func (t *Table) EndChunk(most int64) {
	count := len(t.chunks)
	if count == 0 || t.chunks[count-1].index != nil {
		return
	}
	c := t.chunks[count-1]
	columns := int64(chunkBytes + deliveryBytes*len(c.Deliveries))
	if t.taken()-t.begun+c.size()-columns <= max(most, columns) {
		return
	}
	for t.next-t.base < uint64(count)*ChunkRows {
		t.addErased(c)
	}
	c.index = newChunkIndex(c, t.names.values)
	t.full += c.size()
}

// addErased adds the row of an erased event, at the position of the last.
func (t *Table) addErased(c *Chunk) {
	at := int((t.next - t.base) & (ChunkRows - 1))
	c.Position[at], c.Value[at] = t.last, NoValue
	c.Name[at] = t.names.acquire(t.names.values[noName])
	c.Currency[at] = uint16(t.currencies.acquire(""))
	c.Platforms[at] = uint16(t.platforms.acquire(""))
	c.Lock()
	c.detailEnd[at] = uint32(len(c.details))
	if at == ChunkRows-1 {
		c.clip()
	}
	c.Unlock()
	if t.last < t.nobodyBefore && t.anonymous == t.next {
		t.anonymous++
	}
	t.erased++
	t.next++
}
