package personal

import (
	"crypto/sha256"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/weir-dev/weir/collector/event"
)

// Finder finds what tells of a person in the texts that come beside the person's own fields. What the caller
// sent as a hash cannot be looked for; e-mail addresses are found whoever's they are, and by the zero Finder too.
type Finder struct {
	// email and name are trimmed and in lower case, phone is digits; "" for what is not known.
	email, phone, name string
}

// finder takes the person's e-mail address and first name, trimmed and in lower case.
func (p *Person) finder(email, name string) Finder {
	f := Finder{email: lower(norm.NFKC.String(email)), phone: strings.TrimPrefix(p.Phone, "+"), name: name}
	if isPlaceholder(f.name) || utf8.RuneCountInString(f.name) < 2 {
		// A placeholder or a single letter would be found wherever one looks.
		f.name = ""
	}
	return f
}

// emailLike is deliberately wider than an address: what is taken for one by mistake is merely not kept. Before the "@" there may be
// space, as behind it; its domain ends with a label that begins with a letter, or is an IP address. A byte that is no UTF-8 counts as a symbol.
var emailLike = regexp.MustCompile(`(?:[^\s@<>("',;:/?&=\\]|"[^"@,:{}\[\]]*")[\s+]*@[\s+]*` +
	`(?:(?:[\pL\pN\pM\p{So}_-]+\.)+\pL[\pL\pN\pM_-]+|[0-9]{1,3}(?:\.[0-9]{1,3}){3}|\[(?:(?i)IPv6:)?[0-9A-Fa-f:.]{3,}\])`)

// retina is what follows the "@" in the names of images for screens of a higher density.
var retina = regexp.MustCompile(`^[1-9](?:\.[0-9])?x\.(?i:png|jpe?g|webp|gif|avif|svg)\b`)

// ContactIn says whether a text holds an e-mail address or this person's phone number, however it is encoded.
func (f *Finder) ContactIn(text string) bool {
	switch suspicionOf(text) {
	case noContact:
		return false
	case plainNumber:
		return f.phoneIn(text)
	default:
		return f.contactInAnySpelling(text)
	}
}

func (f *Finder) contactInAnySpelling(text string) bool {
	return inAnySpelling(text, func(form string) bool { return f.emailIn(form) || f.phoneIn(form) })
}

// emailIn looks for anybody's e-mail address.
func (f *Finder) emailIn(text string) bool {
	if strings.IndexByte(text, '@') < 0 {
		return false
	}
	for _, found := range emailLike.FindAllStringIndex(text, -1) {
		domain := found[0] + strings.IndexByte(text[found[0]:], '@') + 1
		if !retina.MatchString(text[domain:]) {
			return true
		}
	}
	return f.email != "" && strings.Contains(lower(text), f.email)
}

// isPersonal says whether a value is a contact or, as a whole, this person's first name.
func (f *Finder) isPersonal(value string) bool {
	if f.ContactIn(value) {
		return true
	}
	if f.name == "" {
		return false
	}
	return inAnySpelling(strings.ReplaceAll(value, "+", " "), func(form string) bool { return lower(Trim(form)) == f.name })
}

// MentionedIn says whether a text holds a contact or this person's first name.
func (f *Finder) MentionedIn(text string) bool {
	if f.ContactIn(text) {
		return true
	}
	if f.name == "" {
		return false
	}
	return inAnySpelling(text, func(form string) bool { return containsWord(lower(form), f.name) })
}

// WithoutContact returns text, or "" where a contact is in it.
func (f *Finder) WithoutContact(text string) string {
	if f.ContactIn(text) {
		return ""
	}
	return text
}

// HashedContact returns id, or the SHA-256 of its lower-trimmed form where a contact is in it: it still tells one
// visitor from another then.
func (f *Finder) HashedContact(id string) string {
	if !f.ContactIn(id) {
		return id
	}
	return event.Hash(sha256.Sum256([]byte(lower(Trim(id))))).String()
}

// containsWord says whether word stands in text, not as a part of a longer word where it is ASCII: scripts
// that put no space between words have their letters searched as they come.
func containsWord(text, word string) bool {
	for from := 0; ; {
		at := strings.Index(text[from:], word)
		if at < 0 {
			return false
		}
		at += from
		before, _ := utf8.DecodeLastRuneInString(text[:at])
		after, _ := utf8.DecodeRuneInString(text[at+len(word):])
		if !isASCII(word) || (!unicode.IsLetter(before) && !unicode.IsLetter(after)) {
			return true
		}
		from = at + 1
	}
}
