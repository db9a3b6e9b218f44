package console

import (
	"errors"
	"html"
	"log/slog"
	"net/http"
	"net/url"

	"github.com/weir-dev/weir/collector/audit"
	"github.com/weir-dev/weir/collector/server"
)

// The paths of signing in.
const (
	pathLogin    = "/login"
	pathCallback = "/callback"
)

// outcome is how a sign-in ended, a label of the metric.
type outcome string

const (
	signedIn  outcome = "success"
	cancelled outcome = "cancelled"
	stale     outcome = "stale"
	invalid   outcome = "invalid"
	refused   outcome = "refused"
	down      outcome = "unavailable"
)

// navigates says whether a request is a browser's that opens a page, rather than one of a page's for a picture or a script.
func navigates(r *http.Request) bool {
	mode, target := r.Header.Get("Sec-Fetch-Mode"), r.Header.Get("Sec-Fetch-Dest")
	return (mode == "" || mode == "navigate") && (target == "" || target == "document")
}

// login answers GET /login: it sends a browser to the provider.
func (c *Console) login(w http.ResponseWriter, r *http.Request) {
	back := localPath(r.URL.Query().Get("return"))
	if !navigates(r) {
		c.page(w, http.StatusForbidden, "Only a page that is opened can sign in.", back)
		return
	}
	at, err := c.provider.discover(r.Context())
	if err != nil {
		c.fail(w, r, down, err, back)
		return
	}
	f := newFlow(back, c.now())
	to, err := c.provider.redirectURL(at, f)
	if err != nil {
		c.fail(w, r, down, err, back)
		return
	}
	c.keepFlow(w, r, f)
	w.Header().Set("Location", to)
	w.WriteHeader(http.StatusFound)
}

// one returns a parameter that is there once, "" where it is not.
func one(query url.Values, name string) string {
	if len(query[name]) != 1 {
		return ""
	}
	return query[name][0]
}

// callback answers GET /callback: the browser is back from the provider.
func (c *Console) callback(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	state := one(query, "state")
	f := c.flowOf(r, state)
	if f == nil || !navigates(r) {
		c.fail(w, r, stale, nil, "/")
		return
	}
	// Each sign-in has one way back, whatever becomes of it.
	c.cookies.setCookie(w, c.cookies.flow+state[:flowDigits], "", -1, http.SameSiteLaxMode)
	at, err := c.provider.discover(r.Context())
	if err != nil {
		c.fail(w, r, down, err, f.Return)
		return
	}
	code := one(query, "code")
	switch {
	case query.Has("iss") && one(query, "iss") != c.provider.Issuer, !query.Has("iss") && at.NamesIssuer:
		c.fail(w, r, invalid, malformed("the answer is that of another issuer"), f.Return)
		return
	case query.Has("error"):
		c.denied(w, one(query, "error"), f.Return)
		return
	case code == "":
		c.fail(w, r, invalid, malformed("the answer has no code"), f.Return)
		return
	}
	u, err := c.provider.exchange(r.Context(), at, f, code)
	switch {
	case errors.Is(err, errCode):
		c.fail(w, r, stale, nil, f.Return) // anybody can bring a code, so the log has none of it
	case errors.Is(err, errProvider):
		c.fail(w, r, down, err, f.Return)
	case errors.Is(err, errToken):
		c.fail(w, r, invalid, err, f.Return)
	case err != nil:
		c.fail(w, r, refused, err, f.Return)
	default:
		c.begin(w, r, u)
		w.Header().Set("Location", f.Return)
		w.WriteHeader(http.StatusSeeOther)
	}
}

// begin signs somebody in: a new session, whatever the browser had.
func (c *Console) begin(w http.ResponseWriter, r *http.Request, u *user) {
	for _, cookie := range r.CookiesNamed(c.cookies.session) {
		c.sessions.end(cookie.Value)
	}
	id, begun := c.sessions.begin(u)
	c.cookies.setCookie(w, c.cookies.session, id, begun.ends.Sub(c.now()), http.SameSiteStrictMode)
	c.cookies.setCookie(w, c.cookies.signedOut, "", -1, http.SameSiteStrictMode)
	server.Authenticated(r)
	c.metrics.signIns.WithLabelValues(string(signedIn)).Inc()
	c.audit.Write(r.Context(), audit.Entry{Act: audit.UserSignedIn, Actor: audit.Party{Kind: audit.User, Name: u.name}, Object: audit.Party{Kind: audit.Console}, Outcome: audit.Success})
}

// providerDenials say what it means that the provider has sent somebody back with an error. Other words are a stranger's.
var providerDenials = map[string]string{
	"access_denied":             "The provider has not let you in, or the sign-in was cancelled there.",
	"login_required":            "The provider asks you to sign in there first.",
	"interaction_required":      "The provider asks you to sign in there first.",
	"consent_required":          "The provider asks for your consent first.",
	"invalid_scope":             "The provider does not know one of the scopes that the console asks for.",
	"unauthorized_client":       "The provider does not let the console sign anybody in this way.",
	"unsupported_response_type": "The provider does not let the console sign anybody in this way.",
	"server_error":              "The provider has failed.",
	"temporarily_unavailable":   "The provider cannot sign anybody in at the moment.",
}

// denied answers who comes back with an error.
func (c *Console) denied(w http.ResponseWriter, code, back string) {
	text, known := providerDenials[code]
	if !known {
		code, text = "other", "The provider has sent you back without signing you in."
	}
	c.metrics.signIns.WithLabelValues(string(cancelled)).Inc()
	server.Note(w, slog.String("provider_error", code))
	c.page(w, http.StatusForbidden, text, back)
}

// fail answers a sign-in that has come to nothing.
func (c *Console) fail(w http.ResponseWriter, r *http.Request, how outcome, err error, back string) {
	c.metrics.signIns.WithLabelValues(string(how)).Inc()
	var status int
	var text string
	switch how {
	case stale:
		status, text = http.StatusBadRequest, "This sign-in has ended: it took longer than ten minutes, was begun in another browser, or has been used."
	case down:
		status, text = http.StatusServiceUnavailable, "The provider that signs people in cannot be asked, or refuses the console. Try again in a moment; the console's log says more."
	case invalid:
		status, text = http.StatusBadGateway, "What the provider said of you does not belong to this sign-in. The console's log says more."
	default:
		status, text = http.StatusForbidden, "You cannot sign in here: "+err.Error()+"."
	}
	if err != nil && how != refused {
		c.logger.WarnContext(r.Context(), "a sign-in failed", "outcome", string(how), "error", outline(err))
	} else if err != nil {
		c.logger.WarnContext(r.Context(), "a sign-in was refused", "error", err.Error())
	}
	c.page(w, status, text, back)
}

// page answers with a small page that says why somebody is not signed in.
func (c *Console) page(w http.ResponseWriter, status int, text, back string) {
	again := pathLogin + "?return=" + url.QueryEscape(back)
	body := `<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>Not signed in · Weir</title>
<link rel="icon" href="/static/icon.svg"><link rel="stylesheet" href="/static/app.css"></head>
<body><main class="alone"><div class="login panel"><h1>Not signed in</h1><p>` + html.EscapeString(text) + `</p>
<p><a href="` + html.EscapeString(again) + `">Sign in again</a></p></div></main></body>
</html>
`
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(body)) // the caller has gone: there is nobody left to tell
}
