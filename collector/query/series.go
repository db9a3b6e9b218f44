package query

import (
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/weir-dev/weir/collector/analytics"
	"github.com/weir-dev/weir/collector/audit"
	"github.com/weir-dev/weir/collector/server"
)

// maxBuckets is how many buckets a series may have.
const maxBuckets = 1000

var seriesParameters = withFilters(parameter{name: "interval"}, parameter{name: "compare"})

type seriesAnswer struct {
	Data     []bucketRecord `json:"data"`
	Interval interval       `json:"interval"`
	TimeZone string         `json:"time_zone"`
	Currency string         `json:"currency"`
	// Previous is there where the period is compared: the buckets of the one before.
	Previous     []bucketRecord `json:"previous,omitzero"`
	CompleteFrom *string        `json:"complete_from,omitempty"`
}

// bucketRecord are the figures of an hour, day, week or month, as far as it lies in the period.
type bucketRecord struct {
	bucket   `json:",inline"`
	measures `json:",inline"`
}

// bucket is a part of a period. Date is the local date that it begins on.
type bucket struct {
	From string `json:"from"`
	To   string `json:"to"`
	Date string `json:"date"`
}

func bucketOf(r analytics.Range, loc *time.Location) bucket {
	return bucket{From: instant(r.From), To: instant(r.To), Date: r.From.In(loc).Format(time.DateOnly)}
}

// interval reads how long the buckets of a period are, and returns them.
func (q *request) interval(of period, fallback interval) (interval, []analytics.Range) {
	const name = "interval"
	every := chooseListed(&q.parameters, name, fallback, intervalChoices)
	buckets := of.buckets(every, q.tenant.Location)
	if len(buckets) > maxBuckets {
		q.errs.Add(name, fmt.Sprintf("The %s field must be longer, or the period shorter: it has %d buckets of one %s, and at most %d are allowed.",
			name, len(buckets), every, maxBuckets))
	}
	return every, buckets
}

// series answers GET /properties/{property}/analytics/series.
func (h *Handler) series(w http.ResponseWriter, r *http.Request, t *Tenant) {
	answerIn := negotiate(w, r, table)
	if answerIn == "" {
		return
	}
	q := h.read(r, t, seriesParameters)
	period, filter := q.period(lastThirtyDays), q.filter()
	every, ranges := q.interval(period, everyDay)
	compare := chooseListed(&q.parameters, "compare", false, compareChoices)
	if compare && answerIn != typeJSON {
		q.errs.Add("compare", "The compare field can be given only where the answer is JSON: rows are of one period.")
	}
	if !q.proceed(w) {
		return
	}
	start, count := period.From, len(ranges)
	if compare {
		before := period.before(t.Location)
		start, ranges = before.From, slices.Concat(ranges, before.buckets(every, t.Location))
	}
	found, err := t.Engine.Series(r.Context(), ranges, filter)
	if err != nil {
		h.fail(w, r, err, "from", "interval")
		return
	}
	records := make([]bucketRecord, len(ranges))
	for i := range records {
		records[i] = bucketRecord{bucketOf(ranges[i], t.Location), measuresOf(&found.Totals[i])}
	}
	answer := seriesAnswer{
		Data: records[:count], Interval: every, TimeZone: t.Location.String(), Currency: t.Property.Currency,
		CompleteFrom: completeFrom(found.CompleteFrom, reachOf(start, filter)),
	}
	if answerIn != typeJSON {
		exportFigures(h, w, r, t, answerIn, &figureTable[bucketRecord]{
			act: audit.FiguresExported, object: figures("series"), asked: period.Range, completeFrom: answer.CompleteFrom, rows: answer.Data,
		})
		return
	}
	if compare {
		answer.Previous = records[count:]
	}
	server.JSON(w, http.StatusOK, answer)
}
