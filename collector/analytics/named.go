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
	return nameFilter{hasNames: hasNames, class: class, anyClass: anyClass, known: s.Names, numbers: inOrder(s.numbers)}
}

// inOrder returns the numbers that some row has, each once.
func inOrder(numbers []uint32) []uint32 {
	sorted := slices.Compact(slices.Sorted(slices.Values(numbers)))
	if last := len(sorted) - 1; last >= 0 && sorted[last] == columns.NoNumber {
		sorted = sorted[:last]
	}
	return sorted
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
	case index != nil:
		switch f.countIn(&index.Classes) {
		case 0:
			return nil
		case columns.ChunkRows:
			for row := range columns.ChunkRows {
				buffer = append(buffer, uint16(row))
			}
			return buffer
		}
	}
	for row := c.From; row < c.To; row++ {
		if f.keeps(c.Name[row]) {
			buffer = append(buffer, uint16(row))
		}
	}
	return buffer
}

// countIn returns how many rows are kept where all names are.
func (f *nameFilter) countIn(classes *columns.ClassCounts) (count int) {
	for class, of := range classes {
		if f.anyClass || class == int(f.class) {
			count += of
		}
	}
	return count
}

// rowFinder finds the kept rows of names, for one worker.
type rowFinder struct {
	kept *selection
	// onlyFirst says that of each visitor's rows in a chunk the first is enough.
	onlyFirst      bool
	set            rowSet
	buffer, result []uint16
}

func newRowFinder(kept *selection) *rowFinder {
	return &rowFinder{kept: kept, buffer: make([]uint16, 0, columns.ChunkRows), result: make([]uint16, 0, columns.ChunkRows)}
}

// rows returns a chunk's kept rows of some names, in stream order, until it is called again. They must not be changed.
func (f *rowFinder) rows(c *columns.ChunkRange, names []uint32) []uint16 {
	if len(names) == 1 {
		return f.kept.named(c, names[0], f.result)
	}
	for _, name := range names {
		if first := c.First(name); f.onlyFirst && len(first.Rows) > 0 {
			f.set.add(first.Rows)
		} else {
			f.set.add(c.Named(name, f.buffer))
		}
	}
	return f.kept.keep(c, f.set.take(f.result[:0]), f.result)
}

// first returns what rows would of one name, with the visitors at hand; nothing where it has to be looked for.
func (f *rowFinder) first(c *columns.ChunkRange, names []uint32) columns.FirstRows {
	if !f.onlyFirst || len(names) != 1 {
		return columns.FirstRows{}
	}
	return c.First(names[0])
}
