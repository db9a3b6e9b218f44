package deliver

import (
	"cmp"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"html"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/weir-dev/weir/collector/platforms"
)

// redacted stands for a credential in what is shown.
const redacted = "…"

// What is shown in the place of an answer.
const (
	hasCredential = "The answer is not shown: it repeats a credential, written in a way in which it cannot be taken out."
	noText        = "The answer is not shown: it is no text in UTF-8."
)

// leastSought is how long a secret is at least that answers are searched for in any way of writing, in bytes: a shorter one would be
// found everywhere.
const leastSought = 8

// redactor takes credentials out of what a platform has answered.
type redactor struct {
	// secrets are replaced, in all forms in which one is mostly written, with ASCII letters in lower case; the longest come first.
	secrets []string
	// sought are folded; an answer that has one of them in any of its readings is not shown.
	sought []string
}

// newRedactor knows the credentials, what a request's headers had of them, and others, in all the forms in which they may be repeated.
func newRedactor(credentials map[string]string, header http.Header, others ...string) redactor {
	plain := slices.Clone(others)
	for _, value := range credentials {
		plain = append(append(plain, value), secretsIn(value)...)
	}
	for _, name := range []string{"Authorization", "Access-Token", "Webhook-Signature"} {
		for _, value := range header.Values(name) {
			_, behindScheme, _ := strings.Cut(value, " ")
			plain = append(plain, value, behindScheme)
		}
	}
	var r redactor
	for _, secret := range plain {
		secret = strings.TrimSpace(secret)
		for _, form := range forms(secret) {
			if form != "" {
				r.secrets = append(r.secrets, lower(form))
			}
		}
		if len(secret) >= leastSought {
			r.sought = append(r.sought, traces(secret)...)
		}
	}
	// The longest come first: a secret that another one begins with must not leave the rest of that.
	slices.SortFunc(r.secrets, func(a, b string) int { return cmp.Or(len(b)-len(a), strings.Compare(a, b)) })
	r.secrets = slices.Compact(r.secrets)
	slices.Sort(r.sought)
	r.sought = slices.Compact(r.sought)
	return r
}

// addressSecrets are the parts of a webhook's address that may let in whoever knows them: what stands behind the host, where it is
// long enough to be none of the usual words, and a name and password.
func addressSecrets(cfg *platforms.Platform) (list []string) {
	if cfg.Webhook == nil {
		return nil
	}
	address, err := url.Parse(cfg.Webhook.URL)
	if err != nil {
		return nil // nothing is sent there
	}
	password, _ := address.User.Password()
	parts := []string{address.EscapedPath(), address.RawQuery, address.User.Username(), password}
	for _, values := range address.Query() {
		parts = append(parts, values...)
	}
	for _, part := range parts {
		if len(part) >= leastSought {
			list = append(list, part)
		}
	}
	return list
}

// secretsIn are the parts of a credential that are secret by themselves: the private keys of a service account's key, whole and line
// by line, and in any other text the keys that are replaced one by one.
func secretsIn(text string) []string {
	var members map[string]any
	if json.Unmarshal([]byte(text), &members) != nil {
		return strings.Fields(text)
	}
	var keys []string
	for name, member := range members {
		if key, isText := member.(string); isText && strings.HasPrefix(name, "private_key") {
			keys = append(append(keys, key), strings.Split(key, "\n")...)
		}
	}
	return keys
}

// forms are the ways in which a text is mostly written in an answer.
func forms(text string) []string {
	if text == "" {
		return nil
	}
	marshalled, _ := json.Marshal(text) // of a text, which cannot fail
	quoted := string(marshalled[1 : len(marshalled)-1])
	list := []string{
		text, quoted, strings.ReplaceAll(quoted, "/", `\/`), url.QueryEscape(text), url.PathEscape(text), html.EscapeString(text),
		hex.EncodeToString([]byte(text)),
	}
	for _, encoding := range []*base64.Encoding{base64.StdEncoding, base64.RawStdEncoding, base64.URLEncoding, base64.RawURLEncoding} {
		list = append(list, encoding.EncodeToString([]byte(text)))
	}
	return list
}

// text is the beginning of an answer's body as text, without credentials and of so many bytes at most. Where there is one that cannot
// be taken out, or the body is no text, it is a sentence that says so.
func (r redactor) text(body []byte, most int) string {
	text := string(untorn(body))
	if !utf8.ValidString(text) {
		text = noText
	}
	for _, secret := range r.secrets {
		text = masked(text, secret)
	}
	if r.repeatedIn(text) {
		text = hasCredential
	}
	if len(text) <= most {
		return text
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:most]
}
