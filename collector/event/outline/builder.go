package outline

import "github.com/go-json-experiment/json/jsontext"

// Builder puts an outline together of values that stand elsewhere. Its zero value is ready, and it may be used again, which
// saves the memory of another one.
type Builder struct {
	values []Value
	open   []int
}

// Reset begins another outline's object, in the memory of the last one.
func (b *Builder) Reset() {
	b.values, b.open = b.values[:0], b.open[:0]
	b.Object("")
}

// Forget clears what was built.
func (b *Builder) Forget() {
	clear(b.values[:cap(b.values)])
	b.values, b.open = b.values[:0], b.open[:0]
}

// Values are what has been built, with everything closed. They are good until the next Reset.
func (b *Builder) Values() []Value {
	for len(b.open) > 0 {
		b.Close()
	}
	return b.values
}

// Object opens an object, of which what follows is a member until it is closed. As in [Value], an array's element has no
// name. Its text tells no more than its kind.
func (b *Builder) Object(name string) { b.begin(name, "{}") }

// Array opens an array, as Object does.
func (b *Builder) Array(name string) { b.begin(name, "[]") }

func (b *Builder) begin(name, raw string) {
	b.count()
	b.open = append(b.open, len(b.values))
	b.values = append(b.values, Value{Name: name, Raw: raw})
}

// Add adds a value that has nothing in it.
func (b *Builder) Add(name, raw string) {
	b.count()
	b.values = append(b.values, Value{Name: name, Raw: raw})
}

// count notes that the array that is open, if one is, has one element more.
func (b *Builder) count() {
	if len(b.open) > 0 {
		b.values[b.open[len(b.open)-1]].Length++
	}
}

// Copy adds a value of another outline with all that is in it.
func (b *Builder) Copy(name string, n *Node) {
	b.count()
	b.values = append(b.values, Value{Name: name, Raw: n.Raw, Below: len(n.Inner), Length: n.Length})
	b.values = append(b.values, n.Inner...)
}

// Close closes what was opened last.
func (b *Builder) Close() {
	last := len(b.open) - 1
	at := b.open[last]
	b.values[at].Below = len(b.values) - at - 1
	b.open = b.open[:last]
}

// Quote returns a text as a JSON string. What is not UTF-8 in it is replaced.
func Quote(text string) string {
	quoted, _ := jsontext.AppendQuote(make([]byte, 0, len(text)+2), text)
	return string(quoted)
}
