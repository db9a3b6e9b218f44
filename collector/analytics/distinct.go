package analytics

import (
	"context"

	"github.com/weir-dev/weir/collector/analytics/columns"
)

// distinct finds how many visitors some groups have. Groups are told by places; a group that many events have gets a set of
// all visitors, the others a list with one visitor an event.
type distinct struct {
	// sets are by place, nil for a group that has a list.
	sets []bitset
	// lists has the lists behind each other; next is by place where the list's next visitor goes, begins where lists begin.
	lists        []uint32
	next, begins []int
}

// newDistinct makes room for groups with numbers of events, of which a part adds some: own. It fails with [ErrTooCostly] or
// [ErrBusy].
func (s *snapshot) newDistinct(all, own []uint32) (distinct, error) {
	d := distinct{sets: make([]bitset, len(all)), next: make([]int, len(all)), begins: make([]int, len(all)+1)}
	visitors, sets, listed := len(s.VisitorKeys), 0, 0
	for place, count := range all {
		d.begins[place], d.next[place] = listed, listed
		if int(count) >= visitors/frequent {
			sets++
		} else {
			listed += int(own[place])
		}
	}
	d.begins[len(all)] = listed
	if err := s.reservation.grow(int64(sets)*int64(visitors/8+8) + 4*int64(listed) + 48*int64(len(all))); err != nil {
		return distinct{}, err
	}
	d.lists = make([]uint32, listed)
	for place, count := range all {
		if int(count) >= visitors/frequent {
			d.sets[place] = newBitset(visitors)
		}
	}
	return d, nil
}

// add notes a visitor of a group's event.
func (d *distinct) add(place, visitor uint32) {
	if set := d.sets[place]; set != nil {
		set.put(visitor)
	} else if visitor != 0 {
		d.lists[d.next[place]] = visitor
		d.next[place]++
	}
}

// countDistinct returns how many visitors each group has in all parts together.
func (s *snapshot) countDistinct(ctx context.Context, parts []distinct) ([]int, error) {
	counts := make([]int, len(parts[0].sets))
	if err := s.reservation.growFor(len(s.VisitorKeys), 4); err != nil {
		return nil, err
	}
	countedFor := make([]uint32, len(s.VisitorKeys)) // the place for which a visitor was counted last, plus 1
	for place := range counts {
		if place%columns.ChunkRows == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if set := parts[0].sets[place]; set != nil {
			for i := range parts[1:] {
				set.merge(parts[1+i].sets[place])
			}
			counts[place] = set.countSomeone()
			continue
		}
		for i := range parts {
			for _, visitor := range parts[i].lists[parts[i].begins[place]:parts[i].next[place]] {
				if countedFor[visitor] != uint32(place)+1 {
					countedFor[visitor] = uint32(place) + 1
					counts[place]++
				}
			}
		}
	}
	return counts, nil
}

// merge adds what another set of the same size has.
func (s bitset) merge(o bitset) {
	for i, word := range o {
		s[i] |= word
	}
}
