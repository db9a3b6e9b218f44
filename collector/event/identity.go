package event

import (
	"crypto/sha256"
	"encoding/base64"
	"slices"
)

// Person stands for whom an event is about, for one property: the first bytes of a digest of the identifier that they
// were first known by.
type Person [8]byte

// String returns the person as the read API shows it: 11 characters, from which nobody can be told.
func (p Person) String() string { return base64.RawURLEncoding.EncodeToString(p[:]) }

// ParsePerson reads what String returns; the second result is false for any other text.
func ParsePerson(text string) (Person, bool) {
	var p Person
	b, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || copy(p[:], b) != len(b) || p.String() != text {
		return Person{}, false
	}
	return p, true
}

// Identifier is one of those that tell of an event's person: a digest of it, and the person that it stands for as long as
// it has been seen with no other.
type Identifier = Person

// Identifiers are those of an event, each once, the strongest first: the customer's account, the browser, e-mail addresses,
// phone numbers.
type Identifiers struct {
	// List has at most 12.
	List []Identifier
	// Client is the place of the client id in the list, -1 where there is none.
	Client int
}

// Default returns the person of an event that nothing else is known of: that of its client id, which is the one that
// most of a visitor's events have, else that of its strongest identifier. There must be one.
func (i Identifiers) Default() Person { return i.List[max(i.Client, 0)] }

// Packed returns the identifiers as Redis is told of them: a byte that is the place of the client id among them, counted
// from 1, 0 for none, and the digest of each; nil where there are none.
func (i Identifiers) Packed() []byte {
	if len(i.List) == 0 {
		return nil
	}
	packed := append(make([]byte, 0, 1+len(Identifier{})*len(i.List)), byte(i.Client+1))
	for at := range i.List {
		packed = append(packed, i.List[at][:]...)
	}
	return packed
}

// Identifiers returns the event's, in buffer where they fit; property is "NAMESPACE/NAME". An anonymous event has
// those that it was stored with: it is nobody's in the numbers, but an erasure finds it.
func (e *Event) Identifiers(property string, buffer []Identifier) Identifiers {
	found := Identifiers{List: buffer[:0], Client: -1}
	if e.UserID != "" {
		found.List = append(found.List, identifier(property, "user", e.UserID))
	}
	if e.ClientID != "" {
		found.Client = len(found.List)
		found.List = append(found.List, identifier(property, "client", e.ClientID))
	}
	for _, kind := range [...]struct {
		name    string
		variant Variant
	}{{"email", EmailLower}, {"phone", PhoneDigits}} {
		found.addContact(property, kind.name, e.User.Get(kind.variant))
		for i := range e.MoreContacts {
			found.addContact(property, kind.name, e.MoreContacts[i].Get(kind.variant))
		}
	}
	return found
}

// addContact adds an address or number that is there. One that the event says twice is one identifier: two would be taken for
// identifiers that were seen together.
func (i *Identifiers) addContact(property, kind string, hash Hash) {
	if hash.IsZero() {
		return
	}
	if id := identifier(property, kind, hash[:]); !slices.Contains(i.List, id) {
		i.List = append(i.List, id)
	}
}

// Whose returns the event's person: the one that stands in it, else the default of its identifiers. The second result is
// false for an event of nobody.
func (e *Event) Whose(property string) (Person, bool) {
	if e.Anonymous {
		return Person{}, false
	}
	if e.Person != (Person{}) {
		return e.Person, true
	}
	if e.ClientID != "" { // and the digests of the others are not needed
		return identifier(property, "client", e.ClientID), true
	}
	var buffer [12]Identifier
	found := e.Identifiers(property, buffer[:])
	if len(found.List) == 0 {
		return Person{}, false
	}
	return found.Default(), true
}

// identifier digests one. Kinds have spaces of their own: a client id that happens to spell a user id is another.
func identifier[T string | []byte](property, kind string, id T) Identifier {
	var buffer [256]byte
	text := append(buffer[:0], "weir person\x00"...)
	text = append(append(text, property...), 0)
	text = append(append(text, kind...), 0)
	sum := sha256.Sum256(append(text, id...))
	return Identifier(sum[:])
}
