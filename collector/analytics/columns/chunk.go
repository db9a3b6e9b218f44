// Package columns keeps the events and deliveries of one property in memory, a column for each attribute, and gives out
// snapshots of them. It answers no queries: package analytics does.
package columns

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
	ChunkRows = 1 << chunkBits
)

// What stands in a column where there is nothing to say.
const (
	// NoPrevious is the distance to the previous event of a visitor who has none. It is larger than any distance,
	// so that "first of its visitor since row a" is one comparison.
	NoPrevious = math.MaxUint32
	// NoValue is the value of an event without one.
	NoValue event.Amount = math.MinInt64
)

// Chunk holds a run of events as columns. A row is written once, before any reader is told of it, and never
// changes while one is at work; only its deliveries do. See [Table.Erase], [Table.Anonymize] and [Table.Drop] for what changes
// else.
type Chunk struct {
	Position [ChunkRows]stream.Position
	Name     [ChunkRows]uint32
	// Visitor is 0 for nobody.
	Visitor [ChunkRows]uint32
	// Back is how many rows before this one the visitor's previous event lies, NoPrevious where there is none,
	// 0 for an event of nobody.
	Back  [ChunkRows]uint32
	Value [ChunkRows]event.Amount
	// Touch is 0 where the event is no touch.
	Touch [ChunkRows]uint32
	// Page is 0 where the event names none.
	Page [ChunkRows]uint32
	// origin is where the row's visitor comes from; [ChunkRange.Origins] says whether it still holds.
	origin    [ChunkRows]origin
	Currency  [ChunkRows]uint16
	Platforms [ChunkRows]uint16
	// detailEnd is where the row's details end in details; they begin where the row before ends.
	detailEnd [ChunkRows]uint32

	// index is made when the last row is written. It is there for whoever may read all of the chunk's rows.
	index *ChunkIndex

	// Mutex guards products, details and Deliveries.
	sync.Mutex
	products productLists
	// details is what only the listing shows: see appendDetail.
	details []byte
	// Deliveries has a column per place in the events' lists of platforms.
	Deliveries []*[ChunkRows]Delivery
}

// What the parts of a chunk take, in bytes: its columns, one of deliveries, and of its index a name, a touch and the rest.
const (
	chunkBytes       = 52 * ChunkRows
	deliveryBytes    = 12 * ChunkRows
	indexBytes       = 2 * ChunkRows
	indexedNameBytes = 192
	touchRowBytes    = 10
)

// size is about how many bytes the chunk takes. It is asked by whoever adds to it.
func (c *Chunk) size() int64 {
	c.Lock()
	defer c.Unlock()
	size := chunkBytes + c.products.size() + cap(c.details) + deliveryBytes*len(c.Deliveries)
	if c.index != nil {
		size += indexBytes + indexedNameBytes*len(c.index.Names) + touchRowBytes*len(c.index.touches.Rows)
	}
	return int64(size)
}

// detail returns a row's details, nothing where it is of an erased event. The caller holds the lock.
func (c *Chunk) detail(row int) []byte {
	from := uint32(0)
	if row > 0 {
		from = c.detailEnd[row-1]
	}
	return c.details[from:c.detailEnd[row]]
}

// IDs returns a row's event id, order id and client id, "" for none; visitor is the client id that the row's visitor has.
// The caller holds the lock.
func (c *Chunk) IDs(row int, visitor string) (eventID, orderID, clientID string) {
	d := splitDetail(c.detail(row))
	if eventID = string(d.eventID); d.isUUID() {
		eventID = uuid.UUID(d.eventID).String()
	}
	if clientID = visitor; d.kind&clientDetail != 0 {
		clientID = string(d.clientID)
	}
	return eventID, string(d.orderID), clientID
}

// What the first byte of a row's details says of them.
const (
	uuidDetail   = 1 << iota // the event id is 16 bytes of a UUID, else a text with its length
	clientDetail             // behind it the event has a client id of its own, with its length, or 0 for none
)

// appendDetail appends an event's id, its client id where that is another than its visitor's, and its order id, which ends
// the details.
func appendDetail(b []byte, r *Row, visitor string) []byte {
	first := len(b)
	b = append(b, 0)
	if id, err := uuid.Parse(r.EventID); err == nil && id.String() == r.EventID {
		b[first] |= uuidDetail
		b = append(b, id[:]...)
	} else {
		b = append(binary.AppendUvarint(b, uint64(len(r.EventID))), r.EventID...)
	}
	if r.IsSomeone && r.ClientID != visitor {
		b[first] |= clientDetail
		b = append(binary.AppendUvarint(b, uint64(len(r.ClientID))), r.ClientID...)
	}
	return append(b, r.OrderID...)
}

// detail is what appendDetail wrote, in its bytes.
type detail struct {
	kind                       byte
	eventID, clientID, orderID []byte
}

// isUUID says that the event id is the 16 bytes of one.
func (d *detail) isUUID() bool { return d.kind&uuidDetail != 0 }

// splitDetail takes a row's details apart; there have to be some.
func splitDetail(b []byte) (d detail) {
	d.kind, d.orderID = b[0], b[1:]
	if d.isUUID() {
		d.eventID, d.orderID = d.orderID[:16], d.orderID[16:]
	} else {
		d.eventID, d.orderID = cutText(d.orderID)
	}
	if d.kind&clientDetail != 0 {
		d.clientID, d.orderID = cutText(d.orderID)
	}
	return d
}

// cutText cuts a text off that follows its length.
func cutText(b []byte) (text, rest []byte) {
	length, size := binary.Uvarint(b)
	end := size + int(length)
	return b[size:end], b[end:]
}
