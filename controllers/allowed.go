package controllers

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/controllers/resources"
)

// ExposureRules are what of exposures the operator allows. What no list has is denied: whoever may edit Properties in
// one namespace must not reach another's hosts, gateways and load balancers by way of the operator.
type ExposureRules struct {
	// OperatorClass is that of the Properties whom the rules are for; what others get is for another operator to say.
	OperatorClass string
	// AllowedHosts are hosts, *.DOMAIN for all hosts of a domain, or * for any, by namespace; the namespace "*" holds for
	// all, and {namespace} in a host stands for the Property's. The host that the template gives a Property it may have.
	AllowedHosts map[string][]string
	// AllowedAnnotations are keys of Ingress annotations; one that ends in * allows all that begin like it.
	AllowedAnnotations []string
	// AllowedIngressClasses are the classes that Properties may name, * for any. Without a name it is the cluster's default.
	AllowedIngressClasses []string
	// AllowedGateways are Gateways of other namespaces, as NAMESPACE/NAME, NAMESPACE/* or *.
	AllowedGateways []string
	// HostTemplate is the collectHost of exposed Properties that name none; in it {name} and {namespace} stand for the
	// Property's. "" gives them none.
	HostTemplate string
}

// PodRules are what Properties may say of their pods that reaches beyond these pods.
type PodRules struct {
	// AllowedAnnotations are keys of pod annotations; one that ends in * allows all that begin like it.
	AllowedAnnotations []string
	// AllowedTolerations are keys of taints; one that ends in * allows all that begin like it.
	AllowedTolerations []string
}

// complete returns the exposure with the host that the template gives.
func (e ExposureRules) complete(property *v1alpha1.Property) v1alpha1.Exposure {
	exposure := property.Spec.Exposure
	if exposure.Type != v1alpha1.ExposureNone && exposure.CollectHost == "" {
		exposure.CollectHost = e.ownHost(property)
	}
	return exposure
}

// ownHost is the host that the template gives a Property, "" without a template.
func (e ExposureRules) ownHost(property *v1alpha1.Property) string {
	return strings.NewReplacer("{name}", property.Name, "{namespace}", property.Namespace).Replace(e.HostTemplate)
}

// check says what of the exposure the operator does not allow. Where the hosts are the same that the Property had
// before, what was made for them is kept as it is, so that events go on coming in.
func (e ExposureRules) check(property *v1alpha1.Property) (refused *conditionReason, keep bool) {
	exposure := e.complete(property)
	if exposure.Type == v1alpha1.ExposureNone {
		return nil, false
	}
	if exposure.CollectHost == "" {
		return reasonf(v1alpha1.ReasonHostMissing,
			"spec.exposure.collectHost: must name the collector's host, such as collect.shop.example.com, because the operator has no --host-template"), false
	}
	if host := e.refusedHost(property); host != "" {
		return reasonf(v1alpha1.ReasonHostNotAllowed,
			"spec.exposure: the operator does not allow the host %s in namespace %s; ask for it with --allow-host %s=%s", host, property.Namespace, property.Namespace, host), false
	}
	refused = e.refusedIngress(exposure.Ingress)
	if exposure.Gateway != nil {
		refused = e.refusedGateway(property.Namespace, exposure.Gateway)
	}
	completed := property.DeepCopy()
	completed.Spec.Exposure = exposure
	collect, api := resources.URLs(completed)
	return refused, refused != nil && collect == property.Status.CollectURL && api == property.Status.APIURL
}

func (e ExposureRules) refusedIngress(ingress *v1alpha1.IngressExposure) *conditionReason {
	if ingress == nil {
		return nil
	}
	if key := refusedKey(ingress.Annotations, e.AllowedAnnotations); key != "" {
		return reasonf(v1alpha1.ReasonAnnotationNotAllowed,
			"spec.exposure.ingress.annotations: the operator does not allow %s; remove it, or ask for it with --allow-ingress-annotation %s", key, key)
	}
	if class := ingress.ClassName; class != "" && !matchesAny(class, e.AllowedIngressClasses) {
		return reasonf(v1alpha1.ReasonIngressClassNotAllowed,
			"spec.exposure.ingress.className: the operator does not allow %s; remove it, or ask for it with --allow-ingress-class %s", class, class)
	}
	return nil
}

func (e ExposureRules) refusedGateway(namespace string, gateway *v1alpha1.GatewayExposure) *conditionReason {
	for i, parent := range gateway.ParentRefs {
		name := parent.Namespace + "/" + parent.Name
		if parent.Namespace != "" && parent.Namespace != namespace && !matchesAny(name, e.AllowedGateways) {
			return reasonf(v1alpha1.ReasonGatewayNotAllowed,
				"spec.exposure.gateway.parentRefs[%d]: the operator does not allow the Gateway %s of another namespace; ask for it with --allow-gateway %s", i, name, name)
		}
	}
	return nil
}

// refusedHost returns the first host of the Property that its namespace may not have, "" where it may have all.
func (e ExposureRules) refusedHost(property *v1alpha1.Property) string {
	patterns := slices.Concat(e.AllowedHosts[property.Namespace], e.AllowedHosts["*"])
	for _, host := range e.hostsOf(property) {
		if host != e.ownHost(property) && !hostAllowed(host, property.Namespace, patterns) {
			return host
		}
	}
	return ""
}

func hostAllowed(host, namespace string, patterns []string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		pattern = strings.ReplaceAll(pattern, "{namespace}", namespace)
		suffix, wild := strings.CutPrefix(pattern, "*")
		return host == pattern || (wild && strings.HasSuffix(host, suffix))
	})
}

// check says what of the role's pods the operator does not allow, nil where it allows all.
func (p PodRules) check(namespace string, role resources.Role, options *v1alpha1.PodOptions) *conditionReason {
	field := "spec." + string(role)
	if key := refusedKey(options.PodAnnotations, p.AllowedAnnotations); key != "" {
		return reasonf(v1alpha1.ReasonAnnotationNotAllowed,
			"%s.podAnnotations: the operator does not allow %s; remove it, or ask for it with --allow-pod-annotation %s", field, key, key)
	}
	for i, toleration := range options.Tolerations {
		if !p.bears(toleration) {
			return reasonf(v1alpha1.ReasonTolerationNotAllowed,
				"%s.tolerations[%d]: the operator does not allow that the pods tolerate %s; remove it, or ask for it with --allow-toleration", field, i, orAll(toleration.Key))
		}
	}
	if name := refusedResource(options.Resources); name != "" {
		return reasonf(v1alpha1.ReasonResourceNotAllowed,
			"%s.resources: must be cpu, memory or ephemeral-storage, not %s: devices give access to the node", field, name)
	}
	if at := foreignPods(namespace, options.Affinity); at != "" {
		return reasonf(v1alpha1.ReasonAffinityNotAllowed,
			"%s.affinity.%s: must be about pods of the Property's namespace alone, because it could keep those of other namespaces off their nodes; remove namespaces and namespaceSelector", field, at)
	}
	return nil
}

// refusedResource returns the first resource that is more than a share of the node, "" where there is none: asking for a
// device mounts it.
func refusedResource(asked *v1alpha1.Resources) string {
	if asked == nil {
		return ""
	}
	for _, list := range []corev1.ResourceList{asked.Requests, asked.Limits} {
		for _, name := range slices.Sorted(maps.Keys(list)) {
			switch name {
			case corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage:
			default:
				return string(name)
			}
		}
	}
	return ""
}

// brieflyTolerated are the taints that the cluster itself has every pod tolerate for some minutes.
var brieflyTolerated = regexp.MustCompile(`^node\.kubernetes\.io/(not-ready|unreachable)$`)

// bears says whether pods may tolerate what they ask for. A toleration without a key is one of every taint.
func (p PodRules) bears(toleration corev1.Toleration) bool {
	if toleration.Key == "" {
		return slices.Contains(p.AllowedTolerations, "*")
	}
	return brieflyTolerated.MatchString(toleration.Key) || matchesAny(toleration.Key, p.AllowedTolerations)
}

func orAll(key string) string {
	if key == "" {
		return "every taint"
	}
	return key
}

// foreignPods names the first term of an affinity that is about pods of other namespaces: a required anti-affinity keeps
// those it selects off the whole domain.
func foreignPods(namespace string, affinity *corev1.Affinity) string {
	if affinity == nil {
		return ""
	}
	terms := map[string]corev1.PodAffinityTerm{}
	add := func(field string, required []corev1.PodAffinityTerm, preferred []corev1.WeightedPodAffinityTerm) {
		for i, term := range required {
			terms[fmt.Sprintf("%s.requiredDuringSchedulingIgnoredDuringExecution[%d]", field, i)] = term
		}
		for i, term := range preferred {
			terms[fmt.Sprintf("%s.preferredDuringSchedulingIgnoredDuringExecution[%d].podAffinityTerm", field, i)] = term.PodAffinityTerm
		}
	}
	if pods := affinity.PodAffinity; pods != nil {
		add("podAffinity", pods.RequiredDuringSchedulingIgnoredDuringExecution, pods.PreferredDuringSchedulingIgnoredDuringExecution)
	}
	if pods := affinity.PodAntiAffinity; pods != nil {
		add("podAntiAffinity", pods.RequiredDuringSchedulingIgnoredDuringExecution, pods.PreferredDuringSchedulingIgnoredDuringExecution)
	}
	for _, field := range slices.Sorted(maps.Keys(terms)) {
		others := func(name string) bool { return name != namespace }
		if terms[field].NamespaceSelector != nil || slices.ContainsFunc(terms[field].Namespaces, others) {
			return field
		}
	}
	return ""
}

// refusedPods says by role what the operator does not allow.
func (o Options) refusedPods(property *v1alpha1.Property) map[resources.Role]*conditionReason {
	refused := map[resources.Role]*conditionReason{}
	for _, role := range resources.Roles() {
		if found := o.Pods.check(property.Namespace, role, resources.PodOptions(property, role)); found != nil {
			refused[role] = found
		}
	}
	return refused
}

// refusedKey returns the first key that no pattern allows, "" where all are allowed.
func refusedKey(annotations map[string]string, patterns []string) string {
	for _, key := range slices.Sorted(maps.Keys(annotations)) {
		if !matchesAny(key, patterns) {
			return key
		}
	}
	return ""
}

func matchesAny(key string, patterns []string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		prefix, open := strings.CutSuffix(pattern, "*")
		return key == pattern || (open && strings.HasPrefix(key, prefix))
	})
}
