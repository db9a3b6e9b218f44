package deliver

import (
	"cmp"
	"slices"

	"github.com/weir-dev/weir/collector/deliver/adapter"
	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/platforms"
	"github.com/weir-dev/weir/collector/stream"
)

// shrinking is what the batches of events that were attempted before are divided by with every attempt, so that the
// one for whose sake the platform fails is soon alone.
const shrinking = 4

// task is an event on its way to the platform.
type task struct {
	position stream.Position
	// kind says whether a request was made with it; attempts counts those that count.
	kind     kind
	attempts int
	payload  adapter.Payload
	// verdict is final where it is not to be sent.
	verdict adapter.Verdict
	// event is who it is about, until it is sent: they may be erased before that.
	event *event.Event
}

// split parts tasks into batches within the limits, those that were attempted more often into smaller ones.
func split(tasks []task, limits platforms.Limits) [][]task {
	slices.SortStableFunc(tasks, func(a, b task) int { return cmp.Compare(a.attempts, b.attempts) })
	var batches [][]task
	start, size := 0, 0
	for i, t := range tasks {
		full := i-start >= batchSize(limits.Events, t.attempts) || (limits.Bytes > 0 && size+len(t.payload.Body) > limits.Bytes)
		if i > start && full {
			batches = append(batches, tasks[start:i])
			start, size = i, 0
		}
		size += len(t.payload.Body)
	}
	if start < len(tasks) {
		batches = append(batches, tasks[start:])
	}
	return batches
}

// batchSize is how many events a request may carry after so many attempts with one of them.
func batchSize(most, attempts int) int {
	for ; attempts > 0 && most > 1; attempts-- {
		most /= shrinking
	}
	return max(1, most)
}
