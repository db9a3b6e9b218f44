package controllers_test

import (
	"strings"
	"testing"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/collector/redisserver/redistest"
	"github.com/weir-dev/weir/controllers"
)

func TestAnExposedPropertyWithoutAHostGetsThatOfTheTemplate(t *testing.T) {
	namespace := newNamespace(t)
	startOperator(t, operatorOptions{namespaces: []string{namespace}, Options: controllers.Options{
		RedisURL: redistest.URL(t),
		Exposure: controllers.ExposureRules{
			HostTemplate: "{name}.{namespace}.template.example.com", AllowedHosts: map[string][]string{namespace: {"*.template.example.com"}},
		},
	}})
	exposed := func(host string) func(*v1alpha1.Property) {
		return func(p *v1alpha1.Property) {
			p.Spec.Exposure = v1alpha1.Exposure{Type: v1alpha1.ExposureIngress, CollectHost: host}
		}
	}
	want := "named." + namespace + ".template.example.com"
	create(t, property(namespace, "named", exposed("")))
	p := waitFor(t, namespace, "named", v1alpha1.ConditionExposed, metav1.ConditionTrue, v1alpha1.ReasonReady)
	if p.Status.CollectURL != "http://"+want {
		t.Errorf("status.collectURL is %q, want http://%s", p.Status.CollectURL, want)
	}
	if p.Spec.Exposure.CollectHost != "" {
		t.Errorf("the operator has written %q into the spec", p.Spec.Exposure.CollectHost)
	}
	ingress := get(t, &networkingv1.Ingress{}, namespace, "named-collector")
	if got := ingress.Spec.Rules[0].Host; got != want {
		t.Errorf("the Ingress is for %q, want %q", got, want)
	}

	create(t, property(namespace, "thief", exposed(want)))
	p = waitFor(t, namespace, "thief", v1alpha1.ConditionExposed, metav1.ConditionFalse, v1alpha1.ReasonHostConflict)
	if text := message(p, v1alpha1.ConditionExposed); !strings.Contains(text, want) {
		t.Errorf("the condition does not name the host: %s", text)
	}

	create(t, property(namespace, "hidden"))
	waitFor(t, namespace, "hidden", v1alpha1.ConditionExposed, metav1.ConditionTrue, v1alpha1.ReasonNotExposed)
}

func TestAHostThatANamespaceMayNotHaveIsNotKeptFromOthers(t *testing.T) {
	stranger, owner := newNamespace(t), newNamespace(t)
	host := "collect." + owner + ".example.com"
	startOperator(t, operatorOptions{namespaces: []string{stranger, owner}, Options: controllers.Options{
		RedisURL: redistest.URL(t),
		Exposure: controllers.ExposureRules{AllowedHosts: map[string][]string{owner: {host}, stranger: {"stranger.example.com"}}},
	}})
	exposed := func(p *v1alpha1.Property) {
		p.Spec.Exposure = v1alpha1.Exposure{Type: v1alpha1.ExposureIngress, CollectHost: host}
	}
	create(t, property(stranger, "squatter", exposed))
	waitFor(t, stranger, "squatter", v1alpha1.ConditionExposed, metav1.ConditionFalse, v1alpha1.ReasonHostNotAllowed)
	create(t, property(owner, "rightful", exposed))
	waitFor(t, owner, "rightful", v1alpha1.ConditionExposed, metav1.ConditionTrue, v1alpha1.ReasonReady)
}

func TestWhoeverIsRefusedAHostKeepsNoneFromOthers(t *testing.T) {
	namespace := newNamespace(t)
	startOperator(t, operatorOptions{namespaces: []string{namespace}, Options: controllers.Options{RedisURL: redistest.URL(t)}})
	host := func(name string) string { return name + ".kept.example.com" }
	exposed := func(collect, api string) func(*v1alpha1.Property) {
		return func(p *v1alpha1.Property) {
			p.Spec.Exposure = v1alpha1.Exposure{Type: v1alpha1.ExposureIngress, CollectHost: host(collect), APIHost: host(api)}
		}
	}
	has := func(name string) {
		t.Helper()
		waitFor(t, namespace, name, v1alpha1.ConditionExposed, metav1.ConditionTrue, v1alpha1.ReasonReady)
	}
	refused := func(name string) {
		t.Helper()
		waitFor(t, namespace, name, v1alpha1.ConditionExposed, metav1.ConditionFalse, v1alpha1.ReasonHostConflict)
	}
	// Those of the same second are of an age, and then the names decide.
	create(t, property(namespace, "a-first", exposed("one", "api")))
	has("a-first")
	create(t, property(namespace, "b-second", exposed("one", "two")))
	refused("b-second")
	create(t, property(namespace, "c-third", exposed("two", "three")))
	has("c-third")
	create(t, property(namespace, "d-fourth", exposed("three", "api")))
	refused("d-fourth")

	first := get(t, &v1alpha1.Property{}, namespace, "a-first")
	if err := server.client.Delete(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	has("b-second")
	refused("c-third")
	has("d-fourth")

	change(t, &v1alpha1.Property{}, namespace, "b-second", exposed("other", "api"))
	has("c-third")
	refused("d-fourth")
}

func TestOneNameInTwoNamespaces(t *testing.T) {
	staging, production := newNamespace(t), newNamespace(t)
	startOperator(t, operatorOptions{namespaces: []string{staging, production}, Options: controllers.Options{RedisURL: redistest.URL(t)}})
	exposed := func(api string) func(*v1alpha1.Property) {
		return func(p *v1alpha1.Property) {
			p.Spec.Exposure = v1alpha1.Exposure{Type: v1alpha1.ExposureIngress, CollectHost: p.Namespace + ".twice.example.com", APIHost: api}
		}
	}
	for _, namespace := range []string{staging, production} {
		create(t, property(namespace, "inside"))
		waitFor(t, namespace, "inside", v1alpha1.ConditionExposed, metav1.ConditionTrue, v1alpha1.ReasonNotExposed)
		create(t, property(namespace, "apart", exposed("api-"+namespace+".twice.example.com")))
		waitFor(t, namespace, "apart", v1alpha1.ConditionExposed, metav1.ConditionTrue, v1alpha1.ReasonReady)
		p := waitFor(t, namespace, "apart", v1alpha1.ConditionRedisReady, metav1.ConditionTrue, v1alpha1.ReasonReady)
		if want := "http://api-" + namespace + ".twice.example.com"; p.Status.APIURL != want {
			t.Errorf("status.apiURL is %q, want %s", p.Status.APIURL, want)
		}
	}
}
