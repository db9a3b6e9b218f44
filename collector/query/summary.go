package query

import (
	"net/http"

	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/server"
)

type summaryAnswer struct {
	Data summaryData `json:"data"`
}

type summaryData struct {
	Period   dateRange `json:"period"`
	KPIs     measures  `json:"kpis"`
	Currency string    `json:"currency"`
	TimeZone string    `json:"time_zone"`
	// EventsByClass are all events of the period; the KPIs are those of humans.
	EventsByClass eventsByClass `json:"events_by_class"`
	// Previous and Change are there where the period is compared.
	Previous     *summaryBefore `json:"previous,omitempty"`
	Change       *changes       `json:"change,omitempty"`
	CompleteFrom *string        `json:"complete_from,omitempty"`
}

// summaryBefore are the figures that a summary is compared with.
type summaryBefore struct {
	Period dateRange `json:"period"`
	KPIs   measures  `json:"kpis"`
}

// eventsByClass has a member for each class.
type eventsByClass struct {
	Human    int `json:"human"`
	Bot      int `json:"bot"`
	Internal int `json:"internal"`
	Test     int `json:"test"`
}

var summaryParameters = withFilters(parameter{name: "compare"})

// compareChoices are what a period can be compared with.
var compareChoices = []choice[bool]{{"previous", true}}

// summary answers GET /properties/{property}/analytics/summary.
func (h *Handler) summary(w http.ResponseWriter, r *http.Request, t *Tenant) {
	if negotiate(w, r, object) == "" {
		return
	}
	q := h.read(r, t, summaryParameters)
	period, filter := q.period(lastThirtyDays), q.filter()
	compare := chooseListed(&q.parameters, "compare", false, compareChoices)
	if !q.proceed(w) {
		return
	}
	figures, err := t.Engine.Summary(r.Context(), period.Range, filter)
	if err != nil {
		h.fail(w, r, err, "from")
		return
	}
	data := summaryData{
		Period:   period.dates,
		KPIs:     measuresOf(&figures.Totals),
		Currency: t.Property.Currency,
		TimeZone: t.Location.String(),
		EventsByClass: eventsByClass{
			Human: figures.EventsByClass[event.Human], Bot: figures.EventsByClass[event.Bot],
			Internal: figures.EventsByClass[event.Internal], Test: figures.EventsByClass[event.Test],
		},
		CompleteFrom: completeFrom(figures.CompleteFrom, reachOf(period.From, filter)),
	}
	if compare {
		before := period.before(t.Location)
		then, err := t.Engine.Summary(r.Context(), before.Range, filter)
		if err != nil {
			h.fail(w, r, err, "from")
			return
		}
		data.Previous = &summaryBefore{before.dates, measuresOf(&then.Totals)}
		data.Change = changesSince(&then.Totals, &figures.Totals)
		data.CompleteFrom = completeFrom(then.CompleteFrom, reachOf(before.From, filter))
	}
	server.JSON(w, http.StatusOK, summaryAnswer{data})
}
