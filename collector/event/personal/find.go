package personal

import (
	"crypto/sha256"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/weir-dev/weir/collector/event"
)

// Finder finds what tells of a person in the texts that come beside the person's own fields. What the caller
// sent as a hash cannot be looked for; e-mail addresses are found whoever's they are, and by the zero Finder too.
type Finder struct {
	// emails, names and what else is known are trimmed and in lower case, phones are digits. names are also a street and a
	// date of birth.
	emails, phones, names []string
	// all takes whatever may be a number or an address for the person's: more was unread than is looked for one by one.
	all bool
}

// maxUnread is how many contacts that could not be read are looked for one by one.
const maxUnread = 20

// Finder returns the finder of the person's data.
func (p *Person) Finder() Finder {
	most := len(p.Emails) + len(p.Phones)
	named := [...]*Datum{&p.FirstName, &p.LastName, &p.Street, &p.DateOfBirth}
	for _, datum := range named {
		if datum.Text != "" {
			most++
		}
	}
	if most == 0 && len(p.Unread) == 0 {
		return Finder{}
	}
	// All lie in one list: nearly every event has a person, and a list for each kind would be three for each event.
	all := make([]string, 0, most+1)
	for i := range p.Emails {
		if email := lower(Trim(p.Emails[i].Text)); email != "" {
			all = append(all, lower(norm.NFKC.String(email)))
		}
	}
	all, moreEmails := appendUnread(all, p.Unread, unreadAddresses)
	emails := len(all)
	for i := range p.Phones {
		if phone := strings.TrimPrefix(p.Phones[i].Text, "+"); phone != "" {
			all = append(all, phone)
		}
	}
	all, morePhones := appendUnread(all, p.Unread, unreadNumbers)
	phones := len(all)
	for _, datum := range named {
		all = appendName(all, datum.Text)
	}
	if born := p.DateOfBirth.Text; len(born) == len("YYYYMMDD") {
		all = appendName(all, born[:4]+"-"+born[4:6]+"-"+born[6:])
	}
	return Finder{emails: all[:emails:emails], phones: all[emails:phones:phones], names: all[phones:], all: moreEmails || morePhones}
}

// appendName has a text looked for as a word. A placeholder or a single letter would be found wherever one looks.
func appendName(names []string, text string) []string {
	if text == "" {
		return names
	}
	if name := lower(Trim(text)); !isPlaceholder(name) && utf8.RuneCountInString(name) > 1 {
		return append(names, name)
	}
	return names
}

// emailLike is deliberately wider than an address: what is taken for one by mistake is merely not kept. Before the "@" there may be
// space, as behind it; its domain ends with a label that begins with a letter, or is an IP address. A byte that is no UTF-8 counts as a symbol.
var emailLike = regexp.MustCompile(`(?:[^\s@<>("',;:/?&=\\]|"[^"@,:{}\[\]]*")[\s+]*@[\s+]*` +
	`(?:(?:[\pL\pN\pM\p{So}_-]+\.)+\pL[\pL\pN\pM_-]+|[0-9]{1,3}(?:\.[0-9]{1,3}){3}|\[(?:(?i)IPv6:)?[0-9A-Fa-f:.]{3,}\])`)

// roundAt is an "@" with the space that emailLike allows round it.
var roundAt = regexp.MustCompile(`[\s+]*@[\s+]*`)

// retina is what follows the "@" in the names of images for screens of a higher density.
var retina = regexp.MustCompile(`^[1-9](?:\.[0-9])?x\.(?i:png|jpe?g|webp|gif|avif|svg)\b`)

// MayHoldContact says whether it takes a closer look to tell whether a text holds an e-mail address or a phone number.
func MayHoldContact(text string) bool { return suspicionOf(text) != noContact }

// ContactIn says whether a text holds an e-mail address or this person's phone number, however it is encoded.
func (f *Finder) ContactIn(text string) bool {
	if text == "" {
		return false // like most members of most events
	}
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
	if len(f.emails) == 0 || f.all {
		return f.all
	}
	told := roundAt.ReplaceAllLiteralString(lower(text), "@")
	return slices.ContainsFunc(f.emails, func(email string) bool { return strings.Contains(told, email) })
}

// isPersonal says whether a value is a contact or, as a whole, one of this person's names.
func (f *Finder) isPersonal(value string) bool {
	if f.ContactIn(value) {
		return true
	}
	if len(f.names) == 0 {
		return false
	}
	return inAnySpelling(strings.ReplaceAll(value, "+", " "), func(form string) bool { return slices.Contains(f.names, lower(Trim(form))) })
}

// MentionedIn says whether a text holds a contact or one of this person's names.
func (f *Finder) MentionedIn(text string) bool {
	if f.ContactIn(text) {
		return true
	}
	if text == "" || len(f.names) == 0 {
		return false
	}
	return inAnySpelling(text, func(form string) bool {
		form = lower(form)
		return slices.ContainsFunc(f.names, func(name string) bool { return containsWord(form, name) })
	})
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
