package query

import (
	"net/http"

	"github.com/weir-dev/weir/collector/auth"
	"github.com/weir-dev/weir/collector/server"
)

// foreignOrigin is the answer to a browser that asks for a page which may not read answers.
const foreignOrigin = "The page's origin is not among the Property's query.allowedOrigins."

const (
	// preflightAge is for how long a browser may remember that it may ask, in seconds: Chromium's most.
	preflightAge = "7200"
	// sharedHeaders are the headers of answers that a page may read.
	sharedHeaders = "Weir-As-Of, Weir-Complete-From, Link, ETag, Retry-After, Content-Disposition"
)

// shared lets web pages read answers whose origin the path's property allows, and answers the preflights that their browsers make. A
// page needs a token all the same: no answer is shared because of a cookie.
func (h *Handler) shared(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header := w.Header()
		header.Add("Vary", "Origin")
		origin := r.Header.Get("Origin")
		allowed := origin != "" && allowsOrigin(*h.tenants.Load(), server.PathParameter(r, propertyParameter), origin)
		if allowed {
			header.Set("Access-Control-Allow-Origin", origin)
			header.Set("Access-Control-Expose-Headers", sharedHeaders)
		}
		switch {
		case r.Method != http.MethodOptions || origin == "" || r.Header.Get("Access-Control-Request-Method") == "":
			next.ServeHTTP(w, r)
		case !allowed:
			// Whether there is such a property is told to nobody without a token.
			server.Message(w, http.StatusForbidden, foreignOrigin)
		default:
			header.Set("Access-Control-Allow-Methods", "GET, HEAD, POST")
			header.Set("Access-Control-Allow-Headers", "Authorization, Content-Type, If-None-Match")
			header.Set("Access-Control-Max-Age", preflightAge)
			w.WriteHeader(http.StatusNoContent)
		}
	})
}

// allowsOrigin says whether pages of an origin may read the answers of a property, "" for what is of no single one.
func allowsOrigin(tenants []Tenant, property, origin string) bool {
	for i := range tenants {
		p := &tenants[i].Property
		if (property == "" || p.Name == property) && auth.OriginAllowed(p.Query.AllowedOrigins, origin) {
			return true
		}
	}
	return false
}
