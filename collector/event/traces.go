package event

import (
	"crypto/sha256"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// traces finds what tells of a person in the texts that come beside the person's own fields. What the caller
// sent as a hash cannot be looked for; e-mail addresses are found whoever's they are.
type traces struct {
	// email and name are trimmed and in lower case, phone is digits; "" for what is not known.
	email, phone, name string
}

// tracesOf takes an e-mail address and a first name that are trimmed and in lower case, and an E.164 number.
func tracesOf(email, phone, name string) traces {
	t := traces{email: email, phone: strings.TrimPrefix(phone, "+"), name: name}
	if isPlaceholder(t.name) || utf8.RuneCountInString(t.name) < 2 {
		// A placeholder or a single letter would be found wherever one looks.
		t.name = ""
	}
	return t
}

// emailLike is deliberately wider than an address: what is taken for one by mistake is merely not kept.
var emailLike = regexp.MustCompile(`[^\s@<>()"',;:/?&=\\]@[\pL\pN_-]+(\.[\pL\pN_-]+)+`)

// contactIn says whether a text holds an e-mail address or this person's phone number, also percent-encoded
// once or twice.
func (t *traces) contactIn(text string) bool {
	if !mayHoldContact(text) {
		return false
	}
	return anyDecoding(text, func(form string) bool {
		return strings.IndexByte(form, '@') >= 0 && (emailLike.MatchString(form) || t.ownEmailIn(form)) || t.phoneIn(form)
	})
}

// shortestPhone is how many digits a phone number has at least; fewer are any number.
const shortestPhone = 7

// What a character may mean for a text that holds a contact.
const (
	aside byte = iota
	digit
	letter
	tell // by itself
)

// meanings are those of the bytes of a text.
var meanings = func() (meanings [256]byte) {
	for c := range meanings {
		switch {
		case c == '@' || c == '%':
			meanings[c] = tell
		case c >= '0' && c <= '9':
			meanings[c] = digit
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z':
			meanings[c] = letter
		}
	}
	return meanings
}()

// mayHoldContact says whether it is worth to look for a contact at all, which costs much more: an address has an "@" and
// a number its digits with nothing but punctuation between them, and either may be percent-encoded.
func mayHoldContact(text string) bool {
	digits := 0
	for i := range len(text) {
		switch meanings[text[i]] {
		case tell:
			return true
		case digit:
			if digits++; digits == shortestPhone {
				return true
			}
		case letter:
			digits = 0
		}
	}
	return false
}

// isTrace says whether a value is a contact or, as a whole, this person's first name.
func (t *traces) isTrace(value string) bool {
	if t.contactIn(value) {
		return true
	}
	if t.name == "" {
		return false
	}
	return anyDecoding(strings.ReplaceAll(value, "+", " "), func(form string) bool { return lower(trim(form)) == t.name })
}

// mentionedIn says whether a text holds a contact or this person's first name.
func (t *traces) mentionedIn(text string) bool {
	if t.contactIn(text) {
		return true
	}
	if t.name == "" {
		return false
	}
	return anyDecoding(text, func(form string) bool { return containsWord(lower(form), t.name) })
}

// withoutContact returns text, or "" where a contact is in it.
func (t *traces) withoutContact(text string) string {
	if t.contactIn(text) {
		return ""
	}
	return text
}

// hashedContact returns id, or the SHA-256 of its lower-trimmed form where a contact is in it: it still tells one
// visitor from another then.
func (t *traces) hashedContact(id string) string {
	if !t.contactIn(id) {
		return id
	}
	return Hash(sha256.Sum256([]byte(lower(trim(id))))).String()
}

func (t *traces) ownEmailIn(text string) bool {
	return t.email != "" && strings.Contains(lower(text), t.email)
}

// phoneIn looks for the phone number, however it is punctuated, with or without its country code.
func (t *traces) phoneIn(text string) bool {
	if t.phone == "" {
		return false
	}
	var buffer [32]byte
	digits := buffer[:0]
	for _, r := range strings.ReplaceAll(text, "(0)", "") {
		switch {
		case r >= '0' && r <= '9':
			digits = append(digits, byte(r))
		case len(digits) == 0, isPhonePunctuation(r):
		case t.isPhone(digits):
			return true
		default:
			digits = digits[:0]
		}
	}
	return t.isPhone(digits)
}

// isPhonePunctuation says whether r may stand between the digits of a phone number.
func isPhonePunctuation(r rune) bool {
	switch r {
	case '+', '-', '(', ')', '.', '/':
		return true
	}
	return unicode.IsSpace(r)
}

// isPhone says whether the phone number is among a text's digits, or what they end with.
func (t *traces) isPhone(digits []byte) bool {
	if len(digits) < shortestPhone {
		return false
	}
	run := string(digits)
	local := strings.TrimLeft(run, "0")
	return strings.Contains(run, t.phone) || (len(local) >= shortestPhone && strings.HasSuffix(t.phone, local))
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

// anyDecoding says whether something holds of a text as it stands, or percent-decoded once or twice.
func anyDecoding(text string, holds func(form string) bool) bool {
	for range 2 {
		if holds(text) {
			return true
		}
		if strings.IndexByte(text, '%') < 0 {
			return false
		}
		text = percentDecode(text)
	}
	return holds(text)
}

// percentDecode decodes what is well-formed of a percent-encoding and leaves the rest as it is.
func percentDecode(s string) string {
	if strings.IndexByte(s, '%') < 0 {
		return strings.ToValidUTF8(s, "\uFFFD")
	}
	decoded := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		if s[i] == '%' && i+2 < len(s) {
			high, low := hexDigit(s[i+1]), hexDigit(s[i+2])
			if high >= 0 && low >= 0 {
				decoded = append(decoded, byte(high<<4|low))
				i += 2
				continue
			}
		}
		decoded = append(decoded, s[i])
	}
	return strings.ToValidUTF8(string(decoded), "\uFFFD")
}

func hexDigit(c byte) int {
	switch {
	case c >= '0' && c <= '9':
		return int(c - '0')
	case c >= 'a' && c <= 'f':
		return int(c-'a') + 10
	case c >= 'A' && c <= 'F':
		return int(c-'A') + 10
	}
	return -1
}
