package query

import (
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/weir-dev/weir/collector/auth"
	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/server"
	"github.com/weir-dev/weir/collector/session"
)

// sessionCookie is the name of the cookie that says who is signed in at a host. A port that is not the scheme's own has a cookie of
// its own: browsers send what they keep to all ports of a host, and there may be a `weir dev` at each. Where the cookie is for https,
// the prefix has browsers take it from nothing that came by http.
func sessionCookie(host string) string {
	name := "weir-session"
	if !isLoopbackHost(host) {
		name = "__Secure-" + name
	}
	_, port, err := net.SplitHostPort(host)
	if err == nil {
		_, err = strconv.ParseUint(port, 10, 16)
	}
	if err != nil {
		return name
	}
	return name + "_" + port
}

// maxSignInBody bounds the body by which somebody signs in, in bytes.
const maxSignInBody = 4 << 10

// noSessionKeys is the answer where nobody can sign in.
const noSessionKeys = "This process has no keys for sessions: nobody can sign in to the page. The API takes access tokens."

// bySession finds what the cookie of a request may see. The token under which somebody has signed in has to be in force still.
func (h *Handler) bySession(r *http.Request, now time.Time) grant {
	found, _ := h.openSession(r, now)
	return found
}

// openSession also returns when the session ends. Another page of the host can plant a cookie beside the person's own, which a
// browser puts first where its path is longer. Where several do not say the same, none of them says who is signed in.
func (h *Handler) openSession(r *http.Request, now time.Time) (found grant, end time.Time) {
	tenants := *h.tenants.Load()
	for i, cookie := range r.CookiesNamed(sessionCookie(r.Host)) {
		one, until := h.openCookie(r, tenants, cookie.Value, now)
		if !one.known || i > 0 && !one.same(found) {
			return grant{}, time.Time{}
		}
		if i == 0 || until.Before(end) {
			found, end = one, until
		}
	}
	return found, end
}

// openCookie finds what one cookie's value may see of the path's property.
func (h *Handler) openCookie(r *http.Request, tenants []Tenant, value string, now time.Time) (grant, time.Time) {
	property := server.PathParameter(r, propertyParameter)
	for i := range tenants {
		t := &tenants[i]
		if t.Property.Name != property {
			continue
		}
		s, opened := session.Open(t.SessionKeys, propertyOf(t), value, now)
		if !opened {
			continue
		}
		if s.Loopback {
			if h.atTheMachine(r) {
				return ofDeveloper(t), s.ExpirationTime
			}
			continue
		}
		if token, inForce := auth.MatchHash(t.Tokens, s.Token, now); inForce {
			return grant{known: true, tenant: t, credential: token}, s.ExpirationTime
		}
	}
	return grant{}, time.Time{}
}

// same says whether two grants are of one token, or both of who sits at the machine.
func (g grant) same(other grant) bool {
	return g.tenant == other.tenant && g.credential.Hash == other.credential.Hash && g.loopback == other.loopback
}

// refuseSession answers who is not signed in. There is nothing to guess, so nothing is counted.
func (h *Handler) refuseSession(w http.ResponseWriter, _ *http.Request) {
	server.Message(w, http.StatusUnauthorized, "Unauthenticated.")
}

type sessionAnswer struct {
	Data sessionRecord `json:"data"`
}

// sessionRecord is who is signed in. Token is the token's name, "weir dev" for who has shown none.
type sessionRecord struct {
	Property  string     `json:"property"`
	Token     string     `json:"token"`
	Scope     auth.Scope `json:"scope"`
	ExpiresAt string     `json:"expires_at"`
	Loopback  bool       `json:"loopback"`
}

// noSession says how somebody may sign in who is not.
type noSession struct {
	Message string `json:"message"`
	// Loopback says that it takes no token.
	Loopback bool `json:"loopback"`
}

// session answers GET session: who is signed in.
func (h *Handler) session(w http.ResponseWriter, r *http.Request) {
	grant, end := h.openSession(r, h.now())
	if !grant.known {
		_, errs := h.atLoopback(r, server.PathParameter(r, propertyParameter))
		server.JSON(w, http.StatusUnauthorized, noSession{"Unauthenticated.", len(errs) == 0})
		return
	}
	server.Authenticated(r)
	server.JSON(w, http.StatusOK, sessionAnswer{sessionRecord{
		Property: grant.tenant.Property.Name, Token: grant.credential.Name, Scope: grant.credential.Scope,
		ExpiresAt: instant(end), Loopback: grant.loopback,
	}})
}

// signIn answers POST session: a new session for who shows an access token, or sits at the machine of `weir dev`. Whatever cookie
// came with the request is replaced.
func (h *Handler) signIn(w http.ResponseWriter, r *http.Request) {
	asked, ok := readSignIn(w, r)
	if !ok {
		return
	}
	if strings.HasPrefix(r.Header.Get("Origin"), "http://") && !isLoopbackHost(r.Host) {
		server.Message(w, http.StatusUnprocessableEntity, "Signing in needs https, or a page on localhost: a browser keeps the session's cookie nowhere else.")
		return
	}
	property, now := server.PathParameter(r, propertyParameter), h.now()
	var found grant
	if asked.loopback {
		var errs event.Errors
		if found, errs = h.atLoopback(r, property); len(errs) > 0 {
			server.Invalid(w, errs)
			return
		}
	} else {
		found = findGrant(*h.tenants.Load(), asked.token, property, now)
	}
	switch {
	case !found.known:
		h.refuse(w, r)
	case found.tenant == nil:
		server.Message(w, http.StatusNotFound, "Property not found.")
	case len(found.tenant.SessionKeys) == 0:
		server.Message(w, http.StatusServiceUnavailable, noSessionKeys)
	default:
		server.Authenticated(r)
		found.noteUse()
		end := session.Until(now, found.credential)
		value := found.tenant.SessionKeys[0].Seal(propertyOf(found.tenant), session.Session{
			Token: found.credential.Hash, ExpirationTime: end, Loopback: found.loopback,
		})
		setSession(w, r, property, value, max(1, int(end.Sub(now).Seconds())))
		w.WriteHeader(http.StatusNoContent)
	}
}

// signOut answers DELETE session: the browser forgets the cookie.
func (h *Handler) signOut(w http.ResponseWriter, r *http.Request) {
	setSession(w, r, server.PathParameter(r, propertyParameter), "", -1)
	w.WriteHeader(http.StatusNoContent)
}

// setSession has a browser keep the cookie for some seconds, -1 to forget it: for the property's page alone, out of scripts' reach,
// and over https, but on the machine itself.
// What somebody may have planted at the page's other paths, and would stand against the session, is forgotten.
func setSession(w http.ResponseWriter, r *http.Request, property, value string, seconds int) {
	cookie := http.Cookie{ //nolint:gosec // Secure is left out on the machine itself alone, where Safari would drop it
		Name: sessionCookie(r.Host), Value: value, Path: pagePath(property), MaxAge: seconds,
		HttpOnly: true, Secure: !isLoopbackHost(r.Host), SameSite: http.SameSiteStrictMode,
	}
	http.SetCookie(w, &cookie)
	base := cookie.Path
	for _, path := range []string{strings.TrimSuffix(base, "/"), base + "api", base + "api/", base + "session"} {
		cookie.Value, cookie.Path, cookie.MaxAge = "", path, -1
		http.SetCookie(w, &cookie)
	}
}

// ofDeveloper is what who sits at the machine of `weir dev` may see and do: all. Whoever may read its files has the keys.
func ofDeveloper(t *Tenant) grant {
	return grant{known: true, tenant: t, credential: auth.Credential{Name: "weir dev", Scope: auth.ScopeAdmin}, loopback: true}
}

// atLoopback lets in who sits at the machine of `weir dev`, as far as the property's name says which one is meant.
func (h *Handler) atLoopback(r *http.Request, property string) (found grant, errs event.Errors) {
	if !h.atTheMachine(r) {
		errs.Add("loopback", "The loopback field is for a browser on the machine of weir dev, at localhost or 127.0.0.1; sign in with the token field.")
		return grant{}, errs
	}
	found.known = true
	tenants := *h.tenants.Load()
	for i := range tenants {
		if tenants[i].Property.Name != property {
			continue
		}
		if found.tenant != nil {
			errs.Add("loopback", "The loopback field is for a name that one Property has; here several namespaces have one: sign in with the token field.")
			return grant{}, errs
		}
		found = ofDeveloper(&tenants[i])
	}
	return found, nil
}

// signInRequest is a body by which somebody signs in.
type signInRequest struct {
	token    string
	loopback bool
}

// readSignIn reads the body, which has one of the members. Where it is false the request has been answered.
func readSignIn(w http.ResponseWriter, r *http.Request) (asked signInRequest, ok bool) {
	members, ok := readMembers[jsontext.Value](w, r, maxSignInBody)
	if !ok {
		return signInRequest{}, false
	}
	errs := unknownMembers(members, "loopback", "token")
	token, loopback := members["token"], members["loopback"]
	if loopback != nil && string(loopback) != "true" {
		errs.Add("loopback", "The loopback field must be true, or absent.")
	}
	if token != nil && (token.Kind() != '"' || json.Unmarshal(token, &asked.token) != nil || asked.token == "") {
		errs.Add("token", "The token field must be an access token, a string that begins with "+auth.AccessTokenPrefix+".")
	}
	if asked.loopback = loopback != nil; asked.loopback == (token != nil) && len(errs) == 0 {
		errs.Add("token", "Either the token field is required, or the loopback field.")
	}
	if len(errs) > 0 {
		server.Invalid(w, errs)
		return signInRequest{}, false
	}
	return asked, true
}
