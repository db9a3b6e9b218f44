package envelope

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/event/outline"
	"github.com/weir-dev/weir/collector/event/personal"
)

// maxPropertiesSize is how many bytes custom properties may have, as they were sent.
const maxPropertiesSize = 8 << 10

// properties reads the customer's own members: names with texts, numbers, booleans, or lists of them.
func (c *checker) properties(n outline.Node) []outline.Value {
	const field = "properties"
	if !c.object(field, &n) {
		return nil
	}
	if len(n.Raw) > maxPropertiesSize {
		c.tooLarge(field)
		return nil
	}
	size := 0 // for what was put together has no text as a whole
	var members []outline.Value
	below := newChecker(field + ".")
	for i := 0; i < len(n.Inner); i += 1 + n.Inner[i].Below {
		value := outline.At(n.Inner[i:])
		if outline.Absent(value.Raw) {
			continue
		}
		name := n.Inner[i].Name
		if name == "" || len(name) > maxTextLength || hasControl(name) {
			c.malformed(field)
			return nil
		}
		size += len(name) + len(value.Raw) + len(`"":,`)
		below.property(name, &value)
		members = append(members, outline.Value{Name: name, Raw: value.Raw})
	}
	if len(members) > maxProperties {
		c.fail(field, fmt.Sprintf("must not have more than %d items.", maxProperties))
		return nil
	}
	if size > maxPropertiesSize {
		c.tooLarge(field)
		return nil
	}
	c.named(field, below.errs)
	return members
}

// repeatable is how a member's name looks that an error may repeat: as programs name things. Whatever else somebody calls a
// member may be a person's name, address or number.
var repeatable = regexp.MustCompile(`^[A-Za-z_$][A-Za-z0-9_.$:-]{0,63}$`)

// named adds the errors of members of field that the sender has named. A name that may tell of a person stands in no error.
func (c *checker) named(field string, errs event.Errors) {
	for _, err := range errs {
		name := strings.TrimPrefix(err.Field, c.prefix+field+".")
		if !repeatable.MatchString(name) || personal.MayHoldPhone(name) || new(personal.Finder).ContactIn(name) {
			c.malformed(field)
			return
		}
		c.errs = append(c.errs, err)
	}
}

func (c *checker) tooLarge(field string) {
	c.fail(field, fmt.Sprintf("must not be greater than %d bytes.", maxPropertiesSize))
}

func (c *checker) property(name string, n *outline.Node) {
	switch n.Kind() {
	case jsontext.KindBeginObject:
		c.fail(name, "must be a string, a number, a boolean or a list of these.")
	case jsontext.KindBeginArray:
		if n.Length > maxPropertyItems {
			c.fail(name, fmt.Sprintf("must not have more than %d items.", maxPropertyItems))
			return
		}
		for element := range n.Elements() {
			if kind := element.Kind(); kind == jsontext.KindBeginObject || kind == jsontext.KindBeginArray || kind == jsontext.KindNull {
				c.fail(name, "must be a string, a number, a boolean or a list of these.")
				return
			}
		}
	}
}
