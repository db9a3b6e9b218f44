package query

import (
	"net/http"

	"github.com/weir-dev/weir/collector/analytics"
	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/server"
)

// Bounds and defaults of a funnel.
const (
	minSteps      = 2
	maxSteps      = 10
	defaultWindow = "7d"
)

var funnelParameters = withPeriod(parameter{name: "steps", isList: true}, parameter{name: "window"})

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

type stepRecord struct {
	Step               int            `json:"step"`
	Event              string         `json:"event"`
	Visitors           int            `json:"visitors"`
	ConversionRate     analytics.Rate `json:"conversion_rate"`
	StepConversionRate analytics.Rate `json:"step_conversion_rate"`
	DropOff            int            `json:"drop_off"`
	MedianSeconds      *event.Amount  `json:"median_seconds"`
}

// funnel answers GET /properties/{property}/analytics/funnel.
func (h *Handler) funnel(w http.ResponseWriter, r *http.Request, t *Tenant) {
	if negotiate(w, r, object) == "" {
		return
	}
	q := h.read(r, t, funnelParameters)
	steps := q.names("steps", minSteps, maxSteps)
	period := q.period(lastThirtyDays)
	windowText, window := q.duration("window", defaultWindow)
	if !q.proceed(w) {
		return
	}
	funnel, err := t.View.Funnel(r.Context(), analytics.FunnelQuery{Range: period.Range, Steps: alone(steps), Window: window})
	if err != nil {
		h.fail(w, r, err, "from")
		return
	}
	data := funnelData{
		Period:         period.dates,
		Window:         windowText,
		Steps:          make([]stepRecord, len(funnel.Steps)),
		ConversionRate: funnel.ConversionRate,
		CompleteFrom:   completeFrom(funnel.CompleteFrom, period.From),
	}
	for i, step := range funnel.Steps {
		data.Steps[i] = stepRecord{
			Step:               i + 1,
			Event:              step.Events[0],
			Visitors:           step.Visitors,
			ConversionRate:     step.ConversionRate,
			StepConversionRate: step.StepConversionRate,
			DropOff:            step.DropOff,
			MedianSeconds:      seconds(step.Median),
		}
	}
	server.JSON(w, http.StatusOK, funnelAnswer{data})
}

// alone returns steps that one name each fills.
func alone(names []string) [][]string {
	steps := make([][]string, len(names))
	for i := range names {
		steps[i] = names[i : i+1]
	}
	return steps
}
