package ingest

import (
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/weir-dev/weir/collector/server"
)

// What requests take of memory. A body is there several times over: as sent, as decoded, as stored and as it goes to
// Redis. Beside it a request takes requestBytes: its goroutine's stack, its connection's buffers, the event that it
// becomes. Both are measured, with what the garbage collector has not taken back yet.
const (
	defaultMaxInFlightBytes = 256 << 20
	bodyCopies              = 4
	requestBytes            = 32 << 10
)

// overloadedRetryAfter is when a caller is asked to send again what was shed.
const overloadedRetryAfter = time.Second

// admission bounds the memory of the requests under way. What is beyond is shed at once: a request that is told so in
// a millisecond can go elsewhere or come back, one that waits in a queue that only grows is late for everybody.
type admission struct {
	limit int64
	held  atomic.Int64
}

// enter reserves bytes and says whether there were so many. [admission.leave] gives them back.
func (a *admission) enter(bytes int64) bool {
	if a.held.Add(bytes) <= a.limit {
		return true
	}
	a.held.Add(-bytes)
	return false
}

func (a *admission) leave(bytes int64) { a.held.Add(-bytes) }

// admit lets a request in whose body may take limit bytes. Where there is no room it has answered. The result is to
// be given to [Handler.leave].
func (h *Handler) admit(s *sender, w http.ResponseWriter, r *http.Request, coding encoding, limit int64) (int64, bool) {
	bytes := limit
	if coding == identity && r.ContentLength >= 0 {
		bytes = r.ContentLength
	}
	bytes = bytes*bodyCopies + requestBytes
	if s.web == nil || h.web.enter(bytes) {
		if h.admission.enter(bytes) {
			return bytes, true
		}
		if s.web != nil {
			h.web.leave(bytes)
		}
	}
	s.note(w, slog.String("reason", "overloaded"))
	server.RetryAfter(w, overloadedRetryAfter)
	s.way.message(w, http.StatusServiceUnavailable, "The collector is overloaded. Please send the events again.")
	return 0, false
}

// leave gives back what a request was let in with.
func (h *Handler) leave(s *sender, bytes int64) {
	h.admission.leave(bytes)
	if s.web != nil {
		h.web.leave(bytes)
	}
}
