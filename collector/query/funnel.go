package query

import (
	"net/http"

	"github.com/weir-dev/weir/collector/analytics"
	"github.com/weir-dev/weir/collector/audit"
	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/server"
)

// defaultWindow is the window of a funnel for which none is given.
const defaultWindow = "7d"

var funnelParameters = withFilters(parameter{name: "steps", isList: true}, parameter{name: "window"})

type funnelAnswer struct {
	Data funnelData `json:"data"`
}

type funnelData struct {
	Period         dateRange      `json:"period"`
	Window         string         `json:"window"`
	Steps          []stepRecord   `json:"steps"`
	ConversionRate analytics.Rate `json:"conversion_rate"`
	CompleteFrom   *string        `json:"complete_from,omitempty"`
}

// stepRecord is a step with the visitors who came to it. Event is what was asked for, Events the names that it has.
type stepRecord struct {
	Step               int            `json:"step"`
	Event              string         `json:"event"`
	Events             []string       `json:"events"`
	Visitors           int            `json:"visitors"`
	ConversionRate     analytics.Rate `json:"conversion_rate"`
	StepConversionRate analytics.Rate `json:"step_conversion_rate"`
	DropOff            int            `json:"drop_off"`
	MedianSeconds      *event.Amount  `json:"median_seconds"`
}

// funnel answers GET /properties/{property}/analytics/funnel.
func (h *Handler) funnel(w http.ResponseWriter, r *http.Request, t *Tenant) {
	answerIn := negotiate(w, r, table)
	if answerIn == "" {
		return
	}
	q := h.read(r, t, funnelParameters)
	steps := q.steps()
	period, filter := q.period(lastThirtyDays), q.filter()
	windowText, window := q.duration("window", defaultWindow)
	if !q.proceed(w) {
		return
	}
	query := analytics.FunnelQuery{Range: period.Range, Window: window, Filter: filter}
	for _, step := range steps {
		query.Steps = append(query.Steps, step)
	}
	funnel, err := t.Engine.Funnel(r.Context(), query)
	if err != nil {
		h.fail(w, r, err, "from")
		return
	}
	data := funnelData{
		Period:         period.dates,
		Window:         windowText,
		Steps:          make([]stepRecord, len(funnel.Steps)),
		ConversionRate: funnel.ConversionRate,
		CompleteFrom:   completeFrom(funnel.CompleteFrom, reachOf(period.From, filter)),
	}
	for i, step := range funnel.Steps {
		data.Steps[i] = stepRecord{
			Step:               i + 1,
			Event:              steps[i].String(),
			Events:             steps[i],
			Visitors:           step.Visitors,
			ConversionRate:     step.ConversionRate,
			StepConversionRate: step.StepConversionRate,
			DropOff:            step.DropOff,
			MedianSeconds:      seconds(step.Median),
		}
	}
	if answerIn != typeJSON {
		exportFigures(h, w, r, t, answerIn, &figureTable[stepRecord]{
			act: audit.FiguresExported, object: figures("funnel"), asked: period.Range, completeFrom: data.CompleteFrom, rows: data.Steps,
		})
		return
	}
	server.JSON(w, http.StatusOK, funnelAnswer{data})
}
