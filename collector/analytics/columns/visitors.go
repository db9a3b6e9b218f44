package columns

import "github.com/weir-dev/weir/collector/event"

// visitors numbers the visitors that have retained events, from 1; 0 is nobody. Like a [dictionary] it gives a
// number to another visitor once the last event of the one who had it has been dropped.
type visitors struct {
	numbers map[event.Person]uint32
	keys    []event.Person
	// clientIDs has the client id of the visitor's first event, "" where that had none: nearly all others have the same.
	clientIDs []string
	// last is the ordinal of the visitor's newest event.
	last []uint64
	free []uint32
	// text is how many bytes the client ids have.
	text int
}

// visitorBytes is about what a visitor takes beside the client id.
const visitorBytes = 96

// size is about how many bytes the visitors take.
func (v *visitors) size() int64 { return int64(visitorBytes*len(v.keys) + v.text) }

func newVisitors() *visitors {
	return &visitors{
		numbers:   map[event.Person]uint32{},
		keys:      make([]event.Person, 1),
		clientIDs: make([]string, 1),
		last:      make([]uint64, 1),
	}
}

// visit notes that the visitor's newest event is the one at ordinal. It returns the visitor's number and how
// far back the event before lies, [NoPrevious] where this is the first that is retained.
func (v *visitors) visit(key event.Person, clientID string, ordinal uint64) (number, back uint32) {
	number, known := v.numbers[key]
	back = NoPrevious
	switch {
	case known:
		back = uint32(ordinal - v.last[number])
		v.last[number] = ordinal
		return number, back
	case len(v.free) > 0:
		number = v.free[len(v.free)-1]
		v.free = v.free[:len(v.free)-1]
		v.keys[number], v.clientIDs[number], v.last[number] = key, clientID, ordinal
	default:
		number = uint32(len(v.keys))
		v.keys = append(v.keys, key)
		v.clientIDs = append(v.clientIDs, clientID)
		v.last = append(v.last, ordinal)
	}
	v.numbers[key] = number
	v.text += len(clientID)
	return number, back
}

// leave forgets the visitor where the event at ordinal, which is the visitor's no longer, was its newest.
func (v *visitors) leave(number uint32, ordinal uint64) {
	if number != 0 && v.last[number] == ordinal {
		v.forget(number)
	}
}

// forget gives the visitor's number free.
func (v *visitors) forget(number uint32) {
	delete(v.numbers, v.keys[number])
	v.text -= len(v.clientIDs[number])
	v.keys[number], v.clientIDs[number] = event.Person{}, ""
	v.free = append(v.free, number)
}
