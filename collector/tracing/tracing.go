// Package tracing sends spans where the environment says. It is apart from what makes them, so that a program which makes none does
// not link the OpenTelemetry SDK.
package tracing

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// Start makes what the OTEL_ variables of the environment ask for: spans sent by OTLP over HTTP where an
// endpoint is named or OTEL_TRACES_EXPORTER is otlp, nothing otherwise. Resource, sampler and batching are the
// OpenTelemetry SDK's own variables. The provider is nil where tracing is off; close sends what is left and is
// never nil. It fails where the variables ask for what Weir cannot do.
func Start(ctx context.Context, logger *slog.Logger) (provider trace.TracerProvider, closing func(context.Context) error, err error) {
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
