package event

import (
	"encoding/hex"
	"net/mail"

	"github.com/go-json-experiment/json/jsontext"
)

// person is what an envelope says of a person: of each datum the raw text or, where the caller has hashed it,
// the hash.
type person struct {
	email, phone, firstName             string
	emailHash, phoneHash, firstNameHash Hash
}

func (c *checker) user(n node) person {
	if !c.object("user", &n) {
		return person{}
	}
	var p person
	p.email, p.emailHash = c.email(n.get("email"))
	p.phone, p.phoneHash = c.phone(n.get("phone"))
	const field = "user.first_name"
	p.firstName = c.text(field, n.get("first_name"), textRule{max: maxTextLength})
	if hash, ok := parseHash(trim(p.firstName)); ok {
		p.firstName, p.firstNameHash = "", hash
	}
	return p
}

func (c *checker) email(n node) (string, Hash) {
	const field = "user.email"
	if n.absent() {
		return "", Hash{}
	}
	if n.kind() != jsontext.KindString {
		c.fail(field, "must be a string.")
		return "", Hash{}
	}
	email := c.bounded(field, trim(n.text()), textRule{max: maxTextLength})
	if email == "" {
		return "", Hash{}
	}
	if hash, ok := parseHash(email); ok {
		return "", hash
	}
	// ParseAddress also takes what stands around an address in a header: a name, angle brackets, comments.
	if address, err := mail.ParseAddress(email); err != nil || address.Address != email || hasControl(email) {
		c.fail(field, "must be a valid email address.")
		return "", Hash{}
	}
	return email, Hash{}
}

func (c *checker) phone(n node) (string, Hash) {
	const field = "user.phone"
	phone := c.text(field, n, textRule{max: maxTextLength})
	if phone == "" {
		return "", Hash{}
	}
	if hash, ok := parseHash(phone); ok {
		return "", hash
	}
	if !isE164(phone) {
		c.malformed(field)
		return "", Hash{}
	}
	return phone, Hash{}
}

// isE164 says whether s is a plus sign and 7 to 15 digits, the first of which is not zero.
func isE164(s string) bool {
	return len(s) >= 8 && len(s) <= 16 && s[0] == '+' && s[1] != '0' && allDigits(s[1:])
}

// parseHash reads 64 hexadecimal digits of either case.
func parseHash(s string) (Hash, bool) {
	var h Hash
	if len(s) != hex.EncodedLen(len(h)) {
		return Hash{}, false
	}
	_, err := hex.Decode(h[:], []byte(s))
	return h, err == nil
}
