package analytics

// lookbackWindow moves along one customer's touches and knows which of them lie within the lookback of the conversion
// that it has come to, merged: the first in the window, and each further one that differs from the one before.
type lookbackWindow struct {
	touches []touchpoint
	// first is where the window begins, end where it ends.
	first, end int
	// parts is how many merged touches there are.
	parts int
	// ledger is told of merged touches that enter and leave, by their group; nil for none.
	ledger sharedLedger
	group  func(touch uint32) uint32
}

// restart goes back to before the first touch.
func (w *lookbackWindow) restart(l sharedLedger, group func(touch uint32) uint32) {
	w.first, w.end, w.parts = 0, 0, 0
	w.ledger, w.group = l, group
}

// mostParts returns the largest number of parts into which one of a customer's conversions is shared.
func (w *lookbackWindow) mostParts(conversions []conversion, first uint32) int {
	w.restart(nil, nil)
	most := 0
	for n := first; n != 0; n = conversions[n].next {
		w.reach(&conversions[n])
		most = max(most, w.parts)
	}
	return most
}

// reach moves on to the next conversion.
func (w *lookbackWindow) reach(c *conversion) {
	for w.end < len(w.touches) && w.touches[w.end].at <= c.at {
		if touch := w.touches[w.end].touch; w.parts == 0 || w.touches[w.end-1].touch != touch {
			w.parts++
			if w.ledger != nil {
				w.ledger.enter(w.group(touch))
			}
		}
		w.end++
	}
	for w.first < w.end && w.touches[w.first].at < c.oldest {
		w.drop()
	}
}

// empty takes all touches out.
func (w *lookbackWindow) empty() {
	for w.first < w.end {
		w.drop()
	}
}

// drop takes the oldest touch out. Where the one behind it is the same, that stands for both.
func (w *lookbackWindow) drop() {
	left := w.touches[w.first].touch
	w.first++
	if w.first < w.end && w.touches[w.first].touch == left {
		return
	}
	w.parts--
	if w.ledger != nil {
		w.ledger.leave(w.group(left))
	}
}
