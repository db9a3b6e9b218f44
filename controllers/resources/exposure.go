package resources

import (
	"maps"

	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	applynetworking "k8s.io/client-go/applyconfigurations/networking/v1"

	"github.com/weir-dev/weir/api/v1alpha1"
)

// route is one host of which some paths, and what is below them, lead to a role's pods.
type route struct {
	role  Role
	host  string
	paths []string
}

// collectPaths lead to the collector: the collect API, Segment's HTTP Tracking API, and what shops report.
var collectPaths = []string{"/collect", "/v1", "/sources"}

// routes are what the spec exposes. The API key that follows /collect/ or /sources/ is in no object.
func routes(property *v1alpha1.Property) []route {
	var list []route
	if host := property.Spec.Exposure.CollectHost; host != "" {
		list = append(list, route{Collector, host, collectPaths})
	}
	if host := property.Spec.Exposure.APIHost; host != "" {
		list = append(list, route{Query, host, []string{"/api/v1/properties/" + property.Name, "/properties/" + property.Name}})
	}
	return list
}

func exposure(property *v1alpha1.Property, in Input) []Object {
	var objects []Object
	for _, r := range routes(property) {
		switch property.Spec.Exposure.Type {
		case v1alpha1.ExposureIngress:
			objects = append(objects, ingress(property, r))
		case v1alpha1.ExposureGateway:
			if in.Available[kindHTTPRoute] {
				objects = append(objects, httpRoute(property, r))
			}
		case v1alpha1.ExposureNone:
		}
	}
	return objects
}

// ingressAnnotations are the owner's, and for the collector those by which ingress-nginx and Traefik keep API keys, which
// stand in its paths, out of their access logs.
func ingressAnnotations(role Role, own map[string]string) map[string]string {
	if role != Collector {
		return own
	}
	all := map[string]string{
		"nginx.ingress.kubernetes.io/enable-access-log":                 "false",
		"traefik.ingress.kubernetes.io/router.observability.accesslogs": "false",
	}
	maps.Copy(all, own)
	return all
}

func ingress(property *v1alpha1.Property, r route) Object {
	settings := property.Spec.Exposure.Ingress
	if settings == nil {
		settings = &v1alpha1.IngressExposure{}
	}
	name := ObjectName(property, r.role)
	rule := applynetworking.HTTPIngressRuleValue()
	for _, path := range r.paths {
		rule.WithPaths(applynetworking.HTTPIngressPath().
			WithPath(path).WithPathType(networkingv1.PathTypePrefix).
			WithBackend(applynetworking.IngressBackend().WithService(applynetworking.IngressServiceBackend().
				WithName(name).WithPort(applynetworking.ServiceBackendPort().WithName("http")))))
	}
	spec := applynetworking.IngressSpec().WithRules(applynetworking.IngressRule().WithHost(r.host).WithHTTP(rule))
	if settings.ClassName != "" {
		spec.WithIngressClassName(settings.ClassName)
	}
	if settings.TLSSecretName != "" {
		spec.WithTLS(applynetworking.IngressTLS().WithHosts(r.host).WithSecretName(settings.TLSSecretName))
	}
	return Object{kindIngress, property.Namespace, name, applynetworking.Ingress(name, property.Namespace).
		WithLabels(roleLabels(property, r.role)).
		WithAnnotations(ingressAnnotations(r.role, settings.Annotations)).
		WithOwnerReferences(ownedBy(property)).
		WithSpec(spec)}
}

// httpRoute is written without the Gateway API's types: one small object does not make up for another module.
func httpRoute(property *v1alpha1.Property, r route) Object {
	parents := make([]any, len(property.Spec.Exposure.Gateway.ParentRefs))
	for i, reference := range property.Spec.Exposure.Gateway.ParentRefs {
		parent := map[string]any{"group": kindHTTPRoute.Group, "kind": "Gateway", "name": reference.Name}
		if reference.Namespace != "" {
			parent["namespace"] = reference.Namespace
		}
		if reference.SectionName != "" {
			parent["sectionName"] = reference.SectionName
		}
		if reference.Port != nil {
			parent["port"] = int64(*reference.Port)
		}
		parents[i] = parent
	}
	matches := make([]any, len(r.paths))
	for i, path := range r.paths {
		matches[i] = map[string]any{"path": map[string]any{"type": "PathPrefix", "value": path}}
	}
	name := ObjectName(property, r.role)
	return untyped(property, r.role, kindHTTPRoute, name, map[string]any{
		"parentRefs": parents,
		"hostnames":  []any{r.host},
		"rules": []any{map[string]any{
			"matches":     matches,
			"backendRefs": []any{map[string]any{"name": name, "port": int64(80)}},
		}},
	})
}

// podMonitor makes the Prometheus operator scrape all pods of the Property.
func podMonitor(property *v1alpha1.Property) Object {
	return untyped(property, "", kindPodMonitor, property.Name+"-pods", map[string]any{
		"selector":            map[string]any{"matchLabels": map[string]any{LabelName: ManagedBy, LabelInstance: property.Name}},
		"podMetricsEndpoints": []any{map[string]any{"port": "metrics"}},
		"podTargetLabels":     []any{LabelInstance, LabelComponent},
	})
}

func untyped(property *v1alpha1.Property, role Role, kind schema.GroupVersionKind, name string, spec map[string]any) Object {
	labels := Labels(property)
	if role != "" {
		labels = roleLabels(property, role)
	}
	object := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	object.SetGroupVersionKind(kind)
	object.SetNamespace(property.Namespace)
	object.SetName(name)
	object.SetLabels(labels)
	object.SetOwnerReferences(append(object.GetOwnerReferences(), OwnerReference(property)))
	return Object{kind, property.Namespace, name, object}
}

// URLs are where the collector and the read API are reached: from outside where the spec exposes them, else from
// inside the cluster.
func URLs(property *v1alpha1.Property) (collect, api string) {
	inside := func(role Role) string {
		return "http://" + ObjectName(property, role) + "." + property.Namespace + ".svc"
	}
	spec := property.Spec.Exposure
	scheme := "https://"
	if spec.Type == v1alpha1.ExposureIngress && (spec.Ingress == nil || spec.Ingress.TLSSecretName == "") {
		scheme = "http://"
	}
	collect, api = inside(Collector), inside(Query)
	if spec.Type != v1alpha1.ExposureNone && spec.CollectHost != "" {
		collect = scheme + spec.CollectHost
	}
	if spec.Type != v1alpha1.ExposureNone && spec.APIHost != "" {
		api = scheme + spec.APIHost
	}
	return collect, api
}

// DashboardURL is the page on which people look at the Property's numbers: "" where the read API is not exposed, because a browser
// outside of the cluster finds no other way.
func DashboardURL(property *v1alpha1.Property) string {
	if property.Spec.Exposure.Type == v1alpha1.ExposureNone || property.Spec.Exposure.APIHost == "" {
		return ""
	}
	_, api := URLs(property)
	return api + "/properties/" + property.Name + "/"
}
