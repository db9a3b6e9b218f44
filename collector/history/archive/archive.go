// Package archive copies a property's two streams into the tables of its history, each row exactly once. The tables themselves
// are the truth of how far it is: what is noted elsewhere says what may be under way.
//
// A lane copies one stream in blocks, one after the other. Before a block is sent, its range and its token are noted; when it
// is there, that is noted too. After any doubt, as a lost answer or a writer that died, the lane looks at which rows of the
// noted range the table has, and sends those that it has not under the noted token: a copy of the block that is still on its
// way is then dropped by the table, whichever of the two comes first. Notes are fenced by an epoch, so that a writer that
// was deposed starts no further block.
package archive

import (
	"context"
	"errors"

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
	Events  Lane = "events"
	Records Lane = "records"
)

// Intent is a block that may be on its way: all rows of the entries behind After, up to Last.
type Intent struct {
	After, Last stream.Position
	// Token is what the table tells the block's copies by. It is never "".
	Token string
}

// Note is what is known of a lane beside its table.
type Note struct {
	// Confirmed is up to which entry all rows are in the table.
	Confirmed stream.Position
	// Intent is what may be on its way; nil for nothing.
	Intent *Intent
}

// Notes keep what is noted. Writing fails with [ErrDeposed] where a later epoch has begun.
type Notes interface {
	Note(ctx context.Context, lane Lane) (Note, error)
	// Intend notes a block that is about to be sent, in place of the one before.
	Intend(ctx context.Context, epoch uint64, lane Lane, intent Intent) error
	// Confirm notes up to where all rows are there, and that nothing is on its way.
	Confirm(ctx context.Context, epoch uint64, lane Lane, position stream.Position) error
}

// Source is a stream as rows.
type Source[Row any] interface {
	// Read returns the rows of up to count entries behind a position, in order, and the position of the last of these entries,
	// of which some may have no row; it is after itself where there are none.
	Read(ctx context.Context, after stream.Position, count int) (rows []Row, last stream.Position, err error)
	// Place is that of a row.
	Place(row *Row) Place
	// Prepare fills in what rows have of earlier ones. It is called with each block before it is sent, also again.
	Prepare(rows []Row)
}

// Place tells a row of a table from all others: its entry, and which row of the entry it is.
type Place struct {
	Entry stream.Position
	Nth   uint16
}

// Table is where rows go.
type Table[Row any] interface {
	// Last is the highest entry that the table has a row of, 0 where it is empty.
	Last(ctx context.Context) (stream.Position, error)
	// Places are those of the rows that the table has of the entries behind after, up to last.
	Places(ctx context.Context, after, last stream.Position) (map[Place]bool, error)
	// Insert adds rows as one block, or not at all; nothing where a block with the token has been added before. After an error
	// it is not known whether they are there, or are going to be.
	Insert(ctx context.Context, rows []Row, token string) error
}
