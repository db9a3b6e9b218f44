package ingest

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/event/envelope"
	"github.com/weir-dev/weir/collector/event/segment"
	"github.com/weir-dev/weir/collector/server"
	"github.com/weir-dev/weir/collector/stream"
)

// segmentPaths are the calls of Segment's HTTP Tracking API: by their names, as servers make them, and by their initials,
// as analytics.js does. Clients for Java, Ruby and .NET call a batch an import.
var segmentPaths = map[string]string{
	"/v1/batch": segment.Batch, "/v1/b": segment.Batch, "/v1/import": segment.Batch,
	"/v1/track": "track", "/v1/t": "track", "/v1/page": "page", "/v1/p": "page", "/v1/screen": "screen", "/v1/s": "screen",
	"/v1/identify": "identify", "/v1/i": "identify", "/v1/group": "group", "/v1/g": "group", "/v1/alias": "alias", "/v1/a": "alias",
}

// segmentRoutes mounts Segment's HTTP Tracking API, and the settings file that analytics.js asks for beside it.
func (h *Handler) segmentRoutes(r chi.Router) {
	r.Get(segmentSettingsPath, h.segmentSettings)
	r.Head(segmentSettingsPath, h.segmentSettings)
	for path, call := range segmentPaths {
		for _, path := range [...]string{path, path + "/"} { // the client for Java ends it so
			r.Post(path, func(w http.ResponseWriter, r *http.Request) { h.segment(w, r, call) })
			r.Options(path, h.segmentPreflight)
		}
	}
}

// segmentPreflight answers what a browser asks before it sends a page's request: it does not say with which key. A page may
// send where any publishable key has its origin; the request itself may with the one that it has.
func (h *Handler) segmentPreflight(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Origin") == "" || r.Header.Get("Access-Control-Request-Method") == "" {
		server.MethodNotAllowed(w, r)
		return
	}
	for _, senders := range h.served.Load().senders {
		if s := senders[viaSegment.index]; s.web != nil && s.web.AllowsOrigin(r.Header.Get("Origin")) {
			s.web.share(w, r.Header["Origin"])
			allowPosting(w, "Authorization, Content-Type, Content-Encoding, X-Retry-Count") // the last with what is sent again
			return
		}
	}
	segmentMessage(w, http.StatusForbidden, foreignOrigin)
}

// appendChunk is how many events are appended at a time: no more go to Redis in one call anyway.
const appendChunk = 500

// segment answers a call of Segment's HTTP Tracking API. The key stands in the request's header or in its body, of which no
// more is read than of a page's before it is known whose it is.
func (h *Handler) segment(w http.ResponseWriter, r *http.Request, call string) {
	limit := int64(segment.MaxMessageBytes)
	if call == segment.Batch {
		limit = segment.MaxBatchBytes
	}
	s := h.stranger
	key, _, inHeader := r.BasicAuth()
	if inHeader && key != "" {
		var known bool
		if s, known = h.authenticateKey(w, r, viaSegment, key); !known {
			return
		}
	}
	coding, refused := negotiate(r, limit, nil) // RudderStack's client for Node calls its JSON a form
	if refused != nil {
		h.refuse(s, w, refused)
		return
	}
	held, ok := h.admit(s, w, r, coding, limit)
	if !ok {
		return
	}
	admitted := s
	defer func() { h.leave(admitted, held) }()
	body, err := h.bodies.read(r, coding, limit)
	if err != nil {
		h.refuse(s, w, err)
		return
	}
	request, err := segment.Decode(body.bytes, call)
	h.bodies.release(body)
	if s == h.stranger {
		if request == nil {
			h.refuse(s, w, err)
			return
		}
		var known bool
		if s, known = h.authenticateKey(w, r, viaSegment, request.WriteKey); !known {
			return
		}
	}
	if err != nil {
		h.refuse(s, w, err)
		return
	}
	h.takeSegment(w, r, s, request, call)
}

// takeSegment stores the events of a request.
func (h *Handler) takeSegment(w http.ResponseWriter, r *http.Request, s *sender, request *segment.Request, call string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), storeTimeout)
	defer cancel()
	now := h.now()
	if !s.allow(ctx, w, request.Len(), now) {
		return
	}
	batch := h.prepareSegment(s, request, now)
	added := make([]stream.Added, 0, len(batch.valid))
	for start := 0; start < len(batch.valid); start += appendChunk {
		some, err := s.append(ctx, additions(batch.valid[start:min(start+appendChunk, len(batch.valid))]))
		if err != nil {
			s.unavailable(w, now, err, request.Len())
			return
		}
		added = append(added, some...)
	}
	for _, errs := range batch.errs {
		s.counters.reject(errs)
	}
	s.list(batch.rejections...)
	for i, a := range added {
		s.count(now, &batch.valid[i], a)
	}
	s.counters.ignored.Add(float64(batch.ignored))
	if server.Sampled(w) {
		s.note(w, slog.Int("events", request.Len()), slog.Int("stored", len(added)))
	}
	if call != segment.Batch && len(batch.told) > 0 {
		s.invalid(w, batch.told)
		return
	}
	w.Header()["Content-Type"] = jsonType
	_, _ = w.Write(segmentSuccess) // the caller has gone: there is nobody left to tell
}

// segmentSuccess is what everything is answered that was taken, be it in part: clients drop what is answered otherwise, or
// send all of it again. What is wrong with the rest stands among the rejections.
var segmentSuccess = []byte(`{"success": true}`)

// preparedSegment is a request between validation and storage.
type preparedSegment struct {
	valid   []prepared
	ignored int
	// errs are those of each event that is invalid, by the members of an envelope, and told those of the last one by the
	// message's own.
	errs       []event.Errors
	told       event.Errors
	rejections []stream.Rejection
}

func (h *Handler) prepareSegment(s *sender, request *segment.Request, now time.Time) preparedSegment {
	p := preparedSegment{valid: make([]prepared, 0, request.Len())}
	sent, translator := h.envelope(), h.translators.Get().(*segment.Translator)
	defer func() {
		h.forget(sent)
		translator.Reset()
		h.translators.Put(translator)
	}()
	for i := range request.Len() {
		valid, isEvent, errs := h.prepareMessage(s, request, i, translator, sent, now)
		switch {
		case len(errs) > 0:
			p.told = translator.Told(errs)
			p.errs = append(p.errs, errs)
			p.rejections = append(p.rejections, s.rejectionOf(now, sent, errs, p.told))
		case !isEvent:
			p.ignored++
		default:
			p.valid = append(p.valid, valid)
		}
	}
	return p
}

// prepareMessage prepares a message, which it reads into sent, where it is an event.
func (h *Handler) prepareMessage(s *sender, request *segment.Request, i int, translator *segment.Translator, sent *envelope.Envelope,
	now time.Time) (_ prepared, isEvent bool, _ event.Errors) {
	sent.Reset() // which may go on holding the event before
	translated, errs := translator.Translate(request, i, now)
	if len(errs) > 0 || translated.Ignored {
		return prepared{}, false, errs
	}
	sent.Take(envelope.Translation{Outline: translated.Outline, OccurredAt: translated.OccurredAt, Optional: segment.Optional, Unread: translated.Unread})
	valid, errs := h.prepare(s, sent, now)
	return valid, true, errs
}

// segmentCodes are what the API calls an error, by its status; all others are invalid requests.
var segmentCodes = map[int]string{
	http.StatusUnauthorized: "unauthorized", http.StatusForbidden: "forbidden", http.StatusRequestTimeout: "timeout",
	http.StatusRequestEntityTooLarge: "payload_too_large", http.StatusTooManyRequests: "rate_limited",
	http.StatusServiceUnavailable: "unavailable",
}

// segmentError is the body of an error.
type segmentError struct {
	Success bool   `json:"success"`
	Code    string `json:"code"`
	Message string `json:"message"`
	// Errors are those of an event, by field.
	Errors map[string][]string `json:"errors,omitzero"`
}

func segmentMessage(w http.ResponseWriter, status int, text string) {
	code, known := segmentCodes[status]
	if !known {
		code = "invalid_request"
	}
	server.JSON(w, status, segmentError{Code: code, Message: text})
}

func segmentInvalid(w http.ResponseWriter, errs event.Errors) {
	answer := segmentError{Code: "invalid_request", Message: errs.Error(), Errors: map[string][]string{}}
	for _, err := range errs {
		answer.Errors[err.Field] = append(answer.Errors[err.Field], err.Message)
	}
	server.JSON(w, http.StatusBadRequest, answer)
}
