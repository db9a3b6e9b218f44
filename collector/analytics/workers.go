package analytics

import (
	"runtime"

	"golang.org/x/sync/errgroup"

	"github.com/weir-dev/weir/collector/analytics/columns"
)

// maxWorkers bounds how many processors one query uses: what more of them find takes longer to put together than they
// save.
const maxWorkers = 4

// workers returns how many goroutines a query may use for what it does next: its own, and one for each processor that
// no other query of the view is using. It is asked anew for each thing to do, so that processors that were borrowed are
// soon free again for another query.
func (v *View) workers() int {
	v.mu.Lock()
	defer v.mu.Unlock()
	return min(max(1, runtime.GOMAXPROCS(0)-v.running+1), maxWorkers)
}

// split cuts rows into parts for as many workers as there may be, in stream order and between chunks. As each worker keeps
// something for each visitor, a part has at least as many rows as there are visitors, or is the only one.
func (s *snapshot) split(rows columns.RowRange) []columns.RowRange { return s.splitFor(rows, 0) }

// splitFor is split where each worker keeps something for each of a number of groups too.
func (s *snapshot) splitFor(rows columns.RowRange, groups int) []columns.RowRange {
	return rows.Split(max(1, min(s.workers(), rows.Len()/max(columns.ChunkRows, len(s.VisitorKeys), groups))))
}

// together does the work for each part at once. It returns when all of it has ended, with the first part's error or else
// another's. Where a part panics it does so itself then, for whoever answers the query to recover.
func together(parts int, work func(part int) error) error {
	failures := make([]any, parts)
	do := func(part int) error {
		defer func() { failures[part] = recover() }()
		return work(part)
	}
	var others errgroup.Group
	for part := 1; part < parts; part++ {
		others.Go(func() error { return do(part) })
	}
	err := do(0)
	if other := others.Wait(); err == nil {
		err = other
	}
	for _, failure := range failures {
		if failure != nil {
			panic(failure)
		}
	}
	return err
}
