package stream

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"time"

	"github.com/weir-dev/weir/collector/event/wire"
)

// digestSize is how much of a SHA-256 identifies an id, and fieldSize how much of that is the field of its
// deduplication key. Redis keeps a field of 6 bytes in 8, and likewise the value, which is the rest and 2 bytes more.
const digestSize, fieldSize = 10, 6

// appendCall is one caller's additions on their way.
type appendCall struct {
	// digests are of each addition's event id and, where it has one, of its order id; arguments are three of weir_append
	// for each addition: its entry as it is sealed, see [appendCall.seal], the event id of an order, and its identifiers.
	digests   []digest
	arguments []argument
	// parts are each addition's entry before it is sealed; those that it has to seal are in sealed.
	parts  []wire.Parts
	sealed [wire.PartCount]bool
	// bytes are those of the additions' entries.
	bytes int
	added []Added
	err   error
	// deadline is when the caller is told that Redis is out of reach.
	deadline time.Time
	done     chan struct{} // closed by answer
	answered bool

	// What a call of one addition needs, which is most, so that it takes no memory of its own.
	oneDigests   [2]digest
	oneArguments [3]argument
	oneAdded     [1]Added
	oneParts     [1]wire.Parts
	oneText      [2*digestSize + 64]byte
}

// argument is an argument of a Redis command. As a pointer it becomes one without a copy.
type argument []byte

// MarshalBinary returns what is sent.
func (a *argument) MarshalBinary() ([]byte, error) { return *a, nil }

func newAppendCall(additions []Addition, deadline time.Time) *appendCall {
	call := &appendCall{deadline: deadline, done: make(chan struct{})}
	call.digests, call.arguments, call.added = call.oneDigests[:0], call.oneArguments[:0], call.oneAdded[:0]
	call.parts = call.oneParts[:0]
	text := call.oneText[:0]
	if n := len(additions); n > 1 {
		call.digests, call.arguments, call.added = make([]digest, 0, 2*n), make([]argument, 0, 3*n), make([]Added, 0, n)
		call.parts, text = make([]wire.Parts, 0, n), make([]byte, 0, n*len(call.oneText))
	}
	for i := range additions {
		addition := &additions[i]
		// Where text has to grow the arguments go on pointing into what it was.
		kind, space := byte('e'), addition.IDSpace<<5 // which keeps all kinds of all spaces apart
		if addition.Public {
			kind = 'p'
		}
		text = call.appendDigest(text, kind+space, addition.EventID)
		start := len(text)
		if addition.OrderID != "" {
			text = call.appendDigest(text, 'o'+space, addition.OrderID)
			start = len(text)
			text = append(text, addition.EventID...)
		}
		call.arguments = append(call.arguments, addition.Entry, text[start:], addition.Identifiers)
		call.parts = append(call.parts, wire.Parts{Entry: addition.Entry, Sealed: addition.Sealed})
		call.bytes += len(addition.Entry)
		for part, fields := range addition.Sealed {
			call.sealed[part] = call.sealed[part] || fields != nil
			call.bytes += len(fields)
		}
		call.added = append(call.added, Added{EventID: addition.EventID})
	}
	return call
}

// masked is added to the place of the client id where a mask stands behind the identifiers.
const masked = 128

// seal makes the arguments of entries with parts that are sealed, anew with each set of keys. Additions keep their identifiers.
func (c *appendCall) seal(keys [wire.PartCount]wire.PeriodKey) {
	if c.sealed == [wire.PartCount]bool{} {
		return
	}
	for i := range c.parts {
		parts, identifiers := &c.parts[i], c.arguments[3*i+2]
		size := len(parts.Entry)
		for _, fields := range parts.Sealed {
			size += len(fields) + sealCost
		}
		entry, mask := parts.Seal(make([]byte, 0, size), keys)
		c.arguments[3*i] = entry
		if parts.Sealed[wire.Identity] == nil || len(identifiers) == 0 {
			continue
		}
		if n := len(identifiers); identifiers[0] >= masked { // by keys before these
			identifiers = identifiers[:n-len(mask)]
		}
		c.arguments[3*i+2] = slices.Concat(argument{identifiers[0] | masked}, identifiers[1:], mask[:])
	}
}

// sealCost is how many bytes a sealed part takes at most beside its fields.
const sealCost = 48

// answer lets the caller go with added and err, which are the caller's from now on.
func (c *appendCall) answer() {
	c.answered = true
	close(c.done)
}

// digest is what stands for an id in the deduplication keys.
type digest struct{ field, rest argument }

// appendDigest appends an id's digest to the call's text and notes it; kind parts event ids, public
// event ids and order ids, and those of each space from those of the others.
func (c *appendCall) appendDigest(text []byte, kind byte, id string) []byte {
	var buffer [256]byte
	sum := sha256.Sum256(append(append(buffer[:0], kind), id...))
	start := len(text)
	text = append(text, sum[:digestSize]...)
	c.digests = append(c.digests, digest{text[start : start+fieldSize], text[start+fieldSize:]})
	return text
}

// repeated returns "1" where two of the batch's digests have the same field, else "": telling so here costs less than
// finding it out in Redis.
func repeated(batch []*appendCall, digests int) string {
	seen := make(map[[fieldSize]byte]struct{}, digests)
	for _, call := range batch {
		for i := range call.digests {
			seen[[fieldSize]byte(call.digests[i].field)] = struct{}{}
		}
	}
	if len(seen) < digests {
		return "1"
	}
	return ""
}

// distribute answers those of a batch who still wait with what weir_append replied: its exceptions. All fail where the
// reply is not one of weir_append's.
func distribute(batch []*appendCall, reply []any) {
	err := apply(batch, reply)
	for _, call := range batch {
		if call.answered {
			continue
		}
		if err != nil {
			call.err = err
		}
		call.answer()
	}
}

// apply notes weir_append's exceptions in the calls that they belong to. It fails where they are none.
func apply(batch []*appendCall, reply []any) error {
	for len(reply) > 0 {
		if len(reply) < 3 {
			return fmt.Errorf("%w: %s replied with a cut list", ErrUnavailable, functionAppend)
		}
		number, numbered := reply[0].(int64)
		kind, kinded := reply[1].(string)
		text, texted := reply[2].(string)
		call, index := locate(batch, number)
		if !numbered || !kinded || !texted || call == nil {
			return fmt.Errorf("%w: %s replied with something else than exceptions", ErrUnavailable, functionAppend)
		}
		reply = reply[3:]
		switch {
		case call.answered:
		case kind != "d":
			call.err = fmt.Errorf("%w: append event: %s", ErrUnavailable, text)
		default:
			call.added[index].Duplicate = true
			if text != "" {
				call.added[index].EventID = text
			}
		}
	}
	return nil
}

// locate finds the batch's n-th addition.
func locate(batch []*appendCall, n int64) (*appendCall, int64) {
	for _, call := range batch {
		if size := int64(len(call.added)); n >= size {
			n -= size
			continue
		}
		if n < 0 {
			break
		}
		return call, n
	}
	return nil, 0
}
