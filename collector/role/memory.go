package role

import (
	"math"
	"os"
	"runtime/debug"
	"strconv"
	"strings"

	"github.com/weir-dev/weir/collector/analytics"
	"github.com/weir-dev/weir/collector/server"
)

// What a process keeps of its memory for requests in flight, and for each connection, those that are idle too.
const (
	inFlightFifths  = 2
	connectionBytes = 40 << 10
)

// ballastBytes is how large a ballast is, and ballastShare by what a memory limit is divided where that is less.
const (
	ballastBytes = 16 << 20
	ballastShare = 16
)

// RespectMemoryLimit makes the runtime keep to the memory limit of the container that the process runs in, less a tenth
// for what the runtime does not count. GOMEMLIMIT goes before it. Without a container, or a limit, nothing changes.
func RespectMemoryLimit() {
	const version2, version1 = "/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"
	if limit, found := containerLimit(version2, version1); found && os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(limit - limit/10)
	}
}

// containerLimit reads a limit in bytes from the first of the files that holds one.
func containerLimit(files ...string) (int64, bool) {
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // another system, or another version of control groups
		}
		if limit, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err == nil && limit > 0 {
			return limit, true
		}
	}
	return 0, false
}

// memoryInFlight is how much requests in flight may take; 0 for the default where memory is not limited.
func memoryInFlight() int64 {
	limit := debug.SetMemoryLimit(-1) // which only tells
	if limit == math.MaxInt64 {
		return 0
	}
	return limit / 5 * inFlightFifths
}

// What of the memory limit the views take, and the questions that they answer, in quarters. The rest is for connections and
// for garbage.
const (
	viewQuarters     = 2
	questionQuarters = 1
)

// viewMemory is how much memory reading may take.
type viewMemory struct {
	// budget is that of all questions, maxBytes what each view may take; 0 for any.
	budget   *analytics.Budget
	maxBytes int64
}

// memoryOfViews shares the memory limit out among a number of views and their questions. Without a limit neither has one.
func memoryOfViews(count int) viewMemory {
	limit := debug.SetMemoryLimit(-1) // which only tells
	if limit == math.MaxInt64 {
		return viewMemory{budget: analytics.NewBudget(0)}
	}
	return viewMemory{
		budget:   analytics.NewBudget(limit / 4 * questionQuarters),
		maxBytes: limit / 4 * viewQuarters / int64(max(1, count)),
	}
}

// maxConnections is how many connections may be open.
func maxConnections() int {
	return int(min(debug.SetMemoryLimit(-1)/connectionBytes, server.DefaultMaxConnections))
}

// ballast allocates memory for the collect role that is never touched, so that the system never has to give it. The
// runtime looks for garbage when as much has been allocated as is in use. A collector uses so little that it would look
// at every four megabytes, some five hundred requests, and spend an eighth of its processor time on it; a larger share
// of what is in use, as GOGC sets it, would make the many megabytes that large batches need many more.
func ballast() []byte { return make([]byte, min(debug.SetMemoryLimit(-1)/ballastShare, ballastBytes)) }
