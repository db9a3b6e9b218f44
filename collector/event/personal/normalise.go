package personal

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/language"
	"golang.org/x/text/unicode/norm"

	"github.com/weir-dev/weir/collector/event"
)

// isBlank says whether r is white space, the byte order mark or the zero-width space among it, which web
// forms leave around a text and unicode.IsSpace does not know.
func isBlank(r rune) bool { return unicode.IsSpace(r) || r == '\uFEFF' || r == '\u200B' }

// Trim returns a text without the white space around it, as web forms leave it around what somebody types.
func Trim(s string) string {
	if s != "" && isInk(s[0]) && isInk(s[len(s)-1]) {
		return s // like nearly all
	}
	return strings.TrimFunc(s, isBlank)
}

// isInk says of a byte that it is an ASCII character that one can see.
func isInk(c byte) bool { return c > ' ' && c < 0x7f }

// lower maps to lower case by Unicode's full rules, as the platforms' own libraries do; strings.ToLower knows
// neither the final sigma nor what becomes of "İ".
func lower(s string) string {
	if isASCII(s) {
		return strings.ToLower(s)
	}
	return cases.Lower(language.Und).String(s)
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// placeholders are what programs write for a datum that they do not have.
var placeholders = [...]string{"", "null", "undefined", "none", "n/a", "unknown", "anonymous"}

// isPlaceholder says whether a text is one of those, or nothing that one could see.
func isPlaceholder(trimmed string) bool {
	for _, placeholder := range placeholders {
		if len(trimmed) == len(placeholder) && strings.EqualFold(trimmed, placeholder) {
			return true
		}
	}
	return !isASCII(trimmed) && !strings.ContainsFunc(trimmed, isVisible)
}

// isVisible says whether one sees anything of a character: of a Hangul filler, which is a letter to Unicode, one does not.
func isVisible(r rune) bool { return !isBlank(r) && !isIgnorable(r) }

// isPlaceholderHash says whether a caller has hashed nothing, or a placeholder.
func isPlaceholderHash(h event.Hash) bool {
	return hashedNobodies[h]
}

// The functions below return the text that a variant of a datum is the hash of, "" for none. They are given it trimmed,
// and in lower case where it is ASCII.

func normaliseEmail(v event.Variant, email string) string {
	email = lower(email)
	if v == event.EmailLower {
		return email
	}
	at := strings.LastIndexByte(email, '@')
	if at < 0 {
		return ""
	}
	local, domain := email[:at], email[at+1:]
	switch v {
	case event.EmailGoogle:
		email = strings.Map(dropBlank, email)
		if domain != "gmail.com" && domain != "googlemail.com" {
			return email
		}
		local = strings.ReplaceAll(withoutAlias(strings.Map(dropBlank, local)), ".", "")
	case event.EmailMicrosoft:
		local = strings.ReplaceAll(withoutAlias(local), ".", "")
	case event.EmailAlnum:
		local = strings.Map(keepAlnum, withoutAlias(local))
	}
	if local == "" {
		return ""
	}
	return local + "@" + domain
}

func withoutAlias(local string) string {
	local, _, _ = strings.Cut(local, "+")
	return local
}

func dropBlank(r rune) rune {
	if isBlank(r) {
		return -1
	}
	return r
}

func keepAlnum(r rune) rune {
	if (r >= 'a' && r <= 'z') || (r >= '0' && r <= '9') {
		return r
	}
	return -1
}

func normalisePhone(v event.Variant, phone string) string {
	if v == event.PhoneDigits {
		return strings.TrimPrefix(phone, "+")
	}
	return phone
}

func normaliseName(v event.Variant, name string) string {
	if v == event.FirstNameLower || v == event.LastNameLower {
		return lower(name)
	}
	return bare(name)
}

// bare returns a text in lower case without white space and ASCII punctuation. Meta's own library lower-cases last: what
// ends a word before may stand within one then, as a sigma does.
func bare(text string) string {
	return lower(norm.NFC.String(strings.Map(func(r rune) rune {
		if isBlank(r) || (r < utf8.RuneSelf && (unicode.IsPunct(r) || unicode.IsSymbol(r))) {
			return -1
		}
		return r
	}, text)))
}

// normalisePlace is for the parts of an address.
func normalisePlace(v event.Variant, text string) string {
	switch v {
	case event.Street:
		return lower(norm.NFC.String(strings.Join(strings.FieldsFunc(text, isBlank), " ")))
	case event.Zip:
		if isZIPPlus4(text) {
			text = text[:len("12345")]
		}
	}
	return bare(text)
}

// isZIPPlus4 says whether a text is an American ZIP code with the four digits that narrow it down.
func isZIPPlus4(text string) bool {
	for i := range len(text) {
		if isDigit := text[i] >= '0' && text[i] <= '9'; isDigit == (i == len("12345")) || !isDigit && text[i] != '-' {
			return false
		}
	}
	return len(text) == len("12345-6789")
}

func asItIs(_ event.Variant, text string) string { return text }
