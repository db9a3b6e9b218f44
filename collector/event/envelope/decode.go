// Package envelope reads what a customer's server sends: strict JSON, of which it reports every error by field and
// never a value, and of which it makes an [event.Event] in which a person is a handful of hashes. What it read of the
// person stays in it: there is no way from here to a raw e-mail address, phone number or name.
package envelope

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/weir-dev/weir/collector/event"
)

// SyntaxError says that a body is no JSON, or not the JSON object that it has to be. Its text holds nothing
// of the body and is fit to be answered.
type SyntaxError struct {
	// Offset is the byte at or after which the error lies.
	Offset int64
	// Reason completes "The request body …".
	Reason string
}

// Error returns a sentence.
func (e *SyntaxError) Error() string {
	return fmt.Sprintf("The request body %s (at byte %d).", e.Reason, e.Offset)
}

// Envelope is what a customer's server sent for one event, read but not yet validated. It may be read into again and
// again, which saves the memory of another one. It is not safe for concurrent use.
type Envelope struct {
	outline []entry
	// valid is what Validate returns.
	valid Valid
}

// Decode reads an envelope into e. It is strict: a member name that occurs twice, text that is not UTF-8, data
// after the object or anything but an object is a [*SyntaxError]. Members that mean nothing to Weir are read
// over. What the members hold is judged by [Envelope.Validate]. Nothing of what was in e may be in use any more.
func (e *Envelope) Decode(body []byte) error {
	text, err := decodeObject(body)
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
		e.outline = make([]entry, 0, usualEntries)
	}
	clear(e.outline) // what is read now may be shorter
	e.outline = outlineOf(object, &envelopeShape, e.outline[:0])
}

// maxKeptEntries bounds the memory that Reset keeps.
const maxKeptEntries = 512

// Reset forgets what was read, which may be somebody's e-mail address, and keeps the memory that it took.
func (e *Envelope) Reset() {
	clear(e.outline)
	e.outline, e.valid = e.outline[:0], Valid{}
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
		return b.fieldErr("must be valid JSON: UTF-8, without halves of surrogate pairs, and with each member once.")
	}
	e.read(b.Raw)
	return nil
}

func (b BatchItem) fieldErr(what string) event.Errors {
	field := fmt.Sprintf("events.%d", b.Index)
	return event.Errors{{Field: field, Message: "The " + field + " field " + what}}
}

// DecodeBatch reads the body {"events": […]} and returns its events, each to be decoded by itself. It fails
// with a [*SyntaxError] as [Decode] does, or with [event.Errors] of the field "events" where that is missing, empty,
// no array or holds more than maxEvents.
func DecodeBatch(body []byte, maxEvents int) ([]BatchItem, error) {
	text, err := decodeObject(body)
	strict := err == nil
	if !strict {
		// One event that is not strict does not hold up its neighbours, where it is known where it ends.
		if text = string(bytes.Trim(body, " \t\r\n")); !hasObjectsForm(text) {
			return nil, err
		}
	}
	shape := objectShape{known: []knownMember{{name: "events", maxElements: maxEvents}}}
	top := nodeAt(outlineOf(text, &shape, nil))
	events := top.get("events")
	if !strict && (events.absent() || !jsontext.Value(strings.Replace(text, events.raw, "[]", 1)).IsValid()) {
		return nil, err // it is not the events' error alone
	}
	switch {
	case events.absent():
		return nil, event.Errors{{Field: "events", Message: "The events field is required."}}
	case events.kind() != jsontext.KindBeginArray:
		return nil, event.Errors{{Field: "events", Message: "The events field must be an array."}}
	case events.length == 0:
		return nil, event.Errors{{Field: "events", Message: "The events field is required."}}
	case events.length > maxEvents:
		return nil, event.Errors{{Field: "events", Message: fmt.Sprintf("The events field must not have more than %d items.", maxEvents)}}
	}
	items := make([]BatchItem, 0, events.length)
	for element := range events.elements() {
		items = append(items, BatchItem{Index: len(items), Raw: element.raw, malformed: !strict && !jsontext.Value(element.raw).IsValid()})
	}
	return items, nil
}

// hasObjectsForm says whether a text is a JSON object but for what strings it holds and how often a member occurs.
func hasObjectsForm(text string) bool {
	return tooDeep([]byte(text)) < 0 && strings.HasPrefix(text, "{") &&
		jsontext.Value(text).IsValid(jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true))
}

// decodeObject returns a copy of a body that is one JSON object and nothing else.
func decodeObject(body []byte) (string, error) {
	if at := tooDeep(body); at >= 0 {
		return "", &SyntaxError{int64(at), fmt.Sprintf("must not be nested deeper than %d levels", maxDepth)}
	}
	// Nearly all bodies are good, which the library says in less time than what is wrong with one.
	if text := bytes.Trim(body, " \t\r\n"); len(text) > 0 && text[0] == '{' && jsontext.Value(text).IsValid() {
		return string(text), nil
	}
	var text objectText
	if err := json.Unmarshal(body, &text); err != nil {
		return "", syntaxError(body, err)
	}
	return string(text), nil
}

// maxDepth is how deep a body may be nested, which is many times what an event is. The library follows 10,000 levels, each
// of which takes a kilobyte of the stack: far more than what a body's length lets one expect.
const maxDepth = 100

// tooDeep returns where a body is nested deeper than maxDepth, -1 where it is not. It does not judge whether the body is
// JSON: where that ends the library stops too.
func tooDeep(body []byte) int {
	if bytes.Count(body, []byte("{"))+bytes.Count(body, []byte("[")) <= maxDepth {
		return -1
	}
	depth := 0
	for at := 0; at < len(body); at++ {
		switch body[at] {
		case '{', '[':
			if depth++; depth > maxDepth {
				return at
			}
		case '}', ']':
			depth--
		case '"':
			for at++; at < len(body) && body[at] != '"'; at++ {
				if body[at] == '\\' {
					at++
				}
			}
		}
	}
	return -1
}

// objectText is a JSON object as it was written.
type objectText string

// UnmarshalJSONFrom reads the object.
func (t *objectText) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	if kind := dec.PeekKind(); kind != jsontext.KindBeginObject && kind != jsontext.KindInvalid {
		return &SyntaxError{0, "must be a JSON object"}
	}
	raw, err := dec.ReadValue()
	*t = objectText(raw)
	return err
}

// syntaxError puts the library's error, which may quote the body, into words of our own.
func syntaxError(body []byte, err error) *SyntaxError {
	if own, ok := errors.AsType[*SyntaxError](err); ok {
		return own
	}
	fieldErr := &SyntaxError{0, "must be valid JSON"}
	if at, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		fieldErr.Offset = at.ByteOffset
	}
	switch {
	case len(bytes.TrimSpace(body)) == 0:
		fieldErr.Reason = "must not be empty"
	case errors.Is(err, io.ErrUnexpectedEOF):
		fieldErr.Reason = "must be valid JSON, but ends too early"
	case errors.Is(err, jsontext.ErrDuplicateName):
		fieldErr.Reason = "must be valid JSON, but names a member twice"
	case !utf8.Valid(body):
		fieldErr.Reason = "must be valid UTF-8"
	}
	return fieldErr
}
