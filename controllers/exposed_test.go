package controllers_test

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/collector/redisserver/redistest"
	"github.com/weir-dev/weir/controllers"
)

// acceptRoute plays a Gateway's controller.
func acceptRoute(t testing.TB, namespace, name, gateway, status string) {
	t.Helper()
	eventually(t, func() error {
		route := &unstructured.Unstructured{}
		route.SetGroupVersionKind(schema.GroupVersionKind{Group: "gateway.networking.k8s.io", Version: "v1", Kind: "HTTPRoute"})
		if err := server.client.Get(context.Background(), client.ObjectKey{Namespace: namespace, Name: name}, route); err != nil {
			return err
		}
		route.Object["status"] = map[string]any{"parents": []any{map[string]any{
			"controllerName": "example.com/gateway", "parentRef": map[string]any{"name": gateway},
			"conditions": []any{map[string]any{"type": "Accepted", "status": status, "reason": "Played", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}},
		}}}
		return server.client.Status().Update(context.Background(), route)
	})
}

// TestExposedMeansThatWhatLeadsToThePodsIsThere names what is missing, and then makes it.
func TestExposedMeansThatWhatLeadsToThePodsIsThere(t *testing.T) {
	t.Parallel()
	through := func(edit func(*v1alpha1.IngressExposure)) func(*v1alpha1.PropertySpec) {
		return exposed(func(e *v1alpha1.Exposure) { e.Ingress = &v1alpha1.IngressExposure{}; edit(e.Ingress) })
	}
	class := func(t testing.TB, namespace string) {
		create(t, &networkingv1.IngressClass{ObjectMeta: metav1.ObjectMeta{Name: "late-" + namespace}, Spec: networkingv1.IngressClassSpec{Controller: "example.com/late"}})
	}
	rows := map[string]struct {
		spec   func(namespace string) func(*v1alpha1.PropertySpec)
		user   string
		status metav1.ConditionStatus
		reason string
		says   []string
		mend   func(t testing.TB, namespace, name string)
	}{
		"a TLS Secret that is not there": {
			spec: func(string) func(*v1alpha1.PropertySpec) {
				return through(func(i *v1alpha1.IngressExposure) { i.TLSSecretName = "late" })
			},
			status: metav1.ConditionFalse, reason: v1alpha1.ReasonSecretMissing, says: []string{"spec.exposure.ingress.tlsSecretName", "Secret late"},
			mend: func(t testing.TB, namespace, _ string) {
				create(t, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "late"}, Type: corev1.SecretTypeTLS,
					Data: map[string][]byte{"tls.crt": nil, "tls.key": nil}})
			},
		},
		"an IngressClass that is not there": {
			spec: func(namespace string) func(*v1alpha1.PropertySpec) {
				return through(func(i *v1alpha1.IngressExposure) { i.ClassName = "late-" + namespace })
			},
			status: metav1.ConditionFalse, reason: v1alpha1.ReasonIngressClassMissing, says: []string{"spec.exposure.ingress.className", "IngressClass late-"},
			mend: func(t testing.TB, namespace, _ string) { class(t, namespace) },
		},
		"an IngressClass that the operator may not look for": {
			spec: func(namespace string) func(*v1alpha1.PropertySpec) {
				return through(func(i *v1alpha1.IngressExposure) { i.ClassName = "late-" + namespace })
			},
			user: bounded, status: metav1.ConditionUnknown, reason: v1alpha1.ReasonIngressClassUnknown, says: []string{"may not look", "IngressClass late-"},
			mend: func(t testing.TB, namespace, name string) {
				eventually(t, func() error {
					ingress := get(t, &networkingv1.Ingress{}, namespace, name+"-collector")
					ingress.Status.LoadBalancer.Ingress = []networkingv1.IngressLoadBalancerIngress{{IP: "192.0.2.1"}}
					return server.client.Status().Update(context.Background(), ingress)
				})
			},
		},
		"a Gateway that is not there": {
			spec:   func(string) func(*v1alpha1.PropertySpec) { return throughGateway },
			status: metav1.ConditionFalse, reason: v1alpha1.ReasonRouteNotAccepted, says: []string{"spec.exposure.gateway.parentRefs[0]", "Gateway edge", "-collector"},
			mend: func(t testing.TB, namespace, name string) {
				acceptRoute(t, namespace, name+"-collector", "edge", "True")
			},
		},
		"a Gateway that does not let the route in": {
			spec:   func(string) func(*v1alpha1.PropertySpec) { return throughGateway },
			status: metav1.ConditionFalse, reason: v1alpha1.ReasonRouteNotAccepted, says: []string{"does it let routes"},
			mend: func(t testing.TB, namespace, name string) {
				acceptRoute(t, namespace, name+"-collector", "edge", "False")
				acceptRoute(t, namespace, name+"-collector", "other", "True")
				waitFor(t, namespace, name, v1alpha1.ConditionExposed, metav1.ConditionFalse, v1alpha1.ReasonRouteNotAccepted)
				acceptRoute(t, namespace, name+"-collector", "edge", "True")
			},
		},
	}
	for sentence, row := range rows {
		t.Run(sentence, func(t *testing.T) {
			namespace := newNamespace(t)
			name := called("shop", namespace)
			grant(t, namespace, "")
			startOperator(t, operatorOptions{namespaces: []string{namespace}, user: row.user, Options: controllers.Options{RedisURL: redistest.URL(t),
				Exposure: controllers.ExposureRules{AllowedHosts: map[string][]string{"*": {"*"}}, AllowedIngressClasses: []string{"*"}, HostTemplate: "{name}.{namespace}.example.com"}}})
			create(t, property(namespace, name, func(p *v1alpha1.Property) { row.spec(namespace)(&p.Spec) }))
			p := waitFor(t, namespace, name, v1alpha1.ConditionExposed, row.status, row.reason)
			for _, words := range row.says {
				if text := message(p, v1alpha1.ConditionExposed); !strings.Contains(text, words) {
					t.Errorf("%q does not say %q", text, words)
				}
			}
			row.mend(t, namespace, name)
			waitFor(t, namespace, name, v1alpha1.ConditionExposed, metav1.ConditionTrue, v1alpha1.ReasonReady)
		})
	}
}
