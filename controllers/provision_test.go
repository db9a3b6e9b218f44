package controllers_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/collector/auth"
	"github.com/weir-dev/weir/collector/redisserver/redistest"
	"github.com/weir-dev/weir/collector/session"
	"github.com/weir-dev/weir/controllers"
	"github.com/weir-dev/weir/controllers/resources"
)

// owned lists the Property's objects: "Kind name" → resource version.
func owned(t testing.TB, p *v1alpha1.Property) map[string]string {
	t.Helper()
	return ownedIn(t, server.client, p)
}

// ownedIn is the same of what a cache has.
func ownedIn(t testing.TB, reader client.Reader, p *v1alpha1.Property) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, kind := range slices.Concat(resources.Kinds(), resources.OptionalKinds()) {
		metadata := &metav1.PartialObjectMetadataList{}
		metadata.SetGroupVersionKind(schema.GroupVersionKind{Group: kind.Group, Version: kind.Version, Kind: kind.Kind + "List"})
		var list client.ObjectList = metadata
		if kind.Kind == "Deployment" { // which the operator's cache has whole
			list = &appsv1.DeploymentList{}
		}
		if err := reader.List(context.Background(), list, client.InNamespace(p.Namespace)); err != nil {
			t.Fatal(err)
		}
		err := meta.EachListItem(list, func(item runtime.Object) error {
			if object := item.(client.Object); metav1.IsControlledBy(object, p) {
				found[kind.Kind+" "+object.GetName()] = object.GetResourceVersion()
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return found
}

func names(objects map[string]string) []string { return slices.Sorted(maps.Keys(objects)) }

// settled waits until the operator has nothing more to do for the Property.
func settled(t testing.TB, namespace, name string) *v1alpha1.Property {
	t.Helper()
	return waitFor(t, namespace, name, v1alpha1.ConditionRedisReady, metav1.ConditionTrue, v1alpha1.ReasonReady)
}

func TestAPropertyGetsItsObjects(t *testing.T) {
	namespace := newNamespace(t)
	startOperator(t, operatorOptions{namespaces: []string{namespace}, Options: controllers.Options{RedisURL: redistest.URL(t)}})
	create(t, property(namespace, "shop", func(p *v1alpha1.Property) {
		p.Spec.Exposure = v1alpha1.Exposure{Type: v1alpha1.ExposureIngress, CollectHost: "collect.shop.example.com", APIHost: "api.example.com"}
	}))
	p := settled(t, namespace, "shop")

	want := []string{
		"ConfigMap shop-config",
		"Deployment shop-collector", "Deployment shop-deliverer", "Deployment shop-query",
		"Ingress shop-collector", "Ingress shop-query",
		"NetworkPolicy shop-collector", "NetworkPolicy shop-deliverer", "NetworkPolicy shop-query",
		"PodDisruptionBudget shop-collector",
		"PodMonitor shop-pods",
		"Secret shop-access-tokens", "Secret shop-api-keys", "Secret shop-credentials", "Secret shop-erasures",
		"Secret shop-redis-collector", "Secret shop-redis-deliverer", "Secret shop-redis-query", "Secret shop-sessions",
		"Service shop-collector", "Service shop-query",
		"ServiceAccount shop-collector", "ServiceAccount shop-deliverer", "ServiceAccount shop-query",
	}
	eventually(t, func() error {
		if diff := cmp.Diff(want, names(owned(t, p))); diff != "" {
			return fmt.Errorf("objects (-want +got):\n%s", diff)
		}
		return nil
	})
	secret := get(t, &corev1.Secret{}, namespace, "shop-credentials")
	for _, key := range []string{"api-key.default", "access-token.default"} {
		if value := string(secret.Data[key]); !auth.WellFormed(value) {
			t.Errorf("%s is not a key or token of ours", key)
		}
	}
	if keys, err := session.ParseKeys(string(get(t, &corev1.Secret{}, namespace, "shop-sessions").Data["keys"])); err != nil || len(keys) != 1 {
		t.Errorf("%d keys of sessions, %v", len(keys), err)
	}
	if want := "http://api.example.com/properties/shop/"; p.Status.DashboardURL != want {
		t.Errorf("dashboardURL: got %q, want %q", p.Status.DashboardURL, want)
	}
	if want := "http://collect.shop.example.com"; p.Status.CollectURL != want {
		t.Errorf("collectURL: got %q, want %q", p.Status.CollectURL, want)
	}
	waitFor(t, namespace, "shop", v1alpha1.ConditionWorkloadsAvailable, metav1.ConditionFalse, v1alpha1.ReasonProgressing)
}

func TestASecondReconcileChangesNothing(t *testing.T) {
	namespace := newNamespace(t)
	o := operatorOptions{namespaces: []string{namespace}, Options: controllers.Options{RedisURL: redistest.URL(t)}}
	first := startOperator(t, o)
	create(t, property(namespace, "shop", func(p *v1alpha1.Property) {
		p.Spec.Collector.Autoscaling = &v1alpha1.Autoscaling{MinReplicas: 2, MaxReplicas: 5}
		p.Spec.Exposure = v1alpha1.Exposure{Type: v1alpha1.ExposureGateway, CollectHost: "collect.twice.example.com",
			Gateway: &v1alpha1.GatewayExposure{ParentRefs: []v1alpha1.GatewayReference{{Name: "public"}}}}
	}))
	p := settled(t, namespace, "shop")
	eventually(t, func() error {
		objects := names(owned(t, p))
		if !slices.Contains(objects, "HTTPRoute shop-collector") || !slices.Contains(objects, "PodMonitor shop-pods") {
			return fmt.Errorf("no HTTPRoute and PodMonitor yet among %s", strings.Join(objects, ", "))
		}
		return nil
	})
	before := quiet(t, p)

	writes := first.writes.Load()
	touch := func(value string) {
		change(t, &v1alpha1.Property{}, namespace, "shop", func(p *v1alpha1.Property) {
			p.Spec.EventAliases = map[string]v1alpha1.EventName{"view": v1alpha1.EventName(value)}
		})
	}
	touch("pageview")
	changed := quiet(t, p)
	// The configuration, and the status that has observed it.
	if got := first.since(writes); len(got) != 2 {
		t.Errorf("a changed alias took %d writes, want 2: %v", len(got), got)
	}
	if diff := differing(before, changed); !slices.Equal(diff, []string{"ConfigMap shop-config"}) {
		t.Errorf("a changed alias changed %v, want the ConfigMap alone", diff)
	}

	configuration := get(t, &corev1.ConfigMap{}, namespace, "shop-config").Data
	first.stop()
	second := startOperator(t, o)
	eventually(t, func() error {
		if second.writes.Load() == 0 {
			return fmt.Errorf("the second operator has not applied anything")
		}
		return nil
	})
	if diff := differing(changed, quiet(t, p)); len(diff) > 0 {
		t.Errorf("an operator that was started anew changed %v, what is in the ConfigMap (-before +after):\n%s\nIt wrote:\n%s",
			diff, cmp.Diff(configuration, get(t, &corev1.ConfigMap{}, namespace, "shop-config").Data), strings.Join(second.since(0), "\n"))
	}
}

// What it took for missing it would take back what it has told of the hosts, and say it again a moment later.
func TestAnOperatorDoesNothingBeforeItKnowsWhichKindsTheClusterHas(t *testing.T) {
	h := newByHand(t)
	create(t, property(h.namespace, "shop", func(p *v1alpha1.Property) {
		p.Spec.Exposure = v1alpha1.Exposure{Type: v1alpha1.ExposureGateway, CollectHost: "collect.unknown.example.com",
			Gateway: &v1alpha1.GatewayExposure{ParentRefs: []v1alpha1.GatewayReference{{Name: "public"}}}}
	}))
	eventually(t, func() error {
		if !h.seen(t.Context(), "shop") {
			return errors.New("the cache does not have the Property")
		}
		return nil
	})
	options := controllers.Options{RedisURL: redistest.URL(t), RedisAllowCIDRs: loopback,
		Exposure: controllers.ExposureRules{AllowedHosts: map[string][]string{"*": {"*"}}}}
	operator, stop := h.start(newFuse(forever), options, events.NewFakeRecorder(100))
	defer stop()
	kinds := operator.Available
	operator.Available = func() map[schema.GroupVersionKind]bool { return nil }
	result, err := operator.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKey{Namespace: h.namespace, Name: "shop"}})
	if calls := operator.fuse.calls.Load(); err != nil || calls != 0 || result.RequeueAfter <= 0 || result.RequeueAfter > time.Second {
		t.Errorf("%d calls, again after %s, %v; want no call, and that it is looked again soon", calls, result.RequeueAfter, err)
	}
	operator.Available = kinds
	h.live(t, operator, "shop", func() bool { return false })
	config := get(t, &corev1.ConfigMap{}, h.namespace, "shop-config")
	if text := fmt.Sprint(config.Data); !strings.Contains(text, "collect.unknown.example.com") {
		t.Errorf("then the pods are told of no host: %s", text)
	}
}

// quiet waits until nothing changes for as long as the operator looks at Redis, and returns the versions.
func quiet(t testing.TB, p *v1alpha1.Property) map[string]string {
	t.Helper()
	last, same := map[string]string{}, 0
	eventually(t, func() error {
		now := owned(t, p)
		if !maps.Equal(last, now) {
			last, same = now, 0
		}
		if same++; same < 40 {
			return fmt.Errorf("objects still change")
		}
		return nil
	})
	return last
}

func differing(before, after map[string]string) []string {
	var names []string
	for name, version := range after {
		if before[name] != version {
			names = append(names, name)
		}
	}
	for name := range before {
		if _, there := after[name]; !there {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
