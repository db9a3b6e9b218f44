// Package stream is the only package that speaks Redis. It appends events to a property's stream with exact
// deduplication, hands them to the platforms' consumer groups, records what became of them, and lets readers
// tail both streams. Keys are in keys.go; what must be atomic is a versioned Redis Function library, weir.lua.
package stream

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/weir-dev/weir/collector/event/wire"
)

// Position is an entry's place in a stream: the milliseconds of its stream id shifted left by 20, and its
// sequence number. Positions order as stream ids do.
type Position uint64

const sequenceBits = 20

// MaxSequence is the highest sequence number a [Position] holds; Redis would have to take more than a million
// entries in one millisecond to go beyond it.
const MaxSequence = 1<<sequenceBits - 1

// At returns the first position of a millisecond.
func At(t time.Time) Position { return Position(t.UnixMilli()) << sequenceBits }

// Time returns the position's millisecond in UTC.
func (p Position) Time() time.Time { return time.UnixMilli(p.Milliseconds()).UTC() }

// Milliseconds returns when the event was received, in milliseconds since 1970.
func (p Position) Milliseconds() int64 { return int64(p >> sequenceBits) }

// String returns the stream id: "1700000000000-0".
func (p Position) String() string {
	return strconv.FormatUint(uint64(p>>sequenceBits), 10) + "-" + strconv.FormatUint(uint64(p&MaxSequence), 10)
}

// ParsePosition reads a stream id.
func ParsePosition(id string) (Position, error) {
	ms, seq, found := strings.Cut(id, "-")
	millis, err := strconv.ParseUint(ms, 10, 64-sequenceBits)
	if err != nil || !found {
		return 0, fmt.Errorf("stream id %q must be milliseconds, a dash and a sequence number", id)
	}
	sequence, err := strconv.ParseUint(seq, 10, 64)
	if err != nil || sequence > MaxSequence {
		return 0, fmt.Errorf("stream id %q must have a sequence number of at most %d", id, MaxSequence)
	}
	return Position(millis<<sequenceBits | sequence), nil
}

// Addition is an event to append.
type Addition struct {
	// Entry is the encoded event, and Sealed what of it is sealed before it is stored, as in [wire.Parts].
	Entry  []byte
	Sealed [wire.PartCount][]byte
	// EventID is the deduplication key, and the id to answer. One that was made up here is recorded like a caller's
	// own: the answer tells it to the caller, who may send it again. It is never "".
	EventID string
	// Public says that anybody may have chosen the id, in a web page. It repeats no id but of public additions, so that
	// nobody keeps an event from being stored by sending its id first.
	Public bool
	// OrderID is a second deduplication key; "" where the event has none or is no purchase.
	OrderID string
	// Identifiers tell whose event it is, packed as weir_append takes them; none where no visitor is to be told by it. Whose
	// it is by them is appended to Entry.
	Identifiers []byte
	// IDSpace is the class of the event, by its number. Ids of one repeat none of another: a test must not take the ids of
	// the real event that it tries out.
	IDSpace uint8
}

// Added is what became of an [Addition].
type Added struct {
	// EventID is the addition's own, or that of the first event with the same event_id or order_id.
	EventID string
	// Duplicate says that nothing was appended because one of the ids was recorded already.
	Duplicate bool
}

// Entry is one entry of the events stream.
type Entry struct {
	Position Position
	// Data is the encoded event.
	Data []byte
}

// Delivery is an event handed to a platform's worker.
type Delivery struct {
	Entry
	// Attempts counts the attempts made so far.
	Attempts int
	// Replayed is when a replay put the event back; zero where none did.
	Replayed time.Time
	// Ticket is what the platform gave for the event when it queued it; zero where it has to be sent.
	Ticket Ticket
	// Past says that a replay has put the event back from the history, since the stream does not have it any more: there are no
	// Data, and whoever delivers it reads it from there.
	Past bool
}

// Ticket is by what a platform is asked what has become of events that it has queued. It tells of no person.
type Ticket struct {
	// ID is the platform's, without white space.
	ID string
	// At is when the platform gave it.
	At time.Time
}

// IsZero says that there is none.
func (t Ticket) IsZero() bool { return t.ID == "" }

// Status is what has become of an event on one platform.
type Status uint8

// The delivery statuses, numbered as in the stream. Pending and Retrying are open, the others final.
const (
	Pending Status = iota
	Retrying
	Delivered
	Failed
	Skipped
	Expired
)

// String returns the status as the read API spells it.
func (s Status) String() string {
	return [...]string{"pending", "retrying", "delivered", "failed", "skipped", "expired"}[s]
}

// Final says whether no further attempt will be made.
func (s Status) Final() bool { return s >= Delivered }

// Record says what became of one event on one platform.
type Record struct {
	Event    Position
	Platform string
	Status   Status
	Attempts int
	// Latency is how long the deciding attempt took; 0 where none was made.
	Latency time.Duration
	// Reason is a short snake_case code; "" where the status says all.
	Reason string
	// At is when it was decided, to the millisecond.
	At time.Time
}

// Settlement closes or reschedules a delivery: the pending entry is acknowledged, the record written and, where its
// status is [Retrying], the event scheduled again, in one atomic step.
type Settlement struct {
	Record
	// RetryAt is when the next attempt is due, or the next look where there is a Ticket; only for status Retrying.
	RetryAt time.Time
	Ticket  Ticket
	// Silent settlements leave no record: nothing has become of the event since the last one.
	Silent bool
	// Order is what the event says of its order; nil where it says nothing.
	Order *OrderChange
}
