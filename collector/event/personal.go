package event

import (
	"crypto/sha256"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// personalData finds what tells of a person in the texts that come beside the person's own fields. What the caller
// sent as a hash cannot be looked for; e-mail addresses are found whoever's they are.
type personalData struct {
	// email and name are trimmed and in lower case, phone is digits; "" for what is not known.
	email, phone, name string
}

// personalDataOf takes an e-mail address and a first name that are trimmed and in lower case, and an E.164 number.
func personalDataOf(email, phone, name string) personalData {
	p := personalData{email: lower(norm.NFKC.String(email)), phone: strings.TrimPrefix(phone, "+"), name: name}
	if isPlaceholder(p.name) || utf8.RuneCountInString(p.name) < 2 {
		// A placeholder or a single letter would be found wherever one looks.
		p.name = ""
	}
	return p
}

// emailLike is deliberately wider than an address: what is taken for one by mistake is merely not kept. Before the "@" there may be
// space, as behind it; its domain ends with a label that begins with a letter, or is an IP address. A byte that is no UTF-8 counts as a symbol.
var emailLike = regexp.MustCompile(`(?:[^\s@<>("',;:/?&=\\]|"[^"@,:{}\[\]]*")[\s+]*@[\s+]*` +
	`(?:(?:[\pL\pN\pM\p{So}_-]+\.)+\pL[\pL\pN\pM_-]+|[0-9]{1,3}(?:\.[0-9]{1,3}){3}|\[(?:(?i)IPv6:)?[0-9A-Fa-f:.]{3,}\])`)

// retina is what follows the "@" in the names of images for screens of a higher density.
var retina = regexp.MustCompile(`^[1-9](?:\.[0-9])?x\.(?i:png|jpe?g|webp|gif|avif|svg)\b`)

// contactIn says whether a text holds an e-mail address or this person's phone number, however it is encoded.
func (p *personalData) contactIn(text string) bool {
	switch suspicionOf(text) {
	case noContact:
		return false
	case plainNumber:
		return p.phoneIn(text)
	default:
		return p.contactInAnySpelling(text)
	}
}

func (p *personalData) contactInAnySpelling(text string) bool {
	return inAnySpelling(text, func(form string) bool { return p.emailIn(form) || p.phoneIn(form) })
}

// emailIn looks for anybody's e-mail address.
func (p *personalData) emailIn(text string) bool {
	if strings.IndexByte(text, '@') < 0 {
		return false
	}
	for _, found := range emailLike.FindAllStringIndex(text, -1) {
		domain := found[0] + strings.IndexByte(text[found[0]:], '@') + 1
		if !retina.MatchString(text[domain:]) {
			return true
		}
	}
	return p.email != "" && strings.Contains(lower(text), p.email)
}

// shortestPhone is how many digits a phone number has at least; fewer are any number.
const shortestPhone = 7

// What a character may mean for a text that holds a contact.
const (
	aside byte = iota
	digit
	letter
	capital
	tell // by itself
	ampersand
	bracket
	control
	wide
)

// meanings are those of the bytes of a text.
var meanings = func() (meanings [256]byte) {
	for c := range meanings {
		switch {
		case c == '@' || c == '%' || c == '\\':
			meanings[c] = tell
		case c == '&':
			meanings[c] = ampersand
		case c == '(' || c == '[' || c == '{':
			meanings[c] = bracket
		case c >= '0' && c <= '9':
			meanings[c] = digit
		case c >= 'a' && c <= 'z':
			meanings[c] = letter
		case c >= 'A' && c <= 'Z':
			meanings[c] = capital
		case c >= utf8.RuneSelf:
			meanings[c] = wide
		case isIgnorable(rune(c)):
			meanings[c] = control
		}
	}
	return meanings
}()

// suspicion says how to look for a contact in a text.
type suspicion byte

const (
	// noContact: not at all.
	noContact suspicion = iota
	// plainNumber: for a phone number, and in the text as it stands: nothing in it is encoded.
	plainNumber
	// anyContact: for anything in any spelling, which costs much more.
	anyContact
)

// suspicionOf looks at a text once: an address has an "@" and a number its digits with nothing but punctuation between them,
// unless either is encoded. Base64 of a contact has capitals.
func suspicionOf(text string) suspicion {
	digits, number, capitals, unusual, foreign := 0, false, false, false, false
	for i := range len(text) {
		switch meanings[text[i]] {
		case tell:
			return anyContact
		case digit:
			digits++
			number = number || digits == shortestPhone
		case letter:
			digits = 0
		case capital:
			digits, capitals = 0, true
		case ampersand, bracket:
			if isEncoded(meanings[text[i]], text[i+1:]) {
				return anyContact
			}
			unusual = unusual || text[i] == '&'
		case control:
			unusual = true
		case wide:
			foreign = true
		}
	}
	switch {
	case number && (unusual || foreign), foreign && isUnusual(text), (number || capitals) && len(text) >= shortestBase64 && mayBeBase64(text):
		return anyContact
	case number:
		return plainNumber
	default:
		return noContact
	}
}

// isEncoded says whether an entity or a word in brackets may begin with an "&" or a bracket that the rest stands behind.
func isEncoded(meaning byte, rest string) bool {
	if meaning == ampersand {
		return isEntity(rest)
	}
	return isBracketedWord(rest)
}

// isEntity says whether what stands behind an "&" may be an entity, which a query's next parameter is not.
func isEntity(text string) bool {
	length := 0
	for length < len(text) && meanings[text[length]] >= digit && meanings[text[length]] <= capital {
		length++
	}
	return length < len(text) && text[length] != '=' && text[length] != '_' && text[length] != '&'
}

// isPersonal says whether a value is a contact or, as a whole, this person's first name.
func (p *personalData) isPersonal(value string) bool {
	if p.contactIn(value) {
		return true
	}
	if p.name == "" {
		return false
	}
	return inAnySpelling(strings.ReplaceAll(value, "+", " "), func(form string) bool { return lower(trim(form)) == p.name })
}

// mentionedIn says whether a text holds a contact or this person's first name.
func (p *personalData) mentionedIn(text string) bool {
	if p.contactIn(text) {
		return true
	}
	if p.name == "" {
		return false
	}
	return inAnySpelling(text, func(form string) bool { return containsWord(lower(form), p.name) })
}

// withoutContact returns text, or "" where a contact is in it.
func (p *personalData) withoutContact(text string) string {
	if p.contactIn(text) {
		return ""
	}
	return text
}

// hashedContact returns id, or the SHA-256 of its lower-trimmed form where a contact is in it: it still tells one
// visitor from another then.
func (p *personalData) hashedContact(id string) string {
	if !p.contactIn(id) {
		return id
	}
	return Hash(sha256.Sum256([]byte(lower(trim(id))))).String()
}

// phoneIn looks for the phone number, however it is punctuated and in whatever digits, with or without its country code,
// and whatever numbers stand beside it.
func (p *personalData) phoneIn(text string) bool {
	if p.phone == "" {
		return false
	}
	// Most texts have few digits, which need no memory of their own.
	run := make([]byte, 0, 64)
	groups := make([]int, 0, 16) // where in the run there was something between two digits
	apart := true
	for _, r := range strings.ReplaceAll(text, "(0)", "") {
		switch value, isDigit := digitValue(r); {
		case isDigit:
			if apart {
				groups = append(groups, len(run))
			}
			run, apart = append(run, '0'+value), false
		case unicode.IsLetter(r):
			if len(run) >= shortestPhone && p.isPhone(run, groups) {
				return true
			}
			run, groups, apart = run[:0], groups[:0], true
		default:
			apart = true
		}
	}
	return p.isPhone(run, groups)
}

// digitValue returns the value of a decimal digit of any script.
func digitValue(r rune) (value byte, isDigit bool) {
	if r < utf8.RuneSelf {
		return byte(r - '0'), r >= '0' && r <= '9'
	}
	return digitOf(r)
}

func digitOf(r rune) (value byte, isDigit bool) {
	if !unicode.IsDigit(r) {
		return 0, false
	}
	for _, digits := range unicode.Nd.R16 { // each is of as many tens of digits as follow one another
		if r >= rune(digits.Lo) && r <= rune(digits.Hi) {
			return byte(r-rune(digits.Lo)) % 10, true
		}
	}
	for _, digits := range unicode.Nd.R32 {
		if r >= rune(digits.Lo) && r <= rune(digits.Hi) {
			return byte(r-rune(digits.Lo)) % 10, true
		}
	}
	return 0, false
}

// longestCountryCode is how many digits of a phone number may be its country's.
const longestCountryCode = 3

// isPhone says whether the phone number is among a text's digits: without its country code anywhere, or the end of it as so many
// whole groups of digits.
func (p *personalData) isPhone(run []byte, groups []int) bool {
	if len(run) < shortestPhone {
		return false
	}
	national := p.phone[min(longestCountryCode, max(0, len(p.phone)-shortestPhone)):]
	if strings.Contains(string(run), national) {
		return true
	}
	for i, from := range groups {
		for j := i + 1; j <= len(groups); j++ {
			to := len(run)
			if j < len(groups) {
				to = groups[j]
			}
			local := strings.TrimLeft(string(run[from:min(to, from+32)]), "0")
			if len(local) >= shortestPhone && strings.HasSuffix(p.phone, local) {
				return true
			}
			if to-from > len(p.phone)+2 {
				break
			}
		}
	}
	return false
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

// percentDecode decodes what is well-formed of a percent-encoding and leaves the rest as it is.
func percentDecode(s string) string {
	if strings.IndexByte(s, '%') < 0 {
		return strings.ToValidUTF8(s, "\uFFFD")
	}
	decoded := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		if s[i] == '%' && i+5 < len(s) && (s[i+1] == 'u' || s[i+1] == 'U') {
			if code, err := strconv.ParseUint(s[i+2:i+6], 16, 16); err == nil {
				decoded = utf8.AppendRune(decoded, rune(code))
				i += 5
				continue
			}
		}
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
