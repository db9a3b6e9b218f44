package role

import (
	"math"
	"runtime/debug"

	"github.com/weir-dev/weir/collector/analytics"
	"github.com/weir-dev/weir/collector/server"
)

// What a process keeps of its memory for requests in flight, and for each connection, those that are idle too.
const (
	inFlightFifths  = 2
	connectionBytes = 40 << 10
)

// memoryInFlight is how much requests in flight may take; 0 for the default where memory is not limited.
func memoryInFlight() int64 {
	limit := debug.SetMemoryLimit(-1) // which only tells
	if limit == math.MaxInt64 {
		return 0
	}
	return limit / 5 * inFlightFifths
}

// What of the memory limit the views take, and the queries that they answer, in quarters. The rest is for connections and
// for garbage.
const (
	viewQuarters  = 2
	queryQuarters = 1
)

// viewMemory is how much memory reading may take.
type viewMemory struct {
	// budget is that of all queries, maxBytes what each view may take; 0 for any.
	budget   *analytics.Budget
	maxBytes int64
}

// memoryOfViews shares the memory limit out among a number of views and their queries. Without a limit neither has one.
func memoryOfViews(count int) viewMemory {
	limit := debug.SetMemoryLimit(-1) // which only tells
	if limit == math.MaxInt64 {
		return viewMemory{budget: analytics.NewBudget(0)}
	}
	return viewMemory{
		budget:   analytics.NewBudget(limit / 4 * queryQuarters),
		maxBytes: limit / 4 * viewQuarters / int64(max(1, count)),
	}
}

// maxConnections is how many connections may be open.
func maxConnections() int {
	return int(min(debug.SetMemoryLimit(-1)/connectionBytes, server.DefaultMaxConnections))
}
