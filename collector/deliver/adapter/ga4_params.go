package adapter

import (
	"bytes"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/weir-dev/weir/collector/event"
)

// ga4MostParams is how many parameters an event may have.
const ga4MostParams = 25

// ga4Params are an event's parameters, in their order.
type ga4Params []ga4Param

type ga4Param struct {
	name  string
	value any
}

// ga4OwnParams are the names that parameters of Google's have here, set or not: none of the customer's may stand in for one.
var ga4OwnParams = setOf(
	"transaction_id", "value", "currency", "tax", "shipping", "coupon", "session_id", "engagement_time_msec", "page_location", "page_referrer",
	"page_title", "search_term", "item_list_id", "item_list_name", "items", "debug_mode",
)

func (p *ga4Params) text(name, text string, length int) {
	if text != "" {
		*p = append(*p, ga4Param{name, ga4Text(text, length)})
	}
}

func (p *ga4Params) amount(name string, amount *event.Amount) {
	if amount != nil {
		*p = append(*p, ga4Param{name, amount})
	}
}

// own appends the members of the customer's properties that GA4 can take, in their order and as many as there is room for. Numbers
// stay numbers; all else becomes text, lists with commas between their elements.
func (p *ga4Params) own(properties []byte) {
	members := jsontext.NewDecoder(bytes.NewReader(properties))
	if _, err := members.ReadToken(); err != nil {
		return // there are none
	}
	for len(*p) < ga4MostParams && members.PeekKind() == '"' {
		name, err := members.ReadToken()
		if err != nil {
			return
		}
		custom := ga4Custom(name.String())
		value, err := members.ReadValue()
		if err != nil {
			return
		}
		known := slices.ContainsFunc(*p, func(other ga4Param) bool { return other.name == custom })
		if custom == "" || known || ga4OwnParams[custom] || ga4Keeps(custom) {
			continue
		}
		if value.Kind() == '0' {
			*p = append(*p, ga4Param{custom, value.Clone()})
			continue
		}
		p.text(custom, plainText(value), ga4ParamLength)
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
func (p ga4Params) MarshalJSONTo(encoder *jsontext.Encoder) error {
	if err := encoder.WriteToken(jsontext.BeginObject); err != nil {
		return err
	}
	for _, param := range p {
		if err := encoder.WriteToken(jsontext.String(param.name)); err != nil {
			return err
		}
		if err := json.MarshalEncode(encoder, param.value); err != nil {
			return err
		}
	}
	return encoder.WriteToken(jsontext.EndObject)
}
