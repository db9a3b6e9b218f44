package console

import (
	"errors"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/collector/auth"
	"github.com/weir-dev/weir/collector/config"
	"github.com/weir-dev/weir/collector/server"
)

const unauthenticated = "Unauthenticated."

// unavailableAfter is when a caller is asked to come back while somebody else does not answer.
const unavailableAfter = 5 * time.Second

// sessionOf returns the session that a request's cookie stands for, nil where there is none. Where several cookies have the name,
// somebody has planted one: none of them says who is signed in.
func (c *Console) sessionOf(r *http.Request) *session {
	cookies := r.CookiesNamed(c.cookies.session)
	if len(cookies) != 1 {
		return nil
	}
	return c.sessions.find(cookies[0].Value)
}

// instant renders a time as RFC 3339 in UTC with milliseconds, as the read API does.
func instant(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z07:00") }

type sessionAnswer struct {
	Data sessionRecord `json:"data"`
}

type sessionRecord struct {
	User      string `json:"user"`
	ExpiresAt string `json:"expires_at"`
}

// noSession says where somebody may sign in who is not.
type noSession struct {
	Message string `json:"message"`
	SignIn  string `json:"sign_in"`
	// SignedOut says that somebody has signed out in this browser, who is not to be sent to the provider unasked: that might sign them in
	// again at once.
	SignedOut bool `json:"signed_out,omitzero"`
}

// session answers GET /session: who is signed in.
func (c *Console) session(w http.ResponseWriter, r *http.Request) {
	found := c.sessionOf(r)
	if found == nil {
		server.JSON(w, http.StatusUnauthorized, noSession{unauthenticated, strings.TrimPrefix(pathLogin, "/"), c.hasSignedOut(r)})
		return
	}
	server.Authenticated(r)
	server.JSON(w, http.StatusOK, sessionAnswer{sessionRecord{found.user.name, instant(found.ends)}})
}

// signedOutLasts is how long a browser remembers that somebody has signed out, or until somebody signs in.
const signedOutLasts = 12 * time.Hour

// hasSignedOut says whether a browser remembers that. It may be anybody's word: all that it does is to wait for a click.
func (c *Console) hasSignedOut(r *http.Request) bool {
	return len(r.CookiesNamed(c.cookies.signedOut)) > 0
}

type signedOutAnswer struct {
	Data signedOut `json:"data"`
}

type signedOut struct {
	// EndSessionURL ends the session at the provider as well; null where it has no such place.
	EndSessionURL *string `json:"end_session_url"`
}

// signOut answers DELETE session: the session has ended, in this browser and for whoever has a copy of the cookie.
func (c *Console) signOut(w http.ResponseWriter, r *http.Request) {
	for _, cookie := range r.CookiesNamed(c.cookies.session) {
		c.sessions.end(cookie.Value)
	}
	c.cookies.setCookie(w, c.cookies.session, "", -1, http.SameSiteStrictMode)
	c.cookies.setCookie(w, c.cookies.signedOut, "1", signedOutLasts, http.SameSiteStrictMode)
	var answer signedOutAnswer
	if to := c.provider.endSessionURL(c.base.JoinPath("/").String()); to != "" {
		answer.Data.EndSessionURL = &to
	}
	server.JSON(w, http.StatusOK, answer)
}

// signedIn lets in who is signed in.
func (c *Console) signedIn(handle func(http.ResponseWriter, *http.Request, *session)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		found := c.sessionOf(r)
		if found == nil {
			server.JSON(w, http.StatusUnauthorized, noSession{unauthenticated, pathLogin, c.hasSignedOut(r)})
			return
		}
		server.Authenticated(r)
		handle(w, r, found)
	}
}

// visit is a request of somebody's for a Property that they are to know of.
type visit struct {
	*session
	property *v1alpha1.Property
	// scope is what they may do with its events, "" for nothing.
	scope auth.Scope
}

// atProperty lets in who is signed in and is to know of the path's Property; others are answered as if there were none.
func (c *Console) atProperty(handle func(http.ResponseWriter, *http.Request, *visit)) http.HandlerFunc {
	return c.signedIn(func(w http.ResponseWriter, r *http.Request, s *session) {
		found, err := c.visit(r, s)
		switch {
		case err == nil:
			handle(w, r, found)
		case errors.Is(err, errNotFound):
			server.Message(w, http.StatusNotFound, "Property not found.")
		default:
			c.unavailable(w, r, err)
		}
	})
}

// unavailable answers a request that the API server, or the cache of it, has not answered.
func (c *Console) unavailable(w http.ResponseWriter, r *http.Request, err error) {
	if r.Context().Err() == nil {
		c.logger.WarnContext(r.Context(), "the API server does not answer the console", "error", err)
	}
	server.Unavailable(w, "The API server does not answer the console at the moment.", unavailableAfter)
}

// visit finds the path's Property and what somebody may do there. The error is [errNotFound], or that nobody knows.
func (c *Console) visit(r *http.Request, s *session) (*visit, error) {
	namespace, name := server.PathParameter(r, namespaceParameter), server.PathParameter(r, propertyParameter)
	scoped, visible, err := view(r.Context(), c.authoriser.may, s.user, namespace, name)
	if err != nil {
		return nil, err
	}
	if !visible {
		return nil, errNotFound
	}
	property := &v1alpha1.Property{}
	err = c.cached.Get(r.Context(), client.ObjectKey{Namespace: namespace, Name: name}, property)
	switch {
	case apierrors.IsNotFound(err) || outsideOfCache(err):
		return nil, errNotFound
	case err != nil:
		return nil, err
	case property.Spec.OperatorClass != c.class:
		return nil, errNotFound
	}
	return &visit{s, property, scoped}, nil
}

// outsideOfCache says whether an error is that the console does not watch a namespace.
func outsideOfCache(err error) bool {
	return err != nil && strings.Contains(err.Error(), "unknown namespace for the cache")
}

type propertySessionAnswer struct {
	Data propertySession `json:"data"`
}

// propertySession is who is signed in at a Property's page, in the form in which the Property's own query pods say it.
type propertySession struct {
	Property  string `json:"property"`
	Namespace string `json:"namespace"`
	// Token is the user's name: there is no token.
	Token string `json:"token"`
	// Scope is null for who may see the Property and none of its numbers.
	Scope     *auth.Scope `json:"scope"`
	ExpiresAt string      `json:"expires_at"`
	Loopback  bool        `json:"loopback"`
	Console   bool        `json:"console"`
}

type noPropertySession struct {
	Message   string `json:"message"`
	Loopback  bool   `json:"loopback"`
	SignIn    string `json:"sign_in"`
	SignedOut bool   `json:"signed_out,omitzero"`
}

// propertySession answers GET session below a Property's page.
func (c *Console) propertySession(w http.ResponseWriter, r *http.Request) {
	if c.sessionOf(r) == nil {
		back := "/namespaces/" + server.PathParameter(r, namespaceParameter) + "/properties/" + server.PathParameter(r, propertyParameter) + "/"
		server.JSON(w, http.StatusUnauthorized, noPropertySession{
			Message: unauthenticated, SignIn: pathLogin + "?return=" + url.QueryEscape(back), SignedOut: c.hasSignedOut(r),
		})
		return
	}
	c.atProperty(func(w http.ResponseWriter, _ *http.Request, v *visit) {
		server.JSON(w, http.StatusOK, propertySessionAnswer{propertySession{
			Property: v.property.Name, Namespace: v.property.Namespace, Token: v.user.name, Scope: scopeOrNull(v.scope),
			ExpiresAt: instant(v.ends), Console: true,
		}})
	})(w, r)
}

// scopeOrNull renders no scope as null.
func scopeOrNull(s auth.Scope) *auth.Scope {
	if s == "" {
		return nil
	}
	return &s
}

// namespacePattern is a label of RFC 1123, as namespaces are named.
var namespacePattern = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)

// namesProperty answers 404 where the path names what no Property can be called. So nothing but letters, digits and hyphens of a path
// comes into a question to the API server, or into the host of a Service.
func namesProperty(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !namespacePattern.MatchString(server.PathParameter(r, namespaceParameter)) || !config.IsPropertyName(server.PathParameter(r, propertyParameter)) {
			server.NotFound(w, r)
			return
		}
		next.ServeHTTP(w, r)
	})
}
