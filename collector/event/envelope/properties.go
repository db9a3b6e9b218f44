package envelope

import (
	"fmt"

	"github.com/go-json-experiment/json/jsontext"
)

// maxPropertiesSize is how many bytes custom properties may have, as they were sent.
const maxPropertiesSize = 8 << 10

// properties reads the customer's own members: names with texts, numbers, booleans, or lists of them.
func (c *checker) properties(n node) []entry {
	const field = "properties"
	if !c.object(field, &n) {
		return nil
	}
	if len(n.raw) > maxPropertiesSize {
		c.fail(field, fmt.Sprintf("must not be greater than %d bytes.", maxPropertiesSize))
		return nil
	}
	var members []entry
	below := newChecker(field + ".")
	for i := 0; i < len(n.inner); i += 1 + n.inner[i].below {
		value := nodeAt(n.inner[i:])
		if isAbsent(value.raw) {
			continue
		}
		name := n.inner[i].name
		if name == "" || len(name) > maxTextLength || hasControl(name) {
			c.malformed(field)
			return nil
		}
		below.property(name, &value)
		members = append(members, entry{name: name, raw: value.raw})
	}
	if len(members) > maxProperties {
		c.fail(field, fmt.Sprintf("must not have more than %d items.", maxProperties))
		return nil
	}
	c.errs = append(c.errs, below.errs...)
	return members
}

func (c *checker) property(name string, n *node) {
	switch n.kind() {
	case jsontext.KindBeginObject:
		c.fail(name, "must be a string, a number, a boolean or a list of these.")
	case jsontext.KindBeginArray:
		if n.length > maxPropertyItems {
			c.fail(name, fmt.Sprintf("must not have more than %d items.", maxPropertyItems))
			return
		}
		for element := range n.elements() {
			if kind := element.kind(); kind == jsontext.KindBeginObject || kind == jsontext.KindBeginArray || kind == jsontext.KindNull {
				c.fail(name, "must be a string, a number, a boolean or a list of these.")
				return
			}
		}
	}
}
