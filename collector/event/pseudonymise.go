package event

import (
	"crypto/sha256"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"
)

// Acceptance is what accepting an event adds to it.
type Acceptance struct {
	// DeliveryID is what [Valid.UUID] returns, where the caller gave one, or a new UUIDv7.
	DeliveryID uuid.UUID
	// Variants are the hashes that the platforms need; [EmailLower] and [PhoneDigits] are kept in any case.
	Variants VariantSet
	// Platforms names the platforms in force, in the Property's order.
	Platforms []string
}

// Pseudonymise makes of a valid envelope what may be kept: the person as hashes, and everything else without
// what tells of the person. The result shares nothing with v that could change, save a.Platforms.
func Pseudonymise(v *Valid, a Acceptance) Event {
	e := v.event
	e.DeliveryID, e.Platforms = a.DeliveryID, a.Platforms
	email, name := lower(trim(v.person.email)), trim(v.person.firstName)
	if isASCII(name) {
		name = lower(name) // once; in other scripts it matters when
	}
	e.User = v.person.hashes(email, name, a.Variants.Union(Variants(EmailLower, PhoneDigits)))

	known := personalDataOf(email, v.person.phone, lower(name))
	if e.ID = known.hashedContact(e.ID); e.ID == "" {
		e.ID = a.DeliveryID.String() // which is ours, whatever its digits look like
	}
	e.ClientID = known.hashedContact(e.ClientID)
	e.OrderID = known.hashedContact(e.OrderID)
	e.ContentID = known.withoutContact(e.ContentID)
	e.ContentName = known.withoutContact(e.ContentName)
	e.Context = known.cleanContext(v.event.Context)
	e.Contents = slices.Clone(v.event.Contents)
	for i := range e.Contents {
		item := &e.Contents[i]
		item.ID = known.withoutContact(item.ID)
		item.Name = known.withoutContact(item.Name)
		item.Category = known.withoutContact(item.Category)
		if v.extras != nil {
			item.Extra = known.cleanExtra(v.extras[i])
		}
	}
	return e
}

// hashes returns the wanted variants of what is known; email and name are the person's, trimmed, the address also in lower
// case, and so is a name in ASCII. Of a datum that the caller has hashed there is the lower-trimmed variant alone, for no other can be had from it.
func (p *person) hashes(email, name string, wanted VariantSet) Hashes {
	var h Hashes
	put := func(v Variant, normalised string) {
		if normalised != "" {
			h[v] = sha256.Sum256([]byte(normalised))
		}
	}
	if !isPlaceholder(email) {
		for v := EmailLower; v <= EmailAlnum; v++ {
			if wanted.Has(v) {
				put(v, normaliseEmail(v, email))
			}
		}
	}
	if p.phone != "" {
		put(PhoneDigits, p.phone[1:])
		if wanted.Has(PhoneE164) {
			put(PhoneE164, p.phone)
		}
	}
	if !isPlaceholder(name) {
		for v := FirstNameMeta; v <= FirstNameLower; v++ {
			if wanted.Has(v) {
				put(v, normaliseFirstName(v, name))
			}
		}
	}
	keep := func(v Variant, given Hash) {
		if wanted.Has(v) && !given.IsZero() && !isPlaceholderHash(given) {
			h[v] = given
		}
	}
	keep(EmailLower, p.emailHash)
	keep(PhoneDigits, p.phoneHash)
	keep(FirstNameLower, p.firstNameHash)
	return h
}

// lineEnds undoes the escapes that would make a word of the letter behind the backslash and what follows it.
var lineEnds = strings.NewReplacer(`\n`, " ", `\r`, " ", `\t`, " ")

// cleanExtra returns an item's unknown members as a JSON object, without those that tell of the person, and
// nil where none is left.
func (p *personalData) cleanExtra(members []entry) []byte {
	var object []byte
	for _, m := range members {
		// Formatting brings the value into its shortest form and undoes needless escapes, behind which an
		// address could hide. It fails on what a decoder would not have accepted.
		value, err := jsontext.AppendFormat(nil, m.raw)
		if err != nil || p.mentionedIn(m.name) || p.mentionedIn(lineEnds.Replace(string(value))) {
			continue
		}
		name, err := jsontext.AppendQuote(nil, m.name)
		if err != nil {
			continue
		}
		if object == nil {
			object = append(object, '{')
		} else {
			object = append(object, ',')
		}
		object = append(append(append(object, name...), ':'), value...)
	}
	if object == nil {
		return nil
	}
	return append(object, '}')
}
