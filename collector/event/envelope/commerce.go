package envelope

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/event/outline"
)

// maxAmountMessage completes "The FIELD field …" for an amount beyond [event.MaxAmount].
const maxAmountMessage = "must not be greater than 99999999999.9999."

// commerce finds a commerce field: in data, else in the older flat form, at the top level.
type commerce struct {
	top, data *outline.Node
}

// get returns the member of a path "data.NAME", and the path that it was found at.
func (s *commerce) get(path string) (field string, n outline.Node) {
	name := path[len("data."):]
	if n = s.data.Get(name); !n.Absent() {
		return path, n
	}
	if n = s.top.Get(name); !n.Absent() {
		return name, n
	}
	return path, outline.Node{}
}

// data reads what stands in data, or in the older flat form beside it. A purchase's or refund's value and
// currency are required, and only data's own count.
func (c *checker) data(top *outline.Node, valid *Valid) {
	data := top.Get("data")
	if !data.Absent() && data.Kind() != jsontext.KindBeginObject {
		c.fail("data", "must be an object.")
		return
	}
	into, source := &valid.event, commerce{top, &data}
	paid := into.Name == event.Purchase || into.Name == event.Refund
	if paid {
		source.top = &outline.Node{}
	}
	field, n := source.get("data.value")
	if paid && n.Absent() {
		c.required(field)
	}
	into.Value = c.amount(field, n, amountRule{atLeastZero: true})
	field, n = source.get("data.currency")
	if paid && n.Absent() {
		c.required(field)
	}
	into.Currency = c.currency(field, n)

	source.top = top
	field, n = source.get("data.order_id")
	into.OrderID = c.identifier(field, n)
	field, n = source.get("data.content_id")
	into.ContentID = c.text(field, n, textRule{max: maxTextLength, plain: true, numbers: true})
	field, n = source.get("data.content_name")
	into.ContentName = c.text(field, n, textRule{max: maxTextLength})
	field, n = source.get("data.contents")
	into.Contents, valid.extras = c.contents(field, n)

	// What follows stands in data alone.
	into.Tax = c.amount("data.tax", data.Get("tax"), amountRule{atLeastZero: true})
	into.Shipping = c.amount("data.shipping", data.Get("shipping"), amountRule{atLeastZero: true})
	into.Discount = c.amount("data.discount", data.Get("discount"), amountRule{atLeastZero: true})
	into.Coupon = c.text("data.coupon", data.Get("coupon"), textRule{max: maxTextLength})
	into.SearchTerm = c.text("data.search_term", data.Get("search_term"), textRule{max: maxTextLength})
	into.ListID = c.text("data.list_id", data.Get("list_id"), textRule{max: maxTextLength, plain: true, numbers: true})
	into.ListName = c.text("data.list_name", data.Get("list_name"), textRule{max: maxTextLength})
}

type amountRule struct {
	atLeastZero bool
}

// amount reads a JSON number, or a string that spells a plain decimal.
func (c *checker) amount(field string, n outline.Node, rule amountRule) *event.Amount {
	if n.Absent() {
		return nil
	}
	var number string
	switch n.Kind() {
	case jsontext.KindNumber:
		number = n.Raw
	case jsontext.KindString:
		number = n.Text()
		if strings.ContainsAny(number, "eE") {
			c.fail(field, "must be a number.")
			return nil
		}
	}
	amount, err := event.ParseAmount(number)
	switch {
	case errors.Is(err, event.ErrAmountSyntax):
		c.fail(field, "must be a number.")
	case rule.atLeastZero && isNegative(number):
		c.fail(field, "must be at least 0.")
	case err != nil && isNegative(number):
		c.fail(field, "must be at least -99999999999.9999.")
	case err != nil:
		c.fail(field, maxAmountMessage)
	default:
		return &amount
	}
	return nil
}

// isNegative says whether a number is below zero, be it by ever so little; "-0" is not.
func isNegative(number string) bool {
	if !strings.HasPrefix(number, "-") {
		return false
	}
	mantissa, _, _ := strings.Cut(strings.ToLower(number), "e")
	return strings.ContainsAny(mantissa, "123456789")
}

func (c *checker) currency(field string, n outline.Node) string {
	if n.Absent() {
		return ""
	}
	if n.Kind() != jsontext.KindString {
		c.fail(field, "must be a string.")
		return ""
	}
	said := n.Text()
	if utf8.RuneCountInString(said) != 3 {
		c.fail(field, "must be 3 characters.")
		return ""
	}
	// Not strings.ToUpper, which makes ASCII letters of some that are none, such as "ı".
	upper := []byte(said)
	for i, b := range upper {
		if b >= 'a' && b <= 'z' {
			upper[i] = b - 'a' + 'A'
		}
	}
	code, ok := event.CurrencyCode(upper)
	if !ok {
		c.unlisted(field)
	}
	return code
}

func (c *checker) contents(field string, n outline.Node) (items []event.Item, extras [][]outline.Value) {
	switch {
	case n.Absent():
		return nil, nil
	case n.Kind() != jsontext.KindBeginArray:
		c.fail(field, "must be an array.")
		return nil, nil
	case n.Length > maxContents:
		c.fail(field, fmt.Sprintf("must not have more than %d items.", maxContents))
		return nil, nil
	}
	items = make([]event.Item, n.Length)
	below := checker{prefix: field + "."}
	for element := range n.Elements() {
		if element.Kind() != jsontext.KindBeginObject {
			below.fail("", "must be an object.")
		} else if extra := below.item(&element, &items[below.index]); len(extra) > 0 {
			if extras == nil {
				extras = make([][]outline.Value, n.Length)
			}
			extras[below.index] = extra
		}
		below.index++
	}
	c.errs = append(c.errs, below.errs...)
	return items, extras
}

// item reads one member of contents, and returns what of it is unknown. Of the names that its id may have, the first
// in this order counts and the others are unknown members.
func (c *checker) item(n *outline.Node, item *event.Item) (extra []outline.Value) {
	idName := "id"
	for _, name := range []string{"id", "content_id", "sku"} {
		if id := n.Get(name); !id.Absent() {
			idName = name
			break
		}
	}
	item.ID = c.text(idName, n.Get(idName), textRule{max: maxTextLength, plain: true, numbers: true})
	item.Name = c.text("name", n.Get("name"), textRule{max: maxTextLength})
	item.Category = c.text("category", n.Get("category"), textRule{max: maxTextLength})
	item.Quantity = c.amount("quantity", n.Get("quantity"), amountRule{atLeastZero: true})
	item.Price = c.amount("price", n.Get("price"), amountRule{})
	for _, m := range n.Inner { // which have nothing in them: the shape opens none
		switch m.Name {
		case idName, "name", "category", "quantity", "price":
		default:
			if !outline.Absent(m.Raw) && !readDetail(item, m) {
				extra = append(extra, m)
			}
		}
	}
	return extra
}

// readDetail reads a member that shops write in more than one way, and says whether it is one of ours: a brand that is an
// object, or a discount such as "10 %", is an unknown member rather than an error.
func readDetail(item *event.Item, m outline.Value) bool {
	var into *string
	switch m.Name {
	case "brand":
		into = &item.Brand
	case "variant":
		into = &item.Variant
	case "category2", "category3", "category4", "category5":
		into = &item.Categories[m.Name[len("category")]-'2']
	case "discount":
		item.Discount = new(checker).amount("", outline.Node{Raw: m.Raw}, amountRule{atLeastZero: true})
		return item.Discount != nil
	default:
		return false
	}
	*into = new(checker).text("", outline.Node{Raw: m.Raw}, textRule{max: maxTextLength, numbers: true})
	return *into != ""
}
