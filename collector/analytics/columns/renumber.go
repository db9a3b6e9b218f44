package columns

// numberBytes is what a number takes, or a count of rows.
const numberBytes = 4

// fewNumbers are not worth numbering anew.
const fewNumbers = 1024

// isSparse says whether more than half of a number of numbers are free.
func isSparse(used, numbers int) bool { return numbers > fewNumbers && used < numbers/2 }

// slotsFor is about how many places a map has that has had a number of keys at once: it doubles where seven of eight are taken, and
// never shrinks.
func slotsFor(keys int) int {
	slots := 8
	for slots/8*7 < keys {
		slots *= 2
	}
	return slots
}

// allocated is about what a text of some bytes takes where it stands on its own.
func allocated(length int) int { return (length + 15) &^ 15 }

// renumbering has new numbers by the old ones, nil where they stay as they are.
type renumbering struct{ names, touches, pages, products, visitors []uint32 }

// renumber gives back what free numbers take where most are free, as after many values that came once. All rows are written then.
// No reader may be at work.
func (t *Table) renumber() {
	r := renumbering{t.names.renumber(), t.touches.renumber(), t.pages.renumber(), t.products.renumber(), t.visitors.renumber()}
	if r.names == nil && r.touches == nil && r.pages == nil && r.products == nil && r.visitors == nil {
		return
	}
	for _, c := range t.chunks {
		r.apply(c)
		before := t.fullSize(c)
		t.reindex(c)
		t.full += t.fullSize(c) - before
	}
}

// apply writes a chunk's numbers anew. Rows that are not written yet have the number of nothing, which stays.
func (r *renumbering) apply(c *Chunk) {
	renumberAll(c.Name[:], r.names)
	renumberAll(c.Touch[:], r.touches)
	renumberAll(c.Page[:], r.pages)
	renumberAll(c.Visitor[:], r.visitors)
	if r.touches != nil {
		for at := range c.origin {
			c.origin[at].touch = r.touchOf(c.origin[at].touch)
		}
	}
	c.Lock()
	defer c.Unlock()
	renumberAll(c.products.Products, r.products)
	if r.products != nil {
		for i := range c.products.sales {
			c.products.sales[i].Product = r.products[c.products.sales[i].Product]
		}
	}
}

// touchOf returns the new number of an origin's touch. One that is beyond all numbers has gone, and the origin does not hold.
func (r *renumbering) touchOf(number uint32) uint32 {
	if int(number) < len(r.touches) {
		return r.touches[number]
	}
	return 0
}

func renumberAll(numbers, to []uint32) {
	if to == nil {
		return
	}
	for i, number := range numbers {
		numbers[i] = to[number]
	}
}
