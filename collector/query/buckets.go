package query

import (
	"time"

	"github.com/weir-dev/weir/collector/analytics"
)

// interval is how long the buckets of a series are.
type interval string

// The intervals. Buckets are those of the clock and the calendar in the property's time zone.
const (
	everyHour  interval = "hour"
	everyDay   interval = "day"
	everyWeek  interval = "week"
	everyMonth interval = "month"
)

var intervalChoices = []choice[interval]{
	{string(everyHour), everyHour}, {string(everyDay), everyDay}, {string(everyWeek), everyWeek}, {string(everyMonth), everyMonth},
}

// next returns the first instant behind t at which a bucket begins, by the clock of t's location. Weeks begin on Mondays, as in
// ISO 8601.
func (i interval) next(t time.Time) time.Time {
	switch i {
	case everyHour:
		return nextHour(t)
	case everyWeek:
		sinceMonday := (int(t.Weekday()) + 6) % 7
		return midnight(t, 7-sinceMonday)
	case everyMonth:
		year, month, date := t.Date()
		length := time.Date(year, month+1, 0, 0, 0, 0, 0, time.UTC).Day()
		return midnight(t, length+1-date)
	default:
		return midnight(t, 1)
	}
}

// nextHour returns when the clock of t's location next strikes an hour, or is put forward or back before it does. So an hour
// that comes twice is two hours, and none is longer than 60 minutes.
func nextHour(t time.Time) time.Time {
	_, offset := t.Zone()
	shown := time.Duration(offset) * time.Second
	strikes := t.Add(shown).UTC().Truncate(time.Hour).Add(time.Hour - shown)
	for at := t; ; {
		_, zoneEnd := at.ZoneBounds()
		if zoneEnd.IsZero() || !zoneEnd.Before(strikes) {
			return strikes
		}
		if _, then := zoneEnd.Zone(); then != offset {
			return zoneEnd
		}
		at = zoneEnd // another name for the same time
	}
}

// buckets returns the period's parts that lie in one bucket each, oldest first; the first and the last are cut to the period. An
// empty period has none.
func (p period) buckets(every interval, loc *time.Location) []analytics.Range {
	var buckets []analytics.Range
	for start := p.From; start.Before(p.To); {
		end := every.next(start.In(loc))
		if end.After(p.To) {
			end = p.To
		}
		buckets = append(buckets, analytics.Range{From: start.UTC(), To: end.UTC()})
		start = end
	}
	return buckets
}

// before returns the period that this one is compared with. Where this one begins at a local midnight those are as many local days
// directly before it, of which the last ends at the time of day at which this one does; else it is as long, and ends where
// this one begins.
func (p period) before(loc *time.Location) period {
	from, to := p.From.Add(p.From.Sub(p.To)), p.From
	if start := p.From.In(loc); midnight(start, 0).Equal(start) {
		from = p.From
		for range p.buckets(everyDay, loc) {
			from = midnight(from.Add(-1).In(loc), 0)
		}
		if end := p.To.In(loc); !midnight(end, 0).Equal(end) {
			year, month, date := start.Add(-1).Date()
			to = sameTimeOfDay(end, year, month, date)
		}
	}
	if from.Before(earliestInstant) {
		from = earliestInstant
	}
	if to.Before(from) {
		to = from
	}
	return newPeriod(from, to, loc)
}

// sameTimeOfDay returns when the clock on another local day shows what it shows at t; see [localTime].
func sameTimeOfDay(t time.Time, year int, month time.Month, date int) time.Time {
	hour, minute, second := t.Clock()
	return localTime(time.Date(year, month, date, hour, minute, second, t.Nanosecond(), time.UTC), t.Location())
}
