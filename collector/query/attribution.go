package query

import (
	"net/http"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/weir-dev/weir/collector/analytics"
	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/server"
)

// Defaults of an attribution.
const (
	defaultConversionEvent = "purchase"
	defaultLookback        = "30d"
)

var attributionParameters = withPeriod(
	parameter{name: "model"}, parameter{name: "conversion_event"}, parameter{name: "lookback"}, parameter{name: "group_by"},
	parameter{name: "limit"},
)

var modelChoices = []choice[analytics.Model]{
	{"first_touch", analytics.FirstTouch}, {"last_touch", analytics.LastTouch}, {"linear", analytics.Linear},
}

var groupByChoices = []choice[analytics.Dimension]{
	{"channel", analytics.ByChannel}, {"source", analytics.BySource},
	{"medium", analytics.ByMedium}, {"campaign", analytics.ByCampaign},
}

type attributionAnswer struct {
	Data attributionData `json:"data"`
}

type attributionData struct {
	Period            dateRange       `json:"period"`
	Model             analytics.Model `json:"model"`
	ConversionEvent   string          `json:"conversion_event"`
	Lookback          string          `json:"lookback"`
	Conversions       int             `json:"conversions"`
	Revenue           event.Sum       `json:"revenue"`
	RevenueByCurrency moneyByCurrency `json:"revenue_by_currency"`
	Results           []creditRecord  `json:"results"`
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

// creditRecord is one result; the member that names it depends on what the credit is grouped by.
type creditRecord struct {
	groupBy analytics.Dimension
	result  analytics.AttributionResult
}

// MarshalJSONTo writes {GROUP: name, "conversions": …, "revenue": …, "share": …}.
func (c creditRecord) MarshalJSONTo(enc *jsontext.Encoder) error {
	if err := enc.WriteToken(jsontext.BeginObject); err != nil {
		return err
	}
	for _, member := range []struct {
		name  string
		value any
	}{
		{string(c.groupBy), c.result.Name},
		{"conversions", c.result.Conversions},
		{"revenue", c.result.Revenue},
		{"share", c.result.Share},
	} {
		if err := enc.WriteToken(jsontext.String(member.name)); err != nil {
			return err
		}
		if err := json.MarshalEncode(enc, member.value); err != nil {
			return err
		}
	}
	return enc.WriteToken(jsontext.EndObject)
}

// attribution answers GET /properties/{property}/analytics/attribution.
func (h *Handler) attribution(w http.ResponseWriter, r *http.Request, t *Tenant) {
	if negotiate(w, r, object) == "" {
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
	query.Limit = q.limit(maxRows, maxRows)
	if !q.proceed(w) {
		return
	}
	found, err := t.View.Attribution(r.Context(), query)
	if err != nil {
		h.fail(w, r, err, "from", "lookback")
		return
	}
	earliest := period.From.Add(-query.Lookback)
	if query.Lookback == 0 {
		earliest = time.Time{} // any touch counts, however old
	}
	data := attributionData{
		Period:            period.dates,
		Model:             query.Model,
		ConversionEvent:   query.ConversionEvent,
		Lookback:          lookback,
		Conversions:       found.Conversions,
		Revenue:           found.Revenue,
		RevenueByCurrency: moneyByCurrency(found.RevenueByCurrency),
		Results:           make([]creditRecord, len(found.Results)),
		CompleteFrom:      completeFrom(found.CompleteFrom, earliest),
	}
	if o := found.Others; o != nil {
		data.Others = &otherCredits{o.Groups, o.Conversions, o.Revenue, o.Share}
	}
	for i, result := range found.Results {
		data.Results[i] = creditRecord{query.GroupBy, result}
	}
	server.JSON(w, http.StatusOK, attributionAnswer{data})
}
