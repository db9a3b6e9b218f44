package controllers_test

import (
	"context"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/collector/redisserver/redistest"
	"github.com/weir-dev/weir/controllers"
)

// judged is what tools that wait for objects, such as Flux, kpt and Argo CD's health checks, think of a Property.
func judged(t *testing.T, namespace, name string) status.Status {
	t.Helper()
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(v1alpha1.Kind))
	get(t, object, namespace, name)
	result, err := status.Compute(object)
	if err != nil {
		t.Fatal(err)
	}
	return result.Status
}

// TestNoToolTakesAPropertyForFinishedBeforeItIs walks a Property through its life, with kstatus as the judge.
func TestNoToolTakesAPropertyForFinishedBeforeItIs(t *testing.T) {
	t.Parallel()
	namespace, ctx := newNamespace(t), context.Background()
	options := operatorOptions{namespaces: []string{namespace}, Options: controllers.Options{RedisURL: redistest.URL(t)}}
	var running *operator
	edit := func(edit func(*v1alpha1.PropertySpec)) func() {
		return func() {
			change(t, &v1alpha1.Property{}, namespace, "shop", func(p *v1alpha1.Property) { edit(&p.Spec) })
		}
	}
	ready := func(status metav1.ConditionStatus, reason string) func() {
		return func() { waitFor(t, namespace, "shop", v1alpha1.ConditionReady, status, reason) }
	}
	for _, step := range []struct {
		sentence string
		do       []func()
		want     status.Status
	}{
		{"one that nobody has seen is not finished", []func(){func() { create(t, property(namespace, "shop")) }}, status.InProgressStatus},
		{"nor one whose pods are not there", []func(){func() { running = startOperator(t, options) }, ready(metav1.ConditionFalse, v1alpha1.ReasonProgressing)}, status.InProgressStatus},
		{"one whose pods run is finished", []func(){func() { rollOut(t, namespace, "shop") }, ready(metav1.ConditionTrue, v1alpha1.ReasonReady)}, status.CurrentStatus},
		{"a change that nobody has seen is not", []func(){func() { running.stop() }, edit(func(s *v1alpha1.PropertySpec) { s.TimeZone = "Europe/Berlin" })}, status.InProgressStatus},
		{"when it has been made it is", []func(){func() { running = startOperator(t, options) }, ready(metav1.ConditionTrue, v1alpha1.ReasonReady)}, status.CurrentStatus},
		{"what cannot be done is not", []func(){edit(func(s *v1alpha1.PropertySpec) { s.Currency = "XQX" }), ready(metav1.ConditionFalse, v1alpha1.ReasonConfigurationInvalid)}, status.InProgressStatus},
		{"what could be mended is", []func(){edit(func(s *v1alpha1.PropertySpec) { s.Currency = "EUR" }), ready(metav1.ConditionTrue, v1alpha1.ReasonReady)}, status.CurrentStatus},
		{"one that is being deleted is", []func(){func() { running.stop() }, func() {
			if err := server.client.Delete(ctx, property(namespace, "shop")); err != nil {
				t.Fatal(err)
			}
		}}, status.TerminatingStatus},
	} {
		for _, do := range step.do {
			do()
		}
		if got := judged(t, namespace, "shop"); got != step.want {
			t.Fatalf("%s: it is %s, want %s", step.sentence, got, step.want)
		}
	}
}
