package personal

import "unicode/utf8"

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
