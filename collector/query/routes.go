package query

import (
	"net/http"

	"github.com/go-chi/chi/v5"

	"github.com/weir-dev/weir/collector/auth"
	"github.com/weir-dev/weir/collector/server"
)

// propertyParameter names the path parameter that holds the property id.
const propertyParameter = "property"

// Routes mounts the read API below /api/v1 and the page that describes it at /docs. HEAD is answered wherever GET is.
func (h *Handler) Routes(r chi.Router) {
	r = r.With(server.SecurityHeaders)
	describe(r)
	r.Route("/api/v1/properties/{"+propertyParameter+"}", func(r chi.Router) {
		get := func(pattern string, handle func(http.ResponseWriter, *http.Request, *Tenant)) {
			handler := h.authorised(auth.ScopeRead, handle)
			r.Get(pattern, handler)
			r.Head(pattern, handler)
		}
		get("/events", h.events)
		get("/events/stats", h.inTurn(h.eventStats))
		get("/analytics/summary", h.inTurn(h.summary))
		get("/analytics/daily", h.inTurn(h.daily))
		get("/analytics/funnel", h.inTurn(h.funnel))
		get("/analytics/attribution", h.inTurn(h.attribution))
		r.Post("/deliveries/replay", h.authorised(auth.ScopeWrite, h.replay))
	})
}
