// Package adapter knows how each platform type is spoken to: which events it takes, how a batch of them
// becomes a request, and what its answer means for each event. All of it is pure: sending, waiting and
// recording are the deliverer's. A new type's adapter is one file and one row of the table below; what the type is,
// its settings and limits, is said in package platforms.
package adapter

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/weir-dev/weir/collector/consent"
	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/platforms"
)

// Event is an event as the adapters see it.
type Event struct {
	event.Event
	// ReceivedAt is the time of its place in the stream.
	ReceivedAt time.Time
	// ReplayedAt is when a replay put it back; zero where none did.
	ReplayedAt time.Time

	// granted and limited are the purposes that the visitor granted, and denied so that the platform is told; see [Platform.Map].
	granted, limited consent.Purposes
	// as is the platform's name for it where the Property gives one, see [platforms.Platform.EventNames].
	as string
	// taken are the keys of names that no other event may have on the platform, see takenNames.
	taken map[string]bool
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
	// Expires is when the event is given up: the platform is about to stop taking it. An adapter may set an earlier time than
	// that of its type's traits.
	Expires time.Time
	// Group parts payloads that no request may carry together; "" for all where there are no groups. It has neither white space
	// nor colons.
	Group string
	// Order is what the event says of its order; nil where the platform restates none.
	Order *Order
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

// Eraser is an adapter of a type that has an interface for erasures. Its methods are as pure as those of the adapter. Erasing
// the same person again is harmless at the platform.
type Eraser interface {
	// Erase makes the requests that have persons erased at the platform, as of now; none for persons of whom it has nothing. It
	// fails where what they are known by cannot be written as JSON.
	Erase(persons []Person, now time.Time) ([]ErasureRequest, error)
	// ClassifyErasure says what the answer to one of these requests means: [Delivered] where the platform has taken it.
	ClassifyErasure(response Response) Verdict
}

// narrower is an adapter that with its settings takes less in a request than its type does.
type narrower interface {
	narrow(limits platforms.Limits) platforms.Limits
}

// openers has a row for every platform type: what makes its adapter of settings and credentials that are as the type's traits
// demand, or says what else is wrong with them without repeating it.
var openers = map[platforms.Type]func(cfg platforms.Platform, credentials map[string]string) (Adapter, error){
	platforms.TypeMeta:      openMeta,
	platforms.TypeGA4:       openGA4,
	platforms.TypeTikTok:    openTikTok,
	platforms.TypePinterest: openPinterest,
	platforms.TypeMixpanel:  openMixpanel,
	platforms.TypeWebhook:   openWebhook,
	platforms.TypeS3:        openS3,
	platforms.TypeLog:       openLog,
	platforms.TypeSnapchat:  openSnapchat,
	platforms.TypeReddit:    openReddit,
	platforms.TypeMicrosoft: openMicrosoft,
	platforms.TypeLinkedIn:  openLinkedIn,
	platforms.TypeKlaviyo:   openKlaviyo,
	platforms.TypeAmplitude: openAmplitude,
	platforms.TypePostHog:   openPostHog,
	platforms.TypeSegment:   openSegment,
	platforms.TypeOpenAI:    openOpenAI,
	platforms.TypeGoogle:    openGoogle,
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
	Limits platforms.Limits
	events []string
	names  map[string]string
	taken  map[string]bool
	maxAge time.Duration
	// rule is what becomes of an event by its visitor's decisions.
	rule consent.Rule
	// needed are the identifiers that the platform needs even of an anonymous event, where it gets that.
	needed event.Needed
	// keysMissing are those of the Secret's keys without which the platform cannot be asked to erase anybody.
	keysMissing []string
}

// ErrConfiguration says that what is wrong stands in the Property, and not in a Secret.
var ErrConfiguration = errors.New("the Property's platform cannot be so")

// configurationError is an [ErrConfiguration] with a text of its own.
type configurationError string

func (e configurationError) Error() string { return string(e) }

func (configurationError) Is(target error) bool { return target == ErrConfiguration }

// Open makes a platform of its configuration, the keys of its Secret and the rule by which it gets events. An error names
// the field or key that is missing or wrong, never its value; it is [ErrConfiguration] where that stands in the Property.
func Open(cfg platforms.Platform, credentials map[string]string, rule platforms.ConsentRule) (*Platform, error) {
	open, ok := openers[cfg.Type]
	if !ok {
		return nil, fmt.Errorf("platform %q: type %q is unknown; the types are %v", cfg.Name, cfg.Type, platforms.Types())
	}
	traits, _ := cfg.Type.Traits()
	trimmed := map[string]string{}
	for _, key := range cfg.Type.SecretKeys(true) {
		// Secrets written by hand end in a line feed more often than not.
		trimmed[key] = strings.TrimSpace(credentials[key])
	}
	missing := func(key string) bool { return trimmed[key] == "" }
	if i := slices.IndexFunc(traits.Credentials, missing); i >= 0 {
		return nil, fmt.Errorf("platform %q: its Secret must have the key %s", cfg.Name, traits.Credentials[i])
	}
	var errs []error
	if !cfg.Type.TakesVersion(cfg.APIVersion) {
		errs = append(errs, fmt.Errorf("platform %q: apiVersion %s", cfg.Name, cfg.Type.VersionRule()))
	}
	wrong := func(member, rule string) {
		errs = append(errs, configurationError(fmt.Sprintf("platform %q: %s %s", cfg.Name, member, rule)))
	}
	cfg.Type.CheckSettings(&cfg.Settings, wrong)
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	adapter, err := open(cfg, trimmed)
	if err != nil {
		return nil, fmt.Errorf("platform %q: %w", cfg.Name, err)
	}
	checkNames(adapter, cfg.EventNames, wrong)
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	limits := traits.Limits
	if own, ok := adapter.(narrower); ok {
		limits = own.narrow(limits)
	}
	return &Platform{
		Adapter: adapter, Limits: limits, events: cfg.Events, names: cfg.EventNames, taken: takenNames(cfg.EventNames), maxAge: traits.MaxAge,
		rule: consent.NewRule(rule), needed: event.Needed(traits.ConsentOf(&cfg.Settings).Identifiers),
		keysMissing: slices.DeleteFunc(slices.Clone(traits.Erasure.Credentials), func(key string) bool { return !missing(key) }),
	}, nil
}

// ReasonExcluded is why events are skipped that the owner does not want the platform to get.
const ReasonExcluded = "event_excluded"

// told returns the event as the platform is told of it. The verdict is final where it is not.
func (p *Platform) told(e *Event) (Event, Verdict) {
	if len(p.events) > 0 && !slices.Contains(p.events, e.Name) {
		return Event{}, Skip(ReasonExcluded)
	}
	if p.maxAge > 0 && !e.Time().Add(p.maxAge-ageMargin).After(e.ReceivedAt) {
		return Event{}, Skip("too_old") // it was so when it came: nothing has been late
	}
	outcome := p.rule.Judge(&e.Consent)
	if outcome.Withheld != "" {
		return Event{}, Skip(outcome.Withheld)
	}
	told := *e
	told.granted, told.limited, told.as, told.taken = outcome.Granted, outcome.Limited, p.names[e.Name], p.taken
	if told.as == "" && len(p.taken) > 0 && p.taken[nameKey(e.Name)] {
		return Event{}, Skip("name_reserved") // it would count as what has that name
	}
	if told.Anonymous { // what was kept for one platform is not for all
		told.Keep(p.needed)
	}
	return told, Verdict{}
}

// Map renders an event unless the platform's configuration excludes its name or the rule withholds it, in the milder form
// where the visitor has denied a purpose that the platform has one for, and sets when it expires.
func (p *Platform) Map(e *Event) (Payload, Verdict) {
	told, verdict := p.told(e)
	if verdict.Class != Undecided {
		return Payload{}, verdict
	}
	payload, verdict := p.Adapter.Map(&told)
	payload.MessageID = e.DeliveryID.String()
	own := payload.Expires
	payload.Expires = e.ReceivedAt.Add(maxDeliveryAge)
	if e.ReplayedAt.After(e.ReceivedAt) {
		payload.Expires = e.ReplayedAt.Add(maxDeliveryAge)
	}
	if !own.IsZero() && own.Before(payload.Expires) {
		payload.Expires = own
	}
	if end := e.Time().Add(p.maxAge - ageMargin); p.maxAge > 0 && end.Before(payload.Expires) {
		payload.Expires = end
	}
	return payload, verdict
}
