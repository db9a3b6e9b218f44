// Package analytics is the read side of a property: a materialised view that tails the property's two streams
// into columns in memory, and every number the read API gives, computed from those columns. It knows neither
// HTTP nor JSON, and reaches Redis only through the [Source] it is given.
//
// A number counts the events whose stream position lies in the [Range] asked for; an event belongs to the
// millisecond at which it was received. Nothing is sampled or estimated. Only the events of humans count; the others are
// counted by class, and listed where they are asked for.
package analytics

import (
	"log/slog"
	"time"

	"github.com/weir-dev/weir/collector/analytics/columns"
	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/stream"
)

// The event names that have a meaning of their own.
const (
	purchaseEvent  = "purchase"
	refundEvent    = "refund"
	addToCartEvent = "add_to_cart"
	pageviewEvent  = "pageview"
)

// Options configure a [View].
type Options struct {
	// Property is namespace/name. Opaque visitor ids depend on it, so that they differ between properties.
	Property string
	// Currency is the reporting currency, upper-case ISO 4217.
	Currency string
	Logger   *slog.Logger
	// Budget is that of the queries, shared by all views of a process; nil for none.
	Budget *Budget
	// Erased says of an event that was received at a time that its person was erased: it never gets into the view. nil for
	// none. It is called while others of its calls run.
	Erased func(e *event.Event, received time.Time) bool
	// MaxBytes is about how large the view may become; 0 for as large as it takes. Where it would become larger it leaves
	// out the oldest events, and [Status.CompleteFrom] says so.
	MaxBytes int64
}

// Range is a half-open range of reception times: From ≤ received_at < To.
type Range struct{ From, To time.Time }

// Status is how far the view has come.
type Status struct {
	// Ready says that the view has replayed both streams to their ends at least once. Numbers read before
	// that are too small.
	Ready bool
	// Connected says that the last call to the source succeeded. A view that is ready and not connected
	// answers from what it knows.
	Connected bool
	// Last is the position of the newest event, 0 where there is none; AsOf is its time.
	Last stream.Position
	AsOf time.Time
	// CurrentAt is the last time, by this machine's clock, at which the view is known to have held all that the
	// events stream had; zero before it has come to its end. While the view is connected it is at most a few seconds
	// old, and it stands still while the source is away.
	CurrentAt time.Time
	// CompleteFrom is the time from which on no event is missing; zero where none was ever trimmed.
	CompleteFrom time.Time
	// Events counts the events that are retained, without those that were erased.
	Events int
	// Bytes is about how much memory the view takes, MaxBytes how much it may; 0 for any.
	Bytes, MaxBytes int64
	// Unreadable counts the entries that could not be decoded and are in no number.
	Unreadable int
}

// Dimension is what figures can be broken down by, and credit be given to.
type Dimension string

// The dimensions. An event's channel, source, medium and campaign are those of its visitor's latest touch up to and
// including the event itself, from [TouchLookback] before it at most: what credits a purchase to its last touch. What has no such
// touch has the channel Direct, the source (direct), the medium (none) and the campaign (none); a page or product that an event
// does not name is (none).
const (
	ByEvent    Dimension = "event"
	ByChannel  Dimension = "channel"
	BySource   Dimension = "source"
	ByMedium   Dimension = "medium"
	ByCampaign Dimension = "campaign"
	// ByPage is the path of the page, without query and fragment.
	ByPage Dimension = "page"
	// ByProduct is the ids of an event's items, else its content id.
	ByProduct Dimension = "product"
)

// TouchLookback is how long a touch tells where the events of its visitor come from.
const TouchLookback = columns.TouchLookback

// Filter keeps some events: those that have, in each dimension that it names, one of the values. The zero value keeps all. Every
// figure of a filtered query is that of the events that are kept, as though there were no others; touches are those of all.
type Filter map[Dimension][]string

// Totals are the figures of some events.
type Totals struct {
	Events     int
	Purchases  int
	AddToCarts int
	Pageviews  int
	Refunds    int
	// GrossRevenue adds up the purchases' values, Refunded the refunds', Revenue is the one less the other; all
	// in the property's currency.
	GrossRevenue event.Sum
	Refunded     event.Sum
	Revenue      event.Sum
	// AverageOrderValue is GrossRevenue by the number of purchases in the property's currency, rounded to its minor unit,
	// half to even; 0 without such purchases.
	AverageOrderValue event.Amount
	UniqueVisitors    int
	// ConversionRate is the visitors with a purchase by UniqueVisitors.
	ConversionRate Rate
	// RevenueByCurrency has an element for each currency of a purchase or refund, by code.
	RevenueByCurrency []CurrencyRevenue
}

// Summary holds the figures of a range.
type Summary struct {
	Totals
	// EventsByClass counts all events, those that are in no other number too.
	EventsByClass columns.ClassCounts
	// CompleteFrom is the time from which on no event was missing; zero where none was ever trimmed.
	CompleteFrom time.Time
}

// Series are the figures of ranges, in their order.
type Series struct {
	Totals []Totals
	// CompleteFrom is the time from which on no event was missing; zero where none was ever trimmed.
	CompleteFrom time.Time
}

// Measure is a figure that groups are ordered by, the largest first.
type Measure string

// The measures that groups can be ordered by.
const (
	OrderEvents         Measure = "events"
	OrderUniqueVisitors Measure = "unique_visitors"
	OrderPurchases      Measure = "purchases"
	OrderRevenue        Measure = "revenue"
)

// BreakdownQuery asks for the figures of each value of a dimension.
type BreakdownQuery struct {
	Range  Range
	Filter Filter
	By     Dimension
	// Order is what the groups are ordered by; equal ones by name, byte by byte.
	Order Measure
	// Limit is how many groups there are at most; 0 for all.
	Limit int
}

// Breakdown is the figures of the values of a dimension.
type Breakdown struct {
	Groups []Group
	// Others is what the limit has left out, nil where that is nothing.
	Others *OtherGroups
	// Totals are of all events that are kept. Each counts once there, also where it has several products.
	Totals Totals
	// CompleteFrom is the time from which on no event was missing; zero where none was ever trimmed.
	CompleteFrom time.Time
}

// Group is the figures of one value of a dimension. Where that is a product the money is that of its items, price by quantity,
// rounded half to even to four decimals; of an event without items that names a content id it is the event's value.
type Group struct {
	Name string
	Totals
	// Quantity is how many pieces of a product purchases had, less those of refunds; 1 where an item does not say. Of other
	// dimensions it is 0.
	Quantity event.Sum
	// Share is Events by those of all events that are kept.
	Share Rate
}

// OtherGroups are groups of a [Breakdown] taken together.
type OtherGroups struct {
	// Groups is how many there are.
	Groups    int
	Events    int
	Purchases int
	Revenue   event.Sum
}

// DeliveriesQuery asks what became of the deliveries of events that were received in ranges.
type DeliveriesQuery struct {
	Ranges []Range
	// Platforms keeps the deliveries to these; empty keeps all.
	Platforms []string
	// Events keeps the deliveries of events of these names; empty keeps all.
	Events []string
}

// Deliveries are counts of deliveries.
type Deliveries struct {
	// Ranges has for each range that was asked for an element per platform that any of its events names, by name; Totals has the
	// same of all ranges together.
	Ranges [][]DeliveryStats
	Totals []DeliveryStats
	// CompleteFrom is the time from which on no event was missing; zero where none was ever trimmed.
	CompleteFrom time.Time
}

// CurrencyRevenue is the revenue in one currency.
type CurrencyRevenue struct {
	Currency     string
	GrossRevenue event.Sum
	Refunded     event.Sum
	Revenue      event.Sum
}

// StatsQuery asks for a page of event statistics.
type StatsQuery struct {
	Range Range
	// Class is whose events are counted.
	Class event.Class
	// After is the last name of the page before; the zero value begins with the first.
	After StatsPlace
	// Limit is the size of the page, at least 1.
	Limit int
}

// StatsPlace is the place of a name in event statistics.
type StatsPlace struct {
	// Count is the number of its events, Event the name.
	Count int
	Event string
}

// Stats are the numbers of event names.
type Stats struct {
	Events []EventStats
	// Next is the last name of the page where further ones follow, else the zero value.
	Next StatsPlace
	// OtherNames is how many names follow the page, OtherCount how many events they have.
	OtherNames, OtherCount int
	// CompleteFrom is the time from which on no event was missing; zero where none was ever trimmed.
	CompleteFrom time.Time
}

// EventStats are the numbers of one event name.
type EventStats struct {
	Event          string
	Count          int
	UniqueVisitors int
	// Value adds up the values in the property's currency, ValueByCurrency those in each currency, by code.
	Value           event.Sum
	ValueByCurrency []CurrencySum
	// Share is Count by the number of all events of the range and class.
	Share           Rate
	FirstReceivedAt time.Time
	LastReceivedAt  time.Time
	// Deliveries has an element per platform that any of the events names, by name.
	Deliveries []DeliveryStats
}

// DeliveryStats count the deliveries of one event name to one platform.
type DeliveryStats struct {
	Platform string
	// Counts is indexed by [stream.Status].
	Counts [stream.Expired + 1]int
	// Reasons counts them by status and reason, without those that have no reason; nil for a status that has none.
	Reasons [stream.Expired + 1]map[string]int
	// LatencyP50 and LatencyP95 are the smallest latencies that at least 50 % and 95 % of the delivered events
	// do not exceed; nil where none was delivered with an attempt.
	LatencyP50 *time.Duration
	LatencyP95 *time.Duration
}

// FunnelQuery asks how far visitors came.
type FunnelQuery struct {
	Range Range
	// Steps are 1 to 64; each has the names of the events that fill it, one at least.
	Steps [][]string
	// Window is within which time of the first step all others have to follow; 0 for any.
	Window time.Duration
	// Filter keeps the events that can fill steps.
	Filter Filter
}

// Funnel is how far visitors came along a list of steps.
type Funnel struct {
	Steps []FunnelStep
	// ConversionRate is the last step's.
	ConversionRate Rate
	// CompleteFrom is the time from which on no event was missing; zero where none was ever trimmed.
	CompleteFrom time.Time
}

// FunnelStep is one step of a [Funnel].
type FunnelStep struct {
	// Events are the names of the events that fill the step.
	Events   []string
	Visitors int
	// ConversionRate is Visitors by the first step's, StepConversionRate by the previous step's.
	ConversionRate     Rate
	StepConversionRate Rate
	// DropOff is how many visitors were lost since the previous step.
	DropOff int
	// Median is the median time since the previous step; nil on the first step and where nobody came.
	Median *time.Duration
}

// Model says which touches get the credit for a conversion.
type Model string

// The attribution models.
const (
	FirstTouch Model = "first_touch"
	LastTouch  Model = "last_touch"
	Linear     Model = "linear"
)

// AttributionQuery asks what conversions are credited to.
type AttributionQuery struct {
	// Range holds the conversions; touches may lie before it.
	Range           Range
	Model           Model
	ConversionEvent string
	// Lookback is how long before its conversion a touch may lie; 0 means that any touch counts.
	Lookback time.Duration
	// GroupBy is one of the dimensions that a touch has.
	GroupBy Dimension
	// Filter keeps conversions. The touches are those of all events.
	Filter Filter
	// Limit is how many results there are at most; 0 for all.
	Limit int
}

// Attribution is what conversions are credited to.
type Attribution struct {
	Conversions int
	// Revenue adds up the conversions' values in the property's currency.
	Revenue event.Sum
	// RevenueByCurrency adds up the conversions' values in each currency, by code.
	RevenueByCurrency []CurrencySum
	// Results and Others add up to Conversions and Revenue exactly; largest credit first, then largest revenue, then by
	// name. Their revenue is rounded to the currency's minor unit, or to the decimal place that Revenue ends in where that is finer.
	Results []AttributionResult
	// Others is what the limit has left out, nil where that is nothing.
	Others *AttributionOthers
	// CompleteFrom is the time from which on no event was missing; zero where none was ever trimmed.
	CompleteFrom time.Time
}

// AttributionOthers are results of an [Attribution] taken together.
type AttributionOthers struct {
	// Groups is how many there are.
	Groups      int
	Conversions Credit
	Revenue     event.Sum
	// Share is their credit together, before rounding, by the number of conversions.
	Share Rate
}

// CurrencySum is money in one currency.
type CurrencySum struct {
	Currency string
	Sum      event.Sum
}

// AttributionResult is the credit of one channel, source, medium or campaign.
type AttributionResult struct {
	// Name is the channel, source, medium or campaign. Conversions without a touch go to the channel Direct, the
	// source (direct), the medium (none) or the campaign (none); a touch without a medium or campaign to (none).
	Name        string
	Conversions Credit
	Revenue     event.Sum
	// Share is the result's credit, before rounding, by the number of conversions.
	Share Rate
}
