package server

import (
	"fmt"
	"log/slog"
	"net/http"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace"
)

// methods are those that routes are registered for, and that logs name.
var methods = []string{
	http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions,
}

// NotFound answers 404 for a path that has no route.
func NotFound(w http.ResponseWriter, _ *http.Request) { Message(w, http.StatusNotFound, "Not found.") }

// MethodNotAllowed answers 405 with the methods that the path has, in Allow. It is for chi routers; a path with
// GET is taken to have HEAD.
func MethodNotAllowed(w http.ResponseWriter, r *http.Request) {
	var allowed []string
	if routing := chi.RouteContext(r.Context()); routing != nil && routing.Routes != nil {
		path := r.URL.Path
		if r.URL.RawPath != "" {
			path = r.URL.RawPath // what chi routes by
		}
		for _, method := range methods {
			head := method == http.MethodHead && slices.Contains(allowed, http.MethodGet)
			if head || routing.Routes.Match(chi.NewRouteContext(), method, path) {
				allowed = append(allowed, method)
			}
		}
	}
	w.Header().Set("Allow", strings.Join(allowed, ", "))
	Message(w, http.StatusMethodNotAllowed, "Method not allowed.")
}

// Header values that are shared by all answers; nobody appends to them.
var (
	noSniff    = []string{"nosniff"}
	noStore    = []string{"no-store"}
	noReferrer = []string{"no-referrer"}
)

// SecurityHeaders keeps answers out of caches, and out of other interpretations than their own type. A handler
// may set the same headers otherwise. It is for what a browser may open, and not for collecting: an answer to a POST is
// kept in no cache, and a twentieth of what taking an event in costs would go into these headers.
func SecurityHeaders(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header := w.Header()
		header["X-Content-Type-Options"] = noSniff
		header["Cache-Control"] = noStore
		header["Referrer-Policy"] = noReferrer
		next.ServeHTTP(w, r)
	})
}

// Observer sees every request from outside the routes: it counts and times them by route pattern and status,
// logs a sample of those that were not served and one of those that were, traces them where that is wanted, and turns a
// panic into a 500. It never keeps the path itself, for API keys stand in it.
type Observer struct {
	logger   *slog.Logger
	duration *prometheus.HistogramVec
	tracer   trace.Tracer // nil where nothing is traced
	// refused samples what was not served, by route and status.
	refused *sampler
	// sampled is the second, since 1970, in which a served request was last logged.
	sampled atomic.Int64
}

// NewObserver registers the metric weir_http_request_duration_seconds with labels route and code.
func NewObserver(logger *slog.Logger, registerer prometheus.Registerer) *Observer {
	o := &Observer{logger: logger, refused: newSampler(), duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "weir_http_request_duration_seconds",
		Help:    "Time from a request's header to the end of its answer, by route pattern and status code.",
		Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10},
	}, []string{"route", "code"})}
	registerer.MustRegister(o.duration)
	return o
}

// Trace makes a span of each request from now on; it is called before the first one. A nil provider changes nothing.
func (o *Observer) Trace(provider trace.TracerProvider) {
	if provider != nil {
		o.tracer = provider.Tracer(TracerName)
	}
}

// Middleware wraps the routes of a chi router. It belongs outermost.
func (o *Observer) Middleware(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		start := time.Now()
		seen := response{ResponseWriter: w, sampled: o.sample(start)}
		var span trace.Span
		if o.tracer != nil {
			r, span = startSpan(o.tracer, r)
		}
		defer func() {
			if failure := recover(); failure != nil {
				if failure == http.ErrAbortHandler { //nolint:errorlint // net/http compares it likewise
					panic(failure) // a handler's way to cut the connection
				}
				if torn := seen.fail(failure); torn {
					defer panic(http.ErrAbortHandler) // cut the connection, so that nobody takes the answer for whole
				}
			}
			o.observe(&seen, r, span, time.Since(start))
		}()
		next.ServeHTTP(&seen, r)
	})
}

// sample says whether a request that begins now is logged if it is served: one in a second at most, so that a
// busy collector's log stays small and shows what the served ones are like.
func (o *Observer) sample(now time.Time) bool {
	second, last := now.Unix(), o.sampled.Load()
	return second != last && o.sampled.CompareAndSwap(last, second)
}

func (o *Observer) observe(seen *response, r *http.Request, span trace.Span, took time.Duration) {
	status := seen.status
	if status == 0 {
		status = http.StatusOK // net/http's own answer where the handler wrote nothing
	}
	route := routeOf(r)
	o.duration.WithLabelValues(route, strconv.Itoa(status)).Observe(took.Seconds())
	refused := status >= http.StatusBadRequest
	if refused && seen.sampled {
		o.sampled.Store(0) // it is logged anyway, and the next that is served may be instead
	}
	if span == nil && !refused && !seen.sampled {
		return
	}
	method := r.Method
	if !slices.Contains(methods, method) {
		method = "other" // any text at all may stand there
	}
	if span != nil {
		endSpan(span, method, route, status)
	}
	suppressed := 0
	if refused {
		var logged bool
		if suppressed, logged = o.refused.take(route+" "+strconv.Itoa(status), time.Now()); !logged {
			return
		}
	} else if !seen.sampled {
		return
	}
	attributes := append([]slog.Attr{
		slog.String("method", method), slog.String("route", route), slog.Int("status", status),
		slog.Duration("took", took), slog.Int64("content_length", r.ContentLength),
	}, seen.notes...)
	if suppressed > 0 {
		attributes = append(attributes, slog.Int("suppressed", suppressed))
	}
	switch {
	case status >= http.StatusInternalServerError:
		o.logger.LogAttrs(r.Context(), slog.LevelWarn, "request not served", attributes...)
	case refused:
		o.logger.LogAttrs(r.Context(), slog.LevelInfo, "request not served", attributes...)
	default:
		o.logger.LogAttrs(r.Context(), slog.LevelInfo, "request served", attributes...)
	}
}

// routeOf returns the pattern that the request was routed by, or "unmatched".
func routeOf(r *http.Request) string {
	pattern := r.Pattern
	if pattern == "" || strings.HasSuffix(pattern, "*") {
		// Not routed, or handed on to a router below as a copy of the request.
		pattern = chi.RouteContext(r.Context()).RoutePattern()
	}
	if pattern == "" || strings.HasSuffix(pattern, "*") {
		return "unmatched"
	}
	return pattern
}

// Note adds attributes to the log line that is written if the request is one of the sample of those that are not
// served, or of those that are. They hold nothing secret or personal. Without an [Observer] around the handler it does nothing.
func Note(w http.ResponseWriter, attributes ...slog.Attr) {
	if seen := observed(w); seen != nil {
		seen.notes = append(seen.notes, attributes...)
	}
}

// Sampled says whether the request will be logged though it is served, so that it is worth a [Note].
func Sampled(w http.ResponseWriter) bool {
	seen := observed(w)
	return seen != nil && seen.sampled
}

// observed finds the Observer's writer, nil where there is none.
func observed(w http.ResponseWriter) *response {
	for {
		switch writer := w.(type) {
		case *response:
			return writer
		case interface{ Unwrap() http.ResponseWriter }:
			w = writer.Unwrap()
		default:
			return nil
		}
	}
}

// response remembers what was answered.
type response struct {
	http.ResponseWriter
	status  int
	notes   []slog.Attr
	sampled bool
}

// WriteHeader remembers the final status.
func (r *response) WriteHeader(status int) {
	if r.status == 0 && status >= http.StatusOK {
		r.status = status
	}
	r.ResponseWriter.WriteHeader(status)
}

// Write implies status 200 like net/http's.
func (r *response) Write(text []byte) (int, error) {
	if r.status == 0 {
		r.status = http.StatusOK
	}
	return r.ResponseWriter.Write(text)
}

// Unwrap lets http.ResponseController reach the connection.
func (r *response) Unwrap() http.ResponseWriter { return r.ResponseWriter }

// fail answers 500 after a panic and notes where it was. Where an answer had begun already it says that the
// answer is torn. The panic's own text may repeat what was sent, so only that of the runtime, which names types
// and indexes, is kept.
func (r *response) fail(failure any) (torn bool) {
	cause := fmt.Sprintf("%T", failure)
	if err, ok := failure.(runtime.Error); ok {
		cause = err.Error()
	}
	r.notes = append(r.notes, slog.String("panic", cause), slog.String("stack", string(debug.Stack())))
	if r.status == 0 {
		Message(r, http.StatusInternalServerError, "Server Error")
		return false
	}
	r.status = http.StatusInternalServerError
	return true
}
