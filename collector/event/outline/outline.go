// Package outline reads JSON objects by their outlines: it holds a text to be strict JSON, and lists of it what a shape
// asks for, as pieces of that text. So what is sent is looked through once and nothing of it is copied.
package outline

import (
	"iter"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// Node is a JSON value: its text and, where its shape asks for it, what is in it.
type Node struct {
	// Raw is "" where there is no value.
	Raw string
	// Inner lists an object's members or an array's elements, as many as the shape keeps.
	Inner []Value
	// Length is how many elements an array has.
	Length int
}

// Kind returns the value's JSON kind.
func (n *Node) Kind() jsontext.Kind {
	if n.Raw == "" {
		return jsontext.KindInvalid
	}
	if c := n.Raw[0]; c != '-' && (c < '0' || c > '9') {
		return jsontext.Kind(c)
	}
	return jsontext.KindNumber
}

// Absent says that there is no value.
func (n *Node) Absent() bool { return Absent(n.Raw) }

// Absent says whether a member with this text counts as missing: one that is null or "" does.
func Absent(raw string) bool { return raw == "" || raw == "null" || raw == `""` }

// Get returns an object's member, or an absent node.
func (n *Node) Get(name string) Node {
	for i := 0; i < len(n.Inner); i += 1 + n.Inner[i].Below {
		if n.Inner[i].Name == name {
			return At(n.Inner[i:])
		}
	}
	return Node{}
}

// Elements are those of an array that the shape keeps.
func (n *Node) Elements() iter.Seq[Node] {
	return func(yield func(Node) bool) {
		for i := 0; i < len(n.Inner); i += 1 + n.Inner[i].Below {
			if !yield(At(n.Inner[i:])) {
				return
			}
		}
	}
}

// Text returns what a JSON string says.
func (n *Node) Text() string { return unquote(n.Raw) }

// unquote returns what a JSON string says. raw must be one that a decoder has accepted.
func unquote(raw string) string {
	if strings.IndexByte(raw, '\\') < 0 {
		return raw[1 : len(raw)-1]
	}
	said, _ := jsontext.AppendUnquote(nil, raw) // fails on what a decoder would not have accepted
	return string(said)
}

// Shape says which members of an object are kept and which of those are opened in turn.
type Shape struct {
	Known []Member
	// Unknown is what the other members are taken for; nil passes over them.
	Unknown *Member
}

// Member is one that a [Shape] keeps.
type Member struct {
	Name string
	// Object opens the member where it is an object.
	Object *Shape
	// MaxElements is how many elements are kept of a member that is an array, and Elements opens those of them
	// that are objects.
	MaxElements int
	Elements    *Shape
}

// member returns what is known of a member, nil where it is not kept.
func (s *Shape) member(name string) *Member {
	for i := range s.Known {
		if s.Known[i].Name == name {
			return &s.Known[i]
		}
	}
	return s.Unknown
}

// Value is a value in an outline, in which every value stands before what is in it.
type Value struct {
	// Name is an object's member's, "" for an array's element.
	Name string
	Raw  string
	// Below is how many of the values behind it are in it, and in those.
	Below int
	// Length is how many elements an array has, which may be more than are listed.
	Length int
}

// At returns the value that an outline begins with.
func At(outline []Value) Node {
	first := &outline[0]
	return Node{Raw: first.Raw, Inner: outline[1 : 1+first.Below], Length: first.Length}
}

// outliner goes through JSON that a decoder has accepted: it finds, and judges nothing.
type outliner struct {
	text   string
	at     int
	values []Value
}

// Of appends to into a JSON object and what its shape keeps of it.
func Of(object string, shape *Shape, into []Value) []Value {
	o := outliner{text: object, values: into}
	o.value("", &Member{Object: shape})
	return o.values
}

// value lists the value that begins here.
func (o *outliner) value(name string, known *Member) {
	start, index, length := o.at, len(o.values), 0
	o.values = append(o.values, Value{Name: name})
	switch c := o.text[start]; {
	case c == '{' && known.Object != nil:
		o.members(known.Object)
	case c == '[' && known.MaxElements > 0:
		length = o.elements(known)
	default:
		o.skip()
	}
	e := &o.values[index]
	e.Raw, e.Below, e.Length = o.text[start:o.at], len(o.values)-index-1, length
}

func (o *outliner) members(shape *Shape) {
	o.at++
	for o.next() != '}' {
		start := o.at
		o.skipString()
		name := unquote(o.text[start:o.at])
		o.next()
		if known := shape.member(name); known != nil {
			o.value(name, known)
		} else {
			o.skip()
		}
	}
	o.at++
}

// elements lists an array's elements and returns how many there are.
func (o *outliner) elements(known *Member) int {
	element, length := Member{Object: known.Elements}, 0
	o.at++
	for ; o.next() != ']'; length++ {
		if length < known.MaxElements {
			o.value("", &element)
		} else {
			o.skip()
		}
	}
	o.at++
	return length
}

// next goes to the next value, name or end and returns what that begins with.
func (o *outliner) next() byte {
	for {
		switch c := o.text[o.at]; c {
		case ' ', '\t', '\n', '\r', ',', ':':
			o.at++
		default:
			return c
		}
	}
}

// skip goes behind the value that begins here.
func (o *outliner) skip() {
	for depth := 0; ; {
		switch o.text[o.at] {
		case '"':
			o.skipString()
		case '{', '[':
			depth++
			o.at++
		case '}', ']':
			depth--
			o.at++
		default:
			o.skipWord()
		}
		if depth == 0 {
			return
		}
		o.next()
	}
}

// skipWord goes behind a number, true, false or null.
func (o *outliner) skipWord() {
	for {
		switch o.text[o.at] {
		case ',', '}', ']', ' ', '\t', '\n', '\r':
			return
		}
		o.at++
	}
}

// skipString goes behind a string.
func (o *outliner) skipString() {
	for {
		o.at++
		o.at += strings.IndexByte(o.text[o.at:], '"')
		backslashes := 0
		for o.text[o.at-1-backslashes] == '\\' {
			backslashes++
		}
		if backslashes%2 == 0 { // else the last of them escapes the quotation mark
			o.at++
			return
		}
	}
}
