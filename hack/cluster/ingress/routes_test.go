package ingress

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// rule makes an Ingress with one host and one path, which lead to port 80 of the Service named last.
func rule(name, host, path string, kind networkingv1.PathType, service string) networkingv1.Ingress {
	return networkingv1.Ingress{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name},
		Spec: networkingv1.IngressSpec{Rules: []networkingv1.IngressRule{{
			Host: host, IngressRuleValue: networkingv1.IngressRuleValue{HTTP: &networkingv1.HTTPIngressRuleValue{
				Paths: []networkingv1.HTTPIngressPath{{Path: path, PathType: &kind, Backend: networkingv1.IngressBackend{
					Service: &networkingv1.IngressServiceBackend{Name: service, Port: networkingv1.ServiceBackendPort{Number: 80}},
				}}},
			}},
		}}},
	}
}

// service is a Service with one named port, and the slice with its endpoints.
func service(name string, endpoints ...discoveryv1.Endpoint) (corev1.Service, discoveryv1.EndpointSlice) {
	meta := metav1.ObjectMeta{Namespace: "shop", Name: name, Labels: map[string]string{discoveryv1.LabelServiceName: name}}
	return corev1.Service{ObjectMeta: meta, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: "http", Port: 80}}}},
		discoveryv1.EndpointSlice{
			ObjectMeta: meta, AddressType: discoveryv1.AddressTypeIPv4, Endpoints: endpoints,
			Ports: []discoveryv1.EndpointPort{{Name: new("metrics"), Port: new(int32(9090))}, {Name: new("http"), Port: new(int32(8080))}},
		}
}

func endpoint(address string, ready, serving bool) discoveryv1.Endpoint {
	return discoveryv1.Endpoint{Addresses: []string{address}, Conditions: discoveryv1.EndpointConditions{Ready: &ready, Serving: &serving}}
}

func TestTheMostSpecificRouteServesARequest(t *testing.T) {
	var state State
	for i, one := range []struct {
		host, path string
		kind       networkingv1.PathType
	}{
		{"", "/", networkingv1.PathTypePrefix},
		{"*.shop.test", "/", networkingv1.PathTypePrefix},
		{"api.shop.test", "/", networkingv1.PathTypePrefix},
		{"api.shop.test", "/v1", networkingv1.PathTypePrefix},
		{"api.shop.test", "/v1", networkingv1.PathTypeExact},
		{"api.shop.test", "/v1/long/", networkingv1.PathTypePrefix},
	} {
		name := string(rune('a' + i))
		state.Ingresses = append(state.Ingresses, rule(name, one.host, one.path, one.kind, name))
		svc, slice := service(name, endpoint("10.0.0."+string(rune('0'+i)), true, true))
		state.Services, state.Slices = append(state.Services, svc), append(state.Slices, slice)
	}
	table, complaints := NewTable(state)
	if len(complaints) > 0 {
		t.Fatal(complaints)
	}
	for does, tt := range map[string]struct{ host, path, want string }{
		"an unknown host goes to the rule without one":   {"else.test", "/v1", "10.0.0.0:8080"},
		"a wildcard stands for a label":                  {"any.shop.test", "/x", "10.0.0.1:8080"},
		"a wildcard does not stand for two":              {"a.b.shop.test", "/x", "10.0.0.0:8080"},
		"an exact host goes before a wildcard":           {"api.shop.test", "/x", "10.0.0.2:8080"},
		"a host's case and port do not matter":           {"API.shop.test:80", "/x", "10.0.0.2:8080"},
		"a longer path goes before a shorter":            {"api.shop.test", "/v1/x", "10.0.0.3:8080"},
		"an exact path goes before the same as a prefix": {"api.shop.test", "/v1", "10.0.0.4:8080"},
		"a prefix counts by elements":                    {"api.shop.test", "/v1x", "10.0.0.2:8080"},
		"a slash at a prefix's end does not matter":      {"api.shop.test", "/v1/long", "10.0.0.5:8080"},
	} {
		t.Run(does, func(t *testing.T) {
			found := table.find(tt.host, tt.path)
			if found == nil {
				t.Fatal("no route")
			}
			if diff := cmp.Diff([]string{tt.want}, found.endpoints); diff != "" {
				t.Errorf("endpoints (-want +got):\n%s", diff)
			}
		})
	}
}

func TestEndpointsAreThoseThatAreReady(t *testing.T) {
	for does, tt := range map[string]struct {
		endpoints []discoveryv1.Endpoint
		want      []string
	}{
		"none":                     {nil, nil},
		"ready ones, in order":     {[]discoveryv1.Endpoint{endpoint("10.0.0.2", true, true), endpoint("10.0.0.1", true, true)}, []string{"10.0.0.1:8080", "10.0.0.2:8080"}},
		"not those that end":       {[]discoveryv1.Endpoint{endpoint("10.0.0.1", true, true), endpoint("10.0.0.2", false, true)}, []string{"10.0.0.1:8080"}},
		"those that end, at worst": {[]discoveryv1.Endpoint{endpoint("10.0.0.1", false, false), endpoint("10.0.0.2", false, true)}, []string{"10.0.0.2:8080"}},
	} {
		t.Run(does, func(t *testing.T) {
			svc, slice := service("shop", tt.endpoints...)
			table, _ := NewTable(State{
				Ingresses: []networkingv1.Ingress{rule("shop", "shop.test", "/", networkingv1.PathTypePrefix, "shop")},
				Services:  []corev1.Service{svc}, Slices: []discoveryv1.EndpointSlice{slice},
			})
			if diff := cmp.Diff(tt.want, table.find("shop.test", "/").endpoints); diff != "" {
				t.Errorf("endpoints (-want +got):\n%s", diff)
			}
		})
	}
}

func TestACertificateThatCannotBeUsedIsNamed(t *testing.T) {
	one := rule("shop", "shop.test", "/", networkingv1.PathTypePrefix, "shop")
	one.Spec.TLS = []networkingv1.IngressTLS{{Hosts: []string{"shop.test"}, SecretName: "absent"}, {Hosts: []string{"shop.test"}, SecretName: "empty"}}
	table, complaints := NewTable(State{
		Ingresses: []networkingv1.Ingress{one},
		Secrets:   []corev1.Secret{{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "empty"}}},
	})
	want := []string{"Secret shop/absent is not there", "Secret shop/empty has no usable certificate and key"}
	if diff := cmp.Diff(want, complaints); diff != "" {
		t.Errorf("complaints (-want +got):\n%s", diff)
	}
	if table.certificate("shop.test") != nil {
		t.Error("there is a certificate")
	}
}
