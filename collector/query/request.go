package query

import (
	"net/http"
	"time"

	"github.com/weir-dev/weir/collector/analytics"
	"github.com/weir-dev/weir/collector/server"
)

// request is what a handler knows of an authorised request before it asks the view.
type request struct {
	parameters
	tenant *Tenant
	// status is the view's before it is asked: the answer knows at least as much.
	status analytics.Status
	// now ends the periods that reach until now.
	now time.Time
}

// read reads the parameters of a call that knows some.
func (h *Handler) read(r *http.Request, t *Tenant, known []parameter) *request {
	q := &request{
		parameters: parameters{pairs: parseQuery(r.URL.RawQuery), aliases: t.Property.EventAliases},
		tenant:     t,
		status:     t.Engine.Status(r.Context()),
		now:        h.now().Truncate(time.Millisecond),
	}
	q.check(known)
	// Events carry the time of Redis's clock. Where that runs ahead of this machine's, the newest of them are
	// part of "until now" all the same.
	if newest := q.status.AsOf.Add(time.Millisecond); newest.After(q.now) {
		q.now = newest
	}
	return q
}

// proceed says whether the view is to be asked. Where it is not, it has answered: 422 with the parameters'
// errors, or 503 while the view cannot answer truthfully yet.
func (q *request) proceed(w http.ResponseWriter) bool {
	switch {
	case len(q.errs) > 0:
		server.Invalid(w, q.errs)
		return false
	case !q.status.Ready:
		server.Unavailable(w, "The property's events are still being read.", replayRetryAfter)
		return false
	}
	if q.status.Last != 0 {
		w.Header().Set("Weir-As-Of", instant(q.status.AsOf))
	}
	return true
}

// completeFrom returns the time from which on an answer is complete where trimming has cut into what lies
// after start, else nil. from is what the answer itself says.
func completeFrom(from, start time.Time) *string {
	if !from.After(start) {
		return nil
	}
	return optional(instant(from))
}
