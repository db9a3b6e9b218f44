package query

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
	"time"

	"github.com/weir-dev/weir/collector/stream"
)

// cursor is a place in a listing: the last event of a page, and the start of the period that the walk began
// with, so that a rolling period does not run away from a caller who is still reading it.
//
// It also knows the question that it is a place in, so that it cannot be taken for one in another.
type cursor struct {
	// before is the position of the page's last event; the next page begins behind it.
	before stream.Position
	// from is the start of the period; its text rounds it up to the millisecond, as events have theirs.
	from time.Time
	// question stands for the period and the filters that were asked for: see [request.fingerprint].
	question uint64
}

// A cursor's bytes: the version, before, from (milliseconds) and question, all big-endian.
const (
	cursorVersion = 2
	cursorLength  = 1 + 8 + 8 + 8
)

// cursorText is strict so that there is one text for each cursor.
var cursorText = base64.RawURLEncoding.Strict()

var errCursor = errors.New("not a cursor of this version")

// String returns the cursor as callers see it. It is opaque to them.
func (c cursor) String() string {
	b := make([]byte, 0, cursorLength)
	b = append(b, cursorVersion)
	b = binary.BigEndian.AppendUint64(b, uint64(c.before))
	b = binary.BigEndian.AppendUint64(b, uint64(c.from.Add(time.Millisecond-1).UnixMilli()))
	b = binary.BigEndian.AppendUint64(b, c.question)
	return cursorText.EncodeToString(b)
}

// parseCursor reads what String returned.
func parseCursor(text string) (cursor, error) {
	b, err := cursorText.DecodeString(text)
	// The decoder skips line breaks, so the text's length is checked too.
	if err != nil || len(b) != cursorLength || len(text) != cursorText.EncodedLen(cursorLength) || b[0] != cursorVersion {
		return cursor{}, errCursor
	}
	c := cursor{
		before:   stream.Position(binary.BigEndian.Uint64(b[1:])),
		from:     time.UnixMilli(int64(binary.BigEndian.Uint64(b[9:]))).UTC(),
		question: binary.BigEndian.Uint64(b[17:]),
	}
	// A page ends with an event of its period.
	if c.before == 0 || c.from.UnixMilli() < 0 || c.from.After(c.before.Time()) {
		return cursor{}, errCursor
	}
	return c, nil
}
