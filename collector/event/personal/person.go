// Package personal knows personal data, as the GDPR calls what tells of a person: how a person's own data are hashed,
// and how they are found where they do not belong. (PII, the other word for it, means less: a phone number in a page's
// URL identifies nobody to a reader, and is looked for all the same.) It sees texts, never a whole event: which fields
// are cleaned, and of which nothing is kept, is what envelope says, and what of an event is kept is tested there.
package personal

import "github.com/weir-dev/weir/collector/event"

// Datum is one thing that a caller says of a person: the raw text or, where the caller has hashed it, the hash.
type Datum struct {
	Text string
	Hash event.Hash
}

// DatumOf takes a text for what it is: 64 hexadecimal digits are a hash.
func DatumOf(text string) Datum {
	if hash, ok := event.ParseHash(Trim(text)); ok {
		return Datum{Hash: hash}
	}
	return Datum{Text: text}
}

// Person is what a caller says of a person. It lives for one request; what may be kept of it are the hashes that
// [Person.Pseudonymise] returns.
type Person struct {
	// Emails are e-mail addresses, Phones E.164 numbers with their "+".
	Emails, Phones                                []Datum
	FirstName, LastName, Street, City, State, ZIP Datum
	// DateOfBirth is YYYYMMDD, Gender one of f, m and n.
	DateOfBirth, Gender Datum
	// Unread are texts in which there may be contacts of the person's that are not among Emails and Phones: they could not be
	// read, or others count. Nothing is kept of them, and what is in them is looked for like the others.
	Unread []string
}

// Pseudonymise returns the wanted variants of the hashes, those of further e-mail addresses and phone numbers, and the
// finder of what they are the hashes of. Of a datum that the caller has hashed there is the lower-trimmed variant alone,
// for no other can be had from it.
func (p *Person) Pseudonymise(wanted event.VariantSet) (first event.Hashes, more []event.Hashes, known Finder) {
	first, more = p.hashes(wanted)
	return first, more, p.Finder()
}
