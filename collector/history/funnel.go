package history

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/weir-dev/weir/collector/analytics"
	"github.com/weir-dev/weir/collector/clickhouse"
)

// Funnel returns how many visitors came along the steps, in order, within the range, and how long they took between them.
func (e *Engine) Funnel(ctx context.Context, q analytics.FunnelQuery) (analytics.Funnel, error) {
	m, err := e.now(ctx)
	if err != nil {
		return analytics.Funnel{}, err
	}
	kept, parameters := m.filterSQL(q.Filter, q.Range)
	maps.Copy(parameters, m.boundsOfSomebody(q.Range))
	names, masks := fillsOf(q.Steps)
	parameters["names"], parameters["masks"], parameters["window"] = names, masks, q.Window.Milliseconds()
	f := funnelSQL{steps: len(q.Steps), windowed: q.Window > 0 && len(q.Steps) > 1, kept: kept}
	found, err := one[funnelRow](ctx, e, clickhouse.Query{SQL: f.String(), Parameters: parameters, Settings: byVisitor(q.Range)})
	if err != nil {
		return analytics.Funnel{}, err
	}
	result := found.funnel(q.Steps)
	result.CompleteFrom, err = e.completeFrom(ctx)
	return result, err
}

// boundsOfSomebody are [moment.bounds] without the events that are nobody's by now.
func (m moment) boundsOfSomebody(r analytics.Range) map[string]any {
	bounds := m.bounds(r)
	bounds["from"] = max(uint64(analytics.FirstAt(r.From)), m.oldest, m.anonymous)
	return bounds
}

// fillsOf returns the names of all steps and which steps each fills, a bit each.
func fillsOf(steps [][]string) (names []string, masks []uint64) {
	fills := map[string]uint64{}
	for step := range steps {
		for _, name := range steps[step] {
			fills[name] |= 1 << step
		}
	}
	names = slices.Sorted(maps.Keys(fills))
	for _, name := range names {
		masks = append(masks, fills[name])
	}
	return names, masks
}

// funnelRow is what a funnel is made of, by step.
type funnelRow struct {
	// Visitors came to the step.
	Visitors []uint64 `ch:"visitors"`
	// Medians are of how many milliseconds each took from the step before, which may be halves; no number where nobody came. The
	// first step has none.
	Medians []float64 `ch:"medians"`
}

// funnel returns the figures of the steps.
func (r *funnelRow) funnel(steps [][]string) analytics.Funnel {
	result := analytics.Funnel{Steps: make([]analytics.FunnelStep, len(steps))}
	first, previous := int(r.Visitors[0]), int(r.Visitors[0])
	for i, names := range steps {
		visitors := int(r.Visitors[i])
		step := analytics.FunnelStep{
			Events: names, Visitors: visitors, DropOff: previous - visitors,
			ConversionRate:     analytics.RateOf(int64(visitors), int64(first)),
			StepConversionRate: analytics.RateOf(int64(visitors), int64(previous)),
		}
		if i > 0 && visitors > 0 {
			step.Median = new(time.Duration(2*r.Medians[i-1]) * time.Millisecond / 2)
		}
		result.Steps[i] = step
		previous = visitors
	}
	result.ConversionRate = result.Steps[len(steps)-1].ConversionRate
	return result
}
