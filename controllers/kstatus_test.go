package controllers_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/collector/auth"
	"github.com/weir-dev/weir/collector/redisserver/redistest"
	"github.com/weir-dev/weir/controllers"
)

// judged is what tools that wait for objects, such as Flux, kpt and Argo CD's health checks, think of one of a kind.
func judged(t *testing.T, kind, namespace, name string) status.Status {
	t.Helper()
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(kind))
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
		if got := judged(t, v1alpha1.Kind, namespace, "shop"); got != step.want {
			t.Fatalf("%s: it is %s, want %s", step.sentence, got, step.want)
		}
	}
}

// TestNoToolTakesAKeyOrTokenForFinishedBeforePodsKnowIt does the same with those that people make.
func TestNoToolTakesAKeyOrTokenForFinishedBeforePodsKnowIt(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	create(t, accessToken(namespace, "shop", "bi"))
	create(t, apiKey(namespace, "shop", "server", auth.NewAPIKey()))
	all := func(sentence string, want status.Status) {
		t.Helper()
		for kind, name := range map[string]string{v1alpha1.AccessTokenKind: "bi", v1alpha1.APIKeyKind: "server"} {
			if got := judged(t, kind, namespace, name); got != want {
				t.Errorf("%s: the %s is %s, want %s", sentence, kind, got, want)
			}
		}
	}
	become := func(reason string) {
		t.Helper()
		becomes(t, &v1alpha1.AccessToken{}, namespace, "bi", reason)
		becomes(t, &v1alpha1.APIKey{}, namespace, "server", reason)
	}
	all("those that nobody has seen are not finished", status.InProgressStatus)
	startOperator(t, operatorOptions{namespaces: []string{namespace}, Options: controllers.Options{RedisURL: redistest.URL(t)}})
	become(v1alpha1.ReasonPropertyMissing)
	all("nor those without a Property", status.InProgressStatus)
	create(t, property(namespace, "shop"))
	become(v1alpha1.ReasonReady)
	all("those that pods know are finished", status.CurrentStatus)
}

// TestWhatIsAppliedAgainIsNoChange applies manifests as GitOps does, lets the operator have its way, and applies them once more.
func TestWhatIsAppliedAgainIsNoChange(t *testing.T) {
	t.Parallel()
	namespace, ctx := newNamespace(t), context.Background()
	startOperator(t, operatorOptions{namespaces: []string{namespace}, Options: controllers.Options{RedisURL: redistest.URL(t)}})
	manifests := map[string]string{
		"a Property with next to nothing": `{kind: Property, metadata: {name: shop}, spec: {currency: EUR}}`,
		"one whose lists and quantities the API server completes": `{kind: Property, metadata: {name: blog}, spec: {
			currency: EUR, apiKeys: [{name: server}], accessTokens: [{name: bi}, {name: ops, scope: admin}],
			platforms: [{name: console, type: Log}], deliverer: {resources: {requests: {cpu: "0.10", memory: 65536Ki}}},
			collector: {autoscaling: {maxReplicas: 4}, tolerations: [{key: dedicated, operator: Exists}]}}}`,
		"a token": `{kind: AccessToken, metadata: {name: bi}, spec: {propertyRef: {name: shop}, sha256: ` + hashOf(auth.NewAccessToken()) + `}}`,
		"a key":   `{kind: APIKey, metadata: {name: server}, spec: {propertyRef: {name: shop}, sha256: ` + hashOf(auth.NewAPIKey()) + `}}`,
	}
	apply := func(text string) *unstructured.Unstructured {
		t.Helper()
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(text), &object.Object); err != nil {
			t.Fatal(err)
		}
		object.SetAPIVersion(v1alpha1.GroupVersion.String())
		object.SetNamespace(namespace)
		if err := server.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(object), client.FieldOwner("gitops")); err != nil {
			t.Fatal(err)
		}
		return object
	}
	for _, text := range manifests {
		apply(text)
	}
	for _, name := range []string{"shop", "blog"} {
		quiet(t, settled(t, namespace, name))
	}
	becomes(t, &v1alpha1.AccessToken{}, namespace, "bi", v1alpha1.ReasonReady)
	becomes(t, &v1alpha1.APIKey{}, namespace, "server", v1alpha1.ReasonReady)
	for sentence, text := range manifests {
		before := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(text), &before.Object); err != nil {
			t.Fatal(err)
		}
		before.SetAPIVersion(v1alpha1.GroupVersion.String())
		get(t, before, namespace, before.GetName())
		after := apply(text)
		if diff := cmp.Diff(before.Object, after.Object); diff != "" {
			t.Errorf("%s, applied again (-before +after):\n%s", sentence, diff)
		}
	}
}
