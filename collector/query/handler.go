// Package query is the read API: listings, key figures, funnels and attribution of a property, answered from
// its view. It decodes and validates what is asked, and renders what the view says; it computes nothing.
package query

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/weir-dev/weir/collector/analytics"
	"github.com/weir-dev/weir/collector/auth"
	"github.com/weir-dev/weir/collector/config"
	"github.com/weir-dev/weir/collector/server"
)

// Tenant is one property as it is served.
type Tenant struct {
	Property config.Property
	// Location is the property's time zone.
	Location *time.Location
	// Tokens are the access tokens that may see the property.
	Tokens []auth.Credential
	View   *analytics.View
	// Replayer is the property's stream.
	Replayer Replayer
}

// Options are what a [Handler] needs beside its tenants. Both are required.
type Options struct {
	Logger *slog.Logger
	Now    func() time.Time
}

// Handler answers the read API for the tenants it serves. It is safe for concurrent use.
type Handler struct {
	logger  *slog.Logger
	now     func() time.Time
	tenants atomic.Pointer[[]Tenant]
	// failures are the failed attempts to authenticate.
	failures failures
	// turns are for the questions that look at more than a page of events.
	turns *turns
}

// New makes a handler that serves no tenant yet.
func New(o Options) *Handler {
	h := &Handler{logger: o.Logger, now: o.Now, turns: newTurns()}
	h.Serve(nil)
	return h
}

// Serve replaces the tenants that are served. Requests under way finish with those they began with. The
// caller leaves the slice alone afterwards.
func (h *Handler) Serve(tenants []Tenant) { h.tenants.Store(&tenants) }

// replayRetryAfter is when a caller is asked to come back while the view still replays the streams or took too long.
const replayRetryAfter = 2 * time.Second

// fail answers a request that the view could not.
func (h *Handler) fail(w http.ResponseWriter, r *http.Request, err error) {
	if r.Context().Err() != nil || errors.Is(err, context.DeadlineExceeded) {
		// The caller has gone or the request's time is up; a caller that only closed its sending half still reads.
		server.Unavailable(w, "The request ended before its answer was ready.", replayRetryAfter)
		return
	}
	switch {
	case errors.Is(err, analytics.ErrReplaying):
		server.Unavailable(w, "The property's events are still being read.", replayRetryAfter)
		return
	case errors.Is(err, errCrowded):
		server.Unavailable(w, "Too many questions are being answered.", crowdedRetryAfter)
		return
	}
	h.logger.ErrorContext(r.Context(), "the view failed", "error", err)
	server.Message(w, http.StatusInternalServerError, "Server Error")
}
