package analytics

import (
	"github.com/weir-dev/weir/collector/analytics/columns"
	"github.com/weir-dev/weir/collector/event"
)

// rowKind is what figures tell rows apart by.
type rowKind uint8

// The kinds: those of humans by what their name means, then the other classes in their order, then no event at all.
const (
	otherKind rowKind = iota
	purchaseKind
	addToCartKind
	pageviewKind
	refundKind
	// humanKinds is how many kinds are of humans.
	humanKinds

	goneKind = humanKinds + rowKind(event.Classes) - 1
	// allKinds is a power of 2 above them, so that a kind that is cut to it can be looked up unchecked.
	allKinds = 16
)

// isSale says that a row's money counts.
func (k rowKind) isSale() bool { return k == purchaseKind || k == refundKind }

// kinds returns the kinds of names by their numbers. The query's names have to be those of [totalNames].
func (s *snapshot) kinds() ([]rowKind, error) {
	if err := s.reservation.growFor(len(s.Names), 2); err != nil {
		return nil, err
	}
	kinds := make([]rowKind, len(s.Names))
	kinds[0] = goneKind
	s.EachName(func(number uint32, name columns.Name) {
		if name.Class != event.Human {
			kinds[number] = humanKinds + rowKind(name.Class) - 1
		}
	})
	for i, number := range s.numbers {
		if number < uint32(len(kinds)) {
			kinds[number] = purchaseKind + rowKind(i)
		}
	}
	return kinds, nil
}
