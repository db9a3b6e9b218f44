package query

import (
	"strings"
	"time"
)

// period reads the parameters period, from and to.
func (q *request) period(fallback defaultPeriod) period {
	asked := periodQuery{Period: q.one("period"), From: q.bound("from"), To: q.bound("to")}
	period, errs := parsePeriod(asked, q.now, q.tenant.Location, fallback)
	q.errs = append(q.errs, errs...)
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
	d, errs := parseWindow(name, text)
	q.errs = append(q.errs, errs...)
	return text, d
}
