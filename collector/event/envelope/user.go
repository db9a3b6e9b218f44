package envelope

import (
	"crypto/sha256"
	"fmt"
	"net/mail"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/text/language"

	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/event/outline"
	"github.com/weir-dev/weir/collector/event/personal"
)

// contactRoom has room for the one e-mail address and the one phone number that most events have.
type contactRoom [2][1]personal.Datum

// user reads what is said of a person, and returns where they live.
func (c *checker) user(n outline.Node, p *personal.Person, room *contactRoom) (country string) {
	if !c.object("user", &n) {
		return ""
	}
	email, phone, before := n.Get("email"), n.Get("phone"), len(c.errs)
	p.Emails = c.contacts("user.email", email, room[0][:0], false)
	p.Phones = c.contacts("user.phone", phone, room[1][:0], true)
	if len(c.errs) > before { // which may be no errors of the event
		p.Unread = append(p.Unread, unread(email.Raw), unread(phone.Raw))
	}
	for _, part := range [...]struct {
		name string
		into *personal.Datum
	}{
		{"first_name", &p.FirstName}, {"last_name", &p.LastName}, {"street", &p.Street}, {"city", &p.City}, {"state", &p.State}, {"zip", &p.ZIP},
	} {
		if value := n.Get(part.name); !value.Absent() {
			*part.into = personal.DatumOf(c.text("user."+part.name, value, textRule{max: maxTextLength, numbers: part.into == &p.ZIP}))
		}
	}
	if value := n.Get("date_of_birth"); !value.Absent() {
		p.DateOfBirth = c.dateOfBirth("user.date_of_birth", value)
	}
	if value := n.Get("gender"); !value.Absent() {
		p.Gender = c.gender("user.gender", value)
	}
	return c.country("user.country", n.Get("country"))
}

// unread returns the text of a contact that could not be read, of whatever kind of JSON it is: without needless escapes,
// behind which it could hide.
func unread(raw string) string {
	formatted, err := jsontext.AppendFormat(nil, raw)
	if err != nil {
		return raw
	}
	return lineEnds.ReplaceAllLiteralString(string(formatted), " ")
}

// contacts reads one e-mail address or phone number, or a list of them, into room where there is enough of it.
func (c *checker) contacts(field string, n outline.Node, room []personal.Datum, phones bool) []personal.Datum {
	switch {
	case n.Absent():
		return nil
	case n.Kind() != jsontext.KindBeginArray:
		return append(room, c.contact(field, n, phones))
	case n.Length > maxContacts:
		c.fail(field, fmt.Sprintf("must not have more than %d items.", maxContacts))
		return nil
	}
	data := slices.Grow(room, n.Length)
	for element := range n.Elements() {
		data = append(data, c.contact(field+"."+strconv.Itoa(len(data)), element, phones))
	}
	return data
}

func (c *checker) contact(field string, n outline.Node, phone bool) personal.Datum {
	if phone {
		return c.phone(field, n)
	}
	return c.email(field, n)
}

func (c *checker) email(field string, n outline.Node) personal.Datum {
	if n.Absent() {
		return personal.Datum{}
	}
	if n.Kind() != jsontext.KindString {
		c.fail(field, "must be a string.")
		return personal.Datum{}
	}
	email := c.bounded(field, personal.Trim(n.Text()), textRule{max: maxTextLength})
	datum := personal.DatumOf(email)
	if datum.Text != "" && !isPlainEmail(email) && !isEmail(email) {
		c.fail(field, "must be a valid email address.")
		return personal.Datum{}
	}
	return datum
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

func (c *checker) phone(field string, n outline.Node) personal.Datum {
	datum := personal.DatumOf(c.text(field, n, textRule{max: maxTextLength}))
	if datum.Text != "" && !isE164(datum.Text) {
		c.malformed(field)
		return personal.Datum{}
	}
	return datum
}

// isE164 says whether s is a plus sign and 7 to 15 digits, the first of which is not zero.
func isE164(s string) bool {
	return len(s) >= 8 && len(s) <= 16 && s[0] == '+' && s[1] != '0' && strings.Trim(s[1:], "0123456789") == ""
}

// dateOfBirth reads YYYY-MM-DD or YYYYMMDD, and returns the latter.
func (c *checker) dateOfBirth(field string, n outline.Node) personal.Datum {
	datum := personal.DatumOf(personal.Trim(c.text(field, n, textRule{max: maxTextLength, numbers: true})))
	if datum.Text == "" {
		return datum
	}
	for _, layout := range [...]string{time.DateOnly, "20060102"} {
		if born, err := time.Parse(layout, datum.Text); err == nil && born.Year() >= 1900 {
			return personal.Datum{Text: born.Format("20060102")}
		}
	}
	c.fail(field, "must be a date of the form YYYY-MM-DD.")
	return personal.Datum{}
}

// genders are how callers write them, without regard to case, and the letter that platforms know. One that is neither a
// woman's nor a man's is no error of the event.
var genders = map[string]string{
	"f": "f", "female": "f", "woman": "f", "m": "m", "male": "m", "man": "m",
	"n": "n", "x": "n", "d": "n", "diverse": "n", "non-binary": "n", "nonbinary": "n", "other": "n",
}

func (c *checker) gender(field string, n outline.Node) personal.Datum {
	datum := personal.DatumOf(personal.Trim(c.text(field, n, textRule{max: maxTextLength})))
	if datum.Text == "" || personal.IsNobody(datum.Text) {
		return personal.Datum{Hash: datum.Hash}
	}
	letter, known := genders[strings.ToLower(datum.Text)]
	if !known {
		c.unlisted(field)
	}
	return personal.Datum{Text: letter}
}

// country reads a code of ISO 3166-1, of two or three letters, or the SHA-256 of one of two, and returns the former.
func (c *checker) country(field string, n outline.Node) string {
	said := personal.Trim(c.text(field, n, textRule{max: maxTextLength}))
	if said == "" || personal.IsNobody(said) {
		return ""
	}
	if hash, ok := event.ParseHash(said); ok {
		code, known := hashedCountries()[hash]
		if !known {
			c.unlisted(field)
		}
		return code
	}
	region, err := language.ParseRegion(said)
	if err != nil || !region.IsCountry() || len(said) > len("CHE") || len(region.String()) != len("CH") {
		c.unlisted(field)
		return ""
	}
	return region.String()
}

// hashedCountries are the codes of the countries by the hash of their lower-case form.
var hashedCountries = sync.OnceValue(func() map[event.Hash]string {
	codes := map[event.Hash]string{}
	for a := byte('A'); a <= 'Z'; a++ {
		for b := byte('A'); b <= 'Z'; b++ {
			code := string([]byte{a, b})
			if region, err := language.ParseRegion(code); err == nil && region.IsCountry() && region.String() == code {
				codes[sha256.Sum256([]byte(strings.ToLower(code)))] = code
			}
		}
	}
	return codes
})
