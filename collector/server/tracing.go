package server

import (
	"context"
	"net/http"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// TracerName is the instrumentation scope of Weir's spans.
const TracerName = "github.com/weir-dev/weir"

// startSpan begins a request's span: a trace of our own, linked to the caller's where it names one, so that nobody
// outside decides what is sampled here. The caller's trace state is its own text and is left out.
func startSpan(tracer trace.Tracer, r *http.Request) (*http.Request, trace.Span) {
	options := []trace.SpanStartOption{trace.WithNewRoot(), trace.WithSpanKind(trace.SpanKindServer)}
	from := propagation.TraceContext{}.Extract(context.Background(), propagation.HeaderCarrier(r.Header))
	if caller := trace.SpanContextFromContext(from); caller.IsValid() {
		options = append(options, trace.WithLinks(trace.Link{SpanContext: caller.WithTraceState(trace.TraceState{})}))
	}
	ctx, span := tracer.Start(r.Context(), "request", options...)
	return r.WithContext(ctx), span
}

// endSpan says what became of the request, in the words of the metrics and the log: route, never path.
func endSpan(span trace.Span, method, route string, status int) {
	span.SetName(method + " " + route)
	span.SetAttributes(attribute.String("http.request.method", method), attribute.String("http.route", route),
		attribute.Int("http.response.status_code", status))
	if status >= http.StatusInternalServerError {
		span.SetStatus(codes.Error, "")
	}
	span.End()
}
