package deliver

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/weir-dev/weir/collector/config"
	"github.com/weir-dev/weir/collector/deliver/adapter"
	"github.com/weir-dev/weir/collector/platforms"
)

// tracing makes a span of each request to a platform; its zero value makes none. A span says where to, how many events
// and what came of it, nothing of what they hold, and platforms are told nothing of it.
type tracing struct {
	tracer trace.Tracer
	// about are the attributes of every span.
	about []attribute.KeyValue
}

func newTracing(provider trace.TracerProvider, property config.Property, cfg platforms.Platform) tracing {
	if provider == nil {
		return tracing{}
	}
	return tracing{provider.Tracer("github.com/weir-dev/weir"), []attribute.KeyValue{
		attribute.String("weir.namespace", property.Namespace), attribute.String("weir.property", property.Name),
		attribute.String("weir.platform", cfg.Name), attribute.String("weir.platform_type", string(cfg.Type)),
	}}
}

// start begins the span of a request with so many events; what it returns ends the span.
func (t tracing) start(ctx context.Context, events int) (end func(adapter.Response, *adapter.Verdict)) {
	if t.tracer == nil {
		return func(adapter.Response, *adapter.Verdict) {}
	}
	_, span := t.tracer.Start(ctx, "deliver", trace.WithNewRoot(), trace.WithSpanKind(trace.SpanKindClient),
		trace.WithAttributes(t.about...), trace.WithAttributes(attribute.Int("weir.events", events)))
	return func(answer adapter.Response, failure *adapter.Verdict) {
		if failure != nil {
			span.SetStatus(codes.Error, failure.Reason) // one of our own, not the error's text
		} else if answer.Status != 0 {
			span.SetAttributes(attribute.Int("http.response.status_code", answer.Status))
		}
		span.End()
	}
}
