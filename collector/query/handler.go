// Package query is the read API: listings, key figures, funnels and attribution of a property, answered from
// its view. It decodes and validates what is asked, and renders what the view says; it computes nothing.
package query

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/weir-dev/weir/collector/analytics"
	"github.com/weir-dev/weir/collector/audit"
	"github.com/weir-dev/weir/collector/auth"
	"github.com/weir-dev/weir/collector/config"
	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/server"
	"github.com/weir-dev/weir/collector/session"
)

// Tenant is one property as it is served.
type Tenant struct {
	Property config.Property
	// Location is the property's time zone.
	Location *time.Location
	// Tokens are the access tokens that may see the property.
	Tokens []auth.Credential
	// Engine answers what is asked about the property's events.
	Engine Engine
	// Replayer is the property's stream.
	Replayer Replayer
	// Reach says how far back a replay may go; nil for as far as anybody asks.
	Reach Reach
	// Eraser is the property's stream.
	Eraser Eraser
	// Events has the events themselves, of which a view keeps what it counts by.
	Events EventReader
	// Records has what became of the events, each step.
	Records RecordReader
	// Rejections has what the property's collectors refused.
	Rejections RejectionReader
	// Shadows has what platforms in the mode Shadow would have been sent.
	Shadows ShadowReader
	// Quality has which numbers have gone wrong.
	Quality QualityReader
	// States has how it stands with the platforms.
	States PlatformReader
	// Tester is the property's stream.
	Tester Tester
	// FirstUses is told of each request with one of the tokens; nil where nobody keeps that.
	FirstUses *audit.FirstUses

	// Settings are what people are told beside what is in Property.
	Settings config.Settings
	// SessionKeys seal the cookies of people who are signed in to the property's page, the first one, and open them, all; none
	// where nobody can sign in.
	SessionKeys []session.Key

	// Console takes what the cluster's console shows in place of an access token.
	Console auth.Verifier

	// reader is who asks: the access token of a request, or what stands for one.
	reader auth.Credential
	// byConsole says that a person asks through the console; reader has the person's name.
	byConsole bool
	// atTheMachine says that whoever asks sits at the machine of `weir dev`.
	atTheMachine bool
	// holds says whether what the request has shown is still worth what it was when it came.
	holds func() bool
}

// Options are what a [Handler] needs beside its tenants. Logger and Now are required.
type Options struct {
	Logger *slog.Logger
	Now    func() time.Time
	// Audit is told of exports, replays, test events and looks at what platforms would be sent; nil for none.
	Audit *audit.Log
	// Budget bounds the memory of the answers; nil for none. The views that answer share it.
	Budget *analytics.Budget
	// Local is what `weir dev` adds on the machine of its user; nil in pods.
	Local *Local
}

// Handler answers the read API for the tenants it serves. It is safe for concurrent use.
type Handler struct {
	logger  *slog.Logger
	audit   *audit.Log
	now     func() time.Time
	tenants atomic.Pointer[[]Tenant]
	// failures are the failed attempts to authenticate.
	failures *server.AddressRate
	// queue is for the queries that look at more than a page of events.
	queue  *fairQueue
	budget *analytics.Budget
	local  *Local
}

// New makes a handler that serves no tenant yet.
func New(o Options) *Handler {
	h := &Handler{logger: o.Logger, audit: o.Audit, now: o.Now, failures: newFailures(), queue: newFairQueue(), budget: o.Budget, local: o.Local}
	if h.budget == nil {
		h.budget = analytics.NewBudget(0)
	}
	h.Serve(nil)
	return h
}

// Serve replaces the tenants that are served. Requests under way finish with those they began with. The
// caller leaves the slice alone afterwards.
func (h *Handler) Serve(tenants []Tenant) { h.tenants.Store(&tenants) }

// replayRetryAfter is when a caller is asked to come back while the view still replays the streams or took too long.
const replayRetryAfter = 2 * time.Second

// redisTimeout is how long Redis may take for what it is asked for once.
const redisTimeout = 2 * time.Second

// maxRows is how many rows a figure by name or group has at most. Further ones are summed up, or on the next page.
const maxRows = 1000

// fail answers a request that the engine could not. That its store is away it does not log: whoever made the engine says so, once. smaller are the parameters by which a query that is too large can be
// made smaller.
func (h *Handler) fail(w http.ResponseWriter, r *http.Request, err error, smaller ...string) {
	if errors.Is(err, analytics.ErrTooCostly) && len(smaller) > 0 {
		var errs event.Errors
		for _, name := range smaller {
			errs.Add(name, fmt.Sprintf("The %s field must ask for less: the query takes more memory than one may.", name))
		}
		server.Invalid(w, errs)
		return
	}
	if r.Context().Err() != nil || errors.Is(err, context.DeadlineExceeded) {
		// The caller has gone or the request's time is up; a caller that only closed its sending half still reads.
		server.Unavailable(w, "The request ended before its answer was ready.", replayRetryAfter)
		return
	}
	switch {
	case errors.Is(err, errNoEntries):
		h.logger.WarnContext(r.Context(), "the events of an export cannot be read", "error", err)
		server.Unavailable(w, "The events cannot be read from Redis at the moment. JSON and CSV need no Redis.", replayRetryAfter)
		return
	case errors.Is(err, ErrCutShort):
		server.Unavailable(w, "The oldest events were trimmed before they could be read.", replayRetryAfter)
		return
	case errors.Is(err, analytics.ErrReplaying):
		server.Unavailable(w, "The property's events are still being read.", replayRetryAfter)
		return
	case errors.Is(err, analytics.ErrUnavailable):
		server.Unavailable(w, "The history cannot be read at the moment.", replayRetryAfter)
		return
	case errors.Is(err, analytics.ErrTooCostly): // whatever the caller asks for instead
		server.Unavailable(w, "The query takes more memory than one may.", replayRetryAfter)
		return
	case errors.Is(err, errQueueFull), errors.Is(err, analytics.ErrBusy):
		server.Unavailable(w, "Too many queries are being answered.", busyRetryAfter)
		return
	}
	h.logger.ErrorContext(r.Context(), "the engine failed", "error", err)
	server.Message(w, http.StatusInternalServerError, "Server Error")
}
