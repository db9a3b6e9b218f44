package deliver

import (
	"math"

	"github.com/weir-dev/weir/collector/deliver/adapter"
	"github.com/weir-dev/weir/collector/stream"
)

const (
	// tripAfter is how many failures in a row, of different events, say that they are the platform's doing and not the
	// events'. It is more for a platform that refuses many events for their own sake.
	tripAfter = 5
	// chance is how likely so many failures in a row may be by chance, given the failure rate before them.
	chance = 1e-6
	// rateWindow is about how many requests the failure rate is taken of.
	rateWindow = 32
	// maxPoison bounds the memory of events that fail for their own sake. An event that is forgotten is looked at anew.
	maxPoison = 100_000
)

// failures is what opens the circuit breaker: it tells a platform that fails from events that are refused for their own
// sake (poison). An event that fails while others succeed has nothing to say about the platform. Failures comprise what gets
// no answer. Events are known by the first one of their request.
type failures struct {
	// recent are the events that failed since the last success, and how often each did.
	recent map[stream.Position]int
	// poison counts how often an event failed and another succeeded before it failed again.
	poison map[stream.Position]int
	// consecutive counts the failures in a row that say something about the platform, of new events and of retries.
	consecutive [kinds]int
	// rate is how much of what the platform got lately failed, while not everything did: 0 to 1.
	rate float64
}

func newFailures() failures {
	return failures{recent: map[stream.Position]int{}, poison: map[stream.Position]int{}}
}

// success notes a request that did not fail: those that failed before it did so for their own sake.
func (f *failures) success(first stream.Position) {
	for range f.consecutive[newEvents] {
		f.rate += (1 - f.rate) / rateWindow
	}
	f.rate -= f.rate / rateWindow
	for event := range f.recent {
		f.blame(event)
	}
	delete(f.poison, first)
	f.reset()
}

// blame notes that an event failed for its own sake.
func (f *failures) blame(event stream.Position) {
	if _, known := f.poison[event]; !known && len(f.poison) >= maxPoison {
		for forgotten := range f.poison {
			delete(f.poison, forgotten)
			break
		}
	}
	f.poison[event]++
}

// reset begins to count anew.
func (f *failures) reset() {
	clear(f.recent)
	f.consecutive = [kinds]int{}
}

// failure notes a request that failed and says whether the circuit of that kind is to open. That of new events opens for
// the sake of different ones only. That of retries also opens where the same events fail again and nothing succeeded
// meanwhile: that keeps nobody waiting but themselves.
func (f *failures) failure(k kind, first stream.Position, class adapter.Class) (trip bool) {
	f.recent[first]++
	if f.poison[first] > 0 {
		return false
	}
	if f.recent[first] == 1 || (k == retries && aboutPlatform(class)) {
		f.consecutive[k]++
	}
	if k == retries {
		return f.consecutive[retries] >= tripAfter
	}
	return f.consecutive[newEvents] >= f.threshold()
}

// threshold is how many new events in a row have to fail.
func (f *failures) threshold() int {
	return min(max(tripAfter, int(math.Ceil(math.Log(chance)/math.Log(f.rate)))), parallelRequests)
}

// count is how often an event failed, as far as is known.
func (f *failures) count(first stream.Position) int { return f.poison[first] + f.recent[first] }
