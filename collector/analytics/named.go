package analytics

import (
	"slices"

	"github.com/weir-dev/weir/collector/analytics/columns"
	"github.com/weir-dev/weir/collector/event"
)

// nameFilter keeps the rows of some names, or those of all names of a class, or of all that there are.
type nameFilter struct {
	// numbers are those of the names; they count where some are asked for.
	numbers  []uint32
	hasNames bool
	anyClass bool
	class    event.Class
	known    []columns.Name
	found    rowSet
}

// named returns what keeps the rows of the query's names, or, where it has none, those of a class or of any.
func (s *snapshot) named(class event.Class, anyClass, hasNames bool) nameFilter {
	f := nameFilter{hasNames: hasNames, class: class, anyClass: anyClass, known: s.Names}
	for _, number := range s.numbers {
		if number != columns.NoNumber {
			f.numbers = append(f.numbers, number)
		}
	}
	slices.Sort(f.numbers)
	f.numbers = slices.Compact(f.numbers)
	return f
}

// keeps says whether rows with a name are kept; an erased event's are not.
func (f *nameFilter) keeps(name uint32) bool {
	if f.hasNames {
		_, found := slices.BinarySearch(f.numbers, name)
		return found
	}
	class := f.known[name].Class
	return class == f.class || f.anyClass && int(class) < event.Classes
}

// rows returns those of a chunk's rows that are kept, in stream order. They are put into buffer where they have to be looked
// for; else they must not be changed.
func (f *nameFilter) rows(c *columns.ChunkRange, buffer []uint16) []uint16 {
	buffer = buffer[:0]
	index := c.Index()
	switch {
	case index != nil && f.hasNames:
		for _, number := range f.numbers {
			rows := index.Of(number).Rows
			if len(f.numbers) == 1 {
				return rows
			}
			f.found.add(rows)
		}
		return f.found.take(buffer)
	case index != nil && !f.anyClass && index.Classes[f.class] == 0:
		return nil
	}
	for row := c.From; row < c.To; row++ {
		if f.keeps(c.Name[row]) {
			buffer = append(buffer, uint16(row))
		}
	}
	return buffer
}
