package query

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/weir-dev/weir/collector/analytics"
	"github.com/weir-dev/weir/collector/audit"
	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/server"
)

var breakdownParameters = withFilters(parameter{name: "by", isList: true}, parameter{name: "order_by"}, parameter{name: "limit"})

var orderChoices = []choice[analytics.Measure]{
	{"events", analytics.OrderEvents}, {"unique_visitors", analytics.OrderUniqueVisitors},
	{"purchases", analytics.OrderPurchases}, {"revenue", analytics.OrderRevenue},
}

type breakdownAnswer struct {
	Data breakdownData `json:"data"`
}

type breakdownData struct {
	Period   dateRange            `json:"period"`
	By       analytics.Dimension  `json:"by"`
	OrderBy  analytics.Measure    `json:"order_by"`
	Currency string               `json:"currency"`
	Totals   measures             `json:"totals"`
	Results  []named[groupRecord] `json:"results"`
	// Others is there where the limit has left out results.
	Others       *otherGroups `json:"others,omitempty"`
	CompleteFrom *string      `json:"complete_from,omitempty"`
}

// groupRecord are the figures of one value of a dimension.
type groupRecord struct {
	measures `json:",inline"`
	Share    analytics.Rate `json:"share"`
	// Quantity is there for products.
	Quantity *event.Sum `json:"quantity,omitempty"`
}

// otherGroups are the results behind the limit, taken together.
type otherGroups struct {
	Groups    int       `json:"groups"`
	Events    int       `json:"events"`
	Purchases int       `json:"purchases"`
	Revenue   event.Sum `json:"revenue"`
}

// dimension reads what figures are broken down by.
func (q *request) dimension() analytics.Dimension {
	const name = "by"
	before := len(q.errs)
	named := q.list(name)
	switch {
	case len(q.errs) > before:
		return ""
	case len(named) == 0:
		q.errs.Add(name, fmt.Sprintf("The %s field is required.", name))
		return ""
	case len(named) > 1 || strings.Contains(named[0], ","):
		q.errs.Add(name, fmt.Sprintf("The %s field must name one dimension, not several.", name))
		return ""
	case strings.HasPrefix(named[0], customProperty):
		q.errs.Add(name, fmt.Sprintf("The %s field names a custom property, which is neither a dimension nor a filter.", name))
		return ""
	}
	at := slices.IndexFunc(dimensionChoices, func(c choice[analytics.Dimension]) bool { return c.text == named[0] })
	if at < 0 {
		q.errs.Add(name, invalidChoice(name, dimensionChoices))
		return ""
	}
	return dimensionChoices[at].value
}

// breakdown answers GET /properties/{property}/analytics/breakdown.
func (h *Handler) breakdown(w http.ResponseWriter, r *http.Request, t *Tenant) {
	answerIn := negotiate(w, r, table)
	if answerIn == "" {
		return
	}
	q := h.read(r, t, breakdownParameters)
	period := q.period(lastThirtyDays)
	query := analytics.BreakdownQuery{
		Range: period.Range, Filter: q.filter(), By: q.dimension(),
		Order: chooseListed(&q.parameters, "order_by", analytics.OrderEvents, orderChoices), Limit: q.limit(maxRows, maxRows),
	}
	if !q.proceed(w) {
		return
	}
	found, err := t.Engine.Breakdown(r.Context(), query)
	if err != nil {
		h.fail(w, r, err, "from")
		return
	}
	data := breakdownData{
		Period: period.dates, By: query.By, OrderBy: query.Order, Currency: t.Property.Currency, Totals: measuresOf(&found.Totals),
		Results: make([]named[groupRecord], len(found.Groups)), CompleteFrom: completeFrom(found.CompleteFrom, reachOf(period.From, query.Filter, query.By)),
	}
	if o := found.Others; o != nil {
		data.Others = &otherGroups{o.Groups, o.Events, o.Purchases, o.Revenue}
	}
	for i := range found.Groups {
		data.Results[i] = renderGroup(query.By, &found.Groups[i])
	}
	if answerIn != typeJSON {
		exportFigures(h, w, r, t, answerIn, &figureTable[named[groupRecord]]{
			act: audit.FiguresExported, object: figures("breakdown"), asked: period.Range, completeFrom: data.CompleteFrom,
			blank: renderGroup(query.By, &analytics.Group{}), rows: data.Results,
		})
		return
	}
	server.JSON(w, http.StatusOK, breakdownAnswer{data})
}

func renderGroup(by analytics.Dimension, group *analytics.Group) named[groupRecord] {
	record := groupRecord{measures: measuresOf(&group.Totals), Share: group.Share}
	if by == analytics.ByProduct {
		record.Quantity = &group.Quantity
	}
	return named[groupRecord]{string(by), group.Name, record}
}
