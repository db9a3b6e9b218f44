package stream

import (
	"crypto/sha256"
	"fmt"
	"time"
)

// digestSize is how much of a SHA-256 identifies an id, and fieldSize how much of that is the field of its
// deduplication key. Redis keeps a field of 6 bytes in 8, and likewise the value, which is the rest and 2 bytes more.
const digestSize, fieldSize = 10, 6

// appendCall is one caller's additions on their way.
type appendCall struct {
	// digests are of each addition's event id and, where it has one, of its order id; arguments are three of weir_append
	// for each addition.
	digests   []digest
	arguments []argument
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
	oneText      [2*digestSize + 64]byte
}

// argument is an argument of a Redis command. As a pointer it becomes one without a copy.
type argument []byte

// MarshalBinary returns what is sent.
func (a *argument) MarshalBinary() ([]byte, error) { return *a, nil }

func newAppendCall(additions []Addition, deadline time.Time) *appendCall {
	call := &appendCall{deadline: deadline, done: make(chan struct{})}
	call.digests, call.arguments, call.added = call.oneDigests[:0], call.oneArguments[:0], call.oneAdded[:0]
	text := call.oneText[:0]
	if n := len(additions); n > 1 {
		call.digests, call.arguments, call.added = make([]digest, 0, 2*n), make([]argument, 0, 3*n), make([]Added, 0, n)
		text = make([]byte, 0, n*len(call.oneText))
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
		call.bytes += len(addition.Entry)
		call.added = append(call.added, Added{EventID: addition.EventID})
	}
	return call
}

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
