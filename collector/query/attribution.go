package query

import (
	"net/http"
	"time"

	"github.com/weir-dev/weir/collector/analytics"
	"github.com/weir-dev/weir/collector/audit"
	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/server"
)

// Defaults of an attribution.
const (
	defaultConversionEvent = "purchase"
	defaultLookback        = "30d"
)

var attributionParameters = withFilters(
	parameter{name: "model"}, parameter{name: "conversion_event"}, parameter{name: "lookback"}, parameter{name: "group_by"},
	parameter{name: "limit"},
)

var modelChoices = []choice[analytics.Model]{
	{"first_touch", analytics.FirstTouch}, {"last_touch", analytics.LastTouch}, {"linear", analytics.Linear},
}

type attributionAnswer struct {
	Data attributionData `json:"data"`
}

type attributionData struct {
	Period            dateRange             `json:"period"`
	Model             analytics.Model       `json:"model"`
	ConversionEvent   string                `json:"conversion_event"`
	Lookback          string                `json:"lookback"`
	Conversions       int                   `json:"conversions"`
	Revenue           event.Sum             `json:"revenue"`
	RevenueByCurrency moneyByCurrency       `json:"revenue_by_currency"`
	Results           []named[creditRecord] `json:"results"`
	// Others is there where the limit has left out results.
	Others       *otherCredits `json:"others,omitempty"`
	CompleteFrom *string       `json:"complete_from,omitempty"`
}

// otherCredits are the results behind the limit, taken together.
type otherCredits struct {
	Groups      int              `json:"groups"`
	Conversions analytics.Credit `json:"conversions"`
	Revenue     event.Sum        `json:"revenue"`
	Share       analytics.Rate   `json:"share"`
}

// creditRecord is the credit of one channel, source, medium or campaign.
type creditRecord struct {
	Conversions analytics.Credit `json:"conversions"`
	Revenue     event.Sum        `json:"revenue"`
	Share       analytics.Rate   `json:"share"`
}

// attribution answers GET /properties/{property}/analytics/attribution.
func (h *Handler) attribution(w http.ResponseWriter, r *http.Request, t *Tenant) {
	answerIn := negotiate(w, r, table)
	if answerIn == "" {
		return
	}
	q := h.read(r, t, attributionParameters)
	query := analytics.AttributionQuery{
		Model:           choose(&q.parameters, "model", analytics.LastTouch, modelChoices),
		ConversionEvent: q.name("conversion_event", defaultConversionEvent),
	}
	period := q.period(lastThirtyDays)
	query.Range = period.Range
	var lookback string
	lookback, query.Lookback = q.duration("lookback", defaultLookback)
	query.GroupBy = choose(&q.parameters, "group_by", analytics.ByChannel, groupByChoices)
	query.Limit, query.Filter = q.limit(maxRows, maxRows), q.filter()
	if !q.proceed(w) {
		return
	}
	found, err := t.Engine.Attribution(r.Context(), query)
	if err != nil {
		h.fail(w, r, err, "from", "lookback")
		return
	}
	data := renderAttribution(&query, &found)
	data.Period, data.Lookback = period.dates, lookback
	if answerIn != typeJSON {
		exportFigures(h, w, r, t, answerIn, &figureTable[named[creditRecord]]{
			act: audit.FiguresExported, object: figures("attribution"), asked: period.Range, completeFrom: data.CompleteFrom,
			blank: renderCredit(query.GroupBy, &analytics.AttributionResult{}), rows: data.Results,
		})
		return
	}
	server.JSON(w, http.StatusOK, attributionAnswer{data})
}

func renderAttribution(query *analytics.AttributionQuery, found *analytics.Attribution) attributionData {
	earliest := query.Range.From.Add(-query.Lookback)
	if query.Lookback == 0 {
		earliest = time.Time{} // any touch counts, however old
	} else if reach := reachOf(query.Range.From, query.Filter); reach.Before(earliest) {
		earliest = reach
	}
	data := attributionData{
		Model:             query.Model,
		ConversionEvent:   query.ConversionEvent,
		Conversions:       found.Conversions,
		Revenue:           found.Revenue,
		RevenueByCurrency: moneyByCurrency(found.RevenueByCurrency),
		Results:           make([]named[creditRecord], len(found.Results)),
		CompleteFrom:      completeFrom(found.CompleteFrom, earliest),
	}
	if o := found.Others; o != nil {
		data.Others = &otherCredits{o.Groups, o.Conversions, o.Revenue, o.Share}
	}
	for i := range found.Results {
		data.Results[i] = renderCredit(query.GroupBy, &found.Results[i])
	}
	return data
}

func renderCredit(groupBy analytics.Dimension, result *analytics.AttributionResult) named[creditRecord] {
	return named[creditRecord]{string(groupBy), result.Name, creditRecord{result.Conversions, result.Revenue, result.Share}}
}
