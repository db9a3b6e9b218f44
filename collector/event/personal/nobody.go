package personal

import (
	"crypto/sha256"
	"maps"
	"slices"
	"strings"
	"unicode"

	"github.com/google/uuid"
	"golang.org/x/text/cases"
	"golang.org/x/text/language"
	"golang.org/x/text/unicode/norm"

	"github.com/weir-dev/weir/collector/event"
)

// nobodies are what programs write for an id that they do not have, in lower case and without anything but letters. Taken
// for an id, each would be one person whom all the visitors share.
var nobodies = map[string]bool{
	"null": true, "nil": true, "none": true, "nan": true, "na": true, "undefined": true, "unknown": true, "empty": true,
	"notset": true, "notavailable": true, "notapplicable": true, "missing": true, "true": true, "false": true,
	"anonymous": true, "anon": true, "guest": true, "notauthenticated": true, "notloggedin": true, "nobody": true,
	"objectobject": true, "id": true, "clientid": true, "distinctid": true, "userid": true, "visitorid": true, "email": true,
	"objectundefined": true, "objectnull": true, "anonymoususer": true, "guestuser": true, "noid": true, "unset": true, "uid": true, "cid": true,
	"nullptr": true, "nonetype": true, "novalue": true, "redacted": true, "deleted": true, "optedout": true,
}

// hashedNobodies are the hashes of what programs write for an id that they do not have, as they write it.
var hashedNobodies = func() map[event.Hash]bool {
	var all event.Hash
	for i := range all {
		all[i] = 0xff
	}
	hashes := map[event.Hash]bool{all: true}
	for _, text := range slices.Concat(slices.Collect(maps.Keys(nobodies)), placeholders[:], []string{
		"0", "-1", "-", " ", "nan", "not set", "(not set)", "not available", "[object object]", "[object undefined]", "[object null]", "{}", "[]", `""`,
		uuid.Nil.String(), uuid.Max.String(),
	}) {
		for _, spelling := range []string{text, strings.ToUpper(text), cases.Title(language.Und).String(text)} {
			hashes[sha256.Sum256([]byte(spelling))] = true
			hashes[sha256.Sum256([]byte(spelling+"\n"))] = true
		}
	}
	for _, spelling := range []string{"NaN", "[object Object]", "[object Undefined]", "[object Null]"} {
		hashes[sha256.Sum256([]byte(spelling))] = true
	}
	return hashes
}()

// withoutCookiePrefix returns an id without what Google Analytics' cookie has before it, as in GA1.2.
func withoutCookiePrefix(id string) string {
	if len(id) < len("GA1.2.") || id[0]|0x20 != 'g' || id[1]|0x20 != 'a' || id[2] < '0' || id[2] > '9' || id[3] != '.' {
		return id
	}
	if rest := strings.TrimLeft(id[4:], "0123456789"); strings.HasPrefix(rest, ".") {
		return rest[1:]
	}
	return id
}

// longestNobody bounds how long an id is looked at as a word.
const longestNobody = 64

// IsNobody says whether an id is one of nobody: a word such as "null", nothing but zeros and punctuation, -1, the nil UUID or
// the one of all ones, or the hash of a placeholder.
func IsNobody(id string) bool {
	if len(id) > longestNobody {
		return false
	}
	id = withoutCookiePrefix(id)
	if isASCII(id) && len(id) < longestNobody && strings.ContainsAny(id, "123456789") {
		return Trim(id) == "-1" // like nearly all
	}
	if hash, ok := event.ParseHash(id); ok {
		return hash.IsZero() || isPlaceholderHash(hash)
	}
	if id, err := uuid.Parse(id); err == nil {
		return id == uuid.Nil || id == uuid.Max
	}
	word := make([]rune, 0, longestNobody)
	for _, r := range lower(norm.NFKC.String(id)) {
		switch {
		case r == '0', unicode.IsPunct(r), !isVisible(r), isASCIISymbol(r):
		default:
			word = append(word, r)
		}
	}
	// "null.null" is no more than "null".
	half := len(word) / 2
	return len(word) == 0 || nobodies[string(word)] || slices.Equal(word[:half], word[half:]) && nobodies[string(word[:half])]
}

func isASCIISymbol(r rune) bool { return r < unicode.MaxASCII && unicode.IsSymbol(r) }

// WithoutNobody returns an id, "" where it is one of nobody.
func WithoutNobody(id string) string {
	if id == "" || IsNobody(id) {
		return ""
	}
	return id
}
