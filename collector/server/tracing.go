package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"strings"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// TracerName is the instrumentation scope of Weir's spans.
const TracerName = "github.com/weir-dev/weir"

// Tracing makes what the OTEL_ variables of the environment ask for: spans sent by OTLP over HTTP where an
// endpoint is named or OTEL_TRACES_EXPORTER is otlp, nothing otherwise. Resource, sampler and batching are the
// OpenTelemetry SDK's own variables. The provider is nil where tracing is off; close sends what is left and is
// never nil. It fails where the variables ask for what Weir cannot do.
func Tracing(ctx context.Context, logger *slog.Logger) (provider trace.TracerProvider, closing func(context.Context) error, err error) {
	closing = func(context.Context) error { return nil }
	wanted, err := tracingWanted(os.Getenv)
	if err != nil || !wanted {
		return nil, closing, err
	}
	client, err := newOTLPClient(os.Getenv)
	if err != nil {
		return nil, closing, err
	}
	about, err := resource.New(ctx, resource.WithAttributes(attribute.String("service.name", "weir")),
		resource.WithTelemetrySDK(), resource.WithFromEnv())
	if err != nil {
		return nil, closing, errors.New("tracing: OTEL_RESOURCE_ATTRIBUTES must look like key=value,key=value")
	}
	exporter, err := otlptrace.New(ctx, client)
	if err != nil {
		return nil, closing, fmt.Errorf("tracing: %w", err)
	}
	// The SDK has one handler for the process, and calls it for every batch that is lost.
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { logger.Debug("spans are lost", "error", err) }))
	sdk := sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter), sdktrace.WithResource(about))
	return sdk, sdk.Shutdown, nil
}

// tracingWanted reads the variables that switch tracing on or off.
func tracingWanted(getenv func(string) string) (bool, error) {
	if strings.EqualFold(strings.TrimSpace(getenv("OTEL_SDK_DISABLED")), "true") {
		return false, nil
	}
	switch exporter := strings.TrimSpace(getenv("OTEL_TRACES_EXPORTER")); exporter {
	case "none":
		return false, nil
	case "otlp":
	case "":
		if getenv("OTEL_EXPORTER_OTLP_ENDPOINT") == "" && getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") == "" {
			return false, nil
		}
	default:
		return false, errors.New("tracing: OTEL_TRACES_EXPORTER must be otlp or none")
	}
	return true, nil
}

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
