package query

import (
	"cmp"
	"net/http"
	"slices"

	"github.com/weir-dev/weir/collector/analytics"
	"github.com/weir-dev/weir/collector/audit"
	"github.com/weir-dev/weir/collector/server"
	"github.com/weir-dev/weir/collector/stream"
)

var deliveriesParameters = withPeriod(
	parameter{name: "interval"}, parameter{name: "platform", isList: true}, parameter{name: "event", isList: true},
)

type deliveriesAnswer struct {
	Data deliveriesData `json:"data"`
}

type deliveriesData struct {
	Period dateRange `json:"period"`
	// Interval is nil and Series is empty where the totals alone are asked for.
	Interval     *interval        `json:"interval"`
	Totals       []deliveryCounts `json:"totals"`
	Series       []deliveryBucket `json:"series"`
	CompleteFrom *string          `json:"complete_from,omitempty"`
}

// deliveryBucket are the deliveries of the events that were received in an hour, day, week or month.
type deliveryBucket struct {
	bucket    `json:",inline"`
	Platforms []deliveryCounts `json:"platforms"`
}

// deliveryCounts is how deliveries to one platform stand.
type deliveryCounts struct {
	Platform  string         `json:"platform"`
	Pending   int            `json:"pending"`
	Retrying  int            `json:"retrying"`
	Delivered int            `json:"delivered"`
	Failed    int            `json:"failed"`
	Skipped   int            `json:"skipped"`
	Expired   int            `json:"expired"`
	Reasons   []reasonCount  `json:"reasons"`
	LatencyMS latencyRecords `json:"latency_ms"`
}

// reasonCount is how many deliveries stand as they do for a reason, and what can be done about it.
type reasonCount struct {
	Status string `json:"status"`
	Reason string `json:"reason"`
	Count  int    `json:"count"`
	Advice string `json:"advice"`
}

// deliveries answers GET /properties/{property}/deliveries: what became of the deliveries of the events that were received in a
// period.
func (h *Handler) deliveries(w http.ResponseWriter, r *http.Request, t *Tenant) {
	answerIn := negotiate(w, r, table)
	if answerIn == "" {
		return
	}
	q := h.read(r, t, deliveriesParameters)
	period := q.period(lastDay)
	query := analytics.DeliveriesQuery{
		Ranges: []analytics.Range{period.Range}, Platforms: q.texts("platform", maxListedEvents), Events: q.names("event", maxListedEvents),
	}
	data := deliveriesData{Period: period.dates}
	if q.one("interval") != "" {
		var every interval
		every, query.Ranges = q.interval(period, everyDay)
		data.Interval = &every
	}
	if !q.proceed(w) {
		return
	}
	found, err := t.Engine.Deliveries(r.Context(), query)
	if err != nil {
		h.fail(w, r, err, "from", "interval")
		return
	}
	data.Totals, data.Series = renderDeliveries(found.Totals), []deliveryBucket{}
	data.CompleteFrom = completeFrom(found.CompleteFrom, period.From)
	if data.Interval != nil {
		for i, counts := range found.Ranges {
			data.Series = append(data.Series, deliveryBucket{bucketOf(query.Ranges[i], t.Location), renderDeliveries(counts)})
		}
	}
	switch {
	case answerIn == typeJSON:
		server.JSON(w, http.StatusOK, deliveriesAnswer{data})
	case data.Interval == nil:
		exportDeliveries(h, w, r, t, answerIn, period, data.CompleteFrom, data.Totals)
	default:
		exportDeliveries(h, w, r, t, answerIn, period, data.CompleteFrom, data.Series)
	}
}

// exportDeliveries answers with a line for each platform, or each part of the period.
func exportDeliveries[R any](h *Handler, w http.ResponseWriter, r *http.Request, t *Tenant, f format, asked period, complete *string, rows []R) {
	exportFigures(h, w, r, t, f, &figureTable[R]{
		act: audit.FiguresExported, object: figures("deliveries"), asked: asked.Range, completeFrom: complete, rows: rows,
	})
}

func renderDeliveries(list []analytics.DeliveryStats) []deliveryCounts {
	counts := make([]deliveryCounts, len(list))
	for i := range list {
		d := &list[i]
		counts[i] = deliveryCounts{
			Platform: d.Platform, Pending: d.Counts[stream.Pending], Retrying: d.Counts[stream.Retrying], Delivered: d.Counts[stream.Delivered],
			Failed: d.Counts[stream.Failed], Skipped: d.Counts[stream.Skipped], Expired: d.Counts[stream.Expired],
			Reasons: renderReasons(d), LatencyMS: latencyRecords{P50: milliseconds(d.LatencyP50), P95: milliseconds(d.LatencyP95)},
		}
	}
	return counts
}

// renderReasons lists the reasons of all statuses, the most frequent first, then by status and name.
func renderReasons(d *analytics.DeliveryStats) []reasonCount {
	reasons := []reasonCount{}
	for status := stream.Pending; status <= stream.Expired; status++ {
		for reason, count := range d.Reasons[status] {
			reasons = append(reasons, reasonCount{status.String(), reason, count, adviceFor(status, reason)})
		}
	}
	slices.SortFunc(reasons, func(a, b reasonCount) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Status, b.Status), cmp.Compare(a.Reason, b.Reason))
	})
	return reasons
}
