package adapter

import (
	"context"
	"time"

	"golang.org/x/oauth2"

	"github.com/weir-dev/weir/collector/event"
)

// Authorizer is an adapter whose requests carry a token that is granted for its credentials: the deliverer fetches it by its own
// client and puts it into each request.
type Authorizer interface {
	// Grant says how tokens are had. What it makes fetches them by the HTTP client of its context.
	Grant() Grant
}

// Grant is a way to have tokens granted, such as a jwt.Config or a clientcredentials.Config of golang.org/x/oauth2.
type Grant interface {
	TokenSource(ctx context.Context) oauth2.TokenSource
}

// Tracker is an adapter of a type that queues what it is sent, and says later what has become of it.
type Tracker interface {
	// Track makes the request that asks for it.
	Track(ticket string) Request
	// Tracked says what the answer means for each event that was asked for. [Queued] has them asked for again after a while,
	// [Isolate] has them sent again in smaller parts.
	Tracked(response Response, look Look) []Verdict
}

// Look is what is asked: what has become of events of one ticket.
type Look struct {
	// Refunds says of each event whether it is a refund.
	Refunds []bool
	// Sent is how many events the request had in all, 0 where that is not known. Group is theirs, "" where it is not known.
	Sent  int
	Group string
	// Age is how long ago the ticket was given.
	Age time.Duration
}

// Order is what an event says of its order.
type Order struct {
	// ID is the order's.
	ID string
	// Refund says that the event is a refund of it; else it is its purchase.
	Refund bool
	// Value is what was paid, or refunded; nil where that is not known. Currency is "" where it is not known.
	Value    *event.Amount
	Currency string
	// At is when the event happened.
	At time.Time
	// Target is where on the platform the event goes, without white space, another one where it is only checked: a refund goes
	// where its purchase went.
	Target string
}

// Restater is an adapter of a type that takes a refund as the purchase's new value.
type Restater interface {
	// Restate makes of a purchase or a refund the purchase with a new value, as of now. purchased is when the purchase happened.
	Restate(p Payload, value event.Amount, purchased, now time.Time) (Payload, Verdict)
}
