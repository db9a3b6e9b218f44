package query

import (
	"fmt"
	"maps"
	"math/big"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// The oracle of the tests that work figures out from the NDJSON export alone, with fractions and without any code of the view.

// figuresOf are an oracle's figures: texts by the names that answers have for them.
type figuresOf map[string]string

// tally adds events up.
type tally struct {
	counts           map[string]int
	visitors, buyers map[string]bool
	gross, refunded  map[string]*big.Rat
	ordersInEUR      int64
	pieces           *big.Rat
}

func newTally() *tally {
	return &tally{map[string]int{}, map[string]bool{}, map[string]bool{}, map[string]*big.Rat{}, map[string]*big.Rat{}, 0, new(big.Rat)}
}

// add counts an event whose money and pieces are given.
func (y *tally) add(e *exported, money, pieces *big.Rat) {
	y.counts["events"]++
	if e.Visitor != "" {
		y.visitors[e.Visitor] = true
	}
	into := y.gross
	switch e.Event {
	case "add_to_cart":
		y.counts["add_to_carts"]++
		return
	case "pageview":
		y.counts["pageviews"]++
		return
	case "purchase":
		y.counts["purchases"]++
		if e.Visitor != "" {
			y.buyers[e.Visitor] = true
		}
		if e.Currency == "EUR" {
			y.ordersInEUR++
		}
		y.pieces.Add(y.pieces, pieces)
	case "refund":
		y.counts["refunds"]++
		into = y.refunded
		y.pieces.Sub(y.pieces, pieces)
	default:
		return
	}
	if into[e.Currency] == nil {
		into[e.Currency] = new(big.Rat)
	}
	into[e.Currency].Add(into[e.Currency], money)
}

// sum returns what was added up in a currency.
func sum(by map[string]*big.Rat, currency string) *big.Rat {
	if by[currency] == nil {
		return new(big.Rat)
	}
	return by[currency]
}

// rounded rounds half to even.
func rounded(r *big.Rat, decimals int) *big.Rat {
	scale := new(big.Rat).SetInt(new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(decimals)), nil))
	scaled := new(big.Rat).Mul(r, scale)
	double := new(big.Int).Mul(scaled.Num(), big.NewInt(2))
	double.Add(double, scaled.Denom())
	whole, rest := new(big.Int).DivMod(double, new(big.Int).Mul(scaled.Denom(), big.NewInt(2)), new(big.Int))
	if rest.Sign() == 0 && whole.Bit(0) == 1 {
		whole.Sub(whole, big.NewInt(1))
	}
	return new(big.Rat).Quo(new(big.Rat).SetInt(whole), scale)
}

// quotient is part by whole, rounded; of nothing it is 0.
func quotient(part *big.Rat, whole int64, decimals int) string {
	if whole == 0 {
		return "0"
	}
	return rounded(new(big.Rat).Quo(part, new(big.Rat).SetInt64(whole)), decimals).RatString()
}

func (y *tally) figures() figuresOf {
	f := figuresOf{
		"unique_visitors": fmt.Sprint(len(y.visitors)), "gross_revenue": sum(y.gross, "EUR").RatString(), "refunded": sum(y.refunded, "EUR").RatString(),
		"revenue":             new(big.Rat).Sub(sum(y.gross, "EUR"), sum(y.refunded, "EUR")).RatString(),
		"average_order_value": quotient(sum(y.gross, "EUR"), y.ordersInEUR, 2),
		"conversion_rate":     quotient(new(big.Rat).SetInt64(int64(len(y.buyers))), int64(len(y.visitors)), 4),
	}
	for _, name := range []string{"events", "purchases", "add_to_carts", "pageviews", "refunds"} {
		f[name] = fmt.Sprint(y.counts[name])
	}
	for _, by := range []map[string]*big.Rat{y.gross, y.refunded} {
		for currency := range by {
			f["revenue in "+currency] = new(big.Rat).Sub(sum(y.gross, currency), sum(y.refunded, currency)).RatString()
		}
	}
	return f
}

// answered reads the figures of an answer's object, and its texts.
func answered(t *testing.T, object jsontext.Value) figuresOf {
	t.Helper()
	f := figuresOf{}
	number := func(name string, value jsontext.Value) {
		r, ok := new(big.Rat).SetString(string(value))
		if !ok {
			t.Fatalf("%s is %s", name, value)
		}
		f[name] = r.RatString()
	}
	err := eachMember(object, func(name string, value jsontext.Value) error {
		switch value.Kind() {
		case '0':
			number(name, value)
		case '"':
			text, err := jsontext.AppendUnquote(nil, value)
			f[name] = string(text)
			return err
		case '{':
			return eachMember(value, func(currency string, value jsontext.Value) error {
				number("revenue in "+currency, value)
				return nil
			})
		default:
			return fmt.Errorf("%s is %s", name, value)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// rat reads a number, 0 for null.
func rat(t *testing.T, value jsontext.Value, missing int64) *big.Rat {
	t.Helper()
	if len(value) == 0 || value.Kind() == 'n' {
		return new(big.Rat).SetInt64(missing)
	}
	r, ok := new(big.Rat).SetString(string(value))
	if !ok {
		t.Fatalf("%s is no number", value)
	}
	return r
}

// dimensioned is an event with its values of each dimension.
type dimensioned struct {
	*exported
	dimensions map[string][]string
}

// dimensionsOf finds the values that events have in each dimension. The events are a property's, oldest first.
func dimensionsOf(events []exported) []dimensioned {
	last := map[string]*exported{}
	list := make([]dimensioned, len(events))
	for i := range events {
		e := &events[i]
		if e.Visitor != "" && e.Source != "" {
			last[e.Visitor] = e
		}
		origin := &exported{Channel: "Direct", Source: "(direct)", Medium: "(none)", Campaign: "(none)"}
		if touch := last[e.Visitor]; touch != nil && e.ReceivedAt.Sub(touch.ReceivedAt) <= 30*24*time.Hour {
			origin = touch
		}
		list[i] = dimensioned{e, map[string][]string{
			"event": {e.Event}, "page": {pageOf(e.Context.PageURL)}, "product": productsOf(e),
			"channel": {origin.Channel}, "source": {origin.Source}, "medium": {orNone(origin.Medium)}, "campaign": {orNone(origin.Campaign)},
		}}
	}
	return list
}

func orNone(text string) string {
	if text == "" {
		return "(none)"
	}
	return text
}

// pageOf cuts a path out of an address.
func pageOf(address string) string {
	_, behind, found := strings.Cut(address, "://")
	if !found {
		return "(none)"
	}
	behind, _, _ = strings.Cut(behind, "#")
	behind, _, _ = strings.Cut(behind, "?")
	_, path, _ := strings.Cut(behind, "/")
	return "/" + path
}

func productsOf(e *exported) []string {
	var ids []string
	for _, item := range e.Contents {
		if item.ID != "" && !slices.Contains(ids, item.ID) {
			ids = append(ids, item.ID)
		}
	}
	if len(ids) == 0 {
		ids = []string{orNone(e.ContentID)}
	}
	return ids
}

// kept says whether an event passes filters, given as a query string.
func (e *dimensioned) kept(filters url.Values) bool {
	for name, values := range filters {
		if !slices.ContainsFunc(e.dimensions[name], func(value string) bool { return slices.Contains(values, value) }) {
			return false
		}
	}
	return true
}

// breakDown adds events up by their values of a dimension, and returns the groups' figures with their shares.
func breakDown(t *testing.T, events []dimensioned, by string) map[string]figuresOf {
	t.Helper()
	groups, all := map[string]*tally{}, 0
	for _, e := range events {
		all++
		for _, name := range e.dimensions[by] {
			if groups[name] == nil {
				groups[name] = newTally()
			}
			money, pieces := rat(t, e.Value, 0), new(big.Rat)
			if by == "product" && len(e.Contents) > 0 {
				money.SetInt64(0)
				for _, item := range e.Contents {
					if item.ID == name {
						quantity := rat(t, item.Quantity, 1)
						pieces.Add(pieces, quantity)
						money.Add(money, quantity.Mul(rat(t, item.Price, 0), rat(t, item.Quantity, 1)))
					}
				}
			}
			groups[name].add(e.exported, money, pieces)
		}
	}
	found := map[string]figuresOf{}
	for name, group := range groups {
		found[name] = group.figures()
		found[name][by] = name
		found[name]["share"] = quotient(new(big.Rat).SetInt64(int64(group.counts["events"])), int64(all), 4)
		if by == "product" {
			found[name]["quantity"] = group.pieces.RatString()
		}
	}
	return found
}

// filterQueries are filters of the demo's events, as query strings.
var filterQueries = map[string]string{
	"all events":                "",
	"some names":                "event=purchase&event=refund&event=add_to_cart",
	"a channel":                 "channel=Paid Search",
	"channels and no touch":     "channel=Direct&channel=Email&channel=Organic Search",
	"a source's medium":         "source=google&medium=cpc",
	"no campaign":               "campaign=(none)",
	"a page":                    "page=/",
	"what has no page":          "page=(none)",
	"names of a channel":        "event=purchase&channel=Paid Search",
	"what nothing has":          "source=nowhere",
	"all but what has products": "product=(none)",
}

// demoEvents serves the demo's past and returns its events, and filters of them by the most frequent page and product too.
func demoEvents(t *testing.T, engine engineMaker) (api http.Handler, events []dimensioned, filters map[string]url.Values) {
	t.Helper()
	api, _, _, _ = demoStream(t, engine, 8000)
	events = dimensionsOf(exportedEvents(t, api))
	filters = map[string]url.Values{}
	for name, query := range filterQueries {
		values, err := url.ParseQuery(query)
		if err != nil {
			t.Fatal(err)
		}
		filters[name] = values
	}
	for _, by := range []string{"page", "product", "campaign"} {
		counts := map[string]int{}
		for _, e := range events {
			for _, value := range e.dimensions[by] {
				counts[value]++
			}
		}
		delete(counts, "(none)")
		names := slices.SortedFunc(maps.Keys(counts), func(a, b string) int { return counts[b] - counts[a] })
		filters["the most frequent "+by] = url.Values{by: names[:1]}
		filters["some of a "+by] = url.Values{by: names[:3], "event": {"pageview", "purchase", "view_item"}}
	}
	return api, events, filters
}
