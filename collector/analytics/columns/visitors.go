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
	// taken is how many bytes visitors have taken that were new, those that have gone among them.
	taken int64
}

// What a visitor takes in the slices beside the client id, and in the map, in bytes.
const (
	visitorBytes    = 32
	mapVisitorBytes = 12
)

// size is about how many bytes the visitors take.
func (v *visitors) size() int64 {
	return int64(visitorBytes*cap(v.keys) + numberBytes*cap(v.free) + mapVisitorBytes*slotsFor(len(v.keys)) + v.text)
}

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
	text := lengthOf(clientID)
	v.text += text
	v.taken += int64(text + visitorBytes + 2*mapVisitorBytes)
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
	v.text -= lengthOf(v.clientIDs[number])
	v.keys[number], v.clientIDs[number] = event.Person{}, ""
	v.free = append(v.free, number)
}

// renumber is that of a [dictionary].
func (v *visitors) renumber() (to []uint32) {
	used := len(v.numbers)
	if !isSparse(used, len(v.keys)) {
		return nil
	}
	to = make([]uint32, len(v.keys))
	keys, clientIDs, last := make([]event.Person, 1, 1+used), make([]string, 1, 1+used), make([]uint64, 1, 1+used)
	numbers := make(map[event.Person]uint32, used)
	for number, key := range v.keys {
		if known, found := v.numbers[key]; found && int(known) == number {
			to[number] = uint32(len(keys))
			numbers[key] = to[number]
			keys, clientIDs, last = append(keys, key), append(clientIDs, v.clientIDs[number]), append(last, v.last[number])
		}
	}
	v.numbers, v.keys, v.clientIDs, v.last, v.free = numbers, keys, clientIDs, last, nil
	return to
}
