package role

import (
	"math"
	"os"
	"runtime/debug"
	"strconv"
	"strings"

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

// maxConnections is how many connections may be open.
func maxConnections() int {
	return int(min(debug.SetMemoryLimit(-1)/connectionBytes, server.DefaultMaxConnections))
}

// ballast allocates memory for the collect role that is never touched, so that the system never has to give it. The
// runtime looks for garbage when as much has been allocated as is in use. A collector uses so little that it would look
// at every four megabytes, some five hundred requests, and spend an eighth of its processor time on it; a larger share
// of what is in use, as GOGC sets it, would make the many megabytes that large batches need many more.
func ballast() []byte { return make([]byte, min(debug.SetMemoryLimit(-1)/ballastShare, ballastBytes)) }
