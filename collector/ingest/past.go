package ingest

import (
	"time"

	"github.com/google/uuid"

	"github.com/weir-dev/weir/collector/config"
	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/event/envelope"
	"github.com/weir-dev/weir/collector/event/segment"
)

// Past makes events of what was sent long ago, to this Property or to another system: read, judged, pseudonymised and told apart
// by class and consent as though it came in now, but for no platform. It speaks to nobody. It is not safe for concurrent use.
type Past struct {
	tenant     *tenant
	sent       envelope.Envelope
	translator segment.Translator
}

// Known is what is known of an event of the past beside what was sent.
type Known struct {
	// ReceivedAt is when it was received. It is judged as of then.
	ReceivedAt time.Time
	// OccurredAt is when it happened, in place of what was sent; zero where that tells.
	OccurredAt time.Time
	// Judged says that a Property has taken the event: its name, its class and what remains of its visitor stand.
	Judged bool
	Class  event.Class
}

// NewPast returns what makes events of one property. bots may be nil, as in [Options].
func NewPast(property config.Property, bots Bots) *Past {
	property.Platforms = nil // which alone would need more of a person
	return &Past{tenant: &tenant{
		Tenant: Tenant{Property: property}, id: property.Namespace + "/" + property.Name, audience: newAudience(property.Exclude, bots), consents: newConsents(&property),
	}}
}

// Envelope makes an event of an envelope of the collect API. It fails with [event.Errors], by the envelope's members, or with what
// [envelope.Envelope.Decode] fails with; nothing in either is of what was sent.
func (p *Past) Envelope(body []byte, known Known) (event.Event, error) {
	defer p.sent.Reset()
	if err := p.sent.Decode(body); err != nil {
		return event.Event{}, err
	}
	p.sent.Happened(known.OccurredAt)
	e, errs := p.accept(body, known)
	if len(errs) > 0 {
		return event.Event{}, errs
	}
	return e, nil
}

// Message makes an event of a message of Segment's HTTP Tracking API, of the type that call says; isEvent is false where messages
// of that type are none. It fails as [Past.Envelope] does, by the message's members.
func (p *Past) Message(body []byte, call string, known Known) (e event.Event, isEvent bool, err error) {
	defer p.sent.Reset()
	defer p.translator.Reset()
	request, err := segment.Decode(body, call)
	if err != nil {
		return event.Event{}, false, err
	}
	translated, errs := p.translator.Translate(request, 0, known.ReceivedAt)
	switch {
	case len(errs) > 0:
		return event.Event{}, false, p.translator.Told(errs)
	case translated.Ignored:
		return event.Event{}, false, nil
	case !known.OccurredAt.IsZero():
		translated.OccurredAt = known.OccurredAt
	}
	p.sent.Take(envelope.Translation{Outline: translated.Outline, OccurredAt: translated.OccurredAt, Optional: segment.Optional, Unread: translated.Unread})
	if e, errs = p.accept(body, known); len(errs) > 0 {
		return event.Event{}, false, p.translator.Told(errs)
	}
	return e, true, nil
}

// accept makes an event of what has been read. What it does not bring an id of is told by its text and time: so it has the same id
// whenever it is read.
func (p *Past) accept(body []byte, known Known) (event.Event, event.Errors) {
	t := p.tenant
	aliases := t.Property.EventAliases
	if known.Judged {
		aliases = nil // a name that is an alias's would be another's
	}
	valid, errs := p.sent.Validate(known.ReceivedAt, aliases)
	if len(errs) > 0 {
		return event.Event{}, errs
	}
	class := known.Class
	if !known.Judged {
		class = t.audience.classOf(valid.Traits())
	}
	id, given := valid.UUID()
	if !given {
		id = p.made(string(body), known.ReceivedAt)
	}
	e := envelope.Pseudonymise(valid, envelope.Acceptance{DeliveryID: id, Class: class})
	if !given && e.ID != id.String() {
		e.DeliveryID = p.made(e.ID, known.ReceivedAt)
	}
	if !known.Judged {
		t.consents.keep(&e)
	}
	return e, nil
}

// made returns the delivery id of an event that has none.
func (p *Past) made(of string, at time.Time) uuid.UUID {
	return uuid.NewSHA1(uuid.Nil, []byte("weir import\x00"+p.tenant.id+"\x00"+at.UTC().Format(time.RFC3339Nano)+"\x00"+of))
}
