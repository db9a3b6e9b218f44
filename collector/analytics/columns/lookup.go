package columns

import (
	"encoding/binary"

	"github.com/google/uuid"

	"github.com/weir-dev/weir/collector/event"
)

// IDs are the event ids and order ids that a look-up asks for.
type IDs struct {
	// uuids and texts are the event ids as details have them.
	uuids, texts, orders idSet
}

// NewIDs returns ids to look rows up by; a list that is empty keeps all.
func NewIDs(eventIDs, orderIDs []string) *IDs {
	ids := &IDs{}
	for _, text := range eventIDs {
		if id, err := uuid.Parse(text); err == nil && id.String() == text {
			ids.uuids.add(string(id[:]))
		} else {
			ids.texts.add(text)
		}
	}
	for _, text := range orderIDs {
		ids.orders.add(text)
	}
	return ids
}

// All says that the ids keep every row.
func (ids *IDs) All() bool { return len(ids.uuids.ids)+len(ids.texts.ids)+len(ids.orders.ids) == 0 }

// idSet is a set of ids. Nearly all rows that are looked at have another, which tails tell.
type idSet struct {
	ids map[string]struct{}
	// tails has a bit for each two bytes that one of the ids ends with.
	tails [1 << 16 / 64]uint64
}

func (s *idSet) add(id string) {
	if s.ids == nil {
		s.ids = map[string]struct{}{}
	}
	s.ids[id] = struct{}{}
	tail := tailOf([]byte(id))
	s.tails[tail>>6] |= 1 << (tail & 63)
}

func (s *idSet) has(id []byte) bool {
	tail := tailOf(id)
	return s.tails[tail>>6]>>(tail&63)&1 != 0 && s.hasExactly(id)
}

func (s *idSet) hasExactly(id []byte) bool {
	_, found := s.ids[string(id)]
	return found
}

// tailOf returns the last two bytes of an id, 0 for one that has fewer.
func tailOf(id []byte) uint16 {
	if len(id) < 2 {
		return 0
	}
	return binary.LittleEndian.Uint16(id[len(id)-2:])
}

// WithIDs appends to found those of the rows that have one of the event ids and one of the order ids. The caller holds the
// lock.
func (c *Chunk) WithIDs(rows []uint16, ids *IDs, found []uint16) []uint16 {
	hasEventIDs, hasOrderIDs := len(ids.uuids.ids)+len(ids.texts.ids) > 0, len(ids.orders.ids) > 0
	for _, row := range rows {
		b := c.detail(int(row))
		if len(b) == 0 || hasEventIDs && !ids.haveEventID(b) {
			continue
		}
		if hasOrderIDs {
			if order := orderOf(b); len(order) == 0 || !ids.orders.has(order) {
				continue
			}
		}
		found = append(found, row)
	}
	return found
}

// haveEventID says whether a row's details have one of the event ids.
func (ids *IDs) haveEventID(b []byte) bool {
	if b[0]&uuidDetail != 0 {
		return ids.uuids.has(b[1:17])
	}
	id, _ := cutText(b[1:])
	return ids.texts.has(id)
}

// orderOf returns the order id of a row's details; most have a UUID before it and nothing between.
func orderOf(b []byte) []byte {
	if b[0] == uuidDetail {
		return b[17:]
	}
	return splitDetail(b).orderID
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
