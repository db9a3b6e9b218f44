// Package personal knows personal data, as the GDPR calls what tells of a person: how a person's own data are hashed,
// and how they are found where they do not belong. (PII, the other word for it, means less: a phone number in a page's
// URL identifies nobody to a reader, and is looked for all the same.) It sees texts, never a whole event: which fields
// are cleaned, and of which nothing is kept, is what envelope says, and what of an event is kept is tested there.
package personal

import "github.com/weir-dev/weir/collector/event"

// Person is what a caller says of a person: of each datum the raw text or, where the caller has hashed it, the hash.
// It lives for one request; what may be kept of it are the hashes that [Person.Pseudonymise] returns.
type Person struct {
	// Email is an e-mail address, Phone an E.164 number with its "+".
	Email, Phone, FirstName             string
	EmailHash, PhoneHash, FirstNameHash event.Hash
}

// Pseudonymise returns the wanted variants of the hashes, and the finder of what they are the hashes of. Of a datum that the
// caller has hashed there is the lower-trimmed variant alone, for no other can be had from it.
func (p *Person) Pseudonymise(wanted event.VariantSet) (event.Hashes, Finder) {
	email, name := lower(Trim(p.Email)), Trim(p.FirstName)
	if isASCII(name) {
		name = lower(name) // once; in other scripts it matters when
	}
	return p.hashes(email, name, wanted), p.finder(email, lower(name))
}

// Finder returns the finder of the person's data.
func (p *Person) Finder() Finder { return p.finder(lower(Trim(p.Email)), lower(Trim(p.FirstName))) }
