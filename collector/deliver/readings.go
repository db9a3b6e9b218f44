package deliver

import (
	"encoding/base64"
	"encoding/hex"
	"html"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// maxReadings bounds how often what is escaped in a text may be escaped itself.
const maxReadings = 5

// readings are a text, and what it is when escapes are resolved: of JSON, of addresses, of HTML, and those within these.
func readings(text string) []string {
	list := []string{text}
	add := func(reading string) {
		if reading != list[len(list)-1] {
			list = append(list, reading)
		}
	}
	for range maxReadings {
		before := len(list)
		add(withoutBackslashes(list[len(list)-1]))
		add(html.UnescapeString(list[len(list)-1]))
		add(withoutPercents(list[len(list)-1]))
		if len(list) == before {
			break
		}
	}
	return list
}

var backslashed = regexp.MustCompile(`(?s)(?:\\u[0-9A-Fa-f]{4})+|\\x[0-9A-Fa-f]{2}|\\.`)

// withoutBackslashes resolves the escapes of JSON and of most languages' strings. Unlike a parser it takes any text.
func withoutBackslashes(text string) string {
	return backslashed.ReplaceAllStringFunc(text, func(escape string) string {
		switch {
		case len(escape) >= len(`\u0000`) && escape[1] == 'u':
			var units []uint16
			for digits := range strings.SplitSeq(escape[len(`\u`):], `\u`) {
				unit, _ := strconv.ParseUint(digits, 16, 16) // of four digits, which the pattern has
				units = append(units, uint16(unit))
			}
			return string(utf16.Decode(units))
		case len(escape) == len(`\x00`) && escape[1] == 'x':
			b, _ := hex.DecodeString(escape[2:]) // of two digits, likewise
			return string(b)
		}
		return escape[1:] // of \n and its like the letter is left, which nothing is made of
	})
}

var percented = regexp.MustCompile(`%[0-9A-Fa-f]{2}`)

// withoutPercents resolves the escapes of addresses, and leaves percent signs alone that begin none.
func withoutPercents(text string) string {
	return percented.ReplaceAllStringFunc(text, func(escape string) string {
		b, _ := hex.DecodeString(escape[1:]) // of two digits, which the pattern has
		return string(b)
	})
}

// folded is a text by which it is compared: without what nobody sees, in lower case, and base64 in one alphabet.
func folded(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '-':
			return '+'
		case r == '_':
			return '/'
		case unicode.IsSpace(r) || unicode.IsControl(r) || unicode.Is(unicode.Cf, r):
			return -1
		}
		return unicode.ToLower(r)
	}, text)
}

// traces are what is found, folded, in a reading of whatever repeats a secret: each of the secret's readings, its bytes in
// hexadecimal, and in base64 the digits that are the secret's alone, wherever in three bytes it begins.
func traces(secret string) []string {
	list := []string{hex.EncodeToString([]byte(secret)), folded(strings.ReplaceAll(secret, " ", "+"))}
	for _, reading := range readings(secret) {
		if reading = folded(reading); len(reading) >= leastSought {
			list = append(list, reading)
		}
	}
	for offset := range 3 {
		digits := base64.RawStdEncoding.EncodeToString(append(make([]byte, offset), secret...))
		begin := (8*offset + 5) / 6
		end := 8 * (offset + len(secret)) / 6
		list = append(list, folded(digits[begin:end]))
	}
	return list
}

// repeatedIn says whether a text repeats a credential, however it is written.
func (r redactor) repeatedIn(text string) bool {
	for _, reading := range readings(text) {
		reading = folded(reading)
		for _, secret := range r.sought {
			if strings.Contains(reading, secret) {
				return true
			}
		}
	}
	return false
}

// lower is a text with its ASCII letters in lower case, and so as long as before.
func lower(text string) string {
	bytes := []byte(text)
	for i, b := range bytes {
		if 'A' <= b && b <= 'Z' {
			bytes[i] = b + 'a' - 'A'
		}
	}
	return string(bytes)
}

// masked is a text in which a secret, which is in lower case, is redacted.
func masked(text, secret string) string {
	var shown strings.Builder
	for low := lower(text); ; {
		i := strings.Index(low, secret)
		if i < 0 {
			return shown.String() + text
		}
		shown.WriteString(text[:i])
		shown.WriteString(redacted)
		text, low = text[i+len(secret):], low[i+len(secret):]
	}
}

// untorn is a body without the beginning of a letter that its end has cut.
func untorn(body []byte) []byte {
	for n := 1; n < utf8.UTFMax && n <= len(body); n++ {
		if last := body[len(body)-n:]; utf8.RuneStart(last[0]) {
			if !utf8.FullRune(last) {
				return body[:len(body)-n]
			}
			break
		}
	}
	return body
}
