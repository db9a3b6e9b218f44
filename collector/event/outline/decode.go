package outline

import (
	"bytes"
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
	// Offset is the byte at or after which the error lies.
	Offset int64
	// Reason completes "The request body …".
	Reason string
}

// Error returns a sentence.
func (e *SyntaxError) Error() string {
	return fmt.Sprintf("The request body %s (at byte %d).", e.Reason, e.Offset)
}

// List is a body's object with a list of objects that are judged one by one.
type List struct {
	// Top is the body's object.
	Top    Node
	name   string
	strict bool
}

// DecodeList reads a body as [Decode] does, of which it keeps what shape says: but elements of the list of that name need
// not be strict each, where it is known where they end. One that is not does not hold up its neighbours.
func DecodeList(body []byte, name string, shape *Shape) (List, error) {
	text, err := Decode(body)
	if err != nil {
		if text = string(withoutDepths(bytes.Trim(body, " \t\r\n"))); !hasObjectsForm(text) {
			return List{}, err
		}
	}
	list := List{At(Of(text, shape, nil)), name, err == nil}
	if elements := list.Of(); err != nil && (elements.Absent() || !jsontext.Value(strings.Replace(text, elements.Raw, "[]", 1)).IsValid()) {
		return List{}, err // it is not the elements' error alone
	}
	return list, nil
}

// Of returns the list, which may be absent or no array.
func (l *List) Of() Node { return l.Top.Get(l.name) }

// Strict says whether one of the elements is as strict as [Decode] wants it.
func (l *List) Strict(element *Node) bool {
	return l.strict || jsontext.Value(element.Raw).IsValid()
}

// hasObjectsForm says whether a text is a JSON object but for what strings it holds and how often a member occurs.
func hasObjectsForm(text string) bool {
	return tooDeep([]byte(text)) < 0 && strings.HasPrefix(text, "{") &&
		jsontext.Value(text).IsValid(jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true))
}

// Decode returns a copy of a body that is one JSON object and nothing else. It is strict: a member name that occurs twice,
// text that is not UTF-8, data after the object or anything but an object is a [*SyntaxError].
func Decode(body []byte) (string, error) {
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

// withoutDepths returns a body in which half of a surrogate pair stands for each value that is nested deeper than maxDepth: what
// it stands in has the form of JSON and is not strict.
func withoutDepths(body []byte) []byte {
	if tooDeep(body) < 0 {
		return body
	}
	kept := make([]byte, 0, len(body))
	depth, from := 0, 0
	for at := 0; at < len(body); at++ {
		switch body[at] {
		case '{', '[':
			if depth++; depth == maxDepth+1 {
				kept = append(append(kept, body[from:at]...), `"\ud800"`...)
			}
		case '}', ']':
			if depth--; depth == maxDepth {
				from = at + 1
			}
		case '"':
			at = endOfString(body, at)
		}
	}
	if depth > maxDepth {
		return body // it does not end
	}
	return append(kept, body[from:]...)
}

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
			at = endOfString(body, at)
		}
	}
	return -1
}

// endOfString returns where a string ends that begins at a place, or the body's end where it does not.
func endOfString(body []byte, at int) int {
	for {
		end := bytes.IndexByte(body[at+1:], '"')
		if end < 0 {
			return len(body)
		}
		at += 1 + end
		backslashes := 0
		for body[at-1-backslashes] == '\\' {
			backslashes++
		}
		if backslashes%2 == 0 { // else the last of them escapes the quotation mark
			return at
		}
	}
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
