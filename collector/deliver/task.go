package deliver

import (
	"cmp"
	"slices"
	"time"

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
	// ticket is what the platform gave for the event where it has queued it: there is nothing to send then.
	ticket stream.Ticket
	// waited says that the event waits for the reason that was recorded last; replayed is when a replay put it back.
	waited   bool
	replayed time.Time
	// doubted, of a batch's first, says that what is answered to it may be for one event's sake, even where a pause is asked for.
	doubted bool
	// verdict is final where it is not to be sent.
	verdict adapter.Verdict
	// event is who it is about, until it is sent: they may be erased before that.
	event *event.Event
}

// split parts tasks into batches within the limits, those that were attempted more often into smaller ones, and each
// of one group.
func split(tasks []task, limits platforms.Limits) [][]task {
	var batches [][]task
	for _, group := range byGroup(tasks) {
		batches = append(batches, splitGroup(group, limits)...)
	}
	return batches
}

// byGroup parts tasks into those that a request may carry together.
func byGroup(tasks []task) [][]task {
	return partBy(tasks, func(t *task) string { return t.payload.Group })
}

// partBy parts tasks into those of one key each, in the order in which they come.
func partBy(tasks []task, key func(*task) string) [][]task {
	if len(tasks) == 0 {
		return nil
	}
	if first := key(&tasks[0]); !slices.ContainsFunc(tasks, func(t task) bool { return key(&t) != first }) {
		return [][]task{tasks}
	}
	var parts [][]task
	at := map[string]int{}
	for _, t := range tasks {
		i, known := at[key(&t)]
		if !known {
			i = len(parts)
			at[key(&t)] = i
			parts = append(parts, nil)
		}
		parts[i] = append(parts[i], t)
	}
	return parts
}

func splitGroup(tasks []task, limits platforms.Limits) [][]task {
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
