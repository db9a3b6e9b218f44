// Package archive copies a property's two streams into the tables of its history, each row exactly once. The tables themselves
// are the truth of what they have: what is noted elsewhere says up to where nothing is missing, and what may be under way.
//
// A lane copies one stream in blocks, one after the other. Before a block is sent, its range and its token are noted; when it
// is there, that is noted too. After any doubt, as a lost answer or a writer that died, the lane looks at which rows of the
// noted range the table has, and sends those that it has not under the noted token: a copy of the block that is still on its
// way is then dropped by the table, whichever of the two comes first. Notes are fenced by an epoch, so that a writer that
// was deposed starts no further block.
//
// lane.go is the core. events.go and records.go turn the streams into rows, touches.go and names.go complete these; tables.go and
// notes.go are the ways to ClickHouse and Redis, and run.go runs both lanes.
package archive

import (
	"context"
	"errors"
	"time"

	"github.com/weir-dev/weir/collector/stream"
)

// ErrDeposed says that another writer has taken over.
var ErrDeposed = errors.New("another archive has taken over")

// errUnsettled says that a block was sent and its rows are not all there. It is settled again.
var errUnsettled = errors.New("rows that were sent to the history are not there")

// Lane names one of the two streams that are copied.
type Lane string

// The lanes.
const (
	Events  Lane = stream.EventsLane
	Records Lane = stream.RecordsLane
)

// Intent is a block that may be on its way: all rows of the entries behind the confirmed one, up to Last, that the table lacked.
type Intent struct {
	Last stream.Position
	// Token is what the table tells the block's copies by. It is never "".
	Token string
}

// Note is what is known of a lane beside its table.
type Note struct {
	// Confirmed is up to which entry all rows are in the table.
	Confirmed stream.Position
	// Intent is what may be on its way; nil for nothing.
	Intent *Intent
	// Lost is up to where entries may have been taken from the stream that were not confirmed; 0 where none were.
	Lost stream.Position
}

// Notes keep what is noted. Writing fails with [ErrDeposed] where a later epoch has begun.
type Notes interface {
	Note(ctx context.Context, lane Lane) (Note, error)
	// Write notes what is confirmed and what is intended, in place of what was. It returns what is lost.
	Write(ctx context.Context, epoch uint64, lane Lane, note Note) (lost stream.Position, err error)
}

// Block is what some entries of a stream say.
type Block[Row any] struct {
	// Rows are in order. Of some entries there are none.
	Rows []Row
	// First and Last are the first and the last entry, the one that was read behind where there are none.
	First, Last stream.Position
	// End says that there was nothing behind Last.
	End bool
	// Began is when reading began, by this machine's clock. Asked is the time by the stream's: what was appended before it has been
	// read, where the block is the stream's end.
	Began, Asked time.Time
}

// Source is a stream as rows.
type Source[Row any] interface {
	// Read returns the entries behind a position, in order: until there are about limit rows or entries, or many bytes.
	Read(ctx context.Context, after stream.Position, limit int) (Block[Row], error)
	// Place is that of a row.
	Place(row *Row) Place
	// Prepare fills in what the rows of the entries behind after, up to last, have of earlier ones, and leaves out those that are of
	// no use to anybody. It is called with all rows of each block before it is sent, also again.
	Prepare(ctx context.Context, after, last stream.Position, rows []Row) ([]Row, error)
}

// Place tells a row of a table from all others: its entry, and which row of the entry it is.
type Place struct {
	Entry stream.Position
	Nth   uint16
}

// Table is where rows go.
type Table[Row any] interface {
	// Last is the highest entry that the table has a row of, 0 where it is empty. Where there are rows behind a position, they alone
	// need to be looked at.
	Last(ctx context.Context, behind stream.Position) (stream.Position, error)
	// Places are those of the rows that the table has of the entries behind after, up to last.
	Places(ctx context.Context, after, last stream.Position) (map[Place]bool, error)
	// Insert adds rows as one block, or not at all; nothing where a block with the token has been added before. After an error
	// it is not known whether they are there, or are going to be.
	Insert(ctx context.Context, rows []Row, token string) error
}
