package main

import (
	"context"
	"time"

	"github.com/weir-dev/weir/collector/analytics"
	"github.com/weir-dev/weir/collector/history"
)

// question is asked of the engine, and by hand-written SQL over the same tables.
type question struct {
	name string
	ask  func(context.Context, *history.Engine) error
	// sql is the best that is known; "" for none. {from:UInt64} and {to:UInt64} are the range's positions.
	sql        string
	parameters map[string]any
	goal       string
}

const inRange = " FROM events WHERE class = 0 AND at >= {from:UInt64} AND at < {to:UInt64}"

const windowFunnel = "SELECT countIf(steps >= 1), countIf(steps >= 2), countIf(steps >= 3) FROM (SELECT windowFunnel({window:UInt64}, 'strict_once')(at, " +
	"name = 'pageview', name = 'add_to_cart', name = 'purchase') AS steps" + inRange + " AND visitor != 0 AND name IN ('pageview', 'add_to_cart', 'purchase') GROUP BY visitor)"

// questions are all about the whole past.
func (p *past) questions() []question {
	whole := analytics.Range{From: p.from, To: p.to}
	var daily []analytics.Range
	for day := p.from.Truncate(24 * time.Hour); day.Before(p.to); day = day.AddDate(0, 0, 1) {
		daily = append(daily, analytics.Range{From: day, To: day.AddDate(0, 0, 1)})
	}
	const figures = "count(), countIf(name = 'purchase'), sumIf(toInt128(value), name = 'purchase' AND currency = 'EUR'), uniqExactIf(visitor, visitor != 0), uniqExactIf(visitor, visitor != 0 AND name = 'purchase')"
	day := "intDiv(bitShiftRight(at, 20), 86400000)"
	breakdown := func(by analytics.Dimension) func(context.Context, *history.Engine) error {
		return func(ctx context.Context, e *history.Engine) error {
			_, err := e.Breakdown(ctx, analytics.BreakdownQuery{Range: whole, By: by, Limit: 1000})
			return err
		}
	}
	funnel := func(window time.Duration) func(context.Context, *history.Engine) error {
		return func(ctx context.Context, e *history.Engine) error {
			_, err := e.Funnel(ctx, analytics.FunnelQuery{Range: whole, Steps: [][]string{{"pageview"}, {"add_to_cart"}, {"purchase"}}, Window: window})
			return err
		}
	}
	attribution := func(model analytics.Model) func(context.Context, *history.Engine) error {
		return func(ctx context.Context, e *history.Engine) error {
			_, err := e.Attribution(ctx, analytics.AttributionQuery{
				Range: whole, Model: model, Lookback: analytics.TouchLookback, ConversionEvent: "purchase", GroupBy: analytics.ByChannel,
			})
			return err
		}
	}
	return []question{
		{"newest page", func(ctx context.Context, e *history.Engine) error {
			_, err := e.Listing(ctx, analytics.ListingQuery{Range: whole, Limit: 50})
			return err
		}, "", nil, "150 ms"},
		{"summary", func(ctx context.Context, e *history.Engine) error { _, err := e.Summary(ctx, whole, nil); return err }, "SELECT " + figures + inRange, nil, "1 s"},
		{"daily", func(ctx context.Context, e *history.Engine) error { _, err := e.Series(ctx, daily, nil); return err },
			"SELECT " + day + " AS day, " + figures + inRange + " GROUP BY day", nil, "1 s"},
		{"event statistics", func(ctx context.Context, e *history.Engine) error {
			_, err := e.EventStats(ctx, analytics.StatsQuery{Range: whole, Limit: 1000})
			return err
		}, "SELECT name, count(), uniqExactIf(visitor, visitor != 0)" + inRange + " GROUP BY name", nil, "3 s"},
		{"deliveries by day", func(ctx context.Context, e *history.Engine) error {
			_, err := e.Deliveries(ctx, analytics.DeliveriesQuery{Ranges: daily})
			return err
		}, "SELECT " + day + " AS day, platform, status, reason, count(), quantilesExactIf(0.5, 0.95)(latency, status = 2) FROM records WHERE at >= {from:UInt64} AND at < {to:UInt64} GROUP BY day, platform, status, reason", nil, "3 s"},
		{"breakdown by page", breakdown(analytics.ByPage), "SELECT page, " + figures + inRange + " GROUP BY page ORDER BY count() DESC LIMIT 1000", nil, "3 s"},
		{"breakdown by channel", breakdown(analytics.ByChannel), "SELECT origin, " + figures + inRange + " GROUP BY origin ORDER BY count() DESC LIMIT 1000", nil, "3 s"},
		// ClickHouse's own function is wrong where steps repeat, and knows nothing of how long visitors take.
		{"funnel", funnel(0), windowFunnel, map[string]any{"window": uint64(90 * 24 * time.Hour / time.Millisecond << 20)}, "15 s"},
		{"funnel within a day", funnel(24 * time.Hour), windowFunnel, map[string]any{"window": uint64(24 * time.Hour / time.Millisecond << 20)}, "15 s"},
		{"attribution, last touch", attribution(analytics.LastTouch), "", nil, "15 s"},
		{"attribution, linear", attribution(analytics.Linear), "", nil, "15 s"},
	}
}
