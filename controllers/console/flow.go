package console

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"time"

	"golang.org/x/oauth2"
)

const (
	// flowLasts is how long somebody may take at the provider.
	flowLasts = 10 * time.Minute
	// maxFlows is how many sign-ins of a browser may be under way; where there are more, all but the new one are forgotten.
	maxFlows = 4
	// flowDigits of a sign-in's state are in its cookie's name.
	flowDigits = 8
	// maxReturn bounds where somebody may be sent back to, so that the cookie is not too long for a browser.
	maxReturn = 1024
)

// flow is a sign-in that is under way. It is kept by the browser, sealed, so that nobody can fill the console's memory with them.
type flow struct {
	State    string    `json:"state"`
	Nonce    string    `json:"nonce"`
	Verifier string    `json:"verifier"`
	Return   string    `json:"return"`
	Ends     time.Time `json:"ends"`
}

func newFlow(back string, now time.Time) *flow {
	return &flow{State: rand.Text(), Nonce: rand.Text(), Verifier: oauth2.GenerateVerifier(), Return: back, Ends: now.Add(flowLasts)}
}

// sealer seals what a browser keeps. Its key lasts as long as the process.
type sealer struct{ cipher.AEAD }

func newSealer() sealer {
	key := make([]byte, 32)
	rand.Read(key) // never fails: crypto/rand ends the program instead
	block, err := aes.NewCipher(key)
	if err != nil {
		panic(err) // the key's length is right
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		panic(err)
	}
	return sealer{aead}
}

// flowContext is authenticated with each sealed flow.
const flowContext = "sign-in"

func (s sealer) seal(f *flow) string {
	text, err := json.Marshal(f)
	if err != nil {
		panic(err) // strings and a time
	}
	return base64.RawURLEncoding.EncodeToString(s.Seal(nil, nil, text, []byte(flowContext))) //nolint:gosec // it makes a random nonce itself
}

// open returns a flow that has not ended, nil where there is none.
func (s sealer) open(value string, now time.Time) *flow {
	sealed, err := base64.RawURLEncoding.DecodeString(value)
	if err != nil {
		return nil
	}
	text, err := s.Open(nil, nil, sealed, []byte(flowContext))
	var f flow
	if err != nil || json.Unmarshal(text, &f) != nil || !now.Before(f.Ends) {
		return nil
	}
	return &f
}

// flowOf returns the sign-in of a browser that has come back with a state, nil where there is none, or more than one.
func (c *Console) flowOf(r *http.Request, state string) *flow {
	if len(state) < flowDigits {
		return nil
	}
	cookies := r.CookiesNamed(c.cookies.flow + state[:flowDigits])
	if len(cookies) != 1 {
		return nil
	}
	f := c.sealer.open(cookies[0].Value, c.now())
	if f == nil || subtle.ConstantTimeCompare([]byte(f.State), []byte(state)) != 1 {
		return nil
	}
	return f
}

// cookieNames are those of the console's cookies. With the prefix a browser takes them by https from this host alone, so that no other
// host can plant one.
type cookieNames struct {
	session, flow, signedOut string
	// secure says that they are for https.
	secure bool
}

func namesFor(base *url.URL) cookieNames {
	if base.Scheme == "https" {
		return cookieNames{session: "__Host-weir-console", flow: "__Host-weir-console-sign-in-", signedOut: "__Host-weir-console-out", secure: true}
	}
	return cookieNames{session: "weir-console", flow: "weir-console-sign-in-", signedOut: "weir-console-out"}
}

// setCookie has a browser keep a value for some time, or forget it where that is negative.
func (n cookieNames) setCookie(w http.ResponseWriter, name, value string, lasts time.Duration, site http.SameSite) {
	seconds := -1
	if lasts > 0 {
		seconds = max(1, int(lasts/time.Second))
	}
	http.SetCookie(w, &http.Cookie{ //nolint:gosec // Secure is left out on the machine itself alone, where Safari would drop it
		Name: name, Value: value, Path: "/", MaxAge: seconds, HttpOnly: true, Secure: n.secure, SameSite: site,
	})
}

// keepFlow has the browser keep a sign-in. Those that it has begun before are forgotten where they are too many.
func (c *Console) keepFlow(w http.ResponseWriter, r *http.Request, f *flow) {
	var before []string
	for _, cookie := range r.Cookies() {
		if strings.HasPrefix(cookie.Name, c.cookies.flow) {
			before = append(before, cookie.Name)
		}
	}
	if len(before) >= maxFlows {
		for _, name := range before {
			c.cookies.setCookie(w, name, "", -1, http.SameSiteLaxMode)
		}
	}
	// Lax, for the browser comes back from the provider's site.
	c.cookies.setCookie(w, c.cookies.flow+f.State[:flowDigits], c.sealer.seal(f), flowLasts, http.SameSiteLaxMode)
}

// localPath returns where somebody wants to be sent back to, "/" where that is not a path of this host.
func localPath(text string) string {
	if len(text) > maxReturn || !strings.HasPrefix(text, "/") || strings.HasPrefix(text, "//") || strings.ContainsAny(text, `\`) || strings.ContainsFunc(text, unprintable) {
		return "/"
	}
	parsed, err := url.Parse(text)
	if err != nil || parsed.Scheme != "" || parsed.Host != "" || parsed.User != nil || parsed.Path == pathLogin || parsed.Path == pathCallback {
		return "/"
	}
	return parsed.String()
}
