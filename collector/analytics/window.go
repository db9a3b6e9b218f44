package analytics

// touchWindow moves along one customer's touches and knows which of them lie within the lookback of the conversion
// that it has come to, merged: the first in the window, and each further one that differs from the one before.
type touchWindow struct {
	touches []visit
	// first is where the window begins, end where it ends.
	first, end int
	// parts is how many merged touches there are.
	parts int
	// book is told of merged touches that enter and leave, by their group; nil for none.
	book  book
	group func(touch uint32) uint32
}

// restart goes back to before the first touch.
func (w *touchWindow) restart(b book, group func(touch uint32) uint32) {
	w.first, w.end, w.parts = 0, 0, 0
	w.book, w.group = b, group
}

// mostParts returns the largest number of parts into which one of a customer's conversions is shared.
func (w *touchWindow) mostParts(conversions []conversion, first uint32) int {
	w.restart(nil, nil)
	most := 0
	for n := first; n != 0; n = conversions[n].next {
		w.reach(&conversions[n])
		most = max(most, w.parts)
	}
	return most
}

// reach moves on to the next conversion.
func (w *touchWindow) reach(c *conversion) {
	for w.end < len(w.touches) && w.touches[w.end].at <= c.at {
		if touch := w.touches[w.end].touch; w.parts == 0 || w.touches[w.end-1].touch != touch {
			w.parts++
			if w.book != nil {
				w.book.enter(w.group(touch))
			}
		}
		w.end++
	}
	for w.first < w.end && w.touches[w.first].at < c.oldest {
		w.drop()
	}
}

// empty takes all touches out.
func (w *touchWindow) empty() {
	for w.first < w.end {
		w.drop()
	}
}

// drop takes the oldest touch out. Where the one behind it is the same, that stands for both.
func (w *touchWindow) drop() {
	left := w.touches[w.first].touch
	w.first++
	if w.first < w.end && w.touches[w.first].touch == left {
		return
	}
	w.parts--
	if w.book != nil {
		w.book.leave(w.group(left))
	}
}
