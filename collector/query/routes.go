package query

import (
	"fmt"
	"net/http"

	"github.com/go-chi/chi/v5"

	"github.com/weir-dev/weir/collector/auth"
	"github.com/weir-dev/weir/collector/server"
)

// propertyParameter names the path parameter that holds the property id.
const propertyParameter = "property"

// MaxQueryBytes is how long a query string may be.
const MaxQueryBytes = 64 << 10

// bounded answers 414 where a query string is too long.
func bounded(handle func(http.ResponseWriter, *http.Request, *Tenant)) func(http.ResponseWriter, *http.Request, *Tenant) {
	return func(w http.ResponseWriter, r *http.Request, t *Tenant) {
		if len(r.URL.RawQuery) > MaxQueryBytes {
			server.Message(w, http.StatusRequestURITooLong, fmt.Sprintf("The query string must not be longer than %d bytes.", MaxQueryBytes))
			return
		}
		handle(w, r, t)
	}
}

// Routes mounts the read API below /api/v1, the page that describes it at /docs, and the properties' own pages below /properties. HEAD is
// answered wherever GET is.
func (h *Handler) Routes(r chi.Router) {
	r = r.With(server.SecurityHeaders, compressed)
	describe(r)
	list := r.With(h.shared, tagged)
	properties := func(w http.ResponseWriter, r *http.Request) { bounded(h.properties)(w, r, nil) }
	list.Get("/api/v1/properties", properties)
	list.Head("/api/v1/properties", properties)
	list.Options("/api/v1/properties", func(w http.ResponseWriter, _ *http.Request) { // what is no preflight, which shared answers
		w.Header().Set("Allow", "GET, HEAD, OPTIONS")
		w.WriteHeader(http.StatusNoContent)
	})
	r.Route("/api/v1/properties/{"+propertyParameter+"}", func(r chi.Router) {
		r.Use(h.shared, tagged)
		h.calls(r, entrance{h.byToken, h.refuse})
	})
	h.pages(r)
}

// calls mounts what can be asked of a property, for whoever comes in by an entrance.
func (h *Handler) calls(r chi.Router, by entrance) {
	get := func(scope auth.Scope, pattern string, handle func(http.ResponseWriter, *http.Request, *Tenant)) {
		handler := h.authorised(by, scope, bounded(handle))
		r.Get(pattern, handler)
		r.Head(pattern, handler)
	}
	get(auth.ScopeRead, "/events", h.events)
	get(auth.ScopeRead, "/events/stats", h.queued(h.eventStats))
	get(auth.ScopeRead, "/events/{"+eventParameter+"}", h.queued(h.event))
	get(auth.ScopeRead, "/deliveries", h.queued(h.deliveries))
	get(auth.ScopeRead, "/rejections", h.rejections)
	get(auth.ScopeRead, "/quality", h.quality)
	get(auth.ScopeRead, "/settings", h.settings)
	get(auth.ScopeRead, "/analytics/summary", h.queued(h.summary))
	get(auth.ScopeRead, "/analytics/daily", h.queued(h.daily))
	get(auth.ScopeRead, "/analytics/series", h.queued(h.series))
	get(auth.ScopeRead, "/analytics/breakdown", h.queued(h.breakdown))
	get(auth.ScopeRead, "/analytics/realtime", h.queued(h.realtime))
	get(auth.ScopeRead, "/analytics/funnel", h.queued(h.funnel))
	get(auth.ScopeRead, "/analytics/attribution", h.queued(h.attribution))
	get(auth.ScopeRead, "/platforms", h.platforms)
	get(auth.ScopeAdmin, "/platforms/{"+platformParameter+"}/shadow", h.shadow)
	get(auth.ScopeAdmin, "/erasures/{"+erasureParameter+"}", h.erasure)
	r.Post("/platforms/{"+platformParameter+"}/test", h.authorised(by, auth.ScopeWrite, h.testEvent))
	r.Post("/deliveries/replay", h.authorised(by, auth.ScopeWrite, h.replay))
	r.Post("/erasures", h.authorised(by, auth.ScopeAdmin, h.erase))
}
