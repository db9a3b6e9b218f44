package analytics

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

// funnel follows every attempt of every visitor.
func (o *oracle) funnel(q FunnelQuery) Funnel {
	histories := map[string][]*oracleEvent{}
	for _, e := range o.keep(o.within(q.Range), q.Filter) {
		if e.visitor != "" {
			histories[e.visitor] = append(histories[e.visitor], e)
		}
	}
	came := make([]int, len(q.Steps))
	gaps := make([][]time.Duration, len(q.Steps))
	for _, history := range histories {
		var best []*oracleEvent
		for i := range history {
			if attempt := oracleAttempt(history[i:], q); len(attempt) > len(best) {
				best = attempt
			}
		}
		for i := range best {
			came[i]++
			if i > 0 {
				gaps[i] = append(gaps[i], best[i].at().Sub(best[i-1].at()))
			}
		}
	}
	var f Funnel
	for i, names := range q.Steps {
		step := FunnelStep{Events: names, Visitors: came[i], ConversionRate: ratio(came[i], came[0])}
		if i == 0 {
			step.StepConversionRate = ratio(came[0], came[0])
		} else {
			step.StepConversionRate = ratio(came[i], came[i-1])
			step.DropOff = came[i-1] - came[i]
		}
		if g := gaps[i]; len(g) > 0 {
			slices.Sort(g)
			median := (g[(len(g)-1)/2] + g[len(g)/2]) / 2
			step.Median = &median
		}
		f.Steps = append(f.Steps, step)
		f.ConversionRate = step.ConversionRate
	}
	return f
}

// oracleAttempt begins at the first event of a history.
func oracleAttempt(history []*oracleEvent, q FunnelQuery) []*oracleEvent {
	if !slices.Contains(q.Steps[0], history[0].Name) {
		return nil
	}
	attempt := []*oracleEvent{history[0]}
	for _, e := range history[1:] {
		if len(attempt) == len(q.Steps) || q.Window > 0 && e.at().Sub(history[0].at()) > q.Window {
			break
		}
		if slices.Contains(q.Steps[len(attempt)], e.Name) {
			attempt = append(attempt, e)
		}
	}
	return attempt
}

// funnelOf asks for a funnel of steps that one name each fills.
func funnelOf(r Range, steps []string, window time.Duration) FunnelQuery {
	q := FunnelQuery{Range: r, Window: window}
	for _, name := range steps {
		q.Steps = append(q.Steps, []string{name})
	}
	return q
}

// checkFunnel asks for a funnel of a few steps, some of which several names fill.
func (w *world) checkFunnel(t testing.TB, r Range) {
	t.Helper()
	q := FunnelQuery{Range: r, Window: time.Duration(w.Int64N(12*w.pace)) * time.Millisecond * time.Duration(w.IntN(2))}
	for range 1 + w.IntN(4) {
		var names []string
		for len(names) == 0 || w.IntN(3) == 0 {
			names = append(names, pick(w.Rand, "pageview", "add_to_cart", "purchase", "lead", "unknown", "pageview", "purchase"))
		}
		q.Steps = append(q.Steps, names)
	}
	if w.IntN(2) == 0 {
		q.Filter = w.someFilter()
	}
	want := w.oracle.funnel(q)
	want.CompleteFrom = w.view.Status(t.Context()).CompleteFrom
	funnel, err := w.view.Funnel(t.Context(), q)
	mustNot(t, err)
	sameAs(t, fmt.Sprintf("funnel %+v", q), funnel, want)
}
