package ingest

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/weir-dev/weir/collector/server"
	"github.com/weir-dev/weir/collector/stream"
)

// append stores events. Where the request is traced it has a span of its own, which says how many they are and
// nothing of what they hold.
func (t *tenant) append(ctx context.Context, additions []stream.Addition) ([]stream.Added, error) {
	request := trace.SpanFromContext(ctx)
	if !request.IsRecording() {
		return t.Appender.Append(ctx, additions)
	}
	request.SetAttributes(attribute.String("weir.namespace", t.Property.Namespace), attribute.String("weir.property", t.Property.Name))
	ctx, span := request.TracerProvider().Tracer(server.TracerName).Start(ctx, "append", trace.WithSpanKind(trace.SpanKindClient),
		trace.WithAttributes(attribute.Int("weir.events", len(additions))))
	defer span.End()
	added, err := t.Appender.Append(ctx, additions)
	if err != nil {
		span.SetStatus(codes.Error, "redis is unavailable")
		return nil, err
	}
	duplicates := 0
	for _, one := range added {
		if one.Duplicate {
			duplicates++
		}
	}
	span.SetAttributes(attribute.Int("weir.duplicates", duplicates))
	return added, nil
}
