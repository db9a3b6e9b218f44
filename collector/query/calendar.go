package query

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/weir-dev/weir/collector/analytics"
	"github.com/weir-dev/weir/collector/event"
)

const (
	day         = 24 * time.Hour
	rollingDays = 30
	// maxPeriodDays is how many local days a period may span.
	maxPeriodDays = 366
)

// Instants outside of these are refused: stream positions begin in 1970 and do not reach beyond the 26th
// century.
var (
	earliestInstant = time.UnixMilli(0).UTC()
	latestInstant   = time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC)
)

// period is a range of time with the local dates of its first and its last instant. An empty period has one date.
type period struct {
	analytics.Range
	dates dateRange
}

// dateRange is a period in answers: dates such as "2026-11-01" in the property's time zone.
type dateRange struct {
	From string `json:"from"`
	To   string `json:"to"`
}

// periodQuery is a period as a caller asks for it, "" for what it does not say.
type periodQuery struct {
	// Period is "24h", "7d" or "30d".
	Period string
	// From and To are local dates ("2026-11-01", To inclusive) or ISO 8601 timestamps with their offset (To
	// exclusive). They win over Period.
	From, To string
}

// defaultPeriod is the period of a caller that asks for none.
type defaultPeriod uint8

const (
	// lastDay is the 24 hours before now.
	lastDay defaultPeriod = iota
	// lastThirtyDays begins at the local midnight 29 days ago and ends now.
	lastThirtyDays
	// longestPeriod is as long as a period may be, and ends now.
	longestPeriod
)

// rollingPeriods are the values of the parameter "period".
var rollingPeriods = map[string]time.Duration{"24h": day, "7d": 7 * day, "30d": rollingDays * day}

// parsePeriod reads a period as of now; dates are days of loc. The errors are of the fields "period", "from"
// and "to".
func parsePeriod(q periodQuery, now time.Time, loc *time.Location, fallback defaultPeriod) (period, event.Errors) {
	switch {
	case q.From != "" || q.To != "":
		return parseBounds(q, now, loc)
	case q.Period != "":
		length, ok := rollingPeriods[q.Period]
		if !ok {
			return period{}, event.Errors{{Field: "period", Message: "The selected period is invalid."}}
		}
		return newPeriod(now.Add(-length), now, loc), nil
	case fallback == lastThirtyDays:
		return newPeriod(midnight(now.In(loc), 1-rollingDays), now, loc), nil
	case fallback == longestPeriod:
		return newPeriod(now.Add(-maxPeriodDays*day), now, loc), nil
	}
	return newPeriod(now.Add(-day), now, loc), nil
}

func newPeriod(from, to time.Time, loc *time.Location) period {
	last := to
	if to.After(from) {
		last = to.Add(-1)
	}
	return period{
		Range: analytics.Range{From: from.UTC(), To: to.UTC()},
		dates: dateRange{From: from.In(loc).Format(time.DateOnly), To: last.In(loc).Format(time.DateOnly)},
	}
}

// bound is one end of a period as it was asked for.
type bound struct {
	at time.Time
	// isDate says that at is the local midnight that a date begins with.
	isDate bool
}

// format writes an instant in the form in which the caller wrote the bound.
func (b bound) format(at time.Time, loc *time.Location) string {
	if b.isDate {
		return at.In(loc).Format(time.DateOnly)
	}
	return at.UTC().Format("2006-01-02T15:04:05.999Z07:00")
}

func parseBounds(q periodQuery, now time.Time, loc *time.Location) (period, event.Errors) {
	var errs event.Errors
	from := parseBound("from", q.From, loc, &errs)
	to := parseBound("to", q.To, loc, &errs)
	if len(errs) > 0 {
		return period{}, errs
	}
	end := to.at
	switch {
	case q.To == "":
		end = now
		if from.at.After(now) {
			errs.Add("from", "The from field must be a date before or equal to "+from.format(now, loc)+".")
		}
	case to.isDate:
		end = midnight(to.at.In(loc), 1)
	}
	switch {
	case q.From == "" && to.isDate:
		from.at = midnight(to.at.In(loc), 1-rollingDays)
	case q.From == "":
		year, month, date := to.at.In(loc).Date()
		from.at = sameTimeOfDay(to.at.In(loc), year, month, date-rollingDays)
	case q.To == "":
	case from.at.After(end), from.isDate && to.isDate && from.at.After(to.at):
		errs.Add("to", "The to field must be a date after or equal to from.")
	}
	oldest := end.Add(-maxPeriodDays * day)
	if from.isDate {
		oldest = midnight(end.Add(-1).In(loc), 1-maxPeriodDays)
	}
	if len(errs) == 0 && from.at.Before(oldest) {
		errs.Add("from", fmt.Sprintf("The period must not be longer than %d days: the from field must be a date after or equal to %s.",
			maxPeriodDays, from.format(oldest, loc)))
	}
	if len(errs) > 0 {
		return period{}, errs
	}
	if from.at.Before(earliestInstant) {
		from.at = earliestInstant
	}
	return newPeriod(from.at, end, loc), nil
}

// parseBound reads a date or a timestamp.
func parseBound(field, text string, loc *time.Location, errs *event.Errors) bound {
	if text == "" {
		return bound{}
	}
	var b bound
	if date, err := time.Parse(time.DateOnly, text); err == nil {
		b = bound{at: midnight(time.Date(date.Year(), date.Month(), date.Day(), 12, 0, 0, 0, loc), 0), isDate: true}
	} else if b.at, err = event.ParseTimestamp(text); err != nil {
		errs.Add(field, "The "+field+" field format is invalid.")
		return b
	}
	switch {
	case b.at.Before(earliestInstant.Add(-day)):
		errs.Add(field, "The "+field+" field must be a date after or equal to 1970-01-01.")
	case !b.at.Before(latestInstant):
		errs.Add(field, "The "+field+" field must be a date before or equal to 2199-12-31.")
	}
	return b
}

// midnight returns the first instant of the local day that lies days after t's; see [localTime].
func midnight(t time.Time, days int) time.Time {
	year, month, date := t.Date()
	return localTime(time.Date(year, month, date+days, 0, 0, 0, 0, time.UTC), t.Location())
}

// localTime returns when the clocks of a location first show what those of UTC show at an instant. Where they jump over it that is
// when they jump, in all zones.
func localTime(wanted time.Time, loc *time.Location) time.Time {
	const furthestAhead = 16 * time.Hour // of UTC: no zone is
	for at := wanted.Add(-furthestAhead).In(loc); ; {
		_, offset := at.Zone()
		strikes := wanted.Add(-time.Duration(offset) * time.Second).In(loc)
		_, zoneEnd := at.ZoneBounds()
		switch {
		case strikes.Before(at):
			return at
		case zoneEnd.IsZero() || strikes.Before(zoneEnd):
			return strikes
		}
		at = zoneEnd
	}
}

// parseWindow reads a duration such as "30m", "1h" or "7d" of the query parameter field. 0 means no limit and is written
// "none". A window is at most 366 days.
func parseWindow(field, text string) (time.Duration, event.Errors) {
	invalid := event.Errors{{Field: field, Message: "The " + field + " field format is invalid."}}
	switch text {
	case "":
		return 0, invalid
	case "none":
		return 0, nil
	}
	unit, ok := map[byte]time.Duration{'m': time.Minute, 'h': time.Hour, 'd': day}[text[len(text)-1]]
	number := text[:len(text)-1]
	if !ok || number == "" || strings.Trim(number, "0123456789") != "" {
		return 0, invalid
	}
	count, err := strconv.ParseUint(number, 10, 32)
	if err != nil || time.Duration(count) > maxPeriodDays*day/unit {
		return 0, event.Errors{{Field: field, Message: fmt.Sprintf("The %s field must not be greater than %dd.", field, maxPeriodDays)}}
	}
	if count == 0 {
		return 0, invalid
	}
	return time.Duration(count) * unit, nil
}
