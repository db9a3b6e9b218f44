package analytics

// touchWindow moves along one visitor's events and knows which of their touches lie within the lookback of the
// conversion that it has come to, merged: the first in the window, and each further one that differs from the one
// before.
type touchWindow struct {
	events []visit
	// lookback is in milliseconds; where the window is not bounded any touch is in it.
	lookback int64
	bounded  bool

	// first is where the window begins, last its newest touch, -1 for none yet.
	first, last int
	// parts is how many merged touches there are.
	parts int
	// book is told of merged touches that enter and leave, by their group; nil for none.
	book  book
	group func(touch uint32) uint32
}

// restart goes back to before the first event.
func (w *touchWindow) restart(b book, group func(touch uint32) uint32) {
	w.first, w.last, w.parts = 0, -1, 0
	w.book, w.group = b, group
}

// mostParts returns the largest number of parts into which one of the conversions is shared.
func (w *touchWindow) mostParts() int {
	w.restart(nil, nil)
	most := 0
	for i, e := range w.events {
		w.reach(i)
		if e.conversion != 0 {
			most = max(most, w.parts)
		}
	}
	return most
}

// reach moves on to the next event.
func (w *touchWindow) reach(i int) {
	e := w.events[i]
	if e.touch != 0 {
		if w.parts == 0 || w.events[w.last].touch != e.touch {
			w.parts++
			if w.book != nil {
				w.book.enter(w.group(e.touch))
			}
		}
		if w.parts == 1 && w.last < w.first {
			w.first = i
		}
		w.last = i
	}
	if e.conversion != 0 && w.bounded {
		w.leave(e.ms - w.lookback)
	}
}

// leave takes the touches out that are older than a moment.
func (w *touchWindow) leave(begin int64) {
	for w.first <= w.last && w.events[w.first].ms < begin {
		w.drop()
	}
}

// empty takes all touches out.
func (w *touchWindow) empty() {
	for w.first <= w.last {
		w.drop()
	}
}

// drop takes the oldest touch out. Where the one behind it is the same, that stands for both.
func (w *touchWindow) drop() {
	left := w.events[w.first].touch
	w.first++
	for w.first <= w.last && w.events[w.first].touch == 0 {
		w.first++
	}
	if w.first <= w.last && w.events[w.first].touch == left {
		return
	}
	if left != 0 {
		w.parts--
		if w.book != nil {
			w.book.leave(w.group(left))
		}
	}
}
