package query

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
	"time"

	"github.com/weir-dev/weir/collector/analytics"
	"github.com/weir-dev/weir/collector/stream"
)

// cursor is a place in a listing: the last event of a page, and the period that the walk began with as far as new events do not
// tell it anyway. So a rolling period does not run away from a caller who is still reading it, and a walk that began with the
// oldest event has an end.
//
// It also knows the query that it is a place in, so that it cannot be taken for one in another.
type cursor struct {
	// last is the position of the page's last event; the next page begins behind it.
	last stream.Position
	// from is the start of the period; its text rounds it up to the millisecond, as events have theirs. to is its end where the
	// oldest event comes first, else the zero time: nothing behind last is asked for then.
	from, to time.Time
	// query stands for the period and the filters that were asked for: see [request.fingerprint].
	query uint64
}

// A cursor's bytes: the version, last, from and to (milliseconds) and query, all big-endian. Where the newest event comes first
// it is the version that has no to.
const (
	cursorVersion          = 2
	cursorLength           = 1 + 8 + 8 + 8
	ascendingCursorVersion = 4
	ascendingCursorLength  = cursorLength + 8
)

// cursorText is strict so that there is one text for each cursor.
var cursorText = base64.RawURLEncoding.Strict()

var errCursor = errors.New("not a cursor of this version")

// String returns the cursor as callers see it. It is opaque to them.
func (c cursor) String() string {
	b := make([]byte, 1, ascendingCursorLength)
	b[0] = cursorVersion
	b = binary.BigEndian.AppendUint64(b, uint64(c.last))
	b = appendMillisecond(b, c.from)
	if !c.to.IsZero() {
		b[0] = ascendingCursorVersion
		b = appendMillisecond(b, c.to)
	}
	b = binary.BigEndian.AppendUint64(b, c.query)
	return cursorText.EncodeToString(b)
}

// appendMillisecond appends a time, rounded up to the millisecond.
func appendMillisecond(b []byte, t time.Time) []byte {
	return binary.BigEndian.AppendUint64(b, uint64(t.Add(time.Millisecond-1).UnixMilli()))
}

// parseCursor reads what String returned.
func parseCursor(text string) (cursor, error) {
	b, err := cursorText.DecodeString(text)
	// The decoder skips line breaks, so the text's length is checked too.
	if err != nil || len(b) == 0 || len(text) != cursorText.EncodedLen(len(b)) {
		return cursor{}, errCursor
	}
	ascending := b[0] == ascendingCursorVersion
	switch {
	case ascending && len(b) == ascendingCursorLength, b[0] == cursorVersion && len(b) == cursorLength:
	default:
		return cursor{}, errCursor
	}
	c := cursor{
		last:  stream.Position(binary.BigEndian.Uint64(b[1:])),
		from:  time.UnixMilli(int64(binary.BigEndian.Uint64(b[9:]))).UTC(),
		query: binary.BigEndian.Uint64(b[len(b)-8:]),
	}
	if ascending {
		c.to = time.UnixMilli(int64(binary.BigEndian.Uint64(b[17:]))).UTC()
	}
	// A page ends with an event of its period.
	if c.last == 0 || c.from.UnixMilli() < 0 || c.from.After(c.last.Time()) || ascending && !c.last.Time().Before(c.to) {
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
	b = appendMillisecond(appendMillisecond(b, c.period.From), c.period.To)
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
