// Package segment reads what clients of Segment's HTTP Tracking API send, RudderStack's among them, and says what would be
// written for it in an envelope of Weir's own. What is read from where is a table.
package segment

import (
	"fmt"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/event/outline"
)

// The limits of the API.
const (
	MaxMessages     = 2500
	MaxMessageBytes = 32 << 10
	MaxBatchBytes   = 500 << 10
)

// Batch is the name of the call that has several messages; the others' messages are of the type that they are called by.
const Batch = "batch"

// types are the calls by the type of a message, each with the call that it is by itself. Those that are none tell of
// somebody, and no event.
var types = map[string]struct {
	call call
	none bool
}{
	"track": {call: track}, "page": {call: page}, "screen": {call: screen},
	"identify": {none: true}, "group": {none: true}, "alias": {none: true},
}

// Request is a body that has been read.
type Request struct {
	// WriteKey is the API key, "" where the body has none.
	WriteKey string

	// kind is the type of a single message, "" where the messages have their own.
	kind string
	list outline.List
	// raw are the messages.
	raw    []outline.Node
	sentAt time.Time
	// context is for all messages of a batch.
	context []outline.Value
}

var (
	batchShape = &outline.Shape{Known: []outline.Member{
		{Name: "batch", MaxElements: MaxMessages}, {Name: "sentAt"}, {Name: "writeKey"}, {Name: "context", Object: contextShape},
	}}
	singleShape = &outline.Shape{Known: []outline.Member{{Name: "sentAt"}, {Name: "writeKey"}}}
)

// Decode reads the body of a call: [Batch], or the type of the one message that is the body. It fails with a
// [*outline.SyntaxError], or with [event.Errors] of the field "batch" where that is missing, empty, no array or too long.
func Decode(body []byte, call string) (*Request, error) {
	if call != Batch {
		text, err := outline.Decode(body)
		if err != nil {
			return nil, err
		}
		top := outline.At(outline.Of(text, singleShape, nil))
		r := &Request{kind: call, raw: []outline.Node{{Raw: text}}}
		r.readTop(&top)
		return r, nil
	}
	list, err := outline.DecodeList(body, "batch", batchShape)
	if err != nil {
		return nil, err
	}
	r := &Request{list: list}
	r.readTop(&list.Top)
	batch := list.Of()
	switch {
	case batch.Absent():
		return r, event.Errors{{Field: "batch", Message: "The batch field is required."}}
	case batch.Kind() != jsontext.KindBeginArray:
		return r, event.Errors{{Field: "batch", Message: "The batch field must be an array."}}
	case batch.Length == 0:
		return r, event.Errors{{Field: "batch", Message: "The batch field is required."}}
	case batch.Length > MaxMessages:
		return r, event.Errors{{Field: "batch", Message: fmt.Sprintf("The batch field must not have more than %d items.", MaxMessages)}}
	}
	r.raw = make([]outline.Node, 0, batch.Length)
	for element := range batch.Elements() {
		r.raw = append(r.raw, element)
	}
	if context := list.Top.Get("context"); context.Kind() == jsontext.KindBeginObject {
		r.context = context.Inner
	}
	return r, nil
}

// readTop reads what is not the messages' own. A time that cannot be read corrects nothing.
func (r *Request) readTop(top *outline.Node) {
	if key := top.Get("writeKey"); key.Kind() == jsontext.KindString {
		r.WriteKey = key.Text()
	}
	if sent := top.Get("sentAt"); sent.Kind() == jsontext.KindString {
		if at, err := event.ParseTimestamp(sent.Text()); err == nil {
			r.sentAt = at
		}
	}
}

// Len is how many messages there are.
func (r *Request) Len() int { return len(r.raw) }
