package analytics

import "github.com/weir-dev/weir/collector/analytics/columns"

// selection keeps the rows of a [Filter] in one snapshot.
type selection struct{}

// selecting returns what a filter keeps.
func (s *snapshot) selecting(Filter) (selection, error) { return selection{}, nil }

// all says that every row is kept.
func (f *selection) all() bool { return true }

// keep returns those of a chunk's rows that are kept, in place and in order.
func (f *selection) keep(_ *columns.ChunkRange, rows []uint16) []uint16 { return rows }
