package deliver

import (
	"encoding/binary"
	"slices"
	"time"

	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/event/erasure"
	"github.com/weir-dev/weir/collector/stream"
)

// erasures are those that are done together: one way through the events looks for the subjects of all.
type erasures struct {
	property string
	digester *erasure.Digester
	// wanted are what is looked for, by the digest.
	wanted map[erasure.Digest][]wanted
	// follow are those of which it has still to be found what was seen with the subject. They wait for that.
	follow map[string]bool

	// unwanted remembers identifiers that are not looked for, each in one place: most come again soon, and their digests cost
	// more than all else.
	unwanted    []event.Identifier
	identifiers []event.Identifier // room for those of one event
}

// remembered is how many places unwanted has.
const remembered = 1 << 18

// wanted is an identifier that is to be erased.
type wanted struct {
	erasure string
	entry   erasure.Entry
}

// newErasures prepares to look for the subjects of some erasures; entries are what the ledger has of each.
func newErasures(property string, salt erasure.Salt, open []stream.OpenErasure, entries map[string][]erasure.Entry) *erasures {
	e := &erasures{
		property: property, digester: salt.Digester(), wanted: map[erasure.Digest][]wanted{}, follow: map[string]bool{},
		unwanted: make([]event.Identifier, remembered), identifiers: make([]event.Identifier, 0, 12),
	}
	for _, one := range open {
		e.follow[one.ID] = one.Follow
		for _, entry := range entries[one.ID] {
			e.wanted[entry.Digest] = append(e.wanted[entry.Digest], wanted{one.ID, entry})
		}
	}
	return e
}

// lookUp returns what is wanted of an identifier, nothing for most.
func (e *erasures) lookUp(id event.Identifier) []wanted {
	place := &e.unwanted[binary.LittleEndian.Uint64(id[:])%remembered]
	if *place == id {
		return nil
	}
	found := e.wanted[e.digester.Digest(id)]
	if len(found) == 0 {
		*place = id
	}
	return found
}

// of returns by which erasures an event goes that was received at a time, in order; none for most.
func (e *erasures) of(ev *event.Event, received time.Time) []string {
	var by []string
	for _, id := range ev.Identifiers(e.property, e.identifiers[:0]).List {
		for _, w := range e.lookUp(id) {
			if w.entry.Suppress || !received.After(w.entry.At) {
				by = append(by, w.erasure)
			}
		}
	}
	slices.Sort(by)
	return slices.Compact(by)
}

// ofIdentifier returns by which erasures an identifier goes, in order.
func (e *erasures) ofIdentifier(id event.Identifier) []string {
	var by []string
	for _, w := range e.lookUp(id) {
		if !e.follow[w.erasure] {
			by = append(by, w.erasure)
		}
	}
	slices.Sort(by)
	return slices.Compact(by)
}

// spelled says whether a text is the client id or the user id of somebody who is to be erased, or the hash of their address or
// number.
func (e *erasures) spelled(text string) bool {
	spellings := []event.Event{{ClientID: text}, {UserID: text}}
	if hash, isHash := event.ParseHash(text); isHash {
		spellings = append(spellings, event.Event{User: event.Hashes{event.EmailLower: hash}}, event.Event{User: event.Hashes{event.PhoneDigits: hash}})
	}
	for _, as := range spellings {
		for _, id := range as.Identifiers(e.property, e.identifiers[:0]).List {
			if len(e.ofIdentifier(id)) > 0 {
				return true
			}
		}
	}
	return false
}

// linkedBy returns which of an event's identifiers are not yet among those of an erasure.
func (e *erasures) linkedBy(id string, ev *event.Event) []event.Identifier {
	return slices.DeleteFunc(ev.Identifiers(e.property, nil).List, func(one event.Identifier) bool {
		return slices.ContainsFunc(e.lookUp(one), func(w wanted) bool { return w.erasure == id })
	})
}
