package ingest

import (
	"context"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/server"
	"github.com/weir-dev/weir/collector/stream"
)

// retryAfter is when a caller is asked to send again what could not be stored.
const retryAfter = 2 * time.Second

// storeTimeout bounds how long a request waits for Redis in all, where it asks it more than once.
const storeTimeout = 2500 * time.Millisecond

// allowTimeout is how much of that the rate limit may take: a Redis that hangs must leave time for storing.
const allowTimeout = 500 * time.Millisecond

// collect answers POST /collect/{api_key}: one event.
func (h *Handler) collect(w http.ResponseWriter, r *http.Request) {
	s, ok := h.authenticate(w, r, viaCollect)
	if !ok {
		return
	}
	limit := s.Property.Limits.MaxBodyBytes
	coding, refused := negotiate(r, limit, s.mediaTypes())
	if refused != nil {
		h.refuse(s, w, refused)
		return
	}
	held, ok := h.admit(s, w, r, coding, limit)
	if !ok {
		return
	}
	defer h.leave(s, held)
	body, err := h.bodies.read(r, coding, limit)
	if err != nil {
		h.refuse(s, w, err)
		return
	}
	defer h.bodies.release(body)

	sent := h.envelope()
	defer h.forget(sent)
	if err := sent.Decode(body.bytes); err != nil {
		h.refuse(s, w, err)
		return
	}
	ctx, cancel := s.deadline(r.Context())
	defer cancel()
	now := h.now()
	if !s.allow(ctx, w, 1, now) {
		return
	}
	valid, errs := h.prepare(s, sent, now)
	if len(errs) > 0 {
		s.counters.reject(errs)
		s.list(s.rejectionOf(now, sent, errs, errs))
		s.invalid(w, errs)
		return
	}
	added, err := s.append(ctx, []stream.Addition{valid.Addition})
	if err != nil {
		s.unavailable(w, now, err, 1)
		return
	}
	s.count(now, &valid, added[0])
	if server.Sampled(w) {
		s.note(w, slog.Bool("duplicate", added[0].Duplicate))
	}
	body.bytes = appendAdded(body.reuse(), added[0])
	accept(w, body.bytes)
}

// deadline bounds all that a request asks of Redis. Appending alone bounds itself. A client that leaves ends nothing: what
// it has sent whole is stored, and an id that it sends again is a duplicate.
func (s *sender) deadline(ctx context.Context) (context.Context, context.CancelFunc) {
	if s.rate.EventsPerSecond == 0 {
		return context.WithoutCancel(ctx), func() {}
	}
	return context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
}

// allow asks whether n more events may come now. Where they may not it has answered. Every event counts that is
// sent, be it valid or not. With Redis out of reach nobody can say; the append that follows then decides.
func (s *sender) allow(ctx context.Context, w http.ResponseWriter, n int, now time.Time) bool {
	if !s.allowAddress(w, n-1, now) { // the first was counted when the request came
		return false
	}
	if s.rate.EventsPerSecond == 0 {
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, allowTimeout)
	defer cancel()
	allowance, err := s.Limiter.Allow(ctx, s.rate, n)
	if err != nil {
		return true
	}
	w.Header().Set("X-RateLimit-Limit", strconv.Itoa(allowance.Limit))
	w.Header().Set("X-RateLimit-Remaining", strconv.Itoa(allowance.Remaining))
	if allowance.OK {
		return true
	}
	s.tooMany(w, n, allowance.RetryAfter)
	return false
}

// tooMany answers a request whose n events may not come before some time is over.
func (s *sender) tooMany(w http.ResponseWriter, n int, wait time.Duration) {
	s.counters.limited.Add(float64(n))
	s.note(w)
	server.RetryAfter(w, wait)
	s.way.message(w, http.StatusTooManyRequests, "Too many requests.")
}

// invalid answers a request with the errors of what it sent.
func (s *sender) invalid(w http.ResponseWriter, errs event.Errors) {
	s.note(w, slog.String("fields", fields(errs)))
	s.way.invalid(w, errs)
}

// fields lists the first few fields that errors are about.
func fields(errs event.Errors) string {
	var names []string
	for _, fieldErr := range errs[:min(len(errs), 5)] {
		names = append(names, fieldErr.Field)
	}
	return strings.Join(names, " ")
}

// unavailable answers a request whose n events could not be stored for certain.
func (s *sender) unavailable(w http.ResponseWriter, now time.Time, err error, n int) {
	if s.Tally != nil {
		s.Tally.Lost(now, n)
	}
	s.counters.unavailable.Add(float64(n))
	s.note(w, slog.String("error", err.Error()))
	server.RetryAfter(w, retryAfter)
	s.way.message(w, http.StatusServiceUnavailable, "Events cannot be stored at the moment. Please send them again.")
}

// count counts what became of an event.
func (s *sender) count(now time.Time, sent *prepared, added stream.Added) {
	s.tally(now, sent, added.Duplicate)
	if added.Duplicate {
		s.counters.duplicate.Inc()
		return
	}
	s.counters.accepted.Inc()
	s.counters.classes[sent.IDSpace].Inc()
}

// appendAdded appends {"ok": true, "event_id": …}, with "duplicate": true where it is one.
func appendAdded(b []byte, added stream.Added) []byte {
	b = append(b, `{"ok":true,"event_id":`...)
	b, _ = jsontext.AppendQuote(b, added.EventID) // would replace what is not UTF-8, but no such id is accepted
	if added.Duplicate {
		b = append(b, `,"duplicate":true`...)
	}
	return append(b, '}')
}

// jsonType is shared by all answers; nobody appends to it.
var jsonType = []string{"application/json"}

// accept answers 202.
func accept(w http.ResponseWriter, body []byte) {
	w.Header()["Content-Type"] = jsonType
	w.WriteHeader(http.StatusAccepted)
	_, _ = w.Write(body) // the caller has gone: there is nobody left to tell
}
