package query

import (
	"strings"
	"time"

	"github.com/weir-dev/weir/collector/analytics"
	"github.com/weir-dev/weir/collector/event"
)

// period reads the parameters period, from and to.
func (q *request) period(fallback event.DefaultPeriod) event.Period {
	asked := event.PeriodQuery{Period: q.one("period"), From: q.bound("from"), To: q.bound("to")}
	period, faults := event.ParsePeriod(asked, q.now, q.tenant.Location, fallback)
	q.faults = append(q.faults, faults...)
	return period
}

// bound reads an end of a period. The plus of a timestamp's offset arrives as a blank where the caller did not
// encode it.
func (q *request) bound(name string) string {
	text := q.one(name)
	if strings.Contains(text, "T") {
		return strings.ReplaceAll(text, " ", "+")
	}
	return text
}

// duration reads a parameter such as "7d" or "none" and returns it as answers repeat it and as a duration,
// which is 0 for "none".
func (q *request) duration(name, fallback string) (string, time.Duration) {
	text := q.one(name)
	if text == "" {
		text = fallback
	}
	d, faults := event.ParseWindow(name, text, 0)
	q.faults = append(q.faults, faults...)
	return text, d
}

func rangeOf(p event.Period) analytics.Range { return analytics.Range{From: p.From, To: p.To} }

func datesOf(p event.Period) dateRange { return dateRange{From: p.FromDate, To: p.ToDate} }

func daysOf(p event.Period, location *time.Location) []analytics.Day {
	local := p.Days(location)
	days := make([]analytics.Day, len(local))
	for i, day := range local {
		days[i] = analytics.Day{Date: day.Date, Range: analytics.Range{From: day.Start, To: day.End}}
	}
	return days
}
