package query

import (
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/weir-dev/weir/collector/auth"
	"github.com/weir-dev/weir/collector/server"
)

// entrance is a way in which callers show who they are.
type entrance struct {
	// find says what the caller of a request may see at a time.
	find func(*http.Request, time.Time) grant
	// refuse answers a caller who has shown nothing that is known.
	refuse http.HandlerFunc
}

// authorised lets a request through to handle when what it shows at the entrance may see the path's property and its
// scope allows what is needed; it answers as the entrance refuses, 404 or 403 otherwise.
func (h *Handler) authorised(by entrance, needed auth.Scope, handle func(http.ResponseWriter, *http.Request, *Tenant)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		came := h.now()
		grant := by.find(r, came)
		if grant.known {
			server.Authenticated(r)
		}
		grant.noteUse()
		switch {
		case !grant.known:
			by.refuse(w, r)
		case grant.tenant == nil:
			server.Message(w, http.StatusNotFound, "Property not found.")
		case !grant.credential.Scope.Allows(needed):
			server.Message(w, http.StatusForbidden, "This action is unauthorized.")
		default:
			asked := *grant.tenant
			asked.reader, asked.atTheMachine, asked.byConsole = grant.credential, grant.loopback, grant.signed
			asked.holds = func() bool {
				at := h.now()
				if grant.signed { // for a moment: the console, which has asked, goes on looking whether its user may have the answer
					at = came
				}
				now := by.find(r, at)
				return now.known && now.tenant != nil && propertyOf(now.tenant) == propertyOf(&asked) && now.credential.Scope.Allows(needed)
			}
			handle(w, r, &asked)
		}
	}
}

// errLapsed says that what a caller has shown is worth nothing any more.
var errLapsed = errors.New("the token or the session has ended")

// holdsFor is how long what a caller has shown is taken to be worth what it was, while an answer is written.
const holdsFor = 2 * time.Second

// lapsing returns what looks again, every so often, whether an answer's caller may still have it.
func (h *Handler) lapsing(t *Tenant) func() error {
	looked := h.now()
	return func() error {
		if now := h.now(); now.Sub(looked) >= holdsFor {
			if !t.holds() {
				return errLapsed
			}
			looked = now
		}
		return nil
	}
}

// byToken finds what the bearer token of a request may see.
func (h *Handler) byToken(r *http.Request, now time.Time) grant {
	tenants, token, property := *h.tenants.Load(), bearerToken(r.Header), server.PathParameter(r, propertyParameter)
	if auth.LooksSigned(token) {
		return findSigned(tenants, token, property, now)
	}
	return findGrant(tenants, token, property, now)
}

// refuse answers a failed attempt to authenticate: 401, or 429 to an address from which too many have failed.
func (h *Handler) refuse(w http.ResponseWriter, r *http.Request) {
	server.Refuse(w)
	if wait := h.failures.Take(server.RemoteAddress(r), 1, h.now()); wait > 0 {
		server.RetryAfter(w, wait)
		server.Message(w, http.StatusTooManyRequests, "Too many failed attempts.")
		return
	}
	w.Header().Set("WWW-Authenticate", "Bearer")
	server.Message(w, http.StatusUnauthorized, "Unauthenticated.")
}

// bearerToken returns the token of the Authorization header, "" where there is none.
func bearerToken(header http.Header) string {
	scheme, token, _ := strings.Cut(header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.Trim(token, " ")
}

// grant is what a token is good for.
type grant struct {
	// known says that the token is in force for some tenant.
	known bool
	// tenant is the property that was asked for, nil where the token may not see it or it does not exist.
	tenant *Tenant
	// credential is the token; where loopback, what stands for one.
	credential auth.Credential
	// loopback says that the caller is signed in without having shown a token.
	loopback bool
	// signed says that the console has vouched for the caller, whose name is the credential's.
	signed bool
}

// noteUse notes that the token has been used.
func (g *grant) noteUse() {
	if g.tenant != nil && !g.loopback && !g.signed {
		g.tenant.FirstUses.Of(g.credential).Note()
	}
}

// findGrant finds what a token is good for at a property.
func findGrant(tenants []Tenant, token, property string, now time.Time) grant {
	var found grant
	for _, g := range grantsOf(tenants, token, now) {
		found.known = true
		if g.tenant.Property.Name == property {
			found = g
		}
	}
	return found
}

// findSigned finds what a token that the console has signed is good for at a property: each is for one alone.
func findSigned(tenants []Tenant, token, property string, now time.Time) grant {
	for i := range tenants {
		if tenants[i].Property.Name != property {
			continue
		}
		if credential, ok := tenants[i].Console.Verify(token, now); ok {
			return grant{known: true, tenant: &tenants[i], credential: credential, signed: true}
		}
	}
	return grant{}
}

// grantsOf returns what a token is good for, by property. It is compared with the tokens of all tenants, whatever is found on the
// way: how long that takes tells nothing about a guess.
func grantsOf(tenants []Tenant, token string, now time.Time) (grants []grant) {
	for i := range tenants {
		if credential, ok := auth.Match(tenants[i].Tokens, token, now); ok {
			grants = append(grants, grant{known: true, tenant: &tenants[i], credential: credential})
		}
	}
	return grants
}
