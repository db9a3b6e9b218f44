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

// ListingQuery asks for a page of events.
type ListingQuery struct {
	Range Range
	// Class keeps only the events of one class.
	Class event.Class
	// Events keeps only these names; empty keeps all.
	Events []string
	// Platforms keeps events with a delivery to one of these; empty keeps all. Platforms and Statuses together ask for
	// one delivery to which both apply.
	Platforms []string
	// Statuses keeps events with a delivery of one of these; empty keeps all.
	Statuses []stream.Status
	// Before is the cursor: only events with a lower position; 0 begins with the newest.
	Before stream.Position
	// Limit is the size of the page, at least 1.
	Limit int
}

// Page is a part of a listing, newest first.
type Page struct {
	Records []Record
	// Next is the cursor of the following page, 0 where no further event matches.
	Next stream.Position
	// CompleteFrom is the time from which on no event was missing; zero where none was ever trimmed.
	CompleteFrom time.Time
}

// Record is a received event.
type Record struct {
	Position   stream.Position
	EventID    string
	Event      string
	Class      event.Class
	ReceivedAt time.Time
	// Value is nil and Currency "" where the event had none.
	Value    *event.Amount
	Currency string
	// OrderID and ClientID are "" where the event had none.
	OrderID  string
	ClientID string
	// Visitor is an opaque id, the same for one visitor of the property; "" for an event of nobody, or of no human.
	Visitor string
	// Anonymous says that the event is nobody's because it is old: see [View.Anonymize].
	Anonymous bool
	// Touch is where the visitor came from; the zero value where the event does not tell.
	Touch columns.Touch
	// Deliveries has an element per platform in force when the event was accepted, in the Property's order.
	Deliveries []Delivery
}

// Delivery is what has become of an event on one platform.
type Delivery struct {
	Platform string
	Status   stream.Status
	Attempts int
	// Latency is how long the deciding attempt took, in whole milliseconds; nil where no attempt was made.
	Latency *time.Duration
	// UpdatedAt is when the status was decided; the event's reception where nothing has been yet.
	UpdatedAt time.Time
	// Reason is a short code, "" where the status says all.
	Reason string
}

// Summary holds the KPIs of a range.
type Summary struct {
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
	// EventsByClass counts all events, those that are in no other number too.
	EventsByClass columns.ClassCounts
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

// Day is a day of a period: its local date and the range it covers.
type Day struct {
	// Date is 2006-01-02 in the property's time zone.
	Date  string
	Range Range
}

// Days are the numbers of days.
type Days struct {
	Totals []DayTotals
	// CompleteFrom is the time from which on no event was missing; zero where none was ever trimmed.
	CompleteFrom time.Time
}

// DayTotals are the numbers of a [Day].
type DayTotals struct {
	Date       string
	Purchases  int
	AddToCarts int
	Pageviews  int
	// Revenue is in the property's currency, refunds deducted.
	Revenue        event.Sum
	UniqueVisitors int
	Events         int
	Refunds        int
	// RevenueByCurrency is as in [Summary].
	RevenueByCurrency []CurrencyRevenue
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
	// LatencyP50 and LatencyP95 are the smallest latencies that at least 50 % and 95 % of the delivered events
	// do not exceed; nil where none was delivered with an attempt.
	LatencyP50 *time.Duration
	LatencyP95 *time.Duration
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
	Event    string
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

// GroupBy says what of a touch credit is given to.
type GroupBy string

// What credit may be given to.
const (
	ByChannel  GroupBy = "channel"
	BySource   GroupBy = "source"
	ByMedium   GroupBy = "medium"
	ByCampaign GroupBy = "campaign"
)

// AttributionQuery asks what conversions are credited to.
type AttributionQuery struct {
	// Range holds the conversions; touches may lie before it.
	Range           Range
	Model           Model
	ConversionEvent string
	// Lookback is how long before its conversion a touch may lie; 0 means that any touch counts.
	Lookback time.Duration
	GroupBy  GroupBy
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
