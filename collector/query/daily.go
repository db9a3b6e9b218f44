package query

import (
	"net/http"
	"time"

	"github.com/weir-dev/weir/collector/analytics"
	"github.com/weir-dev/weir/collector/audit"
	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/server"
)

type dailyAnswer struct {
	Data         []dayRecord `json:"data"`
	CompleteFrom *string     `json:"complete_from,omitempty"`
}

type dayRecord struct {
	Date              string          `json:"date"`
	Purchases         int             `json:"purchases"`
	AddToCarts        int             `json:"add_to_carts"`
	Pageviews         int             `json:"pageviews"`
	Revenue           event.Sum       `json:"revenue"`
	UniqueVisitors    int             `json:"unique_visitors"`
	Events            int             `json:"events"`
	Refunds           int             `json:"refunds"`
	RevenueByCurrency moneyByCurrency `json:"revenue_by_currency"`
}

// daily answers GET /properties/{property}/analytics/daily.
func (h *Handler) daily(w http.ResponseWriter, r *http.Request, t *Tenant) {
	answerIn := negotiate(w, r, table)
	if answerIn == "" {
		return
	}
	q := h.read(r, t, periodParameters)
	period := q.period(lastThirtyDays)
	if !q.proceed(w) {
		return
	}
	ranges := period.buckets(everyDay, t.Location)
	days, err := t.Engine.Series(r.Context(), ranges, analytics.Filter{})
	if err != nil {
		h.fail(w, r, err, "from")
		return
	}
	answer := dailyAnswer{Data: make([]dayRecord, len(days.Totals)), CompleteFrom: completeFrom(days.CompleteFrom, period.From)}
	for i, day := range days.Totals {
		answer.Data[i] = dayRecord{
			Date:              ranges[i].From.In(t.Location).Format(time.DateOnly),
			Purchases:         day.Purchases,
			AddToCarts:        day.AddToCarts,
			Pageviews:         day.Pageviews,
			Revenue:           day.Revenue,
			UniqueVisitors:    day.UniqueVisitors,
			Events:            day.Events,
			Refunds:           day.Refunds,
			RevenueByCurrency: revenueByCurrency(day.RevenueByCurrency),
		}
	}
	if answerIn != typeJSON {
		exportFigures(h, w, r, t, answerIn, &figureTable[dayRecord]{
			act: audit.DaysExported, object: audit.Party{Kind: audit.Days},
			asked: period.Range, completeFrom: answer.CompleteFrom, rows: answer.Data,
		})
		return
	}
	server.JSON(w, http.StatusOK, answer)
}
