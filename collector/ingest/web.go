package ingest

import (
	"log/slog"
	"net/http"
	"time"

	"github.com/weir-dev/weir/collector/auth"
	"github.com/weir-dev/weir/collector/egress"
	"github.com/weir-dev/weir/collector/server"
)

// What publishable keys may take, which anybody may have.
const (
	// addressBurst is for how many seconds an address's events may come at once: those of a page that loads.
	addressBurst = 10
	// maxAddresses bounds the addresses that are told apart, for each key.
	maxAddresses = 16384
	// webShare is the part of the memory in flight that requests of pages may hold: half of it, so that servers get
	// through a flood.
	webShare = 2
)

// pageOptional are the members of what a page sends that are left out where they are wrong: they are what the visitor's
// browser has, or what the visitor has typed, and nobody reads the answer who could put it right.
var pageOptional = []string{"user.", "context."}

// web is what bounds a publishable key.
type web struct {
	*auth.Publishable
	addresses *server.AddressRate
}

func newWeb(p *auth.Publishable) *web {
	return &web{Publishable: p, addresses: &server.AddressRate{
		PerSecond: p.EventsPerSecondPerAddress, Burst: addressBurst * p.EventsPerSecondPerAddress, MaxAddresses: maxAddresses,
	}}
}

// The answers to what browsers may not do.
const (
	foreignOrigin = "The page's origin is not among the API key's allowed origins."
	secretInPage  = "The API key is secret, and no page may use it: take a publishable one."
)

// admitPage lets a request in that has a publishable key, as far as its header tells. Else it has answered. Its connection
// does not count as authenticated: the key is no proof of anything.
func (h *Handler) admitPage(s *sender, w http.ResponseWriter, r *http.Request) (*sender, bool) {
	if !s.web.share(w, r.Header["Origin"]) {
		h.refuse(s, w, &refusal{status: http.StatusForbidden, message: foreignOrigin})
		return nil, false
	}
	address := server.ClientAddress(r, s.Property.Proxies.TrustedCIDRs)
	visiting := *s
	// What is not public is a proxy's that nobody has called one, or the cluster's own: no visitor's.
	if egress.IsPublic(address) {
		visiting.visitor.Address = address
	}
	visiting.visitor.UserAgent, visiting.visitor.Languages = r.UserAgent(), r.Header.Get("Accept-Language")
	if !visiting.allowAddress(w, 1, h.now()) {
		return nil, false
	}
	return &visiting, true
}

// share lets the page that a request comes from read the answer, where its origin is allowed, and says whether it is. A
// request without an origin comes from no page.
func (p *web) share(w http.ResponseWriter, origin []string) bool {
	header := w.Header()
	header.Add("Vary", "Origin")
	if len(origin) == 0 {
		return true
	}
	if len(origin) > 1 || !p.AllowsOrigin(origin[0]) {
		return false
	}
	header.Set("Access-Control-Allow-Origin", origin[0])
	header.Set("Access-Control-Expose-Headers", "Retry-After, X-RateLimit-Limit, X-RateLimit-Remaining")
	return true
}

// allowAddress takes n events from what the visitor's address may send. Where there are not so many it has answered.
func (s *sender) allowAddress(w http.ResponseWriter, n int, now time.Time) bool {
	if n == 0 || !s.visitor.Address.IsValid() {
		return true
	}
	wait := s.web.addresses.Take(server.Network(s.visitor.Address), n, now)
	if wait == 0 {
		return true
	}
	s.tooMany(w, n, wait)
	return false
}

// preflightAge is for how long a browser may remember the answer to a preflight, in seconds: Chromium's most.
const preflightAge = "7200"

// preflight answers what a browser asks before it sends a page's request to another origin: whether it may.
func (h *Handler) preflight(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Origin") == "" || r.Header.Get("Access-Control-Request-Method") == "" {
		server.MethodNotAllowed(w, r)
		return
	}
	s, found := h.senderOf(viaCollect, server.PathParameter(r, "api_key"))
	switch {
	case !found:
		refuseKey(w, viaCollect)
	case s.web == nil:
		s.note(w, slog.String("reason", secretInPage))
		server.Message(w, http.StatusForbidden, secretInPage)
	case !s.web.share(w, r.Header["Origin"]):
		s.note(w, slog.String("reason", foreignOrigin))
		server.Message(w, http.StatusForbidden, foreignOrigin)
	default:
		allowPosting(w, "Content-Type, Content-Encoding")
	}
}

// allowPosting answers a preflight: the page may post, with these fields in the header.
func allowPosting(w http.ResponseWriter, fields string) {
	w.Header().Set("Access-Control-Allow-Methods", http.MethodPost)
	w.Header().Set("Access-Control-Allow-Headers", fields)
	w.Header().Set("Access-Control-Max-Age", preflightAge)
	w.WriteHeader(http.StatusNoContent)
}

// script answers with what a page loads to send with the key in the path.
func (h *Handler) script(w http.ResponseWriter, r *http.Request) {
	s, found := h.senderOf(viaCollect, server.PathParameter(r, "api_key"))
	switch {
	case !found:
		refuseKey(w, viaCollect)
	case s.web == nil:
		s.note(w, slog.String("reason", secretInPage))
		server.Message(w, http.StatusForbidden, secretInPage)
	default:
		h.snippet.ServeHTTP(w, r)
	}
}
