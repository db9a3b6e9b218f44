package history_test

import (
	"context"
	"flag"
	"maps"
	"strings"
	"time"

	"github.com/weir-dev/weir/collector/analytics"
)

var only = flag.String("only", "", "what the names of the kinds of random questions that are asked begin with")

// allKinds are all kinds of questions that are to be asked.
func allKinds() map[string]func(p *past) (question any, ask func(engine) (any, error)) {
	all := kinds()
	maps.Copy(all, journeyKinds())
	maps.DeleteFunc(all, func(name string, _ func(*past) (any, func(engine) (any, error))) bool {
		return !strings.HasPrefix(name, *only)
	})
	return all
}

// journeyKinds are the questions about what visitors did one after the other.
func journeyKinds() map[string]func(p *past) (question any, ask func(engine) (any, error)) {
	return map[string]func(p *past) (any, func(engine) (any, error)){
		"funnel": func(p *past) (any, func(engine) (any, error)) {
			q := analytics.FunnelQuery{Range: p.someRange(), Filter: p.someFilter(), Window: p.someWindow()}
			for range 1 + p.IntN(pick(p.Rand, 1, 2, 4, 4, 12)) {
				names := []string{}
				for len(names) == 0 || p.IntN(3) == 0 {
					names = append(names, pick(p.Rand, "pageview", "add_to_cart", "purchase", "lead", "refund", "it's \\ unknown", "pageview", "purchase"))
				}
				q.Steps = append(q.Steps, names)
			}
			if p.IntN(2) == 0 {
				q.Filter = nil
			}
			return q, func(e engine) (any, error) { return e.Funnel(context.Background(), q) }
		},
		"attribution": func(p *past) (any, func(engine) (any, error)) {
			q := analytics.AttributionQuery{
				Range: p.someRange(), Filter: p.someFilter(), Lookback: p.someWindow(), Limit: p.IntN(4),
				Model:           pick(p.Rand, analytics.FirstTouch, analytics.LastTouch, analytics.Linear, analytics.Linear),
				ConversionEvent: pick(p.Rand, "purchase", "purchase", "lead", "pageview", "unknown"),
				GroupBy:         pick(p.Rand, analytics.ByChannel, analytics.BySource, analytics.ByMedium, analytics.ByCampaign),
			}
			if p.IntN(2) == 0 {
				q.Filter = nil
			}
			return q, func(e engine) (any, error) { return e.Attribution(context.Background(), q) }
		},
	}
}

// someWindow is a window or lookback, of a few events at times; 0 for none.
func (p *past) someWindow() time.Duration {
	return pick(p.Rand, 0, 300*time.Microsecond, time.Duration(p.Int64N(12*p.pace)+1)*time.Millisecond, time.Duration(p.Int64N(3*p.pace)+1)*time.Millisecond,
		24*time.Hour, 7*24*time.Hour, 30*24*time.Hour, 90*24*time.Hour)
}
