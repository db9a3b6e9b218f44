package resources_test

import (
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/weir-dev/weir/collector/tracing"
	"github.com/weir-dev/weir/controllers/resources"
)

// TestThePodsEnvironmentSwitchesTracingOn makes a span as each role's pods would, with what the operator puts into their environment.
func TestThePodsEnvironmentSwitchesTracingOn(t *testing.T) {
	var mu sync.Mutex
	var received string
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		mu.Lock()
		defer mu.Unlock()
		if received += string(body); err != nil || r.URL.Path != "/v1/traces" {
			t.Errorf("%s is sent to: %v", r.URL.Path, err)
		}
	}))
	t.Cleanup(receiver.Close)
	in, property := readObjectsInput(t, "testdata/objects/tracing.in.yaml")
	in.Options.Tracing.Endpoint, in.Options.Tracing.SampleRatio = receiver.URL, 1
	for role, template := range podTemplates(t, property, in) {
		var pod struct {
			Spec struct {
				Containers []struct {
					Env []struct{ Name, Value string }
				}
			}
		}
		if err := json.Unmarshal([]byte(template), &pod); err != nil {
			t.Fatal(err)
		}
		for _, variable := range pod.Spec.Containers[0].Env {
			if strings.HasPrefix(variable.Name, "OTEL_") {
				t.Setenv(variable.Name, variable.Value)
			}
		}
		mu.Lock()
		received = ""
		mu.Unlock()
		provider, closing, err := tracing.Start(t.Context(), slog.New(slog.DiscardHandler))
		if err != nil || provider == nil {
			t.Fatalf("%s: tracing is %v, %v", role, provider, err)
		}
		_, span := provider.Tracer("test").Start(t.Context(), "a span")
		span.End()
		if err := closing(t.Context()); err != nil {
			t.Fatal(err)
		}
		mu.Lock()
		sent := received
		mu.Unlock()
		for _, want := range []string{"a span", "k8s.namespace.name", property.Namespace, "weir.property", property.Name, "weir.role", string(role)} {
			if !strings.Contains(sent, want) {
				t.Errorf("%s: what is sent lacks %q", role, want)
			}
		}
	}
	if in.Options.Tracing = (resources.Tracing{}); strings.Contains(podTemplates(t, property, in)[resources.Collector], "OTEL_") {
		t.Error("tracing is in the environment although it is off")
	}
}
