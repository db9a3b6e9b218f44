package fakes

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/weir-dev/weir/collector/platforms"
)

// request is what a fake judges.
type request struct {
	*http.Request
	body               []byte
	now                time.Time
	accounts           []Account
	refused, forbidden map[string]bool
	// objects are what the server's buckets have.
	objects *bucket
	// platform is set by account, or by whoever finds the account by what a request shows.
	platform string
	// google is what a fake of Google remembers.
	google *googleMemory
}

// account returns the one that matches, or nil.
func (q *request) account(matches func(platforms.Platform) bool) *Account {
	for i := range q.accounts {
		if matches(q.accounts[i].Platform) {
			q.platform = q.accounts[i].Platform.Name
			return &q.accounts[i]
		}
	}
	return nil
}

// isJSON says whether the request is a POST of JSON.
func (q *request) isJSON() bool {
	return q.Method == http.MethodPost && strings.HasPrefix(q.Header.Get("Content-Type"), "application/json")
}

// answer is what a fake says.
type answer struct {
	status      int
	contentType string
	// header has what is answered beside the content type; nil for nothing.
	header map[string]string
	body   string
	// events, erasure and complaint are for the receipt.
	events    []Event
	erasure   *Erasure
	complaint string
	// test says that the request came in the platform's test mode.
	test bool
}

func (a answer) write(w http.ResponseWriter) {
	if a.contentType != "" {
		w.Header().Set("Content-Type", a.contentType)
	}
	for name, value := range a.header {
		w.Header().Set(name, value)
	}
	w.WriteHeader(a.status)
	_, _ = io.WriteString(w, a.body) // the sender may have gone
}

// complain adds to an answer what the receipt says of the request.
func (a answer) complain(format string, args ...any) answer {
	a.complaint = fmt.Sprintf(format, args...)
	return a
}

// answerJSON makes an answer of a value that is known to marshal.
func answerJSON(status int, value any) answer {
	text, err := json.Marshal(value)
	if err != nil {
		return answer{status: http.StatusInternalServerError, complaint: err.Error()}
	}
	return answer{status: status, contentType: "application/json", body: string(text)}
}

// unmarshal reads a body, and says what is wrong where it cannot.
func unmarshal[T any](text []byte, options ...json.Options) (T, string) {
	var value T
	if err := json.Unmarshal(text, &value, options...); err != nil {
		// The decoder's message names the member and its type; it may also repeat the value, so it is not shown.
		return value, "the body is not of the platform's form"
	}
	return value, ""
}

var hexHash = regexp.MustCompile(`^[0-9a-f]{64}$`)

// emptyHashes are of nothing, or of a word for nothing.
var emptyHashes = hashesOf("", "null", "undefined", "none", "n/a", "anonymous", "guest", "0", "00000000-0000-0000-0000-000000000000")

func hashesOf(texts ...string) map[string]bool {
	set := map[string]bool{}
	for _, text := range texts {
		sum := sha256.Sum256([]byte(text))
		set[hex.EncodeToString(sum[:])] = true
	}
	return set
}

// checkHash says what is wrong with a hash, "" where nothing is.
func (q *request) checkHash(field, hash string) string {
	switch {
	case !hexHash.MatchString(hash):
		return field + " is no SHA-256 in lower-case hexadecimal"
	case emptyHashes[hash]:
		return field + " is the hash of nothing"
	case q.forbidden[hash]:
		return field + " is the hash of something that was not normalised"
	}
	return ""
}

// checkHashes notes a person's hashes with the event and what is wrong with them.
func (q *request) checkHashes(e *Event, field string, hashes ...string) {
	for _, hash := range hashes {
		if hash == "" {
			continue
		}
		if e.Hashes == nil {
			e.Hashes = map[string][]string{}
		}
		e.Hashes[field] = append(e.Hashes[field], hash)
		e.refuse(q.checkHash(field, hash))
	}
}

// refuse notes the first reason for which an event is refused; "" is none.
func (e *Event) refuse(reason string) {
	if e.Refusal == "" {
		e.Refusal = reason
	}
}

// checkAge refuses an event that is older or further ahead than the platform takes.
func (q *request) checkAge(e *Event, at time.Time, oldest, ahead time.Duration) {
	switch age := q.now.Sub(at); {
	case age > oldest:
		e.refuse("too old")
	case age < -ahead:
		e.refuse("in the future")
	}
}

// amount is a JSON number as text; other types are refused by the decoder.
type amount string

// UnmarshalJSON takes numbers only.
func (a *amount) UnmarshalJSON(text []byte) error {
	if kind := jsontext.Value(text).Kind(); kind != '0' {
		return fmt.Errorf("must be a number, not %v", kind)
	}
	*a = amount(text)
	return nil
}

// strict refuses members that the platform does not know.
var strict = json.RejectUnknownMembers(true)

var (
	email = regexp.MustCompile(`[^\s@/:?=&"]+(@|%40)[^\s@/"]+\.[^\s@/"]+`)
	phone = regexp.MustCompile(`^\+[1-9][0-9]{6,14}$`)
)

// rawPersonIn returns the path of the first text that reads like an e-mail address or a phone number, "" where
// there is none or the body is no JSON.
func rawPersonIn(body []byte) string {
	var tree any
	if err := json.Unmarshal(body, &tree); err != nil {
		return ""
	}
	return rawPerson(tree, "")
}

func rawPerson(value any, path string) string {
	switch value := value.(type) {
	case string:
		if email.MatchString(value) || phone.MatchString(value) {
			return strings.TrimPrefix(path, ".")
		}
	case []any:
		for i, item := range value {
			if found := rawPerson(item, fmt.Sprintf("%s.%d", path, i)); found != "" {
				return found
			}
		}
	case map[string]any:
		for name, member := range value {
			if found := rawPerson(member, path+"."+name); found != "" {
				return found
			}
		}
	}
	return ""
}
