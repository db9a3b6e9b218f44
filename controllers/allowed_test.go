package controllers_test

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/collector/redisserver/redistest"
	"github.com/weir-dev/weir/controllers"
)

// freeForm is a row of [freeForms].
type freeForm struct {
	// member is where of the spec the text goes; roles stands for collector, deliverer and query.
	member string
	edit   func(*v1alpha1.PropertySpec)
	// want is the reason that refuses it where nothing is allowed, and words of the message; "" where it is always taken.
	want, says string
	// allow is what has the operator take it; nil where nothing does.
	allow func(*controllers.Options)
}

func onIngress(edit func(*v1alpha1.Exposure)) func(*v1alpha1.PropertySpec) {
	return func(s *v1alpha1.PropertySpec) {
		s.Exposure = v1alpha1.Exposure{Type: v1alpha1.ExposureIngress, Ingress: &v1alpha1.IngressExposure{}}
		edit(&s.Exposure)
	}
}

func onGateway(parent v1alpha1.GatewayReference) func(*v1alpha1.PropertySpec) {
	return func(s *v1alpha1.PropertySpec) {
		s.Exposure = v1alpha1.Exposure{Type: v1alpha1.ExposureGateway, Gateway: &v1alpha1.GatewayExposure{ParentRefs: []v1alpha1.GatewayReference{parent}}}
	}
}

func onPods(edit func(*v1alpha1.PodOptions)) func(*v1alpha1.PropertySpec) {
	return func(s *v1alpha1.PropertySpec) { edit(&s.Collector.PodOptions) }
}

func podAnnotation(key string) freeForm {
	return freeForm{
		member: "roles.podAnnotations",
		edit:   onPods(func(o *v1alpha1.PodOptions) { o.PodAnnotations = map[string]string{key: "x"} }),
		want:   v1alpha1.ReasonAnnotationNotAllowed, says: "spec.collector.podAnnotations: the operator does not allow " + key,
		allow: func(o *controllers.Options) { o.Pods.AllowedAnnotations = []string{key} },
	}
}

func antiAffinity(namespaces []string, selector *metav1.LabelSelector) *corev1.Affinity {
	return &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{
		{TopologyKey: "topology.kubernetes.io/zone", LabelSelector: &metav1.LabelSelector{}, Namespaces: namespaces, NamespaceSelector: selector},
	}}}
}

// freeForms has rows for each member of the spec that takes text of a Property's author into an object of the cluster.
func freeForms() map[string]freeForm {
	table := map[string]freeForm{
		"a host of somebody else's": {member: "exposure.collectHost", edit: onIngress(func(e *v1alpha1.Exposure) { e.CollectHost = "www.bank.example" }),
			want: v1alpha1.ReasonHostNotAllowed, says: "spec.exposure: the operator does not allow the host www.bank.example",
			allow: func(o *controllers.Options) {
				o.Exposure.AllowedHosts = map[string][]string{"shops": {"*.bank.example"}}
			}},
		"a read API's host of somebody else's": {member: "exposure.apiHost", edit: onIngress(func(e *v1alpha1.Exposure) { e.APIHost = "api.bank.example" }),
			want: v1alpha1.ReasonHostNotAllowed, says: "api.bank.example", allow: func(o *controllers.Options) { o.Exposure.AllowedHosts = map[string][]string{"*": {"*"}} }},
		"a host of the namespace's, where all have one": {member: "exposure.collectHost", edit: onIngress(func(e *v1alpha1.Exposure) { e.CollectHost = "a.shops.example.com" }),
			want: v1alpha1.ReasonHostNotAllowed, says: "a.shops.example.com",
			allow: func(o *controllers.Options) {
				o.Exposure.AllowedHosts = map[string][]string{"*": {"*.{namespace}.example.com"}}
			}},
		"the template's host for the Property": {member: "exposure.collectHost", edit: onIngress(func(e *v1alpha1.Exposure) { e.CollectHost = "shop.shops.collect.example.com" })},
		"the template's host for another's": {member: "exposure.collectHost", edit: onIngress(func(e *v1alpha1.Exposure) { e.CollectHost = "shop.blogs.collect.example.com" }),
			want: v1alpha1.ReasonHostNotAllowed, says: "shop.blogs.collect.example.com",
			allow: func(o *controllers.Options) { o.Exposure.AllowedHosts = map[string][]string{"*": {"*"}} }},
		"a snippet for nginx": {member: "exposure.ingress.annotations",
			edit: onIngress(func(e *v1alpha1.Exposure) {
				e.Ingress.Annotations = map[string]string{"nginx.ingress.kubernetes.io/configuration-snippet": "x"}
			}),
			want: v1alpha1.ReasonAnnotationNotAllowed, says: "spec.exposure.ingress.annotations: the operator does not allow nginx.ingress.kubernetes.io/configuration-snippet",
			allow: func(o *controllers.Options) {
				o.Exposure.AllowedAnnotations = []string{"nginx.ingress.kubernetes.io/*"}
			}},
		"a class of load balancers": {member: "exposure.ingress.className", edit: onIngress(func(e *v1alpha1.Exposure) { e.Ingress.ClassName = "public" }),
			want: v1alpha1.ReasonIngressClassNotAllowed, says: "spec.exposure.ingress.className: the operator does not allow public",
			allow: func(o *controllers.Options) { o.Exposure.AllowedIngressClasses = []string{"public"} }},
		// The Secret is one of the namespace's, and only its certificate is shown to clients, for hosts that are allowed.
		"a TLS Secret of the namespace's":           {member: "exposure.ingress.tlsSecretName", edit: onIngress(func(e *v1alpha1.Exposure) { e.Ingress.TLSSecretName = "tls" })},
		"a Gateway of the namespace's":              {member: "exposure.gateway.parentRefs[].name", edit: onGateway(v1alpha1.GatewayReference{Name: "mine", SectionName: "https"})},
		"a Gateway of the namespace's, by its name": {member: "exposure.gateway.parentRefs[].namespace", edit: onGateway(v1alpha1.GatewayReference{Name: "mine", Namespace: "shops"})},
		"a Gateway of another namespace": {member: "exposure.gateway.parentRefs[].namespace", edit: onGateway(v1alpha1.GatewayReference{Name: "public", Namespace: "edge"}),
			want: v1alpha1.ReasonGatewayNotAllowed, says: "spec.exposure.gateway.parentRefs[0]: the operator does not allow the Gateway edge/public",
			allow: func(o *controllers.Options) { o.Exposure.AllowedGateways = []string{"edge/*"} }},
		"another listener of another namespace's Gateway": {member: "exposure.gateway.parentRefs[].sectionName",
			edit: onGateway(v1alpha1.GatewayReference{Name: "public", Namespace: "edge", SectionName: "admin"}),
			want: v1alpha1.ReasonGatewayNotAllowed, says: "edge/public", allow: func(o *controllers.Options) { o.Exposure.AllowedGateways = []string{"edge/public"} }},
		// Where a taint keeps pods off, a selector alone does not lead there; the pods' content is the operator's.
		"nodes by their labels": {member: "roles.nodeSelector",
			edit: onPods(func(o *v1alpha1.PodOptions) {
				o.NodeSelector = map[string]string{"node-role.kubernetes.io/control-plane": ""}
			})},
		"the taint of the control plane": {member: "roles.tolerations",
			edit: onPods(func(o *v1alpha1.PodOptions) {
				o.Tolerations = []corev1.Toleration{{Key: "node-role.kubernetes.io/control-plane", Operator: "Exists"}}
			}),
			want: v1alpha1.ReasonTolerationNotAllowed, says: "spec.collector.tolerations[0]: the operator does not allow that the pods tolerate node-role.kubernetes.io/control-plane",
			allow: func(o *controllers.Options) { o.Pods.AllowedTolerations = []string{"node-role.kubernetes.io/*"} }},
		"every taint": {member: "roles.tolerations", edit: onPods(func(o *v1alpha1.PodOptions) { o.Tolerations = []corev1.Toleration{{Operator: "Exists"}} }),
			want: v1alpha1.ReasonTolerationNotAllowed, says: "tolerate every taint", allow: func(o *controllers.Options) { o.Pods.AllowedTolerations = []string{"*"} }},
		"a taint that every pod tolerates for a while": {member: "roles.tolerations",
			edit: onPods(func(o *v1alpha1.PodOptions) {
				o.Tolerations = []corev1.Toleration{{Key: "node.kubernetes.io/not-ready", Operator: "Exists"}}
			})},
		"pods of all namespaces kept off": {member: "roles.affinity",
			edit: onPods(func(o *v1alpha1.PodOptions) { o.Affinity = antiAffinity(nil, &metav1.LabelSelector{}) }),
			want: v1alpha1.ReasonAffinityNotAllowed, says: "spec.collector.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution[0]"},
		"pods of another namespace kept off": {member: "roles.affinity", edit: onPods(func(o *v1alpha1.PodOptions) { o.Affinity = antiAffinity([]string{"blogs"}, nil) }),
			want: v1alpha1.ReasonAffinityNotAllowed, says: "spec.collector.affinity.podAntiAffinity"},
		"pods of the namespace kept off": {member: "roles.affinity", edit: onPods(func(o *v1alpha1.PodOptions) { o.Affinity = antiAffinity([]string{"shops"}, nil) })},
		// A constraint counts pods of its own namespace.
		"a spread over zones": {member: "roles.topologySpreadConstraints", edit: onPods(func(o *v1alpha1.PodOptions) {
			o.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{MaxSkew: 1, TopologyKey: "zone", WhenUnsatisfiable: "DoNotSchedule"}}
		})},
		// The kubelet shows them to the registry of the image, which is the operator's to name.
		"a Secret to pull the image with": {member: "roles.imagePullSecrets[].name", edit: onPods(func(o *v1alpha1.PodOptions) { o.ImagePullSecrets = []v1alpha1.SecretReference{{Name: "registry"}} })},
		"processor time and memory": {member: "roles.resources.requests", edit: onPods(func(o *v1alpha1.PodOptions) {
			o.Resources = &v1alpha1.Resources{Requests: corev1.ResourceList{"cpu": {}, "memory": {}, "ephemeral-storage": {}}}
		})},
		"a device of the node's": {member: "roles.resources.limits", edit: onPods(func(o *v1alpha1.PodOptions) {
			o.Resources = &v1alpha1.Resources{Limits: corev1.ResourceList{"devices.kubevirt.io/kvm": {}}}
		}), want: v1alpha1.ReasonResourceNotAllowed, says: "spec.collector.resources: must be cpu, memory or ephemeral-storage, not devices.kubevirt.io/kvm"},
	}
	for _, key := range []string{
		"sidecar.istio.io/userVolume", "sidecar.istio.io/inject", "inject.istio.io/templates", "linkerd.io/inject", "config.linkerd.io/proxy-image",
		"k8s.v1.cni.cncf.io/networks", "v1.multus-cni.io/default-network", "container.apparmor.security.beta.kubernetes.io/weir",
		"seccomp.security.alpha.kubernetes.io/pod", "vault.hashicorp.com/agent-inject", "cluster-autoscaler.kubernetes.io/safe-to-evict",
		"io.kubernetes.cri-o.userns-mode", "iam.amazonaws.com/role", "prometheus.io/scrape", "weir.dev/redis",
	} {
		table["the pod annotation "+key] = podAnnotation(key)
	}
	return table
}

func TestWhatATenantWritesIsDeniedUnlessTheOperatorAllowsIt(t *testing.T) {
	for name, row := range freeForms() {
		t.Run(name, func(t *testing.T) {
			p := property("shops", "shop", func(p *v1alpha1.Property) { row.edit(&p.Spec) })
			options := controllers.Options{Exposure: controllers.ExposureRules{HostTemplate: "{name}.{namespace}.collect.example.com"}}
			got := strings.Join(controllers.Refusals(options, p), "\n")
			if row.want == "" {
				if got != "" {
					t.Errorf("it is refused: %s", got)
				}
				return
			}
			if !strings.HasPrefix(got, row.want+" ") || !strings.Contains(got, row.says) {
				t.Fatalf("the refusal is %q, want %s with %q", got, row.want, row.says)
			}
			if row.allow == nil {
				return
			}
			row.allow(&options)
			if got := controllers.Refusals(options, p); got != nil {
				t.Errorf("it is refused although it is allowed: %s", got)
			}
		})
	}
}

// TestEachFreeFormMemberHasARow fails where the spec gets another member that takes text into an object.
func TestEachFreeFormMemberHasARow(t *testing.T) {
	want := map[string]bool{}
	for _, role := range []any{v1alpha1.Collector{}, v1alpha1.Workload{}} {
		freeMembers(reflect.TypeOf(role), "roles", want)
	}
	freeMembers(reflect.TypeFor[v1alpha1.Exposure](), "exposure", want)
	delete(want, "exposure.type") // enumerations
	delete(want, "roles.autoscaling.type")
	rows := map[string]bool{}
	for _, row := range freeForms() {
		rows[row.member] = true
	}
	if missing := slices.DeleteFunc(slices.Sorted(maps.Keys(want)), func(m string) bool { return rows[m] }); len(missing) > 0 {
		t.Errorf("no row for %s", strings.Join(missing, ", "))
	}
}

// freeMembers collects the members of a type that hold text, or types of Kubernetes' own.
func freeMembers(of reflect.Type, at string, into map[string]bool) {
	switch of.Kind() {
	case reflect.Pointer:
		freeMembers(of.Elem(), at, into)
	case reflect.String, reflect.Map:
		into[at] = true
	case reflect.Slice:
		if of.Elem().Kind() == reflect.Struct && strings.HasSuffix(of.Elem().PkgPath(), "/v1alpha1") {
			freeMembers(of.Elem(), at+"[]", into)
			return
		}
		into[at] = true
	case reflect.Struct:
		if !strings.HasSuffix(of.PkgPath(), "/v1alpha1") {
			into[at] = true
			return
		}
		for field := range of.Fields() {
			name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			if name == "" {
				freeMembers(field.Type, at, into)
				continue
			}
			freeMembers(field.Type, at+"."+name, into)
		}
	}
}

func TestWhatIsRefusedLeavesWhatWasAcceptedAsItIs(t *testing.T) {
	namespace := newNamespace(t)
	startOperator(t, operatorOptions{namespaces: []string{namespace}, Options: controllers.Options{
		RedisURL: redistest.URL(t),
		Exposure: controllers.ExposureRules{HostTemplate: "{name}.{namespace}.example.com", AllowedHosts: map[string][]string{}},
		Pods:     controllers.PodRules{AllowedAnnotations: []string{"example.com/team"}},
	}})
	create(t, property(namespace, "kept", func(p *v1alpha1.Property) {
		p.Spec.Exposure.Type = v1alpha1.ExposureIngress
		p.Spec.Collector.PodAnnotations = map[string]string{"example.com/team": "growth"}
	}))
	waitFor(t, namespace, "kept", v1alpha1.ConditionExposed, metav1.ConditionTrue, v1alpha1.ReasonReady)
	var before appsv1.Deployment
	eventually(t, func() error {
		return server.client.Get(context.Background(), client.ObjectKey{Namespace: namespace, Name: "kept-collector"}, &before)
	})
	route := get(t, &networkingv1.Ingress{}, namespace, "kept-collector")

	change(t, &v1alpha1.Property{}, namespace, "kept", func(p *v1alpha1.Property) {
		p.Spec.Collector.PodAnnotations["k8s.v1.cni.cncf.io/networks"] = "kube-system/host"
		p.Spec.Exposure.Ingress = &v1alpha1.IngressExposure{Annotations: map[string]string{"nginx.ingress.kubernetes.io/auth-url": "x"}}
		p.Spec.Retention.Days = 90
	})
	waitFor(t, namespace, "kept", v1alpha1.ConditionWorkloadsAvailable, metav1.ConditionFalse, v1alpha1.ReasonAnnotationNotAllowed)
	p := waitFor(t, namespace, "kept", v1alpha1.ConditionExposed, metav1.ConditionFalse, v1alpha1.ReasonAnnotationNotAllowed)
	for condition, want := range map[string]string{
		v1alpha1.ConditionWorkloadsAvailable: "spec.collector.podAnnotations: the operator does not allow k8s.v1.cni.cncf.io/networks",
		v1alpha1.ConditionExposed:            "spec.exposure.ingress.annotations: the operator does not allow nginx.ingress.kubernetes.io/auth-url",
	} {
		if got := message(p, condition); !strings.Contains(got, want) {
			t.Errorf("%s says %q, want it to say %q", condition, got, want)
		}
	}
	if p.Status.CollectURL != "http://kept."+namespace+".example.com" {
		t.Errorf("status.collectURL is %q", p.Status.CollectURL)
	}
	if after := get(t, &appsv1.Deployment{}, namespace, "kept-collector"); after.Generation != before.Generation {
		t.Errorf("the Deployment was changed: its annotations are %v", after.Spec.Template.Annotations)
	}
	if after := get(t, &networkingv1.Ingress{}, namespace, "kept-collector"); after.ResourceVersion != route.ResourceVersion {
		t.Errorf("the Ingress was changed: its annotations are %v", after.Annotations)
	}
	eventually(t, func() error { // what is not refused goes on
		settings := get(t, &corev1.ConfigMap{}, namespace, "kept-config")
		for _, text := range settings.Data {
			if strings.Contains(text, "90") {
				return nil
			}
		}
		return fmt.Errorf("no retention of 90 days in %v", settings.Data)
	})
	change(t, &v1alpha1.Property{}, namespace, "kept", func(p *v1alpha1.Property) {
		delete(p.Spec.Collector.PodAnnotations, "k8s.v1.cni.cncf.io/networks")
		p.Spec.Exposure.Ingress = nil
	})
	waitFor(t, namespace, "kept", v1alpha1.ConditionExposed, metav1.ConditionTrue, v1alpha1.ReasonReady)
}
