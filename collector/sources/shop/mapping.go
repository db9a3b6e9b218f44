package shop

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weir-dev/weir/collector/event"
)

// rule says where a member of an envelope stands in a document.
type rule struct {
	// to is the member's path: "data.value".
	to string
	// from are paths in the document with "|" between them; what stands at the first of them that has something counts. A
	// path has names with dots between them, and 0 for the first of a list; NAME[KEY] is the value of a pair in a list, or
	// of a member: "order.note_attributes[client_id]".
	from string
	// as makes the member of what stands there; nil for as it stands. It returns nil for none.
	as func(any) any
}

// maxContents is how many of an order's lines an envelope may have; the others are left out.
const maxContents = 100

// each makes a list by other rules, one element for each that stands in a list.
func each(rules []rule) func(any) any {
	return func(found any) any {
		list, _ := found.([]any)
		var made []any
		for _, element := range list[:min(len(list), maxContents)] {
			if object := apply(rules, element); len(object) > 0 {
				made = append(made, object)
			}
		}
		if made == nil {
			return nil
		}
		return made
	}
}

// apply makes an object by rules.
func apply(rules []rule, document any) map[string]any {
	object := map[string]any{}
	for _, r := range rules {
		found := at(document, r.from)
		if found != nil && r.as != nil {
			found = r.as(found)
		}
		if found != nil {
			put(object, r.to, found)
		}
	}
	return object
}

// put sets the member at a path.
func put(object map[string]any, path string, value any) {
	names := strings.Split(path, ".")
	for _, name := range names[:len(names)-1] {
		below, is := object[name].(map[string]any)
		if !is {
			below = map[string]any{}
			object[name] = below
		}
		object = below
	}
	object[names[len(names)-1]] = value
}

// at returns what stands at the first of the paths that has something, nil where none has.
func at(document any, paths string) any {
	for path := range strings.SplitSeq(paths, "|") {
		found := document
		for name := range strings.SplitSeq(path, ".") {
			found = step(found, name)
		}
		if found != nil && found != "" {
			return found
		}
	}
	return nil
}

// step goes from a value to what is below it by one name of a path.
func step(value any, name string) any {
	name, key, isPair := strings.Cut(strings.TrimSuffix(name, "]"), "[")
	switch parent := value.(type) {
	case map[string]any:
		value = parent[name]
	case []any:
		place, err := strconv.Atoi(name)
		if err != nil || place >= len(parent) {
			return nil
		}
		value = parent[place]
	default:
		return nil
	}
	if isPair {
		return pair(value, key)
	}
	return value
}

// pair returns the value of a key: a member's, or in a list that of the object whose name or key it is.
func pair(value any, key string) any {
	list, isList := value.([]any)
	if !isList {
		members, _ := value.(map[string]any)
		return members[key]
	}
	for _, element := range list {
		if members, _ := element.(map[string]any); members["name"] == key || members["key"] == key {
			return members["value"]
		}
	}
	return nil
}

// text returns a text, or a number as it is written; "" for anything else.
func text(value any) string {
	switch said := value.(type) {
	case string:
		return said
	case json.Number:
		return said.String()
	default:
		return ""
	}
}

// id returns what tells something from others of its kind, as a text; nothing and 0 tell nothing.
func id(value any) any {
	if said := text(value); said != "" && said != "0" {
		return said
	}
	return nil
}

// phone returns a number with its country's code as envelopes have it: shops keep what the buyer has typed. One without
// a country's code could be anybody's.
func phone(value any) any {
	number := strings.NewReplacer(" ", "", "-", "", "(", "", ")", "", ".", "", "/", "", "\u00a0", "").Replace(text(value))
	if foreign, found := strings.CutPrefix(number, "00"); found {
		number = "+" + foreign
	}
	if !strings.HasPrefix(number, "+") {
		return nil
	}
	return number
}

// firstName and lastName part a name that stands in one field.
func firstName(value any) any {
	first, _, _ := strings.Cut(strings.TrimSpace(text(value)), " ")
	return id(first)
}

func lastName(value any) any {
	_, last, _ := strings.Cut(strings.TrimSpace(text(value)), " ")
	return id(strings.TrimSpace(last))
}

// unix reads seconds since 1970.
func unix(value any) any {
	seconds, err := strconv.ParseInt(text(value), 10, 64)
	if err != nil {
		return nil
	}
	return time.Unix(seconds, 0).UTC().Format(time.RFC3339)
}

// utc reads a date and time in UTC that does not say so.
func utc(value any) any {
	if said := text(value); said != "" {
		return strings.TrimSuffix(said, "Z") + "Z"
	}
	return nil
}

// magnitude returns an amount without its sign.
func magnitude(value any) any { return id(strings.TrimPrefix(text(value), "-")) }

// named returns what one of the names stands for, "other" for any other name.
func named(names map[string]string) func(any) any {
	return func(value any) any {
		if name, known := names[text(value)]; known {
			return name
		}
		return "other"
	}
}

// attributes are the members that a shop hands on to its orders under their own names, at a path: as Shopify's note
// attributes, WooCommerce's meta data, Stripe's metadata.
func attributes(path string) []rule {
	rules := []rule{{"client_id", path + "[client_id]", id}}
	for _, name := range event.ClickIDNames {
		rules = append(rules, rule{"context.click_ids." + name, path + "[" + name + "]", id})
	}
	return rules
}

// date reads the first of the paths that is a time, the zero time where none is.
func date(document any, rules ...rule) time.Time {
	for _, r := range rules {
		found := at(document, r.from)
		if found != nil && r.as != nil {
			found = r.as(found)
		}
		if when, err := event.ParseTimestamp(text(found)); err == nil {
			return when
		}
	}
	return time.Time{}
}

// purchase makes the event of an order. Its id is what a page and a server can make of the order's as well.
func purchase(rules []rule, document any, order string, when time.Time) (Event, error) {
	return made(event.Purchase, "purchase-"+order, order, rules, document, when)
}

// refund makes the event of a refund.
func refund(rules []rule, document any, order, refund string, when time.Time) (Event, error) {
	return made(event.Refund, "refund-"+order+"-"+refund, order, rules, document, when)
}

func made(name, eventID, order string, rules []rule, document any, when time.Time) (Event, error) {
	if order == "" || strings.HasSuffix(eventID, "-") {
		return Event{}, ErrMalformed
	}
	members := apply(rules, document)
	members["event"], members["event_id"] = name, eventID
	put(members, "data.order_id", order)
	return Event{members: members, At: when}, nil
}

// subject reads who is to be erased; nil where the document names nobody.
func subject(rules []rule, document any) map[string]string {
	var named map[string]string
	for name, value := range apply(rules, document) {
		if said := text(value); said != "" {
			if named == nil {
				named = map[string]string{}
			}
			named[name] = said
		}
	}
	return named
}

// join makes one list of rules.
func join(lists ...[]rule) []rule { return slices.Concat(lists...) }
