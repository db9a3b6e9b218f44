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

// Routes mounts the read API below /api/v1 and the page that describes it at /docs. HEAD is answered wherever GET is.
func (h *Handler) Routes(r chi.Router) {
	r = r.With(server.SecurityHeaders)
	describe(r)
	r.Route("/api/v1/properties/{"+propertyParameter+"}", func(r chi.Router) {
		get := func(pattern string, handle func(http.ResponseWriter, *http.Request, *Tenant)) {
			handler := h.authorised(auth.ScopeRead, bounded(handle))
			r.Get(pattern, handler)
			r.Head(pattern, handler)
		}
		get("/events", h.events)
		get("/events/stats", h.queued(h.eventStats))
		get("/rejections", h.rejections)
		get("/analytics/summary", h.queued(h.summary))
		get("/analytics/daily", h.queued(h.daily))
		get("/analytics/funnel", h.queued(h.funnel))
		get("/analytics/attribution", h.queued(h.attribution))
		shadow := h.authorised(auth.ScopeAdmin, bounded(h.shadow))
		r.Get("/platforms/{"+platformParameter+"}/shadow", shadow)
		r.Head("/platforms/{"+platformParameter+"}/shadow", shadow)
		r.Post("/deliveries/replay", h.authorised(auth.ScopeWrite, h.replay))
		r.Post("/erasures", h.authorised(auth.ScopeAdmin, h.erase))
		erasure := h.authorised(auth.ScopeAdmin, bounded(h.erasure))
		r.Get("/erasures/{"+erasureParameter+"}", erasure)
		r.Head("/erasures/{"+erasureParameter+"}", erasure)
	})
}
