package segment

import (
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/weir-dev/weir/collector/event/outline"
)

// maxProperties is how many properties of the customer's own an envelope may have.
const maxProperties = 50

// products adds a list of products as the envelope's contents.
func (t *Translator) products(list *outline.Node) {
	if list.Length > maxProducts {
		t.builder.Copy("contents", list) // which the envelope refuses by its length
		return
	}
	t.builder.Array("contents")
	for element := range list.Elements() {
		if element.Kind() != jsontext.KindBeginObject {
			t.builder.Add("", element.Raw)
			continue
		}
		t.builder.Object("")
		for _, member := range element.Inner { // which have nothing in them: the shape opens none
			name := member.Name
			if name == "product_id" {
				name = "id"
			}
			t.builder.Add(name, member.Raw)
		}
		t.builder.Close()
	}
	t.builder.Close()
}

// isProduct says whether an event's properties tell of which product they are.
func isProduct(properties *outline.Node) bool {
	for _, name := range [...]string{"product_id", "sku", "name"} {
		if member := properties.Get(name); !member.Absent() {
			return true
		}
	}
	return false
}

// product adds the product that an event is about as the one item of the envelope's contents.
func (t *Translator) product(properties *outline.Node) {
	t.builder.Array("contents")
	t.builder.Object("")
	for i := 0; i < len(properties.Inner); i += 1 + properties.Inner[i].Below {
		member := properties.Inner[i]
		if name, is := productMembers[member.Name]; is {
			t.builder.Add(name, member.Raw)
		}
	}
	t.builder.Close()
	t.builder.Close()
}

// properties adds what no row has read, as the customer's own properties.
func (t *Translator) properties(c call, top, properties *outline.Node) {
	isOwn := c == page || c == screen
	if properties.Kind() != jsontext.KindBeginObject && !isOwn {
		return
	}
	t.builder.Object("properties")
	t.own = t.own[:0]
	if isOwn {
		if category := top.Get("category"); !category.Absent() {
			t.builder.Add("category", category.Raw)
			t.own = append(t.own, "category") // clients write it in both places
		}
	}
	places := t.form.message.of("properties")
	for i := 0; i < len(properties.Inner); i += 1 + properties.Inner[i].Below {
		member := &properties.Inner[i]
		at := places.of(member.Name)
		switch {
		case at == nil:
		case at.personal:
			continue
		case at.row >= 0 && t.tells(at.row, member):
			continue
		}
		if _, is := productMembers[member.Name]; is && c == product && !t.listed {
			continue
		}
		t.property(member.Name, properties.Inner[i:])
	}
	t.builder.Close()
}

// tells says whether a row has read this very member, or what says the same.
func (t *Translator) tells(row int, member *outline.Value) bool {
	found := t.read(row)
	return len(found) > 0 && (&found[0] == member || found[0].Raw == member.Raw)
}

// property adds a property, of which the values begin with it: an object's members by their paths, and a list that holds
// more than texts and numbers as the text of its JSON.
//
// Where two have the same path the first counts. Of more than an envelope may have, which is refused for it, no more than
// that is added.
func (t *Translator) property(path string, values []outline.Value) {
	n := outline.At(values)
	if n.Kind() == jsontext.KindBeginObject {
		for i := 0; i < len(n.Inner); i += 1 + n.Inner[i].Below {
			t.property(path+"."+n.Inner[i].Name, n.Inner[i:])
		}
		return
	}
	if n.Absent() || len(t.own) > maxProperties || slices.Contains(t.own, path) {
		return
	}
	t.own = append(t.own, path)
	switch n.Kind() {
	case jsontext.KindBeginArray:
		for element := range n.Elements() {
			if kind := element.Kind(); kind == jsontext.KindBeginObject || kind == jsontext.KindBeginArray || kind == jsontext.KindNull {
				t.builder.Add(path, outline.Quote(n.Raw))
				return
			}
		}
		t.builder.Copy(path, &n)
	default:
		t.builder.Add(path, n.Raw)
	}
}
