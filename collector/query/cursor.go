package query

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
	"time"

	"github.com/weir-dev/weir/collector/analytics"
	"github.com/weir-dev/weir/collector/stream"
)

// cursor is a place in a listing: the last event of a page, and the start of the period that the walk began
// with, so that a rolling period does not run away from a caller who is still reading it.
//
// It also knows the query that it is a place in, so that it cannot be taken for one in another.
type cursor struct {
	// before is the position of the page's last event; the next page begins behind it.
	before stream.Position
	// from is the start of the period; its text rounds it up to the millisecond, as events have theirs.
	from time.Time
	// query stands for the period and the filters that were asked for: see [request.fingerprint].
	query uint64
}

// A cursor's bytes: the version, before, from (milliseconds) and query, all big-endian.
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
	b = binary.BigEndian.AppendUint64(b, c.query)
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
		before: stream.Position(binary.BigEndian.Uint64(b[1:])),
		from:   time.UnixMilli(int64(binary.BigEndian.Uint64(b[9:]))).UTC(),
		query:  binary.BigEndian.Uint64(b[17:]),
	}
	// A page ends with an event of its period.
	if c.before == 0 || c.from.UnixMilli() < 0 || c.from.After(c.before.Time()) {
		return cursor{}, errCursor
	}
	return c, nil
}

// statsCursor is a place in event statistics: the period that the walk began with, and the last name of a page.
type statsCursor struct {
	period analytics.Range
	after  analytics.StatsPlace
}

// A statsCursor's bytes: the version, the period's ends (milliseconds) and the name's count, all big-endian, and the name.
const (
	statsCursorVersion = 3
	statsCursorHead    = 1 + 8 + 8 + 8
	// maxCursorPeriod is the longest period there is, 366 days, and the hour that clocks may be set back in it.
	maxCursorPeriod = 366*24*time.Hour + time.Hour
)

// String returns the cursor as callers see it. It is opaque to them.
func (c statsCursor) String() string {
	b := []byte{statsCursorVersion}
	for _, end := range []time.Time{c.period.From, c.period.To} {
		b = binary.BigEndian.AppendUint64(b, uint64(end.Add(time.Millisecond-1).UnixMilli()))
	}
	b = binary.BigEndian.AppendUint64(b, uint64(c.after.Count))
	return cursorText.EncodeToString(append(b, c.after.Event...))
}

// parseStatsCursor reads what String returned.
func parseStatsCursor(text string) (statsCursor, error) {
	b, err := cursorText.DecodeString(text)
	if err != nil || len(b) <= statsCursorHead || len(text) != cursorText.EncodedLen(len(b)) || b[0] != statsCursorVersion {
		return statsCursor{}, errCursor
	}
	number := func(at int) int64 { return int64(binary.BigEndian.Uint64(b[at:])) }
	c := statsCursor{
		period: analytics.Range{From: time.UnixMilli(number(1)).UTC(), To: time.UnixMilli(number(9)).UTC()},
		after:  analytics.StatsPlace{Count: int(number(17)), Event: string(b[statsCursorHead:])},
	}
	if number(1) < 0 || c.period.To.Before(c.period.From) || c.after.Count < 1 || c.period.To.Sub(c.period.From) > maxCursorPeriod {
		return statsCursor{}, errCursor
	}
	return c, nil
}
