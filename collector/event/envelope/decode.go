// Package envelope reads what a customer's server sends: strict JSON, of which it reports every error by field and
// never a value, and of which it makes an [event.Event] in which a person is a handful of hashes. What it read of the
// person stays in it: there is no way from here to a raw e-mail address, phone number or name.
package envelope

import (
	"fmt"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/event/outline"
)

// Envelope is what a customer's server sent for one event, read but not yet validated. It may be read into again and
// again, which saves the memory of another one. It is not safe for concurrent use.
type Envelope struct {
	outline []outline.Value
	// translated is a translation's outline, in the translator's memory; nil where the envelope was read.
	translated []outline.Value
	// occurredAt is a translation's; optional are beginnings of paths at which nothing wrong is an error.
	occurredAt time.Time
	optional   []string
	// unread are a translation's.
	unread []string
	// valid is what Validate returns.
	valid Valid
}

// Translation is an envelope that was written in another form.
type Translation struct {
	// Outline is what an outline of the envelope would hold. It must not change before the envelope is reset or read into.
	Outline []outline.Value
	// OccurredAt is when the event happened, in place of a timestamp and however long ago; zero where nobody said so.
	OccurredAt time.Time
	// Optional are beginnings of paths: members there that are wrong are left out, and are no error of the event.
	Optional []string
	// Unread are texts, or any JSON, with contacts of the person's of which none is in the outline: they are looked for in the
	// other members, and kept in none. It must not change any sooner than Outline.
	Unread []string
}

// Take reads a translation into e, as Decode reads an envelope.
func (e *Envelope) Take(t Translation) {
	e.Reset()
	e.translated, e.occurredAt, e.optional, e.unread = t.Outline, t.OccurredAt, t.Optional, t.Unread
}

// LeaveOut has members left out that are wrong, rather than be errors of the event: those whose paths begin with one of
// these. It holds for what is in e, and adds nothing to what a translation leaves out.
func (e *Envelope) LeaveOut(optional []string) {
	if e.optional == nil {
		e.optional = optional
	}
}

// Happened says when the event in e happened, in place of its timestamp and however long ago that is. The zero time changes
// nothing.
func (e *Envelope) Happened(at time.Time) { e.occurredAt = at }

// Decode reads an envelope into e. It is strict: a member name that occurs twice, text that is not UTF-8, data
// after the object or anything but an object is a [*outline.SyntaxError]. Members that mean nothing to Weir are read
// over. What the members hold is judged by [Envelope.Validate]. Nothing of what was in e may be in use any more.
func (e *Envelope) Decode(body []byte) error {
	text, err := outline.Decode(body)
	if err != nil {
		e.Reset()
		return err
	}
	e.read(text)
	return nil
}

// usualEntries is how many entries most envelopes get by with.
const usualEntries = 32

// read reads an envelope from a JSON object.
func (e *Envelope) read(object string) {
	if e.outline == nil {
		e.outline = make([]outline.Value, 0, usualEntries)
	}
	e.translated, e.occurredAt, e.optional, e.unread = nil, time.Time{}, nil, nil
	clear(e.outline) // what is read now may be shorter
	e.outline = outline.Of(object, &envelopeShape, e.outline[:0])
}

// maxKeptEntries bounds the memory that Reset keeps.
const maxKeptEntries = 512

// Reset forgets what was read, which may be somebody's e-mail address, and keeps the memory that it took.
func (e *Envelope) Reset() {
	clear(e.outline)
	e.outline, e.valid = e.outline[:0], Valid{}
	e.translated, e.occurredAt, e.optional, e.unread = nil, time.Time{}, nil, nil
	if cap(e.outline) > maxKeptEntries {
		e.outline = nil
	}
}

// BatchItem is one event of a batch.
type BatchItem struct {
	// Index is the event's place in the batch, from 0.
	Index int
	// Raw is the event as it stands in the body, which is JSON of any kind.
	Raw string
	// malformed says that Raw is not as strict as [Decode] is.
	malformed bool
}

// Decode reads the event into e. One that is no object, or that [Decode] would refuse, is an error of the field "events.INDEX".
func (b BatchItem) Decode(e *Envelope) event.Errors {
	switch {
	case b.Raw[0] != '{':
		return b.fieldErr("must be an object.")
	case b.malformed:
		return b.fieldErr("must be valid JSON: UTF-8, without halves of surrogate pairs, with each member once, and not nested deeper than 100 levels.")
	}
	e.read(b.Raw)
	return nil
}

func (b BatchItem) fieldErr(what string) event.Errors {
	field := fmt.Sprintf("events.%d", b.Index)
	return event.Errors{{Field: field, Message: "The " + field + " field " + what}}
}

// DecodeBatch reads the body {"events": […]} and returns its events, each to be decoded by itself. It fails
// with a [*outline.SyntaxError] as [Decode] does, or with [event.Errors] of the field "events" where that is missing, empty,
// no array or holds more than maxEvents.
func DecodeBatch(body []byte, maxEvents int) ([]BatchItem, error) {
	shape := outline.Shape{Known: []outline.Member{{Name: "events", MaxElements: maxEvents}}}
	list, err := outline.DecodeList(body, "events", &shape)
	if err != nil {
		return nil, err
	}
	events := list.Of()
	switch {
	case events.Absent():
		return nil, event.Errors{{Field: "events", Message: "The events field is required."}}
	case events.Kind() != jsontext.KindBeginArray:
		return nil, event.Errors{{Field: "events", Message: "The events field must be an array."}}
	case events.Length == 0:
		return nil, event.Errors{{Field: "events", Message: "The events field is required."}}
	case events.Length > maxEvents:
		return nil, event.Errors{{Field: "events", Message: fmt.Sprintf("The events field must not have more than %d items.", maxEvents)}}
	}
	items := make([]BatchItem, 0, events.Length)
	for element := range events.Elements() {
		items = append(items, BatchItem{Index: len(items), Raw: element.Raw, malformed: !list.Strict(&element)})
	}
	return items, nil
}
