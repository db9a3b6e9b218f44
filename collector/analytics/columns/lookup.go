package columns

import (
	"github.com/google/uuid"

	"github.com/weir-dev/weir/collector/event"
)

// IDs are the event ids and order ids that a look-up asks for.
type IDs struct {
	// uuids and texts are the event ids as details have them.
	uuids  map[uuid.UUID]struct{}
	texts  map[string]struct{}
	orders map[string]struct{}
}

// NewIDs returns ids to look rows up by; a list that is empty keeps all.
func NewIDs(eventIDs, orderIDs []string) *IDs {
	ids := &IDs{uuids: map[uuid.UUID]struct{}{}, texts: map[string]struct{}{}, orders: map[string]struct{}{}}
	for _, text := range eventIDs {
		if id, err := uuid.Parse(text); err == nil && id.String() == text {
			ids.uuids[id] = struct{}{}
		} else {
			ids.texts[text] = struct{}{}
		}
	}
	for _, text := range orderIDs {
		ids.orders[text] = struct{}{}
	}
	return ids
}

// All says that the ids keep every row.
func (ids *IDs) All() bool { return len(ids.uuids)+len(ids.texts)+len(ids.orders) == 0 }

// Has says whether a row has one of the event ids and one of the order ids. The caller holds the lock.
func (c *Chunk) Has(row int, ids *IDs) bool {
	b := c.detail(row)
	if len(b) == 0 {
		return false
	}
	d := splitDetail(b)
	if len(ids.orders) > 0 {
		if _, asked := ids.orders[string(d.orderID)]; !asked || len(d.orderID) == 0 {
			return false
		}
	}
	switch {
	case len(ids.uuids)+len(ids.texts) == 0:
		return true
	case d.isUUID():
		_, asked := ids.uuids[uuid.UUID(d.eventID)]
		return asked
	default:
		_, asked := ids.texts[string(d.eventID)]
		return asked
	}
}

// NewestOf returns the ordinal of a visitor's newest event before another ordinal, and whether there is one. It looks at
// those from there on, which have come since.
func (t *Table) NewestOf(visitor event.Person, before uint64) (ordinal uint64, found bool) {
	number, found := t.visitors.numbers[visitor]
	if !found {
		return 0, false
	}
	for ordinal = t.visitors.last[number]; ordinal >= before; {
		c, row := t.rowAt(ordinal)
		back := uint64(c.Back[row])
		if back > ordinal {
			return 0, false
		}
		ordinal -= back
	}
	return ordinal, true
}

// IsSomebodys says whether a row that a visitor's newer events lead back to is retained and still the visitor's.
func (s *Snapshot) IsSomebodys(ordinal uint64) bool { return ordinal >= max(s.First, s.Anonymous) }

// Previous returns the ordinal of the event before one of its visitor's, and whether there is one.
func (s *Snapshot) Previous(ordinal uint64) (previous uint64, found bool) {
	c, row := s.At(ordinal)
	back := uint64(c.Back[row])
	if back > ordinal { // there is none: see NoPrevious
		return 0, false
	}
	previous = ordinal - back
	return previous, s.IsSomebodys(previous)
}
