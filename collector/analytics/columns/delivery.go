package columns

import (
	"math"
	"sync/atomic"
	"time"

	"github.com/weir-dev/weir/collector/stream"
)

// Delivery is a packed delivery record of 12 bytes. The zero delivery is pending and untried.
type Delivery struct {
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
	// UpdatedBias is how many milliseconds before its event a status can have been decided, and one more than how many after it.
	UpdatedBias = 1 << (updatedBits - 1)
	// MaxLatency is the longest latency that is kept, in milliseconds.
	MaxLatency = 1<<latencyBits - 1
	maxUpdated = 1<<updatedBits - 1
)

// pack makes a delivery of a record. Latencies above 9 hours, attempts above 65,535 and times more than a year
// away from the event are cut to those.
func pack(r stream.Record, reason uint16) Delivery {
	latency := uint64(min(max(r.Latency.Milliseconds(), 0), MaxLatency))
	updated := uint64(min(max(r.At.Sub(r.Event.Time()).Milliseconds()+UpdatedBias, 0), maxUpdated))
	word := uint64(r.Status) | latency<<statusBits | updated<<(statusBits+latencyBits)
	return Delivery{
		low: uint32(word), high: uint32(word >> 32),
		attempts: uint16(min(max(r.Attempts, 0), math.MaxUint16)),
		reason:   reason,
	}
}

func (d Delivery) word() uint64 { return uint64(d.high)<<32 | uint64(d.low) }

// Status says how the delivery stands.
func (d Delivery) Status() stream.Status { return stream.Status(d.low & (1<<statusBits - 1)) }

// Latency is how long the deciding attempt took, in milliseconds.
func (d Delivery) Latency() uint32 { return d.low >> statusBits & MaxLatency }

// untouched says that no record has come for the delivery.
func (d Delivery) untouched() bool { return d == Delivery{} }

// Attempts is how many attempts were made.
func (d Delivery) Attempts() int { return int(d.attempts) }

// ReasonNumber is the number of the reason for which the delivery stands as it does.
func (d Delivery) ReasonNumber() uint16 { return d.reason }

// Updated returns when the status was decided, given the event's time.
func (d Delivery) Updated(received time.Time) time.Time {
	if d.untouched() {
		return received
	}
	ms := int64(d.word()>>(statusBits+latencyBits)) - UpdatedBias
	return received.Add(time.Duration(ms) * time.Millisecond)
}

// Note has a record of the delivery count, unless what is known of it holds. number returns the number of its reason; it is asked
// where the record counts.
func (d *Delivery) Note(r stream.Record, number func(reason string) uint16) {
	if supersedes(r, *d) {
		*d = pack(r, number(r.Reason))
	}
}

// supersedes says whether a record replaces what is known of a delivery. Records come nearly in the order in
// which they were decided, save where two workers handled the same event: a delivery that succeeded stays
// delivered, a final status is only reopened by something later, and of two of a kind the later one holds.
func supersedes(r stream.Record, known Delivery) bool {
	if known.untouched() {
		return true
	}
	at := known.Updated(r.Event.Time())
	switch status := known.Status(); {
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
