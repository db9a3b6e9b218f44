package personal

import (
	"crypto/sha256"
	"slices"

	"github.com/weir-dev/weir/collector/event"
)

// rule is how one of a person's data is normalised: variant after variant, the first of which is what a caller's own hash
// is taken for.
type rule struct {
	datum     func(*Person) *Datum
	base      event.Variant
	variants  []event.Variant
	normalise func(event.Variant, string) string
}

// rules has a row for each datum of which a person has one.
var rules = [...]rule{
	{func(p *Person) *Datum { return &p.FirstName }, event.FirstNameLower, []event.Variant{event.FirstNameMeta, event.FirstNameLower}, normaliseName},
	{func(p *Person) *Datum { return &p.LastName }, event.LastNameLower, []event.Variant{event.LastNameMeta, event.LastNameLower}, normaliseName},
	{func(p *Person) *Datum { return &p.Street }, event.Street, []event.Variant{event.Street}, normalisePlace},
	{func(p *Person) *Datum { return &p.City }, event.City, []event.Variant{event.City}, normalisePlace},
	{func(p *Person) *Datum { return &p.State }, event.State, []event.Variant{event.State}, normalisePlace},
	{func(p *Person) *Datum { return &p.ZIP }, event.Zip, []event.Variant{event.Zip}, normalisePlace},
	{func(p *Person) *Datum { return &p.DateOfBirth }, event.DateOfBirth, []event.Variant{event.DateOfBirth}, asItIs},
	{func(p *Person) *Datum { return &p.Gender }, event.Gender, []event.Variant{event.Gender}, asItIs},
}

// The rules of what a person may have several of.
var (
	emailRule = rule{base: event.EmailLower, normalise: normaliseEmail,
		variants: []event.Variant{event.EmailLower, event.EmailGoogle, event.EmailMicrosoft, event.EmailAlnum}}
	phoneRule = rule{base: event.PhoneDigits, normalise: normalisePhone, variants: []event.Variant{event.PhoneDigits, event.PhoneE164}}
)

// hashes returns the wanted variants of what is known, and those of the further e-mail addresses and phone numbers.
func (p *Person) hashes(wanted event.VariantSet) (first event.Hashes, more []event.Hashes) {
	for i := range rules {
		rules[i].put(&first, rules[i].datum(p), wanted)
	}
	for _, several := range [...]struct {
		rule *rule
		data []Datum
	}{{&emailRule, p.Emails}, {&phoneRule, p.Phones}} {
		found := 0
		for i := range several.data {
			into := &first
			if found > len(more) {
				more = append(more, event.Hashes{})
			}
			if found > 0 {
				into = &more[found-1]
			}
			if several.rule.put(into, &several.data[i], wanted) {
				found++
			}
		}
	}
	// Of a contact of which nothing was to be kept there is no trace.
	more = slices.DeleteFunc(more, func(of event.Hashes) bool { return of == event.Hashes{} })
	return first, more
}

// put hashes a datum, and says whether there is anything of it.
func (r *rule) put(into *event.Hashes, d *Datum, wanted event.VariantSet) (put bool) {
	if !d.Hash.IsZero() && wanted.Has(r.base) && !isPlaceholderHash(d.Hash) {
		into[r.base], put = d.Hash, true
	}
	if d.Text == "" {
		return put
	}
	text := Trim(d.Text)
	if isPlaceholder(text) {
		return put
	}
	if isASCII(text) {
		text = lower(text) // once; in other scripts it matters when
	}
	for _, v := range r.variants {
		if !wanted.Has(v) {
			continue
		}
		if normalised := r.normalise(v, text); normalised != "" {
			into[v], put = sha256.Sum256([]byte(normalised)), true
		}
	}
	return put
}

// ExternalID is the hash as which an advertising platform gets a client's id: of the id trimmed and lower-cased, or the id
// itself where the caller has hashed it already. It is zero where there is no client.
func ExternalID(clientID string) event.Hash {
	id := Trim(clientID)
	if IsNobody(id) {
		return event.Hash{}
	}
	if hash, ok := event.ParseHash(id); ok {
		return hash
	}
	return sha256.Sum256([]byte(lower(id)))
}
