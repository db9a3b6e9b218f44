package tracing_test

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/weir-dev/weir/collector/server"
	"github.com/weir-dev/weir/collector/tracing"
)

// secret stands in every path of these tests; it may appear nowhere else.
const secret = "wk_secret"

// traceReceiver is an OTLP receiver: it keeps what it is sent.
type traceReceiver struct {
	*httptest.Server
	mu     sync.Mutex
	bodies [][]byte
	header http.Header
	path   string
}

func newTraceReceiver(t *testing.T) *traceReceiver {
	t.Helper()
	r := &traceReceiver{}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		body, err := io.ReadAll(request.Body)
		if err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		r.bodies, r.header, r.path = append(r.bodies, body), request.Header, request.URL.Path
	}))
	t.Cleanup(r.Close)
	return r
}

// spans returns the spans that were received, in the order of their names.
func (r *traceReceiver) spans(t *testing.T) []*tracepb.Span {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	var found []*tracepb.Span
	for _, body := range r.bodies {
		var data tracepb.TracesData
		if err := proto.Unmarshal(body, &data); err != nil {
			t.Fatal(err)
		}
		for _, group := range data.GetResourceSpans() {
			for _, scope := range group.GetScopeSpans() {
				found = append(found, scope.GetSpans()...)
			}
		}
	}
	slices.SortFunc(found, func(a, b *tracepb.Span) int { return strings.Compare(a.GetName(), b.GetName()) })
	return found
}

// withoutTracing clears what the machine's own environment may say.
func withoutTracing(t *testing.T) {
	t.Helper()
	for _, name := range []string{
		"OTEL_SDK_DISABLED", "OTEL_TRACES_EXPORTER", "OTEL_TRACES_SAMPLER", "OTEL_RESOURCE_ATTRIBUTES", "OTEL_SERVICE_NAME",
		"OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_PROTOCOL",
		"OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_TRACES_HEADERS",
		"OTEL_EXPORTER_OTLP_TIMEOUT", "OTEL_EXPORTER_OTLP_TRACES_TIMEOUT",
	} {
		t.Setenv(name, "")
	}
}

func TestSpansNameRouteAndStatusAndNothingOfTheCaller(t *testing.T) {
	withoutTracing(t)
	receiver := newTraceReceiver(t)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", receiver.URL+"/base/")
	t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-team=shop%20floor, authorization=Bearer abc")
	provider, closing, err := tracing.Start(t.Context(), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	observer := server.NewObserver(slog.New(slog.DiscardHandler), prometheus.NewRegistry())
	observer.Trace(provider)
	router := server.NewRouter(observer)
	router.Post("/collect/{key}", func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Has("panic") {
			panic(secret)
		}
		server.Message(w, http.StatusAccepted, "served")
	})
	for _, target := range []string{"/collect/" + secret, "/collect/" + secret + "?panic", "/nowhere/" + secret} {
		request := httptest.NewRequestWithContext(t.Context(), http.MethodPost, target, strings.NewReader(secret))
		request.Header.Set("Traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
		request.Header.Set("Tracestate", "vendor="+secret)
		request.Header.Set("Baggage", "k="+secret)
		request.Header.Set("User-Agent", secret)
		router.ServeHTTP(httptest.NewRecorder(), request)
	}
	if err := closing(context.Background()); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, span := range receiver.spans(t) {
		line := span.GetName() + " " + span.GetKind().String() + " " + span.GetStatus().GetCode().String()
		for _, attribute := range span.GetAttributes() {
			line += " " + attribute.GetKey() + "=" + attribute.GetValue().String()
		}
		got = append(got, strings.ReplaceAll(line, "  ", " "))
		if len(span.GetParentSpanId()) > 0 || len(span.GetLinks()) != 1 || span.GetLinks()[0].GetTraceState() != "" {
			t.Errorf("%s: parent %x, links %v; want a new trace with a link to the caller's", span.GetName(), span.GetParentSpanId(), span.GetLinks())
		}
	}
	want := []string{
		`POST /collect/{key} SPAN_KIND_SERVER STATUS_CODE_UNSET http.request.method=string_value:"POST" http.route=string_value:"/collect/{key}" http.response.status_code=int_value:202`,
		`POST /collect/{key} SPAN_KIND_SERVER STATUS_CODE_ERROR http.request.method=string_value:"POST" http.route=string_value:"/collect/{key}" http.response.status_code=int_value:500`,
		`POST unmatched SPAN_KIND_SERVER STATUS_CODE_UNSET http.request.method=string_value:"POST" http.route=string_value:"unmatched" http.response.status_code=int_value:404`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("spans (-want +got):\n%s", diff)
	}
	if receiver.path != "/base/v1/traces" || receiver.header.Get("X-Team") != "shop floor" || receiver.header.Get("Content-Type") != "application/x-protobuf" {
		t.Errorf("the receiver was sent %s with %v", receiver.path, receiver.header)
	}
	if bytes.Contains(bytes.Join(receiver.bodies, nil), []byte(secret)) {
		t.Error("the key stands in a span")
	}
}

func TestTheEnvironmentSwitchesTracing(t *testing.T) {
	const endpoint = "OTEL_EXPORTER_OTLP_ENDPOINT"
	for name, c := range map[string]struct {
		variables map[string]string
		on        bool
		wantErr   string
	}{
		"off where it says nothing":            {nil, false, ""},
		"on where an endpoint is named":        {map[string]string{endpoint: "http://127.0.0.1:1"}, true, ""},
		"on where traces' endpoint is named":   {map[string]string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://127.0.0.1:1/v1/traces"}, true, ""},
		"on where the exporter is otlp":        {map[string]string{"OTEL_TRACES_EXPORTER": "otlp"}, true, ""},
		"off where the exporter is none":       {map[string]string{endpoint: "http://127.0.0.1:1", "OTEL_TRACES_EXPORTER": "none"}, false, ""},
		"off where the SDK is disabled":        {map[string]string{endpoint: "http://127.0.0.1:1", "OTEL_SDK_DISABLED": "TRUE"}, false, ""},
		"not with another exporter":            {map[string]string{"OTEL_TRACES_EXPORTER": "zipkin"}, false, "OTEL_TRACES_EXPORTER must be otlp or none"},
		"not with another protocol":            {map[string]string{endpoint: "http://127.0.0.1:1", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, false, "OTEL_EXPORTER_OTLP_PROTOCOL must be http/protobuf"},
		"not with an endpoint that is no URL":  {map[string]string{endpoint: "user:password@host"}, false, endpoint + " must be an http or https URL"},
		"not with a timeout that is no number": {map[string]string{endpoint: "http://h", "OTEL_EXPORTER_OTLP_TIMEOUT": "10s"}, false, "OTEL_EXPORTER_OTLP_TIMEOUT must be a whole number"},
		"not with a header that is none":       {map[string]string{endpoint: "http://h", "OTEL_EXPORTER_OTLP_HEADERS": "Bearer password"}, false, "OTEL_EXPORTER_OTLP_HEADERS must look like"},
	} {
		t.Run(name, func(t *testing.T) {
			withoutTracing(t)
			for key, value := range c.variables {
				t.Setenv(key, value)
			}
			provider, closing, err := tracing.Start(t.Context(), slog.New(slog.DiscardHandler))
			switch {
			case c.wantErr == "" && err != nil, c.wantErr != "" && (err == nil || !strings.Contains(err.Error(), c.wantErr)):
				t.Errorf("got %v, want an error with %q", err, c.wantErr)
			case err != nil && strings.Contains(err.Error(), "password"):
				t.Errorf("the error repeats the value: %v", err)
			case (provider != nil) != c.on:
				t.Errorf("on: %v, want %v", provider != nil, c.on)
			}
			if err := closing(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestSpansThatNobodyTakesAreLostQuietly(t *testing.T) {
	for name, status := range map[string]int{"where the receiver is away": 0, "where it refuses them": http.StatusForbidden} {
		t.Run(name, func(t *testing.T) {
			withoutTracing(t)
			away := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }))
			if status == 0 {
				away.Close()
			} else {
				defer away.Close()
			}
			t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", strings.Replace(away.URL, "http://", "http://user:password@", 1))
			var log bytes.Buffer
			provider, closing, err := tracing.Start(t.Context(), slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})))
			if err != nil {
				t.Fatal(err)
			}
			_, span := provider.Tracer(server.TracerName).Start(t.Context(), "request")
			span.End()
			err = closing(t.Context())
			if text := log.String(); strings.Contains(text, "password") || err != nil && strings.Contains(err.Error(), "password") {
				t.Errorf("the log repeats the endpoint: %s %v", text, err)
			}
			if !strings.Contains(log.String(), "spans are lost") && err == nil {
				t.Error("nothing tells that spans are lost")
			}
		})
	}
}
