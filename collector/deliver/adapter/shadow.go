package adapter

import (
	"encoding/base64"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/weir-dev/weir/collector/platforms"
)

// hidden stands for a credential in a request that is shown.
const hidden = "…"

// standIns are for credentials of which an adapter checks the form; [hidden] is for all others.
var standIns = map[string]string{
	"signingSecret": "whsec_" + base64.StdEncoding.EncodeToString(make([]byte, 24)),
}

// OpenShadow makes a platform of its configuration and the rule by which it gets events, for a look at what it would be sent: no
// credential is asked for, so that none can be shown. Nothing may be sent with it. Its errors are those of [Open].
func OpenShadow(cfg platforms.Platform, rule platforms.ConsentRule) (*Platform, error) {
	return Open(cfg, StandIns(cfg.Type), rule)
}

// StandIns are in place of the credentials of a type where requests are only shown.
func StandIns(kind platforms.Type) map[string]string {
	credentials := map[string]string{}
	for _, key := range kind.SecretKeys(true) {
		credentials[key] = hidden
		if standIn, has := standIns[key]; has {
			credentials[key] = standIn
		}
	}
	return credentials
}

// The ways in which a body is shown.
const (
	// AsJSON: Body is the body.
	AsJSON = "json"
	// AsText: Body is a JSON string that has it.
	AsText = "text"
	// AsBase64: Body is a JSON string that has it in base64.
	AsBase64 = "base64"
)

// Shown is a request as it is shown to the owner.
type Shown struct {
	// Method and URL are "" for a platform that gets no requests.
	Method, URL string
	// Header has each header's values, with commas between them.
	Header map[string]string
	// Body is a JSON value, as Encoding says.
	Body     jsontext.Value
	Encoding string
}

// Show shows the request that a platform which was opened with [StandIns] would be sent for one event, as of now. It fails where the event cannot
// be written as JSON.
func (p *Platform) Show(payload Payload, now time.Time) (Shown, error) {
	request := p.Build([]Payload{payload}, now)
	if request.Lines != nil {
		var line members
		for _, attribute := range request.Lines[0] {
			line = append(line, member{attribute.Key, attribute.Value.Any()})
		}
		body, err := json.Marshal(line)
		return Shown{Body: body, Encoding: AsJSON}, err
	}
	shown := Shown{Method: request.Method, URL: request.URL, Header: map[string]string{}}
	for _, escaped := range []string{url.QueryEscape(hidden), url.PathEscape(hidden)} {
		shown.URL = strings.ReplaceAll(shown.URL, escaped, hidden)
	}
	for name, values := range request.Header {
		shown.Header[name] = shownHeader(name, values)
	}
	var err error
	shown.Body, shown.Encoding, err = shownBody(request.Body)
	return shown, err
}

// shownHeader hides what was made of a credential's stand-in, which says nothing.
func shownHeader(name string, values []string) string {
	if http.CanonicalHeaderKey(name) == "Authorization" || strings.Contains(strings.ToLower(name), "signature") {
		return hidden
	}
	return strings.Join(values, ", ")
}

func shownBody(body []byte) (jsontext.Value, string, error) {
	switch {
	case jsontext.Value(body).IsValid():
		return body, AsJSON, nil
	case utf8.Valid(body):
		text, err := json.Marshal(string(body))
		return text, AsText, err
	default:
		text, err := json.Marshal(base64.StdEncoding.EncodeToString(body))
		return text, AsBase64, err
	}
}
