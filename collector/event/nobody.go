package event

import (
	"strings"
	"unicode"

	"github.com/google/uuid"
	"golang.org/x/text/unicode/norm"
)

// nobodies are what programs write for an id that they do not have, in lower case and without anything but letters. Taken
// for an id, each would be one person whom all the visitors share.
var nobodies = map[string]bool{
	"null": true, "nil": true, "none": true, "nan": true, "na": true, "undefined": true, "unknown": true, "empty": true,
	"notset": true, "notavailable": true, "notapplicable": true, "missing": true, "true": true, "false": true,
	"anonymous": true, "anon": true, "guest": true, "notauthenticated": true, "notloggedin": true, "nobody": true,
	"objectobject": true, "id": true, "clientid": true, "distinctid": true, "userid": true, "visitorid": true, "email": true,
	"nullnull": true, "undefinedundefined": true,
}

// longestNobody bounds how long an id is looked at as a word.
const longestNobody = 64

// isNobody says whether an id is one of nobody: a word such as "null", nothing but zeros and punctuation, -1, the nil UUID or
// the one of all ones, or the hash of a placeholder.
func isNobody(id string) bool {
	if len(id) > longestNobody {
		return false
	}
	if isASCII(id) && len(id) < longestNobody && strings.ContainsAny(id, "123456789") {
		return trim(id) == "-1" // like nearly all
	}
	if hash, ok := parseHash(id); ok {
		return hash.IsZero() || isPlaceholderHash(hash)
	}
	if id, err := uuid.Parse(id); err == nil {
		return id == uuid.Nil || id == uuid.Max
	}
	word := make([]rune, 0, longestNobody)
	for _, r := range lower(norm.NFKC.String(id)) {
		switch {
		case r == '0', unicode.IsPunct(r), isBlank(r), unicode.Is(unicode.Cf, r), isASCIISymbol(r):
		default:
			word = append(word, r)
		}
	}
	return len(word) == 0 || nobodies[string(word)]
}

func isASCIISymbol(r rune) bool { return r < unicode.MaxASCII && unicode.IsSymbol(r) }

// withoutNobody returns an id, "" where it is one of nobody.
func withoutNobody(id string) string {
	if id == "" || isNobody(id) {
		return ""
	}
	return id
}

// withoutPlaceholder returns an event's id, "" where it is a word for none. Numbers, zero too, may count the events of a caller.
func withoutPlaceholder(id string) string {
	if id != "" && isNobody(id) && (strings.ContainsFunc(id, unicode.IsLetter) || len(id) == len(uuid.Nil.String())) {
		return ""
	}
	return id
}
