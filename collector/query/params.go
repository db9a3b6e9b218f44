package query

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/server"
)

// maxNameLength bounds an event's name, in characters.
const maxNameLength = 100

// parameter is one that a call knows.
type parameter struct {
	name string
	// isList says that it may be given several times, and with brackets.
	isList bool
	// isFilter says that it keeps some events.
	isFilter bool
}

// periodParameters are those that all calls know.
var periodParameters = []parameter{{name: "period"}, {name: "from"}, {name: "to"}}

// withPeriod returns all parameters of a call that knows some of its own.
func withPeriod(own ...parameter) []parameter { return slices.Concat(periodParameters, own) }

// maxUnknown is how many unknown parameters are reported.
const maxUnknown = 20

// parameters are a request's query parameters. Its methods read one parameter each and note what is wrong
// with it, so that a caller learns of every error at once.
type parameters struct {
	pairs   []pair
	aliases map[string]string
	errs    event.Errors
}

// pair is a parameter as it was sent, decoded.
type pair struct {
	name, value string
	// isMalformed says that the value is not percent-encoded properly and stands as it was sent.
	isMalformed bool
}

// parseQuery reads a query string. It keeps the order, which the spellings of a list need. A name that is not percent-encoded
// properly is taken as it stands: no parameter has such a one.
func parseQuery(raw string) []pair {
	var pairs []pair
	for piece := range strings.SplitSeq(raw, "&") {
		if piece == "" {
			continue
		}
		name, value, _ := strings.Cut(piece, "=")
		name, _ = unescape(name)
		value, isMalformed := unescape(value)
		pairs = append(pairs, pair{name, value, isMalformed})
	}
	return pairs
}

func unescape(text string) (plain string, isMalformed bool) {
	plain, err := url.QueryUnescape(text)
	if err != nil {
		return text, true
	}
	return plain, false
}

// check notes the parameters that are not known, brackets where there is no list, and values that cannot be decoded.
func (p *parameters) check(known []parameter) {
	names := make([]string, len(known))
	for i, k := range known {
		names[i] = k.name
	}
	filters := slices.ContainsFunc(known, func(k parameter) bool { return k.isFilter })
	reported := map[string]bool{}
	for _, pair := range p.pairs {
		name, _, bracketed := strings.Cut(pair.name, "[")
		i := slices.Index(names, name)
		if i < 0 {
			name = shortened(pair.name)
		}
		wrong := ""
		switch {
		case i < 0:
			wrong = unknown(name, names, filters)
		case bracketed && !known[i].isList:
			wrong = fmt.Sprintf("The %s field must not be a list.", name)
		case pair.isMalformed:
			wrong = fmt.Sprintf("The %s field is not percent-encoded properly: a percent sign is written %%25.", name)
		}
		if wrong == "" || reported[name] || len(reported) == maxUnknown {
			continue
		}
		reported[name] = true
		p.errs.Add(name, wrong)
	}
	// What cannot be decoded is not complained of once more.
	p.pairs = slices.DeleteFunc(p.pairs, func(one pair) bool { return one.isMalformed })
}

// withoutParameters says whether a call that takes none was given none. Where it was, it has answered.
func withoutParameters(w http.ResponseWriter, r *http.Request) bool {
	p := parameters{pairs: parseQuery(r.URL.RawQuery)}
	p.check(nil)
	if len(p.errs) > 0 {
		server.Invalid(w, p.errs)
	}
	return len(p.errs) == 0
}

// unknown says what is wrong with a parameter that a call does not know.
func unknown(name string, known []string, filters bool) string {
	switch {
	case filters && strings.HasPrefix(name, customProperty):
		return fmt.Sprintf("The %s field names a custom property, which is neither a dimension nor a filter.", name)
	case len(known) == 0:
		return fmt.Sprintf("The %s parameter is unknown; the call takes none.", name)
	}
	return fmt.Sprintf("The %s parameter is unknown; known are %s.", name, strings.Join(known, ", "))
}

// shortened returns a name as it can be repeated in an answer.
func shortened(name string) string {
	name = strings.ToValidUTF8(name, "\uFFFD")
	if runes := []rune(name); len(runes) > maxNameLength {
		name = string(runes[:maxNameLength]) + "…"
	}
	return name
}

// one returns a parameter's value without surrounding white space, "" where it is absent or empty.
func (p *parameters) one(name string) string {
	value, seen := "", false
	for _, pair := range p.pairs {
		if pair.name != name {
			continue
		}
		if seen {
			p.errs.Add(name, fmt.Sprintf("The %s field must be given only once.", name))
			return ""
		}
		value, seen = strings.TrimSpace(pair.value), true
	}
	return value
}

// said returns what one returns, and notes nothing: for a parameter that has been read already.
func (p *parameters) said(name string) string {
	again := parameters{pairs: p.pairs}
	return again.one(name)
}

// limit returns how many are asked for, from 1 to most; fallback where nothing is said.
func (p *parameters) limit(fallback, most int) int {
	const name = "limit"
	text := p.one(name)
	if text == "" {
		return fallback
	}
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil && !isDigits(text) {
		p.errs.Add(name, fmt.Sprintf("The %s field must be an integer.", name))
		return fallback
	}
	if err != nil || n < 1 || int(n) > most {
		p.errs.Add(name, fmt.Sprintf("The %s field must be between 1 and %d.", name, most))
		return fallback
	}
	return int(n)
}

func isDigits(text string) bool {
	return text != "" && strings.Trim(strings.TrimPrefix(text, "-"), "0123456789") == ""
}

// choice is one of the values that a parameter may have.
type choice[T any] struct {
	text  string
	value T
}

// choose returns the value of the choice that a parameter names, fallback where it is absent.
func choose[T any](p *parameters, name string, fallback T, choices []choice[T]) T {
	return chosen(p, name, fallback, choices, fmt.Sprintf("The selected %s is invalid.", name))
}

// chooseListed is [choose] with an error that lists the choices.
func chooseListed[T any](p *parameters, name string, fallback T, choices []choice[T]) T {
	return chosen(p, name, fallback, choices, invalidChoice(name, choices))
}

func chosen[T any](p *parameters, name string, fallback T, choices []choice[T], invalid string) T {
	text := p.one(name)
	if text == "" {
		return fallback
	}
	at := slices.IndexFunc(choices, func(c choice[T]) bool { return c.text == text })
	if at < 0 {
		p.errs.Add(name, invalid)
		return fallback
	}
	return choices[at].value
}

// invalidChoice says what a parameter may be.
func invalidChoice[T any](name string, choices []choice[T]) string {
	texts := make([]string, len(choices))
	for i, c := range choices {
		texts[i] = c.text
	}
	return fmt.Sprintf("The selected %s is invalid: it can be %s.", name, strings.Join(texts, ", "))
}

// chooseAll returns the values of the choices that a list names.
func chooseAll[T any](p *parameters, name string, choices []choice[T]) []T {
	var values []T
	for i, text := range p.texts(name, len(choices)) {
		at := slices.IndexFunc(choices, func(c choice[T]) bool { return c.text == text })
		if at < 0 {
			field := fmt.Sprintf("%s.%d", name, i)
			p.errs.Add(field, fmt.Sprintf("The selected %s is invalid.", field))
			continue
		}
		values = append(values, choices[at].value)
	}
	return values
}

// texts returns a list of which no item is empty; high bounds its length.
func (p *parameters) texts(name string, high int) []string { return p.filled(name, p.list(name), high) }

// verbatimTexts is texts with the white space that is around the items: they are compared with what senders have sent.
func (p *parameters) verbatimTexts(name string, high int) []string {
	return p.filled(name, p.verbatim(name), high)
}

// filled returns a parameter's items where these are no more than high, and notes which are empty.
func (p *parameters) filled(name string, items []string, high int) []string {
	if len(items) > high {
		p.errs.Add(name, fmt.Sprintf("The %s field must not have more than %d items.", name, high))
		return nil
	}
	for i, item := range items {
		if item == "" {
			field := fmt.Sprintf("%s.%d", name, i)
			p.errs.Add(field, fmt.Sprintf("The %s field is required.", field))
		}
	}
	return items
}

// list is that of verbatim, the values without surrounding white space.
func (p *parameters) list(name string) []string {
	values := p.verbatim(name)
	for i := range values {
		values[i] = strings.TrimSpace(values[i])
	}
	if len(values) == 1 && values[0] == "" {
		return nil
	}
	return values
}

// verbatim returns the values of name=a&name=b, name[]=a&name[]=b and name[0]=a&name[1]=b, which may be mixed. An
// item without an index takes the one after the highest so far; items are ordered by index.
func (p *parameters) verbatim(name string) []string {
	type item struct {
		index int
		value string
	}
	var items []item
	next := 0
	for _, pair := range p.pairs {
		suffix, found := strings.CutPrefix(pair.name, name)
		if !found {
			continue
		}
		index := next
		if suffix != "" && suffix != "[]" {
			inner, bracketed := strings.CutPrefix(suffix, "[")
			inner, closed := strings.CutSuffix(inner, "]")
			if !bracketed {
				continue // another parameter whose name begins alike
			}
			n, err := strconv.ParseUint(inner, 10, 16)
			if !closed || err != nil {
				p.errs.Add(name, fmt.Sprintf("The %s field must be a list.", name))
				return nil
			}
			index = int(n)
		}
		next = max(next, index+1)
		items = append(items, item{index, pair.value})
	}
	if len(items) == 1 && items[0].value == "" {
		return nil // "steps=" is an empty form field
	}
	slices.SortStableFunc(items, func(a, b item) int { return cmp.Compare(a.index, b.index) })
	values := make([]string, len(items))
	for i, item := range items {
		values[i] = item.value
	}
	return values
}

// names returns a list of event names, the Property's aliases applied; high bounds its length.
func (p *parameters) names(name string, high int) []string {
	names := p.bounded(name, 0, high)
	for i := range names {
		names[i] = p.eventName(fmt.Sprintf("%s.%d", name, i), names[i])
	}
	return names
}

// bounded returns a list whose length low and high bound; one that may not be empty is required.
func (p *parameters) bounded(name string, low, high int) []string {
	before := len(p.errs)
	items := p.list(name)
	switch {
	case len(p.errs) > before:
		return nil
	case len(items) == 0 && low > 0:
		p.errs.Add(name, fmt.Sprintf("The %s field is required.", name))
	case len(items) < low:
		p.errs.Add(name, fmt.Sprintf("The %s field must have at least %d items.", name, low))
	case len(items) > high:
		p.errs.Add(name, fmt.Sprintf("The %s field must not have more than %d items.", name, high))
		return nil
	}
	return items
}

// name returns a parameter that is an event's name, the Property's aliases applied, fallback where it is
// absent.
func (p *parameters) name(name, fallback string) string {
	if value := p.one(name); value != "" {
		return p.eventName(name, value)
	}
	return fallback
}

// eventName checks what the collector would accept as an event's name and resolves its alias.
func (p *parameters) eventName(field, value string) string {
	switch {
	case value == "":
		p.errs.Add(field, fmt.Sprintf("The %s field is required.", field))
	case !utf8.ValidString(value) || strings.ContainsFunc(value, unicode.IsControl):
		p.errs.Add(field, fmt.Sprintf("The %s field format is invalid.", field))
	case utf8.RuneCountInString(value) > maxNameLength:
		p.errs.Add(field, fmt.Sprintf("The %s field must not be greater than %d characters.", field, maxNameLength))
	}
	if resolved, found := p.aliases[value]; found {
		return resolved
	}
	return value
}
