package query

import (
	"context"

	"github.com/weir-dev/weir/collector/analytics"
)

// Engine answers what is asked about a property's events. Its answers, and what it fails with, are those that package
// analytics describes: [analytics.View] is the engine in memory, [github.com/weir-dev/weir/collector/history.Engine] the one
// on disk. All methods may be called at once.
//
//nolint:interfacebloat // a method for each question
type Engine interface {
	// Status returns how far the engine has come: answers that are asked for afterwards know at least as much. One whose
	// store is away returns what was known last; the questions themselves fail then.
	Status(ctx context.Context) analytics.Status
	// Summary returns the KPIs of those events of a range that a filter keeps.
	Summary(ctx context.Context, r analytics.Range, filter analytics.Filter) (analytics.Summary, error)
	// Series returns the figures of ranges, of one moment.
	Series(ctx context.Context, ranges []analytics.Range, filter analytics.Filter) (analytics.Series, error)
	// Breakdown returns the figures of each value of a dimension.
	Breakdown(ctx context.Context, q analytics.BreakdownQuery) (analytics.Breakdown, error)
	// EventStats returns the figures of each event name.
	EventStats(ctx context.Context, q analytics.StatsQuery) (analytics.Stats, error)
	// Deliveries returns what became of deliveries, by platform.
	Deliveries(ctx context.Context, q analytics.DeliveriesQuery) (analytics.Deliveries, error)
	// Funnel returns how far visitors came along steps.
	Funnel(ctx context.Context, q analytics.FunnelQuery) (analytics.Funnel, error)
	// Attribution returns what conversions are credited to.
	Attribution(ctx context.Context, q analytics.AttributionQuery) (analytics.Attribution, error)
	// Listing returns a page of the events of a range.
	Listing(ctx context.Context, q analytics.ListingQuery) (analytics.Page, error)
}

var _ Engine = (*analytics.View)(nil)
