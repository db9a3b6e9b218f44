package role

import (
	"math"
	"os"
	"path/filepath"
	"runtime/debug"
	"testing"
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
