package query

import (
	"fmt"
	"net/http"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/weir-dev/weir/collector/analytics"
	"github.com/weir-dev/weir/collector/audit"
	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/server"
	"github.com/weir-dev/weir/collector/stream"
)

type statsAnswer struct {
	Data []nameRecord `json:"data"`
	// NextCursor and Others are there where further names follow.
	NextCursor   *string     `json:"next_cursor,omitempty"`
	Others       *otherNames `json:"others,omitempty"`
	CompleteFrom *string     `json:"complete_from,omitempty"`
}

// otherNames are the names that follow a page, taken together.
type otherNames struct {
	Names int `json:"names"`
	Count int `json:"count"`
}

type nameRecord struct {
	Event           string           `json:"event"`
	Count           int              `json:"count"`
	UniqueVisitors  int              `json:"unique_visitors"`
	Value           event.Sum        `json:"value"`
	ValueByCurrency moneyByCurrency  `json:"value_by_currency"`
	Share           analytics.Rate   `json:"share"`
	FirstReceivedAt string           `json:"first_received_at"`
	LastReceivedAt  string           `json:"last_received_at"`
	Delivery        []platformRecord `json:"delivery"`
}

type platformRecord struct {
	Platform        string         `json:"platform"`
	Pending         int            `json:"pending"`
	Retrying        int            `json:"retrying"`
	Delivered       int            `json:"delivered"`
	Failed          int            `json:"failed"`
	Skipped         int            `json:"skipped"`
	SkippedByReason countsByReason `json:"skipped_by_reason"`
	Expired         int            `json:"expired"`
	LatencyMS       latencyRecords `json:"latency_ms"`
}

// countsByReason are written in the order of the reasons.
type countsByReason map[string]int

// MarshalJSONTo writes an object, an empty one where there are none.
func (c countsByReason) MarshalJSONTo(encoder *jsontext.Encoder) error {
	return json.MarshalEncode(encoder, map[string]int(c), json.Deterministic(true))
}

type latencyRecords struct {
	P50 *int64 `json:"p50"`
	P95 *int64 `json:"p95"`
}

var statsParameters = withPeriod(parameter{name: "limit"}, parameter{name: "cursor"}, parameter{name: "class"})

// eventStats answers GET /properties/{property}/events/stats.
func (h *Handler) eventStats(w http.ResponseWriter, r *http.Request, t *Tenant) {
	answerIn := negotiate(w, r, table)
	if answerIn == "" {
		return
	}
	q := h.read(r, t, statsParameters)
	query := q.stats()
	if !q.proceed(w) {
		return
	}
	stats, err := t.Engine.EventStats(r.Context(), query)
	if err != nil {
		h.fail(w, r, err, "from")
		return
	}
	answer := statsAnswer{Data: make([]nameRecord, len(stats.Events)), CompleteFrom: completeFrom(stats.CompleteFrom, query.Range.From)}
	if stats.OtherNames > 0 {
		answer.Others = &otherNames{stats.OtherNames, stats.OtherCount}
		answer.NextCursor = optional(statsCursor{query.Range, stats.Next}.String())
		w.Header().Set("Link", fmt.Sprintf(`<%s?%s>; rel="next"`, r.URL.EscapedPath(), q.withCursor(*answer.NextCursor)))
	}
	for i := range stats.Events {
		answer.Data[i] = renderStats(&stats.Events[i])
	}
	if answerIn != typeJSON {
		exportFigures(h, w, r, t, answerIn, &figureTable[nameRecord]{
			act: audit.FiguresExported, object: figures("event_statistics"),
			asked: query.Range, completeFrom: answer.CompleteFrom, rows: answer.Data,
		})
		return
	}
	server.JSON(w, http.StatusOK, answer)
}

// stats reads what page of the statistics of which period is asked for.
func (q *request) stats() analytics.StatsQuery {
	period := q.period(lastDay)
	query := analytics.StatsQuery{Range: period.Range, Class: q.class(), Limit: q.limit(maxRows, maxRows)}
	text := q.one("cursor")
	if text == "" {
		return query
	}
	c, err := parseStatsCursor(text)
	switch {
	case err != nil:
		q.errs.Add("cursor", "The cursor field format is invalid.")
	case q.one("from") != "" && !c.period.From.Equal(query.Range.From), q.one("to") != "" && !c.period.To.Equal(query.Range.To):
		q.errs.Add("cursor", "The cursor field belongs to another period.")
	}
	query.Range, query.After = c.period, c.after
	return query
}

func renderStats(s *analytics.EventStats) nameRecord {
	record := nameRecord{
		Event:           s.Event,
		Count:           s.Count,
		UniqueVisitors:  s.UniqueVisitors,
		Value:           s.Value,
		ValueByCurrency: moneyByCurrency(s.ValueByCurrency),
		Share:           s.Share,
		FirstReceivedAt: instant(s.FirstReceivedAt),
		LastReceivedAt:  instant(s.LastReceivedAt),
		Delivery:        make([]platformRecord, len(s.Deliveries)),
	}
	for i := range s.Deliveries {
		d := &s.Deliveries[i]
		record.Delivery[i] = platformRecord{
			Platform:        d.Platform,
			Pending:         d.Counts[stream.Pending],
			Retrying:        d.Counts[stream.Retrying],
			Delivered:       d.Counts[stream.Delivered],
			Failed:          d.Counts[stream.Failed],
			Skipped:         d.Counts[stream.Skipped],
			SkippedByReason: d.Reasons[stream.Skipped],
			Expired:         d.Counts[stream.Expired],
			LatencyMS:       latencyRecords{P50: milliseconds(d.LatencyP50), P95: milliseconds(d.LatencyP95)},
		}
	}
	return record
}
