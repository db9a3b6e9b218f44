package adapter

import (
	"bytes"
	"iter"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/event/personal"
)

// members are those of a JSON object, in their order.
type members []member

type member struct {
	name  string
	value any
}

// text appends a text unless it is empty.
func (m *members) text(name, text string) {
	if text != "" {
		*m = append(*m, member{name, text})
	}
}

// amount appends an amount unless there is none.
func (m *members) amount(name string, amount *event.Amount) {
	if amount != nil {
		*m = append(*m, member{name, amount})
	}
}

// engagement appends for how long the visitor was busy with the page, unless that is not known.
func (m *members) engagement(e *Event) {
	if busy := e.EngagementTime.Milliseconds(); busy != 0 {
		*m = append(*m, member{"engagement_time_msec", busy})
	}
}

func (m members) has(name string) bool {
	return slices.ContainsFunc(m, func(other member) bool { return other.name == name })
}

// own appends members of the customer's own, without those that are there, that tell of a person, or whose names are kept.
func (m *members) own(object []byte, kept func(name string) bool) {
	for name, value := range membersOf(object) {
		if !m.has(name) && !kept(name) && !personal.Tells(name, value) {
			*m = append(*m, member{name, value})
		}
	}
}

// withoutPersonal returns members of the customer's own without those that tell of a person, nil where none is left.
func withoutPersonal(object []byte) ([]byte, error) {
	var m members
	m.own(object, func(string) bool { return false })
	if len(m) == 0 {
		return nil, nil
	}
	return json.Marshal(m)
}

// propertiesOf are the customer's own members, in the order in which they were sent.
func propertiesOf(e *Event) iter.Seq2[string, jsontext.Value] { return membersOf(e.Properties) }

// membersOf are the members of a JSON object, in their order; none where there is no object.
func membersOf(object []byte) iter.Seq2[string, jsontext.Value] {
	return func(yield func(string, jsontext.Value) bool) {
		decoder := jsontext.NewDecoder(bytes.NewReader(object))
		if _, err := decoder.ReadToken(); err != nil {
			return // there are none
		}
		for decoder.PeekKind() == '"' {
			token, err := decoder.ReadToken()
			if err != nil {
				return
			}
			name := token.String()
			value, err := decoder.ReadValue()
			if err != nil || !yield(name, value.Clone()) {
				return
			}
		}
	}
}

// data appends what of the event's data every analytics platform gets by our own names, without the items.
func (m *members) data(e *Event) {
	m.amount("value", e.Value)
	m.text("currency", e.Currency)
	m.amount("tax", e.Tax)
	m.amount("shipping", e.Shipping)
	m.amount("discount", e.Discount)
	m.text("order_id", e.OrderID)
	m.text("coupon", e.Coupon)
	m.text("content_id", e.ContentID)
	m.text("content_name", e.ContentName)
	m.text("search_term", e.SearchTerm)
	m.text("list_id", e.ListID)
	m.text("list_name", e.ListName)
}

// contents appends the event's items by our own names, unless there are none.
func (m *members) contents(e *Event) {
	if items := ownItems(e.Contents); len(items) > 0 {
		*m = append(*m, member{"contents", items})
	}
}

// campaign appends by what campaign the visitor came.
func (m *members) campaign(c *event.Context) {
	m.text("utm_source", c.UTMSource)
	m.text("utm_medium", c.UTMMedium)
	m.text("utm_campaign", c.UTMCampaign)
	m.text("utm_term", c.UTMTerm)
	m.text("utm_content", c.UTMContent)
}

// properties appends the customer's own members, without those that are there or whose names are kept.
func (m *members) properties(e *Event, kept func(name string) bool) {
	for name, value := range propertiesOf(e) {
		if !m.has(name) && !kept(name) {
			*m = append(*m, member{name, value})
		}
	}
}

// plainText is what is left of a JSON value without its quotes, brackets and escapes.
func plainText(value jsontext.Value) string {
	switch value.Kind() {
	case '"':
		var text string
		if json.Unmarshal(value, &text) != nil {
			return ""
		}
		return text
	case '[':
		var elements []jsontext.Value
		if json.Unmarshal(value, &elements) != nil {
			return ""
		}
		texts := make([]string, len(elements))
		for i, element := range elements {
			texts[i] = plainText(element)
		}
		return strings.Join(texts, ",")
	}
	return string(value)
}

// MarshalJSONTo writes an object.
func (m members) MarshalJSONTo(encoder *jsontext.Encoder) error {
	if err := encoder.WriteToken(jsontext.BeginObject); err != nil {
		return err
	}
	for _, member := range m {
		if err := encoder.WriteToken(jsontext.String(member.name)); err != nil {
			return err
		}
		if err := json.MarshalEncode(encoder, member.value); err != nil {
			return err
		}
	}
	return encoder.WriteToken(jsontext.EndObject)
}

// ownItem is an item as analytics platforms get it: by our own names, with its amounts as they came.
type ownItem struct {
	ID        string        `json:"id,omitzero"`
	Name      string        `json:"name,omitzero"`
	Brand     string        `json:"brand,omitzero"`
	Variant   string        `json:"variant,omitzero"`
	Category  string        `json:"category,omitzero"`
	Category2 string        `json:"category2,omitzero"`
	Category3 string        `json:"category3,omitzero"`
	Category4 string        `json:"category4,omitzero"`
	Category5 string        `json:"category5,omitzero"`
	Price     *event.Amount `json:"price,omitzero"`
	Discount  *event.Amount `json:"discount,omitzero"`
	Quantity  *event.Amount `json:"quantity,omitzero"`
}

func ownItems(contents []event.Item) []ownItem {
	items := make([]ownItem, len(contents))
	for i, item := range contents {
		items[i] = ownItem{
			ID: item.ID, Name: item.Name, Brand: item.Brand, Variant: item.Variant,
			Category: item.Category, Category2: item.Categories[0], Category3: item.Categories[1], Category4: item.Categories[2],
			Category5: item.Categories[3],
			Price:     item.Price, Discount: item.Discount, Quantity: item.Quantity,
		}
	}
	return items
}
