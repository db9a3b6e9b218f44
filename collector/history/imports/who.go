package imports

import (
	"slices"
	"time"

	"github.com/weir-dev/weir/collector/event"
)

// people are whom identifiers stand for, as Redis keeps it: those that an event has together are one person's from then on, for as
// long as a property remembers that. Events have to come in the order of time. What nobody remembers any more takes no memory.
type people struct {
	// window is for how many milliseconds identifiers stand for a person.
	window int64
	// buckets are those that may still tell something, the newest last.
	buckets []peopleBucket
}

// peopleBucket takes what is learnt within half a window.
type peopleBucket struct {
	opened  int64
	persons map[event.Identifier]event.Person
}

func newPeople(window time.Duration) *people { return &people{window: max(window.Milliseconds(), 2)} }

// tell returns whose event it is that has these identifiers, at a time, and remembers it. They are not empty.
func (p *people) tell(ids event.Identifiers, ms int64) event.Person {
	p.turn(ms)
	person := ids.List[0]
	for i, id := range ids.List {
		if known, _, found := p.of(id); found {
			person = known
			break
		}
		if i == ids.Client { // which stands for itself
			person = id
			break
		}
	}
	for i, id := range ids.List {
		known, lasts, found := p.of(id)
		needless := found && known == person && lasts || !found && (len(ids.List) == 1 || i == ids.Client && id == person)
		if !needless {
			p.buckets[len(p.buckets)-1].persons[id] = person
		}
	}
	return person
}

// turn opens a bucket where the newest is old, and lets go of those that tell nothing any more.
func (p *people) turn(ms int64) {
	half := (p.window + 1) / 2
	if n := len(p.buckets); n == 0 || ms >= p.buckets[n-1].opened+half {
		p.buckets = append(p.buckets, peopleBucket{ms, map[event.Identifier]event.Person{}})
	}
	for p.buckets[0].opened+half <= ms-p.window {
		p.buckets = p.buckets[1:]
	}
}

// of returns whom an identifier stands for, and whether that is remembered for long.
func (p *people) of(id event.Identifier) (person event.Person, lasts, found bool) {
	for i, bucket := range slices.Backward(p.buckets) {
		if person, found = bucket.persons[id]; found {
			return person, i == len(p.buckets)-1, true
		}
	}
	return event.Person{}, false, false
}
