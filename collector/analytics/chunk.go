package analytics

import (
	"encoding/binary"
	"math"
	"sync"

	"github.com/google/uuid"

	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/stream"
)

// A chunk's size is also the grain in which memory is given back.
const (
	chunkBits = 13
	chunkRows = 1 << chunkBits
)

// What stands in a column where there is nothing to say.
const (
	// noPrevious is the distance to the previous event of a visitor who has none. It is larger than any distance,
	// so that "first of its visitor since row a" is one comparison.
	noPrevious = math.MaxUint32
	// noValue is the value of an event without one.
	noValue event.Amount = math.MinInt64
)

// chunk holds a run of events as columns. A row is written once, before any reader is told of it, and never
// changes; details and deliveries are guarded by mu.
type chunk struct {
	position [chunkRows]stream.Position
	name     [chunkRows]uint32
	// visitor is 0 for nobody.
	visitor [chunkRows]uint32
	// back is how many rows before this one the visitor's previous event lies, noPrevious where there is none,
	// 0 for an event of nobody.
	back  [chunkRows]uint32
	value [chunkRows]event.Amount
	// touch is 0 where the event is no touch.
	touch     [chunkRows]uint32
	currency  [chunkRows]uint16
	platforms [chunkRows]uint16
	// detailEnd is where the row's details end in details; they begin where the row before ends.
	detailEnd [chunkRows]uint32

	// sealed is made when the last row is written. It is there for whoever may read all of the chunk's rows.
	sealed *seal

	mu sync.Mutex
	// details is what only the listing shows: see appendDetail.
	details []byte
	// deliveries has a column per place in the events' lists of platforms.
	deliveries []*[chunkRows]delivery
}

// What the parts of a chunk take, in bytes: its columns, one of deliveries, and of its seal a name, a touch and the rest.
const (
	chunkBytes      = 40 * chunkRows
	deliveryBytes   = 12 * chunkRows
	sealBytes       = 2 * chunkRows
	sealedNameBytes = 192
	touchedBytes    = 10
)

// size is about how many bytes the chunk takes. It is asked by whoever adds to it.
func (c *chunk) size() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	size := chunkBytes + cap(c.details) + deliveryBytes*len(c.deliveries)
	if c.sealed != nil {
		size += sealBytes + sealedNameBytes*len(c.sealed.names) + touchedBytes*len(c.sealed.touched.rows)
	}
	return int64(size)
}

// detail returns the row's details. The caller holds mu.
func (c *chunk) detail(row int) []byte {
	from := uint32(0)
	if row > 0 {
		from = c.detailEnd[row-1]
	}
	return c.details[from:c.detailEnd[row]]
}

// appendDetail appends an event's id and order id: a byte that says whether 16 bytes of a UUID or a
// length-prefixed text follow, then the order id, which ends the details.
func appendDetail(b []byte, eventID, orderID string) []byte {
	if id, err := uuid.Parse(eventID); err == nil && id.String() == eventID {
		b = append(append(b, 1), id[:]...)
	} else {
		b = append(b, 0)
		b = binary.AppendUvarint(b, uint64(len(eventID)))
		b = append(b, eventID...)
	}
	return append(b, orderID...)
}

// readDetail reads what appendDetail wrote.
func readDetail(b []byte) (eventID, orderID string) {
	if b[0] == 1 {
		return uuid.UUID(b[1:17]).String(), string(b[17:])
	}
	length, size := binary.Uvarint(b[1:])
	from := 1 + size
	to := from + int(length)
	return string(b[from:to]), string(b[to:])
}
