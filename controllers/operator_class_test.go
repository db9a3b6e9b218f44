package controllers_test

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/collector/redisserver/redistest"
	"github.com/weir-dev/weir/controllers"
)

// ofClass makes a Property of a class.
func ofClass(class string) func(*v1alpha1.Property) {
	return func(p *v1alpha1.Property) { p.Spec.OperatorClass = class }
}

// at has a Property ask for a host.
func at(host string) func(*v1alpha1.Property) {
	return func(p *v1alpha1.Property) {
		p.Spec.Exposure = v1alpha1.Exposure{Type: v1alpha1.ExposureIngress, CollectHost: host}
	}
}

// TestEachOperatorServesItsClass runs two operators on the same namespace, with Leases and with the same Redis. Beside their
// Properties there is one whom nobody serves, and which is the oldest that asks for the host.
func TestEachOperatorServesItsClass(t *testing.T) {
	t.Parallel()
	namespace, address := newNamespace(t), redistest.URL(t)
	host := namespace + ".class.example.com"
	create(t, property(namespace, "nobodys", ofClass("green"), at(host)))
	operators := map[string]*operator{}
	for _, class := range []string{"", "blue"} {
		operators[class] = startOperator(t, operatorOptions{namespaces: []string{namespace}, Options: controllers.Options{
			RedisURL: address, OperatorClass: class, Leases: &controllers.NamespaceLeases{
				Client: server.client, Holder: "release/of-" + class, Class: class, Namespaces: []string{namespace}, GiveBack: true,
				Duration: controllers.LeaseDuration, Now: time.Now, Logger: slog.New(slog.DiscardHandler),
			},
		}})
	}
	create(t, property(namespace, "plain", at(host)))
	settled(t, namespace, "plain")
	waitFor(t, namespace, "plain", v1alpha1.ConditionExposed, metav1.ConditionTrue, v1alpha1.ReasonReady)
	create(t, property(namespace, "sky", ofClass("blue"), at(host)))
	settled(t, namespace, "sky")
	waitFor(t, namespace, "sky", v1alpha1.ConditionExposed, metav1.ConditionFalse, v1alpha1.ReasonHostConflict)

	for class, operator := range operators {
		for _, call := range operator.since(0) {
			ours, theirs := "plain", "sky"
			if class == "blue" {
				ours, theirs = theirs, ours
			}
			if strings.Contains(call, theirs) || strings.Contains(call, "nobodys") {
				t.Errorf("the operator of %s writes to another's: %s", ours, call)
			}
		}
	}
	if p := get(t, &v1alpha1.Property{}, namespace, "nobodys"); p.Status.ObservedGeneration != -1 || len(p.Finalizers) > 0 || len(owned(t, p)) > 0 {
		t.Errorf("somebody serves the class green: %+v", p.Status)
	}

	deleted(t, namespace, "plain")
	waitFor(t, namespace, "sky", v1alpha1.ConditionExposed, metav1.ConditionTrue, v1alpha1.ReasonReady)
	deleted(t, namespace, "sky")
}

// TestTheClassOfAPropertyStays has the API server refuse each change of it.
func TestTheClassOfAPropertyStays(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	for sentence, test := range map[string]struct{ name, before, after, want string }{
		"none to one":     {"a", "", "blue", "spec.operatorClass"},
		"one to none":     {"b", "blue", "", "spec.operatorClass"},
		"one to another":  {"c", "blue", "green", "spec.operatorClass"},
		"none stays none": {"d", "", "", ""},
		"one stays":       {"e", "blue", "blue", ""},
	} {
		create(t, property(namespace, test.name, ofClass(test.before)))
		p := get(t, &v1alpha1.Property{}, namespace, test.name)
		p.Spec.OperatorClass, p.Spec.TimeZone = test.after, "Europe/Berlin"
		err := server.client.Update(context.Background(), p)
		if refused := err != nil && apierrors.IsInvalid(err) && strings.Contains(err.Error(), "is immutable"); refused != (test.want != "") || !refused && err != nil {
			t.Errorf("%s: %v", sentence, err)
		}
	}
}

// TestReleasesOfDifferentClassesDoNotMeet has two releases at the Leases of the same namespace.
func TestReleasesOfDifferentClassesDoNotMeet(t *testing.T) {
	t.Parallel()
	clock := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for sentence, test := range map[string]struct {
		first, second string
		want          string
	}{
		"none and one":  {"", "blue", ""},
		"two":           {"blue", "green", ""},
		"the same":      {"blue", "blue", "first/weir"},
		"none and none": {"", "", "first/weir"},
	} {
		namespace := newNamespace(t)
		first, second := releaseOf("first/weir", &clock, namespace), releaseOf("second/weir", &clock, namespace)
		first.Class, second.Class = test.first, test.second
		if other := rival(t, first, namespace); other != "" {
			t.Errorf("%s: the first finds %s", sentence, other)
		}
		if other := rival(t, second, namespace); other != test.want {
			t.Errorf("%s: the second finds %q, want %q", sentence, other, test.want)
		}
	}
}
