package event

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// SyntaxError says that a body is no JSON, or not the JSON object that it has to be. Its text holds nothing
// of the body and is fit to be answered.
type SyntaxError struct {
	// Offset is the byte at or after which the fault lies.
	Offset int64
	// Reason completes "The request body …".
	Reason string
}

// Error returns a sentence.
func (e *SyntaxError) Error() string {
	return fmt.Sprintf("The request body %s (at byte %d).", e.Reason, e.Offset)
}

// Envelope is what a customer's server sent for one event, read but not yet validated.
type Envelope struct {
	top node
}

// Decode reads one envelope. It is strict: a member name that occurs twice, text that is not UTF-8, data
// after the object or anything but an object is a [*SyntaxError]. Members that mean nothing to Weir are read
// over. What the members hold is judged by [Envelope.Validate].
func Decode(body []byte) (*Envelope, error) {
	top, err := decodeObject(body, &envelopeShape)
	if err != nil {
		return nil, err
	}
	return &Envelope{top}, nil
}

// BatchItem is one event of a batch.
type BatchItem struct {
	// Index is the event's place in the batch, from 0.
	Index int
	// Raw is the event as it stands in the body.
	Raw []byte
}

// Decode reads the event. One that is no object is a fault of the field "events.INDEX".
func (b BatchItem) Decode() (*Envelope, Errors) {
	if jsontext.Value(b.Raw).Kind() != jsontext.KindBeginObject {
		field := fmt.Sprintf("events.%d", b.Index)
		return nil, Errors{{field, "The " + field + " field must be an object."}}
	}
	envelope, err := Decode(b.Raw)
	if err != nil {
		// The batch as a whole has been read before, so this would take another reading of the same bytes.
		return nil, Errors{{fmt.Sprintf("events.%d", b.Index), err.Error()}}
	}
	return envelope, nil
}

// DecodeBatch reads the body {"events": […]} and returns its events, each to be decoded by itself. It fails
// with a [*SyntaxError] as [Decode] does, or with [Errors] of the field "events" where that is missing, empty,
// no array or holds more than maxEvents.
func DecodeBatch(body []byte, maxEvents int) ([]BatchItem, error) {
	shape := objectShape{known: []knownMember{{name: "events", maxElements: maxEvents}}}
	top, err := decodeObject(body, &shape)
	if err != nil {
		return nil, err
	}
	events := top.get("events")
	switch {
	case events.absent():
		return nil, Errors{{"events", "The events field is required."}}
	case events.kind() != jsontext.KindBeginArray:
		return nil, Errors{{"events", "The events field must be an array."}}
	case events.length == 0:
		return nil, Errors{{"events", "The events field is required."}}
	case events.length > maxEvents:
		return nil, Errors{{"events", fmt.Sprintf("The events field must not have more than %d items.", maxEvents)}}
	}
	items := make([]BatchItem, len(events.children))
	for i, element := range events.children {
		items[i] = BatchItem{Index: i, Raw: []byte(element.raw)}
	}
	return items, nil
}

// node is a JSON value: its text and, where its shape asks for them, its members or elements.
type node struct {
	// raw is "" where there is no value.
	raw string
	// children are an object's members, or an array's elements without names, as many as the shape keeps.
	children []member
	// length is how many elements an array has.
	length int
}

type member struct {
	name string
	node
}

// kind returns the value's JSON kind.
func (n *node) kind() jsontext.Kind {
	if n.raw == "" {
		return jsontext.KindInvalid
	}
	if c := n.raw[0]; c != '-' && (c < '0' || c > '9') {
		return jsontext.Kind(c)
	}
	return jsontext.KindNumber
}

// absent says that there is no value: a member that is null or "" counts as missing.
func (n *node) absent() bool { return n.raw == "" || n.raw == "null" || n.raw == `""` }

// get returns an object's member, or an absent node.
func (n *node) get(name string) node {
	for i := range n.children {
		if n.children[i].name == name {
			return n.children[i].node
		}
	}
	return node{}
}

// text returns what a JSON string says.
func (n *node) text() string { return unquote(n.raw) }

// unquote returns what a JSON string says. raw must be one that a decoder has accepted.
func unquote(raw string) string {
	if strings.IndexByte(raw, '\\') < 0 {
		return raw[1 : len(raw)-1]
	}
	said, _ := jsontext.AppendUnquote(nil, raw) // fails on what a decoder would not have accepted
	return string(said)
}

// objectShape says which members of an object are kept and which of those are opened in turn.
type objectShape struct {
	known []knownMember
	// keepUnknown keeps the other members too, unopened.
	keepUnknown bool
}

type knownMember struct {
	name string
	// object opens the member where it is an object.
	object *objectShape
	// maxElements is how many elements are kept of a member that is an array, and elements opens those of them
	// that are objects.
	maxElements int
	elements    *objectShape
}

func decodeObject(body []byte, shape *objectShape) (node, error) {
	d := decoder{text: string(body), shape: shape}
	if err := json.Unmarshal(body, &d); err != nil {
		return node{}, d.syntaxError(err)
	}
	return d.top, nil
}

// decoder reads one JSON object to the depth of its shape.
type decoder struct {
	// text is the body, of which every node is a part: the library's own slices are good until its next read
	// only.
	text  string
	shape *objectShape
	top   node
	dec   *jsontext.Decoder
	// spare is memory for the members of objects that are to come.
	spare []member
}

// What memory for members is made for: most objects have no more of them, and where there is one object in another there
// are several.
const (
	usualMembers = 6
	usualObjects = 5
)

// members returns memory for the usual number of members.
func (d *decoder) members() []member {
	if d.spare == nil {
		d.spare = []member{} // the outermost object may be the only one
		return make([]member, 0, usualMembers)
	}
	if len(d.spare) == 0 {
		d.spare = make([]member, usualObjects*usualMembers)
	}
	some := d.spare[:0:usualMembers]
	d.spare = d.spare[usualMembers:]
	return some
}

// UnmarshalJSONFrom reads the object. Being called by the library, which keeps its decoders for the next call,
// is cheaper than a decoder of one's own.
func (d *decoder) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	if kind := dec.PeekKind(); kind != jsontext.KindBeginObject && kind != jsontext.KindInvalid {
		return &SyntaxError{0, "must be a JSON object"}
	}
	d.dec = dec
	var err error
	d.top, err = d.object(d.shape)
	return err
}

// syntaxError puts the library's error, which may quote the body, into words of our own.
func (d *decoder) syntaxError(err error) *SyntaxError {
	if own, ok := errors.AsType[*SyntaxError](err); ok {
		return own
	}
	fault := &SyntaxError{0, "must be valid JSON"}
	if at, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		fault.Offset = at.ByteOffset
	}
	switch {
	case strings.TrimSpace(d.text) == "":
		fault.Reason = "must not be empty"
	case errors.Is(err, io.ErrUnexpectedEOF):
		fault.Reason = "must be valid JSON, but ends too early"
	case errors.Is(err, jsontext.ErrDuplicateName):
		fault.Reason = "must be valid JSON, but names a member twice"
	case !utf8.ValidString(d.text):
		fault.Reason = "must be valid UTF-8"
	}
	return fault
}

// value reads the next value without opening it.
func (d *decoder) value() (node, error) {
	raw, err := d.dec.ReadValue()
	if err != nil {
		return node{}, err
	}
	end := d.dec.InputOffset()
	return node{raw: d.text[end-int64(len(raw)) : end]}, nil
}

func (d *decoder) object(shape *objectShape) (node, error) {
	if _, err := d.dec.ReadToken(); err != nil {
		return node{}, err
	}
	start := d.dec.InputOffset() - 1
	opened := node{children: d.members()}
	for d.dec.PeekKind() != jsontext.KindEndObject {
		name, err := d.value()
		if err != nil {
			return node{}, err
		}
		if err := d.member(shape, name.text(), &opened); err != nil {
			return node{}, err
		}
	}
	if _, err := d.dec.ReadToken(); err != nil {
		return node{}, err
	}
	opened.raw = d.text[start:d.dec.InputOffset()]
	return opened, nil
}

// member reads the value of one member into opened.
func (d *decoder) member(shape *objectShape, name string, opened *node) error {
	var value node
	var err error
	for _, known := range shape.known {
		if known.name != name {
			continue
		}
		switch kind := d.dec.PeekKind(); {
		case kind == jsontext.KindBeginObject && known.object != nil:
			value, err = d.object(known.object)
		case kind == jsontext.KindBeginArray && known.maxElements > 0:
			value, err = d.array(known.elements, known.maxElements)
		default:
			value, err = d.value()
		}
		opened.children = append(opened.children, member{known.name, value})
		return err
	}
	if !shape.keepUnknown {
		return d.dec.SkipValue()
	}
	value, err = d.value()
	opened.children = append(opened.children, member{name, value})
	return err
}

func (d *decoder) array(shape *objectShape, maxElements int) (node, error) {
	if _, err := d.dec.ReadToken(); err != nil {
		return node{}, err
	}
	start := d.dec.InputOffset() - 1
	var opened node
	for ; d.dec.PeekKind() != jsontext.KindEndArray; opened.length++ {
		if opened.length >= maxElements {
			if err := d.dec.SkipValue(); err != nil {
				return node{}, err
			}
			continue
		}
		read := d.value
		if shape != nil && d.dec.PeekKind() == jsontext.KindBeginObject {
			read = func() (node, error) { return d.object(shape) }
		}
		element, err := read()
		if err != nil {
			return node{}, err
		}
		opened.children = append(opened.children, member{node: element})
	}
	if _, err := d.dec.ReadToken(); err != nil {
		return node{}, err
	}
	opened.raw = d.text[start:d.dec.InputOffset()]
	return opened, nil
}
