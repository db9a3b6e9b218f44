package deliver

import (
	"cmp"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"
)

// redacted stands for a credential in what is shown.
const redacted = "…"

// redactor takes credentials out of what a platform has answered.
type redactor struct{ secrets []string }

// newRedactor knows the credentials and what a request's headers had of them, in all the forms in which they may be repeated.
func newRedactor(credentials map[string]string, header http.Header) redactor {
	var plain []string
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
		for _, form := range forms(strings.TrimSpace(secret)) {
			if form != "" {
				r.secrets = append(r.secrets, form)
			}
		}
	}
	// The longest come first: a secret that another one begins with must not leave the rest of that.
	slices.SortFunc(r.secrets, func(a, b string) int { return cmp.Or(len(b)-len(a), strings.Compare(a, b)) })
	r.secrets = slices.Compact(r.secrets)
	return r
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

// forms are the ways in which a text may be written in an answer.
func forms(text string) []string {
	if text == "" {
		return nil
	}
	quoted, _ := json.Marshal(text) // of a text, which cannot fail
	list := []string{text, strings.Trim(string(quoted), `"`), url.QueryEscape(text), url.PathEscape(text), hex.EncodeToString([]byte(text))}
	for _, encoding := range []*base64.Encoding{base64.StdEncoding, base64.RawStdEncoding, base64.URLEncoding, base64.RawURLEncoding} {
		list = append(list, encoding.EncodeToString([]byte(text)))
	}
	return list
}

// text is the beginning of an answer's body as text, without credentials and of so many bytes at most.
func (r redactor) text(body []byte, most int) string {
	text := strings.ToValidUTF8(string(body), "\ufffd")
	for _, secret := range r.secrets {
		text = strings.ReplaceAll(text, secret, redacted)
	}
	if len(text) <= most {
		return text
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:most]
}
