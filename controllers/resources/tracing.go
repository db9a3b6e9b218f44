package resources

import (
	"errors"
	"fmt"
	"net/url"
	"strconv"

	networkingv1 "k8s.io/api/networking/v1"
	applynetworking "k8s.io/client-go/applyconfigurations/networking/v1"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/collector/connect"
)

// Tracing says where the pods send spans; without an endpoint they send none.
type Tracing struct {
	// Endpoint is the base URL of an OTLP receiver over HTTP.
	Endpoint string
	// SampleRatio is the share of requests and deliveries that have a span, from 0 to 1.
	SampleRatio float64
	// To are who the receiver is to a NetworkPolicy; empty for anybody at its port.
	To []networkingv1.NetworkPolicyPeer
}

// The variables that tracing is switched on by.
const (
	otelEndpoint   = "OTEL_EXPORTER_OTLP_ENDPOINT"
	otelSampler    = "OTEL_TRACES_SAMPLER"
	otelSamplerArg = "OTEL_TRACES_SAMPLER_ARG"
	otelAttributes = "OTEL_RESOURCE_ATTRIBUTES"
)

// errTracingEndpoint repeats nothing of the URL: somebody may have put a password into it.
var errTracingEndpoint = errors.New("must be an http or https URL without user and query, as in http://otel-collector.observability.svc:4318")

// Check judges the endpoint.
func (t *Tracing) Check() error {
	parsed, err := url.Parse(t.Endpoint)
	if err != nil || (parsed.Scheme != "http" && parsed.Scheme != "https") || parsed.Hostname() == "" || parsed.User != nil || parsed.RawQuery != "" ||
		parsed.Fragment != "" || connect.Port(parsed) == 0 {
		return errTracingEndpoint
	}
	return nil
}

// port is where the receiver listens, 0 for nowhere.
func (t *Tracing) port() int32 {
	parsed, err := url.Parse(t.Endpoint)
	if err != nil {
		return 0
	}
	return int32(connect.Port(parsed))
}

// environment switches it on in a role's pods, and says whose spans they are. OTLP wants what is no letter or digit in percent
// signs; names of ours have none of that.
func (t *Tracing) environment(property *v1alpha1.Property, role Role, into map[string]string) {
	if t.Endpoint == "" {
		return
	}
	into[otelEndpoint] = t.Endpoint
	into[otelSampler], into[otelSamplerArg] = "parentbased_traceidratio", strconv.FormatFloat(t.SampleRatio, 'f', -1, 64)
	into[otelAttributes] = fmt.Sprintf("k8s.namespace.name=%s,weir.property=%s,weir.role=%s", property.Namespace, property.Name, role)
}

// egress lets the spans out.
func (t *Tracing) egress() []*applynetworking.NetworkPolicyEgressRuleApplyConfiguration {
	if t.Endpoint == "" {
		return nil
	}
	return []*applynetworking.NetworkPolicyEgressRuleApplyConfiguration{
		applynetworking.NetworkPolicyEgressRule().WithTo(peers(t.To)...).WithPorts(tcp(t.port())),
	}
}
