package analytics

import (
	"context"
	"math"

	"github.com/weir-dev/weir/collector/analytics/columns"
)

// distinct finds how many visitors some groups have. Groups are told by places; a group that many events have gets a set of
// all visitors, the others a list with one visitor an event.
type distinct struct {
	// sets has the sets behind each other, each of stride words. setOf is by place the number of the set, -1 for a list.
	sets   bitset
	stride int
	setOf  []int
	// lists has the lists behind each other; next is by place where the list's next visitor goes, begins where lists begin.
	lists        []uint32
	next, begins []int
}

// always is a number of events for which a group gets a set.
const always = math.MaxUint32

// newDistinct makes room for groups with numbers of events, of which a part adds some: own. It fails with [ErrTooCostly] or
// [ErrBusy].
func (s *snapshot) newDistinct(all, own []uint32) (distinct, error) {
	visitors, sets, listed := len(s.VisitorKeys), 0, 0
	d := distinct{stride: visitors/64 + 1, setOf: make([]int, len(all)), next: make([]int, len(all)), begins: make([]int, len(all))}
	for place, count := range all {
		d.begins[place], d.next[place] = listed, listed
		if int(count) >= visitors/frequent {
			d.setOf[place] = sets
			sets++
		} else {
			d.setOf[place] = -1
			listed += int(own[place])
		}
	}
	if err := s.reservation.grow(8*int64(sets*d.stride) + 4*int64(listed) + 40*int64(len(all))); err != nil {
		return distinct{}, err
	}
	d.sets, d.lists = make(bitset, sets*d.stride), make([]uint32, listed)
	return d, nil
}

// set returns the set of a place that has one.
func (d *distinct) set(place int) bitset {
	from := d.setOf[place] * d.stride
	return d.sets[from : from+d.stride]
}

// add notes a visitor of a group's event.
func (d *distinct) add(place, visitor uint32) {
	if set := d.setOf[place]; set >= 0 {
		d.sets[set*d.stride+int(visitor>>6)] |= 1 << (visitor & 63)
	} else if visitor != 0 {
		d.lists[d.next[place]] = visitor
		d.next[place]++
	}
}

// countDistinct returns how many visitors each group has in all parts together.
func (s *snapshot) countDistinct(ctx context.Context, parts []distinct) ([]int, error) {
	counts := make([]int, len(parts[0].setOf))
	if err := s.reservation.growFor(len(s.VisitorKeys), 4); err != nil {
		return nil, err
	}
	countedFor := make([]uint32, len(s.VisitorKeys)) // the place for which a visitor was counted last, plus 1
	for place := range counts {
		if place%columns.ChunkRows == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if parts[0].setOf[place] >= 0 {
			set := parts[0].set(place)
			for i := range parts[1:] {
				set.merge(parts[1+i].set(place))
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
