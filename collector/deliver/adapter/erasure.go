package adapter

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/weir-dev/weir/collector/event"
)

// errUnrenderable repeats nothing of what a person is known by.
var errUnrenderable = errors.New("what the person is known by must be text in UTF-8")

// Person is what a platform knows somebody by who is to be erased there.
type Person struct {
	// Erasure is the erasure's id.
	Erasure string
	// ClientIDs and UserIDs are as the platform was told them. Emails and Phones are SHA-256 hashes in hexadecimal, of the
	// address trimmed and lower-cased and of the number in E.164. All are sorted, and each is there once.
	ClientIDs, UserIDs, Emails, Phones []string
}

// Empty says that there is nothing by which the person could be found.
func (p *Person) Empty() bool {
	return len(p.ClientIDs)+len(p.UserIDs)+len(p.Emails)+len(p.Phones) == 0
}

// ErasureRequest is one request of a platform's interface for erasures.
type ErasureRequest struct {
	Request
	// Erasures are the ids of those that it is about.
	Erasures []string
}

// Eraser returns what has persons erased at the platform. An error says what its Secret lacks for that, or that the type has no
// interface for it.
func (p *Platform) Eraser() (Eraser, error) {
	eraser, ok := p.Adapter.(Eraser)
	switch {
	case !ok:
		return nil, errors.New("the platform's type has no interface for erasures")
	case len(p.keysMissing) > 0:
		return nil, fmt.Errorf("for erasures the Secret must have the keys %s", strings.Join(p.keysMissing, ", "))
	default:
		return eraser, nil
	}
}

// Knows returns what of an event the platform is told as long as it gets the event at all, by the rules of now. It is false for an
// event that the platform does not get.
func (p *Platform) Knows(e *Event) (event.Event, bool) {
	told, verdict := p.told(e)
	if verdict.Class != Undecided {
		return event.Event{}, false
	}
	if _, verdict = p.Adapter.Map(&told); verdict.Class != Undecided {
		return event.Event{}, false
	}
	return told.Event, true
}

// erasuresOf returns the ids of those erasures that have one of some identifiers.
func erasuresOf(ids []string, by map[string][]string) []string {
	erasures := map[string]struct{}{}
	for _, id := range ids {
		for _, erasure := range by[id] {
			erasures[erasure] = struct{}{}
		}
	}
	return slices.Sorted(maps.Keys(erasures))
}
