package analytics

import (
	"time"

	"github.com/weir-dev/weir/collector/analytics/columns"
	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/stream"
)

// ListingQuery asks for a page of events.
type ListingQuery struct {
	Range Range
	// Class keeps only the events of one class; where AnyClass is set it says nothing, and those of all are kept.
	Class    event.Class
	AnyClass bool
	// Events keeps only these names; empty keeps all.
	Events []string
	// Platforms keeps events with a delivery to one of these; empty keeps all. Platforms and Statuses together ask for
	// one delivery to which both apply.
	Platforms []string
	// Statuses keeps events with a delivery of one of these; empty keeps all.
	Statuses []stream.Status
	// EventIDs, OrderIDs and Visitors keep the events that have one of these; empty keeps all. Visitors are as in [Record];
	// only events of humans have one.
	EventIDs, OrderIDs, Visitors []string
	// Ascending says that the oldest event comes first.
	Ascending bool
	// After is the cursor: only events that come after it in the listing's order; 0 begins with the first.
	After stream.Position
	// Limit is the size of the page, at least 1.
	Limit int
	// Count asks for the number of all events that match.
	Count bool
}

// Page is a part of a listing, newest first where it is not ascending.
type Page struct {
	Records []Record
	// Total is how many events match, those of other pages too; nil where nobody asked.
	Total *int
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

// DeliveryOf returns a delivery as the listing shows it. reason is why it stands as it does, received when its event was.
func DeliveryOf(d columns.Delivery, platform, reason string, received time.Time) Delivery {
	shown := Delivery{Platform: platform, Status: d.Status(), Attempts: d.Attempts(), UpdatedAt: d.Updated(received), Reason: reason}
	if shown.Attempts > 0 {
		latency := time.Duration(d.Latency()) * time.Millisecond
		shown.Latency = &latency
	}
	return shown
}
