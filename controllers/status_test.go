package controllers_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/collector/platforms"
	"github.com/weir-dev/weir/collector/redisserver/redistest"
	"github.com/weir-dev/weir/controllers"
)

// TestEventsTellOfTransitionsAndOfNothingElse counts the events of every step in the life of a Property. After each
// step it is reconciled again and again, by the operator that took the step and by one that has just started.
func TestEventsTellOfTransitionsAndOfNothingElse(t *testing.T) {
	hand, address := newByHand(t), redistest.URL(t)
	admin, ctx := dial(t, address), context.Background()
	edit := func(edit func(*v1alpha1.PropertySpec)) func(*testing.T) {
		return func(t *testing.T) {
			change(t, &v1alpha1.Property{}, hand.namespace, "shop", func(p *v1alpha1.Property) { edit(&p.Spec) })
		}
	}
	secret := func(name string) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: hand.namespace, Name: name}, StringData: map[string]string{"signingSecret": "x"}}
	}
	provide := func(name string) func(*testing.T) { return func(t *testing.T) { create(t, secret(name)) } }
	remove := func(name string) func(*testing.T) {
		return func(t *testing.T) {
			if err := server.client.Delete(ctx, secret(name)); err != nil {
				t.Fatal(err)
			}
		}
	}
	policy := func(name string) func(*testing.T) {
		return func(t *testing.T) {
			if err := admin.ConfigSet(ctx, "maxmemory-policy", name).Err(); err != nil {
				t.Fatal(err)
			}
		}
	}
	pods := func(ready int32) func(*testing.T) {
		return func(t *testing.T) {
			eventually(t, func() error {
				d := get(t, &appsv1.Deployment{}, hand.namespace, "shop-collector")
				d.Status = appsv1.DeploymentStatus{ObservedGeneration: d.Generation, Replicas: 2, UpdatedReplicas: 2, ReadyReplicas: ready, AvailableReplicas: ready}
				return server.client.Status().Update(ctx, d)
			})
		}
	}
	webhook := func(name string) v1alpha1.Platform {
		return v1alpha1.Platform{Name: name, Type: platforms.TypeWebhook,
			Settings: platforms.Settings{Webhook: &platforms.Webhook{URL: "https://crm.example.com"}}, CredentialsSecretRef: &v1alpha1.SecretReference{Name: name}}
	}

	steps := []struct {
		name string
		do   func(*testing.T)
		want []string
	}{
		{"a new Property has events of those conditions alone that are not good yet", func(t *testing.T) { create(t, property(hand.namespace, "shop")) }, []string{
			"Normal ReadyFalse Progressing", "Normal WorkloadsAvailableFalse Progressing",
		}},
		{"a change of the spec that no condition turns with", edit(func(s *v1alpha1.PropertySpec) { s.EventAliases = map[string]v1alpha1.EventName{"view": "pageview"} }), nil},
		{"a rollout that gets on, which only the message says", pods(1), nil},
		{"a platform without its Secret", edit(func(s *v1alpha1.PropertySpec) { s.Platforms = []v1alpha1.Platform{webhook("crm")} }),
			[]string{"Warning PlatformsReadyFalse SecretMissing"}},
		{"another one, for the same reason", edit(func(s *v1alpha1.PropertySpec) { s.Platforms = append(s.Platforms, webhook("mail")) }), nil},
		{"the first one's Secret, for the other's is still missing", provide("crm"), nil},
		{"both Secrets", provide("mail"), []string{"Normal PlatformsReadyTrue Ready"}},
		{"a Secret that goes", remove("crm"), []string{"Warning PlatformsReadyFalse SecretMissing"}},
		{"and comes back", provide("crm"), []string{"Normal PlatformsReadyTrue Ready"}},
		{"and goes again", remove("crm"), []string{"Warning PlatformsReadyFalse SecretMissing"}},
		{"a Redis that evicts", policy("allkeys-lru"), []string{"Warning ReadyFalse EvictionEnabled", "Warning RedisReadyFalse EvictionEnabled"}},
		{"and does no longer", policy("noeviction"), []string{"Normal ReadyFalse Progressing", "Normal RedisReadyTrue Ready"}},
	}
	for _, step := range steps {
		t.Run(step.name, func(t *testing.T) {
			recorder := events.NewFakeRecorder(1000)
			recorder.Verbose = true
			step.do(t)
			for range 2 {
				operator, stop := hand.start(newFuse(forever), controllers.Options{RedisURL: address}, recorder)
				hand.live(t, operator, "shop", func() bool { return false })
				stop()
			}
			var got []string
			for len(recorder.Events) > 0 {
				words := strings.Fields(<-recorder.Events) // type, reason, which is the condition and its status, action, which is its reason
				got = append(got, strings.Join(words[:3], " "))
			}
			slices.Sort(got)
			if diff := cmp.Diff(step.want, got); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
			p := get(t, &v1alpha1.Property{}, hand.namespace, "shop")
			for _, condition := range p.Status.Conditions {
				if condition.ObservedGeneration != p.Generation {
					t.Errorf("%s is that of generation %d, the Property's is %d", condition.Type, condition.ObservedGeneration, p.Generation)
				}
			}
			if p.Status.ObservedGeneration != p.Generation {
				t.Errorf("generation %d is observed of %d", p.Status.ObservedGeneration, p.Generation)
			}
		})
	}
}

func TestKubectlShowsWhatMatters(t *testing.T) {
	namespace := newNamespace(t)
	startOperator(t, operatorOptions{namespaces: []string{namespace}, Options: controllers.Options{RedisURL: redistest.URL(t)}})
	create(t, property(namespace, "shop", func(p *v1alpha1.Property) {
		p.Spec.Exposure = v1alpha1.Exposure{Type: v1alpha1.ExposureIngress, CollectHost: "collect.table.example.com", APIHost: "api.table.example.com"}
	}))
	settled(t, namespace, "shop")
	row := func() map[string]any { return tableRow(t, namespace) }
	want := map[string]any{
		"Name": "shop", "Ready": "False", "Reason": "Progressing", "Collect URL": "http://collect.table.example.com",
		"API URL": "http://api.table.example.com", "Platforms": "True", "Class": nil, "Paused": nil,
	}
	if diff := cmp.Diff(want, row()); diff != "" {
		t.Errorf("the row (-want +got):\n%s", diff)
	}
	rollOut(t, namespace, "shop")
	waitFor(t, namespace, "shop", v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonReady)
	want["Ready"], want["Reason"] = "True", "Ready"
	if diff := cmp.Diff(want, row()); diff != "" {
		t.Errorf("the row (-want +got):\n%s", diff)
	}
}

// tableRow asks for the namespace's only Property as kubectl get -o wide does, and returns its cells by column, all
// but the age.
func tableRow(t testing.TB, namespace string) map[string]any {
	t.Helper()
	transport, err := rest.HTTPClientFor(server.config)
	if err != nil {
		t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(context.Background(), http.MethodGet,
		fmt.Sprintf("%s/apis/weir.dev/v1alpha1/namespaces/%s/properties", strings.TrimRight(server.config.Host, "/"), namespace), http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io")
	response, err := transport.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	var table metav1.Table
	if err := json.Unmarshal(text, &table); err != nil || len(table.Rows) != 1 {
		t.Fatalf("%d rows, error %v in %s", len(table.Rows), err, text)
	}
	cells := map[string]any{}
	for i, column := range table.ColumnDefinitions {
		if column.Name != "Age" {
			cells[column.Name] = table.Rows[0].Cells[i]
		}
	}
	return cells
}
