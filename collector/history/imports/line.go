package imports

import (
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/event/outline"
	"github.com/weir-dev/weir/collector/event/wire"
	"github.com/weir-dev/weir/collector/ingest"
)

// lines makes items of lines. It is one goroutine's.
type lines struct {
	past  *ingest.Past
	times Times
	now   time.Time
	// oldest is the time before which nothing is kept, before that from which on nothing is imported, if it is not zero.
	oldest, before time.Time
	encoded        []byte
}

// outcome is what becomes of a line.
type outcome int

const (
	kept outcome = iota
	noEvent
	tooOld
	notBefore
	bad
)

// read makes an item of a line, which it encodes; what it returns is good until the next call. Where the line is bad it says why.
func (l *lines) read(format Format, file, number uint32, line []byte) ([]byte, outcome, error) {
	var e event.Event
	var i item
	var err error
	isEvent := true
	if format == Weir {
		e, i, err = l.readExport(line)
	} else {
		e, i, isEvent, err = l.readMessage(line)
	}
	switch {
	case err != nil:
		return nil, bad, err
	case !isEvent:
		return nil, noEvent, nil
	}
	switch at := time.UnixMilli(i.ms); {
	case at.After(l.now):
		return nil, bad, fieldErr(l.timeField(format), "must not be later than now.")
	case at.Before(l.oldest):
		return nil, tooOld, nil
	case !l.before.IsZero() && !at.Before(l.before):
		return nil, notBefore, nil
	}
	e.Context.IP, e.Context.UserAgent = "", "" // what tells of the device is not kept
	i.key, i.file, i.line, i.entry = identity{e.ID, e.Class}.key(), file, number, wire.Encode(&e)
	l.encoded = i.append(l.encoded[:0])
	return l.encoded, kept, nil
}

// timeField is the member with the time that an event counts by.
func (l *lines) timeField(format Format) string {
	switch {
	case l.times == Happened:
		return "timestamp"
	case format == Weir:
		return "received_at"
	default:
		return "receivedAt"
	}
}

// peeked is what is looked at of a message before it is read.
type peeked struct {
	Type              jsontext.Value `json:"type"`
	ReceivedAt        *string        `json:"receivedAt"`
	Timestamp         jsontext.Value `json:"timestamp"`
	OriginalTimestamp jsontext.Value `json:"originalTimestamp"`
	// Received is an export's.
	Received jsontext.Value `json:"received_at"`
}

// formatOf tells what a line is by its members: [Weir], or [Segment] for messages of RudderStack's too.
func formatOf(line []byte) Format {
	var p peeked
	if err := json.Unmarshal(line, &p); err == nil && p.Received != nil && p.Type == nil {
		return Weir
	}
	return Segment
}

// readMessage reads a message as Segment and RudderStack store them.
func (l *lines) readMessage(line []byte) (e event.Event, i item, isEvent bool, err error) {
	var p peeked
	if err := json.Unmarshal(line, &p); err != nil {
		return event.Event{}, item{}, false, malformed(err)
	}
	var kind string
	switch {
	case p.Type == nil || p.Type.Kind() == jsontext.KindNull:
		return event.Event{}, item{}, false, fieldErr("type", "is required.")
	case p.Type.Kind() != jsontext.KindString || json.Unmarshal(p.Type, &kind) != nil || kind == "":
		return event.Event{}, item{}, false, fieldErr("type", "must be track, page, screen, identify, group or alias.")
	}
	happened, hasHappened := timeIn(p.Timestamp)
	original, hasOriginal := timeIn(p.OriginalTimestamp)
	var at time.Time
	switch {
	case p.ReceivedAt != nil:
		if at, err = instant("receivedAt", p.ReceivedAt); err != nil {
			return event.Event{}, item{}, false, err
		}
	case hasHappened:
		at = happened
	case hasOriginal:
		at = original
	case p.Timestamp == nil && p.OriginalTimestamp == nil:
		return event.Event{}, item{}, false, fieldErr("receivedAt", "is required, or a timestamp.")
	default:
		at = l.now // the translation tells what is wrong with the others
	}
	known := ingest.Known{ReceivedAt: at}
	if hasHappened { // by the receiver's clock already: who stored the message has seen to that
		if known.OccurredAt = happened; happened.After(at) {
			known.OccurredAt = at
		}
	}
	e, isEvent, err = l.past.Message(line, kind, known)
	i.ms = at.UnixMilli()
	if l.times == Happened && !e.OccurredAt.IsZero() {
		i.ms = e.OccurredAt.UnixMilli()
	}
	return e, i, isEvent, err
}

// timeIn reads a time that may be absent, or something else.
func timeIn(value jsontext.Value) (time.Time, bool) {
	var said string
	if value.Kind() != jsontext.KindString || json.Unmarshal(value, &said) != nil {
		return time.Time{}, false
	}
	at, err := event.ParseTimestamp(said)
	if err != nil || at.UnixMilli() <= 0 {
		return time.Time{}, false
	}
	return at.UTC().Truncate(time.Millisecond), true
}

// errObject says that a line is not what each has to be.
var errObject = errors.New("The line must be a JSON object: UTF-8, with each member once.") //nolint:staticcheck,revive // it is shown as it is

// malformed says what is wrong with a line, by the member where one has another kind than it has to have. The library's words
// repeat what stands there.
func malformed(err error) error {
	semantic, ok := errors.AsType[*json.SemanticError](err)
	if !ok || semantic.JSONPointer == "" {
		return errObject
	}
	return fieldErr(strings.Join(slices.Collect(semantic.JSONPointer.Tokens()), "."), "is of the wrong kind.")
}

// badOf are the errors of a line.
func badOf(file string, line int, err error) []Bad {
	if errs, ok := errors.AsType[event.Errors](err); ok {
		list := make([]Bad, 0, len(errs))
		for _, one := range errs {
			list = append(list, Bad{file, line, one.Field, one.Message})
		}
		return list
	}
	if errors.As(err, new(*outline.SyntaxError)) {
		err = errObject
	}
	return []Bad{{File: file, Line: line, Message: err.Error()}}
}
