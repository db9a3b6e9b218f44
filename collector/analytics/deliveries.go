package analytics

import (
	"math"
	"sync/atomic"
	"time"

	"github.com/weir-dev/weir/collector/stream"
)

// delivery is a packed delivery record of 12 bytes. The zero delivery is pending and untried.
type delivery struct {
	// low and high are one word: 3 bits of status, 25 of latency in milliseconds, and 36 of when it was decided,
	// in milliseconds after the event, biased so that a platform's worker may have a clock that is behind.
	low, high uint32
	attempts  uint16
	// reason is a number of the view's reasons.
	reason uint16
}

const (
	statusBits  = 3
	latencyBits = 25
	updatedBits = 64 - statusBits - latencyBits
	updatedBias = 1 << (updatedBits - 1)
	maxLatency  = 1<<latencyBits - 1
	maxUpdated  = 1<<updatedBits - 1
)

// pack makes a delivery of a record. Latencies above 9 hours, attempts above 65,535 and times more than a year
// away from the event are cut to those.
func pack(r stream.Record, reason uint16) delivery {
	latency := uint64(min(max(r.Latency.Milliseconds(), 0), maxLatency))
	updated := uint64(min(max(r.At.Sub(r.Event.Time()).Milliseconds()+updatedBias, 0), maxUpdated))
	word := uint64(r.Status) | latency<<statusBits | updated<<(statusBits+latencyBits)
	return delivery{
		low: uint32(word), high: uint32(word >> 32),
		attempts: uint16(min(max(r.Attempts, 0), math.MaxUint16)),
		reason:   reason,
	}
}

func (d delivery) word() uint64 { return uint64(d.high)<<32 | uint64(d.low) }

func (d delivery) status() stream.Status { return stream.Status(d.low & (1<<statusBits - 1)) }

// latency is in milliseconds.
func (d delivery) latency() uint32 { return d.low >> statusBits & maxLatency }

// untouched says that no record has come for the delivery.
func (d delivery) untouched() bool { return d == delivery{} }

// updated returns when the status was decided, given the event's time.
func (d delivery) updated(received time.Time) time.Time {
	if d.untouched() {
		return received
	}
	ms := int64(d.word()>>(statusBits+latencyBits)) - updatedBias
	return received.Add(time.Duration(ms) * time.Millisecond)
}

// supersedes says whether a record replaces what is known of a delivery. Records come nearly in the order in
// which they were decided, save where two workers handled the same event: a delivery that succeeded stays
// delivered, a final status is only reopened by something later, and of two of a kind the later one holds.
func supersedes(r stream.Record, known delivery) bool {
	if known.untouched() {
		return true
	}
	at := known.updated(r.Event.Time())
	switch status := known.status(); {
	case status == stream.Delivered:
		return false
	case r.Status == stream.Delivered, r.Status.Final() && !status.Final():
		return true
	case status.Final() && !r.Status.Final():
		return r.At.After(at)
	default:
		return !r.At.Before(at)
	}
}

// reasons numbers the reasons of deliveries, 0 being none. It only ever grows, so that a reader who finds a
// number in a delivery finds its text.
type reasons struct {
	numbers map[string]uint16
	texts   atomic.Pointer[[]string]
}

// maxReasons bounds the reasons that are told apart: they are codes of Weir's own, so that more of them can
// only be damage.
const maxReasons = 4096

func newReasons() *reasons {
	r := &reasons{numbers: map[string]uint16{"": 0}}
	r.texts.Store(&[]string{""})
	return r
}

// number returns the reason's number. It must not be called concurrently.
func (r *reasons) number(text string) uint16 {
	texts := *r.texts.Load()
	if _, known := r.numbers[text]; !known && len(texts) >= maxReasons {
		text = "other"
	}
	number, known := r.numbers[text]
	if !known {
		number = uint16(len(texts))
		r.numbers[text] = number
		texts = append(texts, text)
		r.texts.Store(&texts)
	}
	return number
}

// text returns the reason with a number.
func (r *reasons) text(number uint16) string { return (*r.texts.Load())[number] }

// catchUp applies the records that came before their event.
func (t *table) catchUp(position stream.Position) {
	if len(t.early) == 0 {
		return
	}
	for _, record := range t.early[position] {
		t.apply(record)
	}
	t.dropEarly(position)
}

// dropEarly forgets the records that wait for an event.
func (t *table) dropEarly(position stream.Position) {
	t.earlyCount -= len(t.early[position])
	delete(t.early, position)
}

// discardOrphans forgets early records whose event should have come by now.
func (t *table) discardOrphans() {
	for position := range t.early {
		if position <= t.last {
			t.dropEarly(position)
		}
	}
}

// apply notes what became of an event on a platform. A record of an event that is no longer retained, or of a
// platform that the event does not name, says nothing that anybody can ask for.
func (t *table) apply(r stream.Record) {
	if r.Status > stream.Expired {
		return
	}
	if t.next == 0 || r.Event > t.last {
		if t.earlyCount < maxEarly {
			t.early[r.Event] = append(t.early[r.Event], r)
			t.earlyCount++
		}
		return
	}
	c, at, found := t.find(r.Event)
	if !found {
		return
	}
	slot := slotOf(t.platforms.values[c.platforms[at]], r.Platform)
	if slot < 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if d := &c.deliveries[slot][at]; supersedes(r, *d) {
		*d = pack(r, t.reasons.number(r.Reason))
	}
}
