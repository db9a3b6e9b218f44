package role

import (
	"errors"
	"math"
	"runtime/debug"
	"testing"

	"github.com/weir-dev/weir/collector/analytics"
)

func TestLimitsFollowTheMemory(t *testing.T) {
	before := debug.SetMemoryLimit(-1)
	t.Cleanup(func() { debug.SetMemoryLimit(before) })
	for name, test := range map[string]struct {
		limit, inFlight int64
		connections     int
	}{
		"where it is not limited": {math.MaxInt64, 0, 8192},
		"in a small container":    {230 << 20, 92 << 20, 5888},
		"in a large one":          {4 << 30, 4 << 30 / 5 * 2, 8192},
	} {
		t.Run(name, func(t *testing.T) {
			debug.SetMemoryLimit(test.limit)
			if got := memoryInFlight(); got != test.inFlight {
				t.Errorf("%d bytes in flight, want %d", got, test.inFlight)
			}
			if got := maxConnections(); got != test.connections {
				t.Errorf("%d connections, want %d", got, test.connections)
			}
		})
	}
}

func TestMemoryOfViewsIsAShareOfTheLimit(t *testing.T) {
	before := debug.SetMemoryLimit(-1)
	t.Cleanup(func() { debug.SetMemoryLimit(before) })
	for name, test := range map[string]struct {
		limit      int64
		properties int
		want       int64
	}{
		"half of it for one property":               {1 << 30, 1, 1 << 29},
		"half of it for many properties together":   {1 << 30, 4, 1 << 27},
		"any where no limit is set":                 {math.MaxInt64, 1, 0},
		"half of it for a process without property": {1 << 30, 0, 1 << 29},
	} {
		t.Run(name, func(t *testing.T) {
			debug.SetMemoryLimit(test.limit)
			views := memoryOfViews(test.properties)
			if views.maxBytes != test.want {
				t.Errorf("a view may take %d bytes, want %d", views.maxBytes, test.want)
			}
			// One query may take half of what all may, which is a quarter.
			for bytes, want := range map[int64]error{test.limit / 8: nil, test.limit/8 + test.limit/64: analytics.ErrTooCostly} {
				release, err := views.budget.Hold(bytes)
				if test.limit == math.MaxInt64 {
					want = nil
				}
				if !errors.Is(err, want) {
					t.Errorf("a query that takes %d bytes: got %v, want %v", bytes, err, want)
				}
				if err == nil {
					release()
				}
			}
		})
	}
}
