package schema

import (
	"time"

	"github.com/weir-dev/weir/collector/stream"
)

// DaysBefore is the first position of the UTC day that began so many days before the one of a time: what a history is to keep for
// that many days is kept from there on, and for up to a day longer.
func DaysBefore(now time.Time, days int) stream.Position {
	const day = 24 * time.Hour
	return stream.At(now.UTC().Truncate(day).Add(-time.Duration(days) * day))
}

// DayOf is the first position of a position's UTC day.
func DayOf(p stream.Position) stream.Position { return DaysBefore(p.Time(), 0) }

// MonthOf is the partition that a position lies in.
func MonthOf(p stream.Position) int {
	const hundred = 100
	t := p.Time()
	return t.Year()*hundred + int(t.Month())
}
