package role

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"runtime/debug"
	"testing"

	"github.com/weir-dev/weir/collector/analytics"
)

func TestTheContainersLimitIsFound(t *testing.T) {
	for name, test := range map[string]struct {
		files []string
		want  int64
		found bool
	}{
		"where the first file holds it":       {[]string{"268435456\n", "1\n"}, 256 << 20, true},
		"where the second file holds it":      {[]string{"", "268435456\n"}, 256 << 20, true},
		"not where there is none":             {[]string{"max\n"}, 0, false},
		"not where there are no such files":   {[]string{"", ""}, 0, false},
		"not where it holds something absurd": {[]string{"-1\n", "268435456B\n"}, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			var paths []string
			for _, text := range test.files {
				path := filepath.Join(t.TempDir(), "memory.max")
				if text != "" {
					if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
						t.Fatal(err)
					}
				}
				paths = append(paths, path)
			}
			if got, found := containerLimit(paths...); got != test.want || found != test.found {
				t.Errorf("got %d, %v, want %d, %v", got, found, test.want, test.found)
			}
		})
	}
}

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
			// One question may take half of what all may, which is a quarter.
			for bytes, want := range map[int64]error{test.limit / 8: nil, test.limit/8 + test.limit/64: analytics.ErrTooCostly} {
				release, err := views.budget.Hold(bytes)
				if test.limit == math.MaxInt64 {
					want = nil
				}
				if !errors.Is(err, want) {
					t.Errorf("a question that takes %d bytes: got %v, want %v", bytes, err, want)
				}
				if err == nil {
					release()
				}
			}
		})
	}
}
