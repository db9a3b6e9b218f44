// Package platform knows how each platform type is spoken to: which events it takes, how a batch of them
// becomes a request, and what its answer means for each event. All of it is pure: sending, waiting and
// recording are the deliverer's. A new platform is one file and one row of the table below.
package platform

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/weir-dev/weir/collector/config"
	"github.com/weir-dev/weir/collector/event"
)

// Event is an event as the adapters see it.
type Event struct {
	event.Event
	// ReceivedAt is the time of its place in the stream.
	ReceivedAt time.Time
	// ReplayedAt is when a replay put it back; zero where none did.
	ReplayedAt time.Time
}

// Time is when the event happened: the caller's own timestamp, else when it was received. It never depends
// on when the event is sent.
func (e *Event) Time() time.Time {
	if e.OccurredAt.IsZero() {
		return e.ReceivedAt
	}
	return e.OccurredAt
}

// Payload is one event in a platform's own form, ready to be put into a request.
type Payload struct {
	// Body is the event as the platform reads it.
	Body []byte
	// MessageID is the same on every attempt: the event's delivery id.
	MessageID string
	// Expires is when the event is given up: the platform is about to stop taking it.
	Expires time.Time
	// Line is what the Log platform writes; nil for all others.
	Line []slog.Attr
}

// Request is what one attempt sends: an HTTP request or, for the Log platform alone, lines of the log.
type Request struct {
	Method, URL string
	Header      http.Header
	Body        []byte
	// StatusOnly says that the answer is judged by its status, whatever its body.
	StatusOnly bool
	// Lines is nil where there is an HTTP request to make.
	Lines [][]slog.Attr
}

// Response is a platform's answer.
type Response struct {
	Status int
	Header http.Header
	// Body is the beginning of the body; what is beyond the deliverer's bound has been cut off.
	Body []byte
	// At is when it arrived.
	At time.Time
}

// Adapter speaks to one platform with one Property's configuration and credentials. Its methods are pure and
// may be called concurrently. Nothing they return but a [Request] holds a credential.
type Adapter interface {
	// Map renders an event. The verdict's class is [Undecided] where the payload is to be sent; else it is final and
	// says why the event is not.
	Map(e *Event) (Payload, Verdict)
	// Build makes the request for payloads that are within the type's [Limits], as of now.
	Build(batch []Payload, now time.Time) Request
	// Classify says what the answer to a request with n events means for each of them, in their order.
	Classify(response Response, n int) []Verdict
}

// Limits bound one request of a platform type.
type Limits struct {
	// Events is how many a request may carry.
	Events int
	// Bytes bounds the sum of a request's payloads; one payload alone may be above it.
	Bytes int
}

// kind is what the table knows of a platform type.
type kind struct {
	limits Limits
	// maxAge is how long after an event's time the platform takes it; 0 where it does not care.
	maxAge time.Duration
	// open makes the adapter, or says which field or credential is wrong without repeating it.
	open func(cfg config.Platform, credentials map[string]string) (Adapter, error)
}

// kinds has a row for every platform type.
var kinds = map[config.PlatformType]kind{
	// A request that Meta refuses for one event's sake is refused for all, so batches are a tenth of what is allowed.
	config.TypeMeta: {limits: Limits{Events: 100, Bytes: 1 << 20}, maxAge: 7 * 24 * time.Hour, open: openMeta},
	// A request speaks of one visitor. What is older than three days is put at another time by GA4, or refused.
	config.TypeGA4: {limits: Limits{Events: 1}, maxAge: 72 * time.Hour, open: openGA4},
	// As for Meta.
	config.TypeTikTok: {limits: Limits{Events: 100, Bytes: 1 << 20}, maxAge: 7 * 24 * time.Hour, open: openTikTok},
	// These two judge each event for itself, so the batch is bounded by what their answers have to say.
	config.TypePinterest: {limits: Limits{Events: 200, Bytes: 2 << 20}, maxAge: 7 * 24 * time.Hour, open: openPinterest},
	config.TypeMixpanel:  {limits: Limits{Events: 200, Bytes: 2 << 20}, open: openMixpanel},
	config.TypeWebhook:   {limits: Limits{Events: 1}, open: openWebhook},
	config.TypeLog:       {limits: Limits{Events: 100}, open: openLog},
}

const (
	// maxDeliveryAge is for how long after its receipt, or its last replay, an event is tried to be delivered at all.
	maxDeliveryAge = 7 * 24 * time.Hour
	// ageMargin is how much earlier than the platform we let go of an event, so that it is not refused on its
	// way and with it the batch.
	ageMargin = time.Hour
)

// Platform is one of a Property's platforms, ready to be delivered to.
type Platform struct {
	Adapter
	Limits Limits
	events []string
	maxAge time.Duration
}

// Open makes a platform of its configuration and the keys of its Secret. An error names the field or key that
// is missing or wrong, never its value.
func Open(cfg config.Platform, credentials map[string]string) (*Platform, error) {
	kind, ok := kinds[cfg.Type]
	if !ok {
		known := slices.Sorted(maps.Keys(kinds))
		return nil, fmt.Errorf("platform %q: type %q is unknown; the types are %v", cfg.Name, cfg.Type, known)
	}
	traits, _ := cfg.Type.Traits()
	trimmed := make(map[string]string, len(traits.Credentials))
	for _, key := range traits.Credentials {
		// Secrets written by hand end in a line feed more often than not.
		if trimmed[key] = strings.TrimSpace(credentials[key]); trimmed[key] == "" {
			return nil, fmt.Errorf("platform %q: its Secret must have the key %s", cfg.Name, key)
		}
	}
	adapter, err := kind.open(cfg, trimmed)
	if err != nil {
		return nil, fmt.Errorf("platform %q: %w", cfg.Name, err)
	}
	return &Platform{Adapter: adapter, Limits: kind.limits, events: cfg.Events, maxAge: kind.maxAge}, nil
}

// Map renders an event unless the platform's configuration excludes its name, and sets when it expires.
func (p *Platform) Map(e *Event) (Payload, Verdict) {
	if len(p.events) > 0 && !slices.Contains(p.events, e.Name) {
		return Payload{}, Skip("event_excluded")
	}
	payload, verdict := p.Adapter.Map(e)
	payload.MessageID = e.DeliveryID.String()
	payload.Expires = e.ReceivedAt.Add(maxDeliveryAge)
	if e.ReplayedAt.After(e.ReceivedAt) {
		payload.Expires = e.ReplayedAt.Add(maxDeliveryAge)
	}
	if end := e.Time().Add(p.maxAge - ageMargin); p.maxAge > 0 && end.Before(payload.Expires) {
		payload.Expires = end
	}
	return payload, verdict
}

// errMember says that the union member of the platform's own type is not set.
var errMember = errors.New("the member named by its type must be set")
