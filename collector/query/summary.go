package query

import (
	"net/http"

	"github.com/weir-dev/weir/collector/analytics"
	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/server"
)

type summaryAnswer struct {
	Data summaryData `json:"data"`
}

type summaryData struct {
	Period   dateRange `json:"period"`
	KPIs     kpis      `json:"kpis"`
	Currency string    `json:"currency"`
	TimeZone string    `json:"time_zone"`
	// EventsByClass are all events of the period; the KPIs are those of humans.
	EventsByClass eventsByClass `json:"events_by_class"`
	CompleteFrom  *string       `json:"complete_from,omitempty"`
}

// eventsByClass has a member for each class.
type eventsByClass struct {
	Human    int `json:"human"`
	Bot      int `json:"bot"`
	Internal int `json:"internal"`
	Test     int `json:"test"`
}

type kpis struct {
	Purchases         int             `json:"purchases"`
	AddToCarts        int             `json:"add_to_carts"`
	Pageviews         int             `json:"pageviews"`
	Revenue           event.Sum       `json:"revenue"`
	UniqueVisitors    int             `json:"unique_visitors"`
	GrossRevenue      event.Sum       `json:"gross_revenue"`
	Refunds           int             `json:"refunds"`
	Refunded          event.Sum       `json:"refunded"`
	AverageOrderValue event.Amount    `json:"average_order_value"`
	ConversionRate    analytics.Rate  `json:"conversion_rate"`
	RevenueByCurrency moneyByCurrency `json:"revenue_by_currency"`
}

// summary answers GET /properties/{property}/analytics/summary.
func (h *Handler) summary(w http.ResponseWriter, r *http.Request, t *Tenant) {
	if negotiate(w, r, object) == "" {
		return
	}
	q := h.read(r, t, periodParameters)
	period := q.period(lastThirtyDays)
	if !q.proceed(w) {
		return
	}
	figures, err := t.View.Summary(r.Context(), period.Range, analytics.Filter{})
	if err != nil {
		h.fail(w, r, err, "from")
		return
	}
	server.JSON(w, http.StatusOK, summaryAnswer{summaryData{
		Period: period.dates,
		KPIs: kpis{
			Purchases:         figures.Purchases,
			AddToCarts:        figures.AddToCarts,
			Pageviews:         figures.Pageviews,
			Revenue:           figures.Revenue,
			UniqueVisitors:    figures.UniqueVisitors,
			GrossRevenue:      figures.GrossRevenue,
			Refunds:           figures.Refunds,
			Refunded:          figures.Refunded,
			AverageOrderValue: figures.AverageOrderValue,
			ConversionRate:    figures.ConversionRate,
			RevenueByCurrency: revenueByCurrency(figures.RevenueByCurrency),
		},
		Currency: t.Property.Currency,
		TimeZone: t.Location.String(),
		EventsByClass: eventsByClass{
			Human: figures.EventsByClass[event.Human], Bot: figures.EventsByClass[event.Bot],
			Internal: figures.EventsByClass[event.Internal], Test: figures.EventsByClass[event.Test],
		},
		CompleteFrom: completeFrom(figures.CompleteFrom, period.From),
	}})
}
