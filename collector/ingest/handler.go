// Package ingest takes events in over HTTP: it tells whose they are by the API key, reads and validates them,
// pseudonymises what is valid and hands it to the stream. A person's data stays in the memory of the request
// that brought it.
package ingest

import (
	"context"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-dev/weir/collector/audit"
	"github.com/weir-dev/weir/collector/auth"
	"github.com/weir-dev/weir/collector/config"
	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/event/envelope"
	"github.com/weir-dev/weir/collector/event/segment"
	"github.com/weir-dev/weir/collector/event/wire"
	"github.com/weir-dev/weir/collector/quality"
	"github.com/weir-dev/weir/collector/server"
	"github.com/weir-dev/weir/collector/snippet"
	"github.com/weir-dev/weir/collector/stream"
)

// Appender stores events. It returns when all of them are stored, with what became of each in order, or with
// [stream.ErrUnavailable] when it could not be made certain within its time. [stream.Appender] is one.
type Appender interface {
	Append(ctx context.Context, additions []stream.Addition) ([]stream.Added, error)
}

// Limiter says whether n more events may come at a rate. [stream.Stream] is one.
type Limiter interface {
	Allow(ctx context.Context, rate stream.Rate, n int) (stream.Allowance, error)
}

// Bots tells the user agents of programs. [bots.Detector] is one.
type Bots interface {
	IsBot(userAgent string) bool
}

// Suppression says whose events are to be nobody's. It is asked for each event.
type Suppression interface {
	// Suppresses says whether there is anybody like that. Where there is not, no event is looked at.
	Suppresses() bool
	Suppressed(ids event.Identifiers) bool
}

// Eraser has persons erased. [stream.ErasureRequester] is one.
type Eraser interface {
	// Erase returns when the request stands in the ledger; it fails with [stream.ErrNotLedgered] where it does not before ctx ends.
	Erase(ctx context.Context, request stream.ErasureRequest) (stream.ErasureState, error)
}

// Tenant is a property that events are taken in for.
type Tenant struct {
	Property config.Property
	// Keys are the API keys that belong to the property. Where two tenants share one, the first has it.
	Keys []auth.Credential
	// SigningSecrets verify the webhooks of the property's sources, by their names; a source without one is refused.
	SigningSecrets map[string][]string
	Appender       Appender
	// Limiter is asked where the property limits its events per second, or has a publishable key; otherwise it may be nil.
	Limiter Limiter
	// Rejections is told what was refused; nil where nobody keeps that.
	Rejections RejectionList
	// Tally counts the events that are sent; nil where nobody does.
	Tally *quality.Tally
	// Suppression is asked about each event; nil where nobody is suppressed.
	Suppression Suppression
	// Eraser is asked where a shop wants a person erased; nil where nobody can do that.
	Eraser Eraser
	// FirstUses is told of each request with one of the keys; nil where nobody keeps that.
	FirstUses *audit.FirstUses
}

// Options are what a [Handler] needs beside its tenants.
type Options struct {
	Now        func() time.Time
	Registerer prometheus.Registerer
	// Bots is asked for each event with a user agent; nil where nobody is taken for a bot.
	Bots Bots
	// Audit is told of erasures that shops request; nil for none.
	Audit *audit.Log
	// NewID makes delivery ids; nil means UUIDs of version 7.
	NewID func() uuid.UUID
	// MaxInFlightBytes bounds what requests take of memory at a time, four times their bodies and 32 KiB for each; 0
	// means 256 MiB. Requests beyond it are answered 503 at once.
	MaxInFlightBytes int64
}

// Handler answers the collect API for the tenants that it serves. It is safe for concurrent use.
type Handler struct {
	now     func() time.Time
	newID   func() uuid.UUID
	bots    Bots
	audit   *audit.Log
	metrics *metrics
	bodies  *bodies
	snippet http.Handler
	// envelopes are there to be read into: of *envelope.Envelope, reset.
	envelopes sync.Pool
	// translators are of *segment.Translator, reset.
	translators sync.Pool
	// stranger is who a request comes from while its key has not been read yet. As of pages, anybody may be one.
	stranger *sender
	// admission is shared by all tenants: it is the process's memory. web is the part of it that pages may hold.
	admission, web admission
	served         atomic.Pointer[served]
}

// served is what one call of Serve has set: all keys, and who has them.
type served struct {
	keys    []auth.Credential
	senders [][ways]*sender
	tenants []*tenant
}

// tenant is a Tenant with what each of its requests would otherwise work out anew.
type tenant struct {
	Tenant
	// id is NAMESPACE/NAME.
	id string
	// accountVariants are the hashes that are wanted beside variants where an event has a user_id.
	variants, accountVariants event.VariantSet

	platforms []string
	// sealsIdentity says that what tells whose an event is goes before the event.
	sealsIdentity bool
	audience      audience
	consents      consents
	counters      [ways]counters
}

// New makes a handler that serves no tenant yet.
func New(o Options) *Handler {
	h := &Handler{now: o.Now, newID: o.NewID, bots: o.Bots, audit: o.Audit, metrics: newMetrics(o.Registerer), bodies: newBodies(), snippet: snippet.Handler()}
	h.envelopes.New = func() any { return new(envelope.Envelope) }
	h.translators.New = func() any { return new(segment.Translator) }
	h.stranger = &sender{tenant: new(tenant), way: viaSegment, web: newWeb(new(auth.Publishable))}
	h.admission.limit = o.MaxInFlightBytes
	if h.admission.limit == 0 {
		h.admission.limit = defaultMaxInFlightBytes
	}
	h.web.limit = h.admission.limit / webShare
	if h.newID == nil {
		h.newID = func() uuid.UUID { return uuid.Must(uuid.NewV7()) } // fails where crypto/rand does: never
	}
	h.Serve(nil)
	return h
}

// Serve replaces the tenants that are served. Requests under way finish with those they began with.
func (h *Handler) Serve(tenants []Tenant) {
	var all served
	for _, t := range tenants {
		owner := &tenant{
			Tenant: t, id: t.Property.Namespace + "/" + t.Property.Name, platforms: t.Property.PlatformNames(),
			variants: t.Property.Variants(), accountVariants: t.Property.AccountVariants(), sealsIdentity: t.Property.Retention.SealsIdentity(),
			audience: newAudience(t.Property.Exclude, h.bots), consents: newConsents(&t.Property), counters: h.metrics.of(t.Property),
		}
		all.tenants = append(all.tenants, owner)
		for place, key := range t.Keys {
			all.keys = append(all.keys, key)
			all.senders = append(all.senders, newSenders(owner, place, key))
		}
	}
	h.served.Store(&all)
}

// Routes mounts the collect API.
func (h *Handler) Routes(r chi.Router) {
	r.Post("/collect/{api_key}", h.collect)
	r.Post("/collect/{api_key}/batch", h.collectBatch)
	r.Post("/sources/{api_key}/{source}", h.takeWebhook)
	r.Options("/collect/{api_key}", h.preflight)
	r.Options("/collect/{api_key}/batch", h.preflight)
	h.segmentRoutes(r)
	r.Get("/collect/{api_key}/weir.js", h.script)
	r.Head("/collect/{api_key}/weir.js", h.script)
}

// note describes a request that is not served for its log line.
func (t *tenant) note(w http.ResponseWriter, attributes ...slog.Attr) {
	if t.Property.Name != "" {
		server.Note(w, slog.String("namespace", t.Property.Namespace), slog.String("property", t.Property.Name))
	}
	server.Note(w, attributes...)
}

// envelope returns one to be read into, and to be given to forget.
func (h *Handler) envelope() *envelope.Envelope { return h.envelopes.Get().(*envelope.Envelope) }

// forget takes an envelope back, without what it held of a person.
func (h *Handler) forget(sent *envelope.Envelope) {
	sent.Reset()
	h.envelopes.Put(sent)
}

// prepare turns an envelope into what the stream stores of it.
func (h *Handler) prepare(s *sender, sent *envelope.Envelope, now time.Time) (prepared, event.Errors) {
	if s.web != nil {
		sent.LeaveOut(pageOptional)
	}
	valid, errs := sent.Validate(now, s.Property.EventAliases)
	if len(errs) == 0 {
		errs = s.judge(valid)
	}
	if len(errs) > 0 {
		return prepared{}, errs
	}
	if s.web != nil {
		valid.SentBy(s.visitor)
	}
	id, given := valid.UUID()
	if !given {
		id = h.newID()
	}
	// The class is told by what is about to be let go.
	acceptance := envelope.Acceptance{
		DeliveryID: id, Variants: s.variants, AccountVariants: s.accountVariants, Class: s.audience.classOf(valid.Traits()),
	}
	if acceptance.Class.Counts() {
		acceptance.Platforms = s.platforms
	}
	accepted := envelope.Pseudonymise(valid, acceptance)
	addition := stream.Addition{Public: s.web != nil, IDSpace: uint8(accepted.Class)}
	// The ids outlive the request where it has given up waiting, and must not keep the body's text for that.
	addition.EventID = strings.Clone(accepted.ID)
	if accepted.Name == event.Purchase {
		addition.OrderID = strings.Clone(accepted.OrderID)
	}
	switch {
	case !s.suppresses(&accepted): // by what is about to be let go, too
		s.consents.keep(&accepted)
		var buffer [4]event.Identifier
		if s.Property.JoinIdentities && acceptance.Class.Counts() && !accepted.Anonymous {
			addition.Identifiers = accepted.Identifiers(s.id, buffer[:0]).Packed()
		}
	case s.Property.Suppression == config.Refuse:
		return prepared{}, event.Errors{suppressed}
	default:
		accepted = accepted.Anonymized(h.newID())
	}
	parts := wire.Split(&accepted, s.sealsIdentity)
	addition.Entry, addition.Sealed = parts.Entry, parts.Sealed
	return prepared{addition, s.observe(now, &accepted)}, nil
}

// suppresses says whether an event is of a person who was erased and is to stay so. It costs nothing where nobody is.
func (t *tenant) suppresses(e *event.Event) bool {
	if t.Suppression == nil || !t.Suppression.Suppresses() {
		return false
	}
	return t.Suppression.Suppressed(e.Identifiers(t.id, nil))
}

// suppressed is what is wrong with an event of a person who was erased and is to stay so, where such are refused. It does not
// say by what the person is known.
var suppressed = event.FieldError{Field: "event", Message: "The event is of a person who was erased, and the property refuses such events."}
