package controllers_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/collector/redisserver/redistest"
	"github.com/weir-dev/weir/controllers"
)

// pausing sets the annotation, or takes it off with "".
func pausing(t *testing.T, namespace, name, value string) {
	t.Helper()
	change(t, &v1alpha1.Property{}, namespace, name, func(p *v1alpha1.Property) {
		delete(p.Annotations, v1alpha1.AnnotationPaused)
		if value != "" {
			metav1.SetMetaDataAnnotation(&p.ObjectMeta, v1alpha1.AnnotationPaused, value)
		}
	})
}

// pause is what the condition says: "" where it is absent.
func pause(t *testing.T, namespace, name string) string {
	t.Helper()
	p := get(t, &v1alpha1.Property{}, namespace, name)
	found := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionPaused)
	if found == nil {
		return ""
	}
	return string(found.Status) + " " + found.Reason
}

func awaitPause(t *testing.T, namespace, name, want string) {
	t.Helper()
	eventually(t, func() error {
		if got := pause(t, namespace, name); got != want {
			return fmt.Errorf("Paused is %q, want %q", got, want)
		}
		return nil
	})
}

// TestAPausedPropertyIsLeftAlone pauses a Property, has others change what belongs to it in the cluster and in Redis, and pauses it no
// longer. A second Property has the same done to it without a pause: when it has been put right, the operator has looked.
func TestAPausedPropertyIsLeftAlone(t *testing.T) {
	t.Parallel()
	namespace, address, ctx := newNamespace(t), redistest.URL(t), context.Background()
	admin := dial(t, address)
	options := operatorOptions{namespaces: []string{namespace}, Options: controllers.Options{RedisURL: address}}
	running := startOperator(t, options)
	for _, name := range []string{"shop", "other"} {
		create(t, property(namespace, name, func(p *v1alpha1.Property) {
			p.Spec.AccessTokens = []v1alpha1.PropertyAccessToken{{Name: "bi"}, {Name: "old"}}
		}))
		settled(t, namespace, name)
		rollOut(t, namespace, name)
		waitFor(t, namespace, name, v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonReady)
	}
	pausing(t, namespace, "shop", "true")
	awaitPause(t, namespace, "shop", "True "+v1alpha1.ReasonPaused)
	if said := message(get(t, &v1alpha1.Property{}, namespace, "shop"), v1alpha1.ConditionPaused); !strings.Contains(said, "NOT revoked") || !strings.Contains(said, "the console's old keys") {
		t.Errorf("the condition does not say that nothing is revoked, nor the console's keys: %s", said)
	}
	if got := judged(t, v1alpha1.Kind, namespace, "shop"); got != status.CurrentStatus {
		t.Errorf("kstatus takes one that is paused and serves for %s", got)
	}

	hurt := func(name string) {
		change(t, &appsv1.Deployment{}, namespace, name+"-query", func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Image = "mine:1" })
		if err := server.client.Delete(ctx, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name + "-query"}}); err != nil {
			t.Fatal(err)
		}
		if err := admin.Do(ctx, "ACL", "DELUSER", "weir:"+namespace+"/"+name+":query").Err(); err != nil {
			t.Fatal(err)
		}
		change(t, &v1alpha1.Property{}, namespace, name, func(p *v1alpha1.Property) { p.Spec.AccessTokens = p.Spec.AccessTokens[:1] })
	}
	// undone counts what is as the spec has it again.
	undone := func(name string) (whole int, err error) {
		if get(t, &appsv1.Deployment{}, namespace, name+"-query").Spec.Template.Spec.Containers[0].Image == "weir:test" {
			whole++
		}
		if err := server.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name + "-query"}, &corev1.Service{}); err == nil {
			whole++
		} else if !apierrors.IsNotFound(err) {
			return 0, err
		}
		users, err := admin.ACLList(ctx).Result()
		if slices.ContainsFunc(users, func(user string) bool { return strings.HasPrefix(user, "user weir:"+namespace+"/"+name+":query ") }) {
			whole++
		}
		if !strings.Contains(string(get(t, &corev1.Secret{}, namespace, name+"-access-tokens").Data["access-tokens.json"]), `"old"`) {
			whole++
		}
		return whole, err
	}
	const all = 4
	awaitAll := func(name string) {
		t.Helper()
		eventually(t, func() error {
			whole, err := undone(name)
			if whole != all {
				return errors.Join(err, fmt.Errorf("%s: %d of %d are as the spec has them", name, whole, all))
			}
			return err
		})
	}
	untouched := func(since int64) {
		t.Helper()
		if whole, err := undone("shop"); whole != 0 || err != nil {
			t.Errorf("%d of %d changes of a paused Property were undone, error %v", whole, all, err)
		}
		for _, call := range running.since(since) {
			if strings.Contains(call, "shop") && call != "patch status of *v1alpha1.Property shop" { // that the pause holds for the new generation, too
				t.Errorf("the operator writes to what is paused: %s", call)
			}
		}
	}
	before := running.writes.Load()
	hurt("shop")
	hurt("other")
	awaitAll("other")
	untouched(before)
	running.stop()
	running = startOperator(t, options) // it knows nothing of before
	change(t, &v1alpha1.Property{}, namespace, "other", func(p *v1alpha1.Property) { p.Spec.TimeZone = "Europe/Berlin" })
	waitFor(t, namespace, "other", v1alpha1.ConditionRedisReady, metav1.ConditionTrue, v1alpha1.ReasonReady)
	untouched(0)
	if got := pausedIn(t, namespace); got != 1 {
		t.Errorf("the metric counts %v, want 1", got)
	}
	p := get(t, &v1alpha1.Property{}, namespace, "shop")
	if ready := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionReady); ready.Status != metav1.ConditionTrue || p.Status.ObservedGeneration == p.Generation {
		t.Errorf("Ready is %s of generation %d, want what it was before generation %d", ready.Status, p.Status.ObservedGeneration, p.Generation)
	}
	if got := judged(t, v1alpha1.Kind, namespace, "shop"); got != status.InProgressStatus {
		t.Errorf("kstatus takes a change that is not made for %s", got)
	}

	pausing(t, namespace, "shop", "false")
	awaitPause(t, namespace, "shop", "")
	awaitAll("shop")
	if got := pausedIn(t, namespace); got != 0 {
		t.Errorf("the metric counts %v, want 0", got)
	}
}

// pausedIn is what the metric counts in a namespace.
func pausedIn(t *testing.T, namespace string) float64 {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(controllers.PausedProperties(client.NewNamespacedClient(server.client, namespace), ""))
	families, err := registry.Gather()
	if err != nil || len(families) != 1 {
		t.Fatalf("%d metrics, error %v", len(families), err)
	}
	return families[0].GetMetric()[0].GetGauge().GetValue()
}

// TestWhatAPauseIs has values of the annotation that are one and that are none.
func TestWhatAPauseIs(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	startOperator(t, operatorOptions{namespaces: []string{namespace}, Options: controllers.Options{RedisURL: redistest.URL(t)}})
	for name, test := range map[string]struct{ sentence, value, want string }{
		"a": {"true is a pause", "true", "True " + v1alpha1.ReasonPaused},
		"b": {"another case is a mistake, and no pause", "True", "False " + v1alpha1.ReasonPauseInvalid},
		"c": {"another word is a mistake, and no pause", "yes", "False " + v1alpha1.ReasonPauseInvalid},
		"d": {"false is none", "false", ""},
	} {
		create(t, property(namespace, name, func(p *v1alpha1.Property) {
			p.Annotations = map[string]string{v1alpha1.AnnotationPaused: test.value}
		}))
		if test.value != "true" {
			settled(t, namespace, name)
		}
		eventually(t, func() error {
			if got := pause(t, namespace, name); got != test.want {
				return fmt.Errorf("%s: Paused is %q, want %q", test.sentence, got, test.want)
			}
			return nil
		})
	}
	p := get(t, &v1alpha1.Property{}, namespace, "a")
	if len(p.Finalizers) > 0 || p.Status.ObservedGeneration != -1 || len(owned(t, p)) > 0 {
		t.Errorf("one that was paused from the start has finalizers %v, generation %d and objects %v", p.Finalizers, p.Status.ObservedGeneration, names(owned(t, p)))
	}
	if got := judged(t, v1alpha1.Kind, namespace, "a"); got != status.InProgressStatus {
		t.Errorf("kstatus takes one that was never made for %s", got)
	}
}

// TestAPausedPropertyKeepsItsHost has one ask for another host, or not allowed its own any more, while it is paused: its Ingress stands,
// and so nobody else gets the host until the pause ends.
func TestAPausedPropertyKeepsItsHost(t *testing.T) {
	t.Parallel()
	for sentence, refuse := range map[string]bool{"its spec asks for another host": false, "the operator gives the host to another namespace": true} {
		t.Run(sentence, func(t *testing.T) {
			t.Parallel()
			first, second := newNamespace(t), newNamespace(t)
			host := "collect." + first + ".kept.example.com"
			exposed := func(p *v1alpha1.Property) {
				p.Spec.Exposure = v1alpha1.Exposure{Type: v1alpha1.ExposureIngress, CollectHost: host}
			}
			options := operatorOptions{namespaces: []string{first, second}, Options: controllers.Options{RedisURL: redistest.URL(t)}}
			running := startOperator(t, options)
			create(t, property(first, "shop", exposed))
			waitFor(t, first, "shop", v1alpha1.ConditionExposed, metav1.ConditionTrue, v1alpha1.ReasonReady)
			pausing(t, first, "shop", "true")
			awaitPause(t, first, "shop", "True "+v1alpha1.ReasonPaused)
			if refuse {
				running.stop()
				options.Exposure.AllowedHosts = map[string][]string{second: {"*"}}
				startOperator(t, options)
			} else {
				change(t, &v1alpha1.Property{}, first, "shop", func(p *v1alpha1.Property) { p.Spec.Exposure.CollectHost = "new." + host })
			}
			create(t, property(second, "blog", exposed))
			p := waitFor(t, second, "blog", v1alpha1.ConditionExposed, metav1.ConditionFalse, v1alpha1.ReasonHostConflict)
			if said := message(p, v1alpha1.ConditionExposed); !strings.Contains(said, "which is paused") || !strings.Contains(said, first) {
				t.Errorf("the condition does not say who keeps the host, and why: %s", said)
			}
			pausing(t, first, "shop", "")
			waitFor(t, second, "blog", v1alpha1.ConditionExposed, metav1.ConditionTrue, v1alpha1.ReasonReady)
		})
	}
}

// TestAPausedPropertyCanBeDeleted deletes one that has users in Redis: a namespace must not hang on a pause.
func TestAPausedPropertyCanBeDeleted(t *testing.T) {
	t.Parallel()
	namespace, address := newNamespace(t), redistest.URL(t)
	startOperator(t, operatorOptions{namespaces: []string{namespace}, Options: controllers.Options{RedisURL: address}})
	create(t, property(namespace, "shop"))
	settled(t, namespace, "shop")
	pausing(t, namespace, "shop", "true")
	awaitPause(t, namespace, "shop", "True "+v1alpha1.ReasonPaused)
	deleted(t, namespace, "shop")
	users, err := dial(t, address).ACLList(context.Background()).Result()
	if err != nil || slices.ContainsFunc(users, func(user string) bool { return strings.Contains(user, "weir:"+namespace+"/") }) {
		t.Errorf("users are left in Redis: %v, error %v", users, err)
	}
}
