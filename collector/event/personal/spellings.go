package personal

import (
	"encoding/base64"
	"html"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// Bounds of the search in a text's spellings. What goes beyond them is taken for a contact: nobody encodes a text so often by
// accident.
const (
	maxDecodings   = 12
	maxBase64Depth = 4
)

// inAnySpelling says whether something holds of a text, as it stands or decoded in any way, as often as there is something to
// decode. Its work is linear in the length of the text.
func inAnySpelling(text string, holds func(form string) bool) bool {
	budget := 32*len(text) + 4096
	return speltIn(text, maxBase64Depth, &budget, holds)
}

func speltIn(text string, depth int, budget *int, holds func(form string) bool) bool {
	for range maxDecodings {
		if *budget -= len(text); *budget < 0 || holds(text) {
			return true
		}
		if mayBeBase64(text) {
			for hidden := range base64Texts(text) {
				if depth == 0 || speltIn(hidden, depth-1, budget, holds) {
					return true
				}
			}
		}
		next := decodeOnce(text)
		if next == text {
			return false
		}
		text = next
	}
	return true
}

// decodeOnce undoes one layer of each encoding.
func decodeOnce(text string) string {
	text = PercentDecode(text)
	if strings.IndexByte(text, '\\') >= 0 {
		text = backslashEscape.ReplaceAllStringFunc(text, unescape)
	}
	if strings.IndexByte(text, '&') >= 0 {
		text = html.UnescapeString(namedEntity.ReplaceAllString(text, "&$1;"))
	}
	switch {
	case !isASCII(text):
		text = strings.Map(visible, norm.NFKC.String(text))
	case hasHidden(text):
		text = strings.Map(visible, text)
	}
	if hasBracketedWord(text) {
		text = dotWord.ReplaceAllString(atWord.ReplaceAllString(text, "@"), ".")
	}
	return text
}

var (
	// backslashEscape are those of JSON, JavaScript, Go and C; of octal and CSS's those that matter here; and any punctuation.
	backslashEscape = regexp.MustCompile(`\\(?:[ux]\{[0-9A-Fa-f]{1,8}\}|u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}|x[0-9A-Fa-f]{2}|100|056|0{0,4}40[ +]?|0{0,4}2[eE][ +]?|[[:punct:]nrt])`)
	// namedEntity are entities that matter here, also without their semicolon.
	namedEntity = regexp.MustCompile(`&(commat|period|percnt|lowbar|hyphen|plus|num|amp|shy|nbsp|lpar|rpar|lsqb|rsqb|bsol);?`)
	atWord      = regexp.MustCompile(`(?i)\s*[(\[{]+\s*(?:at|@)\s*[)\]}]+\s*`)
	dotWord     = regexp.MustCompile(`(?i)\s*[(\[{]+\s*(?:dot|\.)\s*[)\]}]+\s*`)
)

// hasHidden says whether a text in ASCII has a character that [isIgnorable].
func hasHidden(text string) bool {
	for i := range len(text) {
		if meanings[text[i]] == control {
			return true
		}
	}
	return false
}

// hasBracketedWord says whether a text may have an "at" or a "dot" in brackets, which most brackets have not.
func hasBracketedWord(text string) bool {
	for i := range len(text) {
		if meanings[text[i]] == bracket && isBracketedWord(text[i+1:]) {
			return true
		}
	}
	return false
}

// isBracketedWord says whether what stands behind a bracket may be an "at" or a "dot".
func isBracketedWord(text string) bool {
	word := strings.TrimLeft(text, " \t\n\f\r([{")
	return len(word) >= len("@)") && (word[0] == '@' || word[0] == '.') || len(word) >= len("at)") && (word[0]|0x20 == 'a' && word[1]|0x20 == 't' || word[0]|0x20 == 'd' && word[1]|0x20 == 'o' && word[2]|0x20 == 't')
}

// unescape returns what an escape with a backslash stands for.
func unescape(escape string) string {
	switch escape[1] {
	case 'u', 'U', 'x':
		code, err := strconv.ParseUint(strings.Trim(escape[2:], "{}"), 16, 32)
		if err != nil || !utf8.ValidRune(rune(code)) {
			return ""
		}
		return string(rune(code))
	case 'n', 'r', 't':
		return " "
	case '0', '1', '2', '4':
		if escape == `\056` || strings.ContainsAny(escape, "eE") {
			return "."
		}
		return "@"
	}
	return escape[1:]
}

// visible drops what cannot be seen, makes a point of what domains take for one, and a space of every space.
func visible(r rune) rune {
	switch {
	case isIgnorable(r):
		return -1
	case r == '。':
		return '.'
	case r >= utf8.RuneSelf && unicode.IsSpace(r):
		return ' '
	}
	return r
}

// isIgnorable says whether a character has no look of its own: formats, variation selectors, fillers, controls.
func isIgnorable(r rune) bool {
	if r < utf8.RuneSelf {
		return r < ' ' && r != '\t' && r != '\n' && r != '\r' || r == 0x7f
	}
	const brailleBlank, objectReplacement = 0x2800, 0xFFFC
	return r == brailleBlank || r == objectReplacement || unicode.In(r, unicode.Cf, unicode.Cc, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point)
}

// isUnusual says whether a text that is not ASCII has characters which stand for others, or for nothing.
func isUnusual(text string) bool {
	for _, r := range text {
		switch {
		case r < utf8.RuneSelf:
		case r >= 0xFE50 && r <= 0xFE6F, r >= 0xFF00 && r <= 0xFFEF, unicode.IsNumber(r), unicode.IsSpace(r), isIgnorable(r):
			return true
		}
	}
	return false
}

const (
	// shortestBase64 is how many characters of Base64 the shortest contact takes: six bytes.
	shortestBase64 = 8
	shortestHidden = 6
)

// base64Places says for each character at which of the four places it may stand in Base64 of text in ASCII; bit 4 is set for
// those of the alphabet.
var base64Places = func() (places [256]byte) {
	for c := range places {
		v := base64Value(byte(c))
		if v < 0 {
			continue
		}
		places[c] = 1<<4 | 1<<3
		if v >= 8 && v < 32 {
			places[c] |= 1
		}
		if v&15 >= 2 && v&15 <= 7 {
			places[c] |= 2
		}
		if v&3 <= 1 {
			places[c] |= 4
		}
	}
	return places
}()

func base64Value(c byte) int {
	switch {
	case c >= 'A' && c <= 'Z':
		return int(c - 'A')
	case c >= 'a' && c <= 'z':
		return int(c-'a') + 26
	case c >= '0' && c <= '9':
		return int(c-'0') + 52
	case c == '+' || c == '-':
		return 62
	case c == '/' || c == '_':
		return 63
	}
	return -1
}

// mayBeBase64 says whether some stretch of a text may be text in Base64, whichever of its characters that begins with. White
// space is no part of it, as where it is wrapped.
func mayBeBase64(text string) bool {
	// A byte for each of the four characters that a stretch may begin with counts how long it is by now.
	var runs uint32
	place := 0
	for i := range len(text) {
		if isWhite(text[i]) {
			continue
		}
		places := uint32(base64Places[text[i]] & 15)
		places |= places << 4
		places >>= place & 3
		place++
		mask := (places&1 | places&2<<7 | places&4<<14 | places&8<<21) * 0xFF
		if runs = (runs + 0x01010101) & mask; runs&0x08080808 != 0 {
			return true
		}
	}
	return false
}

func isWhite(c byte) bool { return c == ' ' || c == '\n' || c == '\r' || c == '\t' }

// base64Texts yields the texts that may be hidden in a text as Base64 of either alphabet, with or without padding.
func base64Texts(text string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for from := 0; from < len(text); {
			if base64Places[text[from]] == 0 {
				from++
				continue
			}
			to := from
			for to < len(text) && (base64Places[text[to]] != 0 || isWhite(text[to])) {
				to++
			}
			run := whiteSpace.Replace(text[from:to])
			from = to
			if !mayBeBase64(run) {
				continue
			}
			// In a query a plus is a space, which may stand where a line was wrapped.
			if joined := strings.ReplaceAll(run, "+", ""); joined != run && !yieldRun(joined, yield) {
				return
			}
			if !yieldRun(run, yield) {
				return
			}
		}
	}
}

var (
	whiteSpace  = strings.NewReplacer(" ", "", "\n", "", "\r", "", "\t", "")
	urlAlphabet = strings.NewReplacer("+", "-", "/", "_")
)

// yieldRun decodes a run of Base64 from each of the characters that it may begin with; it returns false where yield does.
func yieldRun(run string, yield func(string) bool) bool {
	run = urlAlphabet.Replace(run)
	for start := 0; start < 4 && len(run)-start >= shortestBase64; start++ {
		if !yieldHidden(run[start:], yield) {
			return false
		}
	}
	return true
}

// yieldHidden decodes a run of Base64 and yields what of it is text; it returns false where yield does.
func yieldHidden(run string, yield func(string) bool) bool {
	if len(run)%4 == 1 {
		run = run[:len(run)-1]
	}
	decoded, err := base64.RawURLEncoding.DecodeString(run)
	if err != nil {
		return true
	}
	if utf8.Valid(decoded) && !isASCII(string(decoded)) && !yield(string(decoded)) {
		return false
	}
	for from := 0; from < len(decoded); {
		to := from
		for to < len(decoded) && (isInk(decoded[to]) || decoded[to] == ' ' || decoded[to] == '\n' || decoded[to] == '\r' || decoded[to] == '\t') {
			to++
		}
		if to-from >= shortestHidden && !yield(string(decoded[from:to])) {
			return false
		}
		from = to + 1
	}
	return true
}

// PercentDecode decodes what is well-formed of a percent-encoding and leaves the rest as it is.
func PercentDecode(s string) string {
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
