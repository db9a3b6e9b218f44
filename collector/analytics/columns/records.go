package columns

import "github.com/weir-dev/weir/collector/stream"

// catchUp applies the records that came before their event.
func (t *Table) catchUp(position stream.Position) {
	if len(t.early) == 0 {
		return
	}
	for _, record := range t.early[position] {
		t.Apply(record)
	}
	t.dropEarly(position)
}

// dropEarly forgets the records that wait for an event.
func (t *Table) dropEarly(position stream.Position) {
	t.earlyCount -= len(t.early[position])
	delete(t.early, position)
}

// DiscardOrphans forgets early records, and positions of erased events, whose event should have come by now.
func (t *Table) DiscardOrphans() {
	for position := range t.unread {
		if position <= t.last {
			delete(t.unread, position)
		}
	}
	for position := range t.early {
		if position <= t.last {
			t.dropEarly(position)
		}
	}
}

// Apply notes what became of an event on a platform. A record of an event that is no longer retained, or of a
// platform that the event does not name, says nothing that anybody can ask for.
func (t *Table) Apply(r stream.Record) {
	if r.Status > stream.Expired {
		return
	}
	if r.Event > t.last {
		if t.earlyCount < maxEarly {
			t.early[r.Event] = append(t.early[r.Event], r)
			t.earlyCount++
		}
		return
	}
	c, at, found := t.find(r.Event)
	if !found {
		return
	}
	place := t.platforms.values[c.Platforms[at]].placeOf(r.Platform)
	if place < 0 {
		return
	}
	c.Lock()
	defer c.Unlock()
	c.Deliveries[place][at].Note(r, t.reasons.number)
}
