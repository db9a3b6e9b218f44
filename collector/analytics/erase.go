package analytics

import (
	"errors"
	"slices"

	"github.com/weir-dev/weir/collector/analytics/columns"
	"github.com/weir-dev/weir/collector/stream"
)

// ErrBehind says that more events were erased before the view has read them than it can remember: what it holds may have
// some of them and has to be read anew.
var ErrBehind = errors.New("more erased events than can be remembered have not been read yet")

// Erase takes events out: from then on they are in no answer, and every number is that of a view that never had them. A
// position of which the view has no event is passed over, now or when its event comes. Events go a few chunks at a time,
// so that queries wait for no more than that; what is read meanwhile is true of the events that are left then. It fails
// with [ErrBehind].
func (v *View) Erase(positions []stream.Position) error {
	positions = slices.Compact(slices.Sorted(slices.Values(positions)))
	v.mu.Lock()
	table, rows := v.table, v.table.All()
	remembered := table.PassOver(positions)
	v.mu.Unlock()
	for left := rows.Find(positions); len(left) > 0; {
		if !v.change(table, func() { left = table.Erase(left) }) {
			return nil // a new table has none of them, or is told again
		}
	}
	if !remembered {
		return ErrBehind
	}
	return nil
}

// Anonymize makes nobody's the events that were received before a position, those that are read later too: they stay in the
// numbers, which are those of a view in which they had been nobody's from the start, and in listings without a visitor and
// a client id. It is never taken back, and takes no more than is new. Events change a chunk at a time, so that queries wait
// for no more than that; what is read meanwhile is true of some position up to that one.
func (v *View) Anonymize(before stream.Position) {
	v.mu.Lock()
	v.anonymous = max(v.anonymous, before)
	table := v.table
	more := table.AnonymizeBefore(v.anonymous)
	v.mu.Unlock()
	for more && v.change(table, func() { more = table.Anonymize() }) {
	}
}

// change changes what queries may look at, while none is at work. It says whether the view still has the table.
func (v *View) change(table *columns.Table, change func()) bool {
	v.retained.Lock()
	defer v.retained.Unlock()
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.table != table {
		return false
	}
	change()
	return true
}
