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
	if !isPlainEmail(email) && !isEmail(email) {
		c.fail(field, "must be a valid email address.")
		return "", Hash{}
	}
	return email, Hash{}
}

// isEmail says whether a text is an e-mail address and nothing else.
func isEmail(text string) bool {
	// ParseAddress also takes what stands around an address in a header: a name, angle brackets, comments.
	address, err := mail.ParseAddress(text)
	return err == nil && address.Address == text && !hasControl(text)
}

// isPlainEmail says for most of what [isEmail] takes that it does, at a tenth of the cost: words of ASCII letters, digits,
// "-", "_" and "+", with a dot between any two of them, on both sides of the "@".
func isPlainEmail(text string) bool {
	ats, before := 0, byte('.')
	for i := range len(text) {
		switch c := text[i]; {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '-', c == '_', c == '+':
		case c == '.' && before != '.' && before != '@':
		case c == '@' && before != '.':
			ats++
		default:
			return false
		}
		before = text[i]
	}
	return ats == 1 && before != '.' && before != '@'
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
