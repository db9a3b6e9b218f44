package deliver

import (
	"math"

	"github.com/weir-dev/weir/collector/deliver/platform"
	"github.com/weir-dev/weir/collector/stream"
)

const (
	// breakAfter is how many refusals in a row, of different events, say that they are the platform's doing and not the
	// events'. It is more for a platform that refuses many events for their own sake.
	breakAfter = 5
	// chance is how likely so many refusals in a row may be by chance, given how many the platform refused before.
	chance = 1e-6
	// recent is about how many requests the share of those that were refused is taken of.
	recent = 32
	// offencesKept bounds the memory of events that are refused for their own sake. An event that is forgotten is
	// looked at anew.
	offencesKept = 100_000
)

// evidence tells a platform that refuses everything from events that are refused for their own sake: an event that
// is refused while others are taken has nothing to say about the platform. What is refused comprises what gets no answer.
// Events are known by the first one of their request.
type evidence struct {
	// suspects are the events that were refused since the last request that was not, and how often each was.
	suspects map[stream.Position]int
	// offences counts how often an event was refused and another was taken before it was refused again.
	offences map[stream.Position]int
	// runs counts the refusals in a row that are evidence, among new events and among those attempted before.
	runs [shares]int
	// share is how much of what the platform got lately it refused, while it did not refuse everything: 0 to 1.
	share float64
}

func newEvidence() evidence {
	return evidence{suspects: map[stream.Position]int{}, offences: map[stream.Position]int{}}
}

// taken notes a request that was not refused: those that were before it were so for their own sake.
func (e *evidence) taken(first stream.Position) {
	for range e.runs[fresh] {
		e.share += (1 - e.share) / recent
	}
	e.share -= e.share / recent
	for suspect := range e.suspects {
		e.offend(suspect)
	}
	delete(e.offences, first)
	e.acquit()
}

func (e *evidence) offend(suspect stream.Position) {
	if _, known := e.offences[suspect]; !known && len(e.offences) >= offencesKept {
		for forgotten := range e.offences {
			delete(e.offences, forgotten)
			break
		}
	}
	e.offences[suspect]++
}

// acquit forgets who is suspected.
func (e *evidence) acquit() {
	clear(e.suspects)
	e.runs = [shares]int{}
}

// refused notes a request that was refused and says whether the platform is to be stopped for events of that kind. New
// events stop for the sake of different ones only. What was attempted before also stops where the same events are
// refused again and nothing was taken meanwhile: that keeps nobody waiting but themselves.
func (e *evidence) refused(kind share, first stream.Position, class platform.Class) bool {
	e.suspects[first]++
	if e.offences[first] > 0 {
		return false
	}
	if e.suspects[first] == 1 || (kind == again && stops(class)) {
		e.runs[kind]++
	}
	if kind == again {
		return e.runs[again] >= breakAfter
	}
	return e.runs[fresh] >= e.enough()
}

// enough is how many new events in a row have to be refused.
func (e *evidence) enough() int {
	return min(max(breakAfter, int(math.Ceil(math.Log(chance)/math.Log(e.share)))), parallelRequests)
}

// refusals is how often an event was refused, as far as is known.
func (e *evidence) refusals(first stream.Position) int { return e.offences[first] + e.suspects[first] }
