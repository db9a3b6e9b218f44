package analytics

import (
	"context"
	"math"

	"github.com/weir-dev/weir/collector/analytics/columns"
)

// distinct finds how many visitors some groups have. Groups are told by places; a group that many events have gets a set of
// all visitors, the others a list with one visitor an event.
type distinct struct {
	// sets has the sets behind each other, each of stride words; lists has the lists behind each other.
	sets   bitset
	stride int
	lists  []uint32
	// next is by place where the list's next visitor goes, or less than 0: ^ of where the set begins. begins is where it begins.
	next, begins []int
}

// frequent is how many visitors there are at most for each event of a group that gets a set.
const frequent = 8

// always is a number of events for which a group gets a set.
const always = math.MaxUint32

// newDistinct makes room for groups with numbers of events, of which a part adds some: own. It fails with [ErrTooCostly] or
// [ErrBusy].
func (s *snapshot) newDistinct(all, own []uint32) (distinct, error) {
	visitors, words, listed := len(s.VisitorKeys), 0, 0
	d := distinct{stride: visitors/64 + 1, next: make([]int, len(all)), begins: make([]int, len(all))}
	for place, count := range all {
		if int(count) >= visitors/frequent {
			d.begins[place], d.next[place] = words, ^words
			words += d.stride
		} else {
			d.begins[place], d.next[place] = listed, listed
			listed += int(own[place])
		}
	}
	if err := s.reservation.grow(8*int64(words) + 4*int64(listed) + 40*int64(len(all))); err != nil {
		return distinct{}, err
	}
	d.sets, d.lists = make(bitset, words), make([]uint32, listed)
	return d, nil
}

// set returns the set of a place that has one.
func (d *distinct) set(place int) bitset { return d.sets[d.begins[place]:][:d.stride] }

// add notes a visitor of a group's event.
func (d *distinct) add(place, visitor uint32) {
	if next := d.next[place]; next < 0 {
		d.sets[^next+int(visitor>>6)] |= 1 << (visitor & 63)
	} else if visitor != 0 {
		d.lists[next] = visitor
		d.next[place] = next + 1
	}
}

// countDistinct returns how many visitors each group has in all parts together.
func (s *snapshot) countDistinct(ctx context.Context, parts []distinct) ([]int, error) {
	counts := make([]int, len(parts[0].next))
	if err := s.reservation.growFor(len(s.VisitorKeys), 4*len(parts)); err != nil {
		return nil, err
	}
	return counts, together(len(parts), func(worker int) error {
		countedFor := make([]uint32, len(s.VisitorKeys)) // the place for which a visitor was counted last, plus 1
		for place := worker; place < len(counts); place += len(parts) {
			if place/len(parts)%columns.ChunkRows == 0 && ctx.Err() != nil {
				return ctx.Err()
			}
			counts[place] = countPlace(parts, place, countedFor)
		}
		return nil
	})
}

// countPlace returns how many visitors a group has in all parts together.
func countPlace(parts []distinct, place int, countedFor []uint32) (count int) {
	if parts[0].next[place] < 0 {
		set := parts[0].set(place)
		for i := range parts[1:] {
			set.merge(parts[1+i].set(place))
		}
		return set.countSomeone()
	}
	for i := range parts {
		for _, visitor := range parts[i].lists[parts[i].begins[place]:parts[i].next[place]] {
			if countedFor[visitor] != uint32(place)+1 {
				countedFor[visitor] = uint32(place) + 1
				count++
			}
		}
	}
	return count
}
