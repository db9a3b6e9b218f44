package envelope

import (
	"iter"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// node is a JSON value: its text and, where its shape asks for it, what is in it.
type node struct {
	// raw is "" where there is no value.
	raw string
	// inner lists an object's members or an array's elements, as many as the shape keeps.
	inner []entry
	// length is how many elements an array has.
	length int
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

// absent says that there is no value.
func (n *node) absent() bool { return isAbsent(n.raw) }

// isAbsent says whether a member with this text counts as missing: one that is null or "" does.
func isAbsent(raw string) bool { return raw == "" || raw == "null" || raw == `""` }

// get returns an object's member, or an absent node.
func (n *node) get(name string) node {
	for i := 0; i < len(n.inner); i += 1 + n.inner[i].below {
		if n.inner[i].name == name {
			return nodeAt(n.inner[i:])
		}
	}
	return node{}
}

// elements are those of an array that the shape keeps.
func (n *node) elements() iter.Seq[node] {
	return func(yield func(node) bool) {
		for i := 0; i < len(n.inner); i += 1 + n.inner[i].below {
			if !yield(nodeAt(n.inner[i:])) {
				return
			}
		}
	}
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
	// unknown is what the other members are taken for; nil passes over them.
	unknown *knownMember
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

// member returns what is known of a member, nil where it is not kept.
func (s *objectShape) member(name string) *knownMember {
	for i := range s.known {
		if s.known[i].name == name {
			return &s.known[i]
		}
	}
	return s.unknown
}

// unopened is a value that nothing is known of.
var unopened knownMember

// entry is a value in an outline, in which every value stands before what is in it.
type entry struct {
	// name is an object's member's, "" for an array's element.
	name string
	raw  string
	// below is how many of the entries behind it are in it, and in those.
	below int
	// length is how many elements an array has, which may be more than are listed.
	length int
}

// nodeAt returns the value that an outline begins with.
func nodeAt(outline []entry) node {
	first := &outline[0]
	return node{raw: first.raw, inner: outline[1 : 1+first.below], length: first.length}
}

// outliner goes through JSON that a decoder has accepted: it finds, and judges nothing.
type outliner struct {
	text    string
	at      int
	entries []entry
}

// outlineOf appends to entries a JSON object and what its shape keeps of it.
func outlineOf(object string, shape *objectShape, entries []entry) []entry {
	o := outliner{text: object, entries: entries}
	o.value("", &knownMember{object: shape})
	return o.entries
}

// value lists the value that begins here.
func (o *outliner) value(name string, known *knownMember) {
	start, index, length := o.at, len(o.entries), 0
	o.entries = append(o.entries, entry{name: name})
	switch c := o.text[start]; {
	case c == '{' && known.object != nil:
		o.members(known.object)
	case c == '[' && known.maxElements > 0:
		length = o.elements(known)
	default:
		o.skip()
	}
	e := &o.entries[index]
	e.raw, e.below, e.length = o.text[start:o.at], len(o.entries)-index-1, length
}

func (o *outliner) members(shape *objectShape) {
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
func (o *outliner) elements(known *knownMember) int {
	element, length := knownMember{object: known.elements}, 0
	o.at++
	for ; o.next() != ']'; length++ {
		if length < known.maxElements {
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
