package controllers_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/collector/redisserver/redistest"
	"github.com/weir-dev/weir/controllers"
	"github.com/weir-dev/weir/controllers/resources"
)

func TestWhatOthersChangeOrDeleteIsPutRight(t *testing.T) {
	namespace := newNamespace(t)
	startOperator(t, operatorOptions{namespaces: []string{namespace}, Options: controllers.Options{RedisURL: redistest.URL(t)}})
	create(t, property(namespace, "shop"))
	p := settled(t, namespace, "shop")
	quiet(t, p)
	credentials := get(t, &corev1.Secret{}, namespace, "shop-credentials").Data

	t.Run("a changed image", func(t *testing.T) {
		change(t, &appsv1.Deployment{}, namespace, "shop-query", func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Image = "evil:1" })
		eventually(t, func() error {
			if got := get(t, &appsv1.Deployment{}, namespace, "shop-query").Spec.Template.Spec.Containers[0].Image; got != "weir:test" {
				return fmt.Errorf("image is %s", got)
			}
			return nil
		})
	})
	t.Run("changed hashes", func(t *testing.T) {
		before := get(t, &corev1.Secret{}, namespace, "shop-api-keys").Data
		change(t, &corev1.Secret{}, namespace, "shop-api-keys", func(s *corev1.Secret) { s.Data["api-keys.json"] = []byte("[]") })
		eventually(t, func() error {
			if !maps.EqualFunc(before, get(t, &corev1.Secret{}, namespace, "shop-api-keys").Data, slices.Equal[[]byte]) {
				return fmt.Errorf("the hashes are still somebody else's")
			}
			return nil
		})
	})
	t.Run("a label that somebody took away", func(t *testing.T) {
		change(t, &corev1.ConfigMap{}, namespace, "shop-config", func(c *corev1.ConfigMap) { delete(c.Labels, "app.kubernetes.io/managed-by") })
		eventually(t, func() error {
			if get(t, &corev1.ConfigMap{}, namespace, "shop-config").Labels["app.kubernetes.io/managed-by"] != "weir" {
				return fmt.Errorf("the label is not back")
			}
			return nil
		})
	})
	for _, object := range []client.Object{
		&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "shop-collector"}},
		&corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "shop-query"}},
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "shop-deliverer"}},
		&networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Name: "shop-collector"}},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "shop-access-tokens"}},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "shop-redis-query"}},
	} {
		t.Run(fmt.Sprintf("a deleted %T", object), func(t *testing.T) {
			object.SetNamespace(namespace)
			uid := get(t, object, namespace, object.GetName()).GetUID()
			if err := server.client.Delete(context.Background(), object); err != nil {
				t.Fatal(err)
			}
			eventually(t, func() error {
				err := server.client.Get(context.Background(), client.ObjectKeyFromObject(object), object)
				if err == nil && object.GetUID() == uid {
					err = fmt.Errorf("still the old one")
				}
				return err
			})
		})
	}
	if !maps.EqualFunc(credentials, get(t, &corev1.Secret{}, namespace, "shop-credentials").Data, slices.Equal[[]byte]) {
		t.Error("keys or tokens have changed on the way")
	}
}

// TestForeignObjectsAreNeverTakenOver has somebody else's object under each name that a Property would use.
func TestForeignObjectsAreNeverTakenOver(t *testing.T) {
	t.Parallel()
	model, namespace, ctx := newNamespace(t), newNamespace(t), context.Background()
	startOperator(t, operatorOptions{namespaces: []string{model, namespace}, Options: controllers.Options{RedisURL: redistest.URL(t)}})
	everything := func(p *v1alpha1.Property) {
		host := p.Namespace + ".foreign.example.com"
		p.Spec.Collector.Autoscaling = &v1alpha1.Autoscaling{MinReplicas: 2, MaxReplicas: 4}
		p.Spec.Exposure = v1alpha1.Exposure{Type: v1alpha1.ExposureIngress, CollectHost: host, APIHost: "api." + host}
	}
	create(t, property(model, "shop", everything))
	own := quiet(t, settled(t, model, "shop"))
	deleted(t, model, "shop") // an id belongs to one Property
	if len(own) < 20 {
		t.Fatalf("a Property has only the objects %v", names(own))
	}
	foreign := map[string]*unstructured.Unstructured{}
	for _, kind := range slices.Concat(resources.Kinds(), resources.OptionalKinds()) {
		for _, name := range names(own) {
			object := foreignObject(kind, namespace, strings.TrimPrefix(name, kind.Kind+" "))
			if strings.HasPrefix(name, kind.Kind+" ") {
				create(t, object)
				foreign[name] = object
			}
		}
	}
	untouched := func(t *testing.T) {
		t.Helper()
		for name, object := range foreign {
			if now := get(t, object.DeepCopy(), namespace, object.GetName()); now.GetResourceVersion() != object.GetResourceVersion() {
				t.Errorf("somebody else's %s has become %v", name, now.Object)
			}
		}
	}
	free := func(t *testing.T, prefix string) {
		t.Helper()
		for name, object := range foreign {
			if strings.HasPrefix(name, prefix) {
				if err := server.client.Delete(ctx, object); err != nil {
					t.Fatal(err)
				}
				delete(foreign, name)
			}
		}
	}
	named := func(t *testing.T, condition, prefix string) {
		t.Helper()
		eventually(t, func() error { // what waits for something else is found to be taken when that is free
			p := waitFor(t, namespace, "shop", condition, metav1.ConditionFalse, v1alpha1.ReasonObjectConflict)
			for name := range foreign {
				exposes := strings.HasPrefix(name, "Ingress ") || strings.HasPrefix(name, "HTTPRoute ")
				text := message(p, condition)
				if strings.HasPrefix(name, prefix) && exposes == (condition == v1alpha1.ConditionExposed) && !strings.Contains(text, strings.TrimPrefix(name, "Secret ")) {
					return fmt.Errorf("%s does not name the %s: %s", condition, name, text)
				}
			}
			return nil
		})
		untouched(t)
	}

	create(t, property(namespace, "shop", everything))
	named(t, v1alpha1.ConditionCredentialsReady, "Secret shop-credentials")
	free(t, "Secret shop-credentials")
	named(t, v1alpha1.ConditionCredentialsReady, "Secret shop-sessions")
	free(t, "Secret shop-sessions")
	waitFor(t, namespace, "shop", v1alpha1.ConditionRedisReady, metav1.ConditionFalse, v1alpha1.ReasonObjectConflict)
	named(t, v1alpha1.ConditionRedisReady, "Secret shop-redis-collector") // the first of three
	free(t, "Secret shop-redis-")
	named(t, v1alpha1.ConditionErasuresReady, "Secret shop-erasures")
	named(t, v1alpha1.ConditionWorkloadsAvailable, "Secret shop-erasures") // the pods wait for it
	free(t, "Secret shop-erasures")
	named(t, v1alpha1.ConditionWorkloadsAvailable, "")
	named(t, v1alpha1.ConditionExposed, "")
	if len(foreign) < 16 {
		t.Errorf("only %d kinds and names were left to the last", len(foreign))
	}
	deleted(t, namespace, "shop")
	untouched(t)

	create(t, property(namespace, "shop", everything))
	named(t, v1alpha1.ConditionWorkloadsAvailable, "")
	free(t, "")
	p := waitFor(t, namespace, "shop", v1alpha1.ConditionWorkloadsAvailable, metav1.ConditionFalse, v1alpha1.ReasonProgressing)
	if diff := cmp.Diff(names(own), names(quiet(t, p))); diff != "" {
		t.Errorf("objects when all names are free (-want +got):\n%s", diff)
	}
}

// foreignObject is the least of a kind that the server takes.
func foreignObject(kind schema.GroupVersionKind, namespace, name string) *unstructured.Unstructured {
	selector := map[string]any{"matchLabels": map[string]any{"mine": "1"}}
	backend := map[string]any{"service": map[string]any{"name": "mine", "port": map[string]any{"number": int64(80)}}}
	spec := map[string]any{
		"Deployment": map[string]any{"selector": selector, "template": map[string]any{
			"metadata": map[string]any{"labels": map[string]any{"mine": "1"}},
			"spec":     map[string]any{"containers": []any{map[string]any{"name": "mine", "image": "mine:1"}}},
		}},
		"Service":                 map[string]any{"ports": []any{map[string]any{"port": int64(80)}}},
		"PodDisruptionBudget":     map[string]any{"selector": selector},
		"NetworkPolicy":           map[string]any{"podSelector": selector},
		"HorizontalPodAutoscaler": map[string]any{"maxReplicas": int64(2), "scaleTargetRef": map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "name": "mine"}},
		"Ingress":                 map[string]any{"defaultBackend": backend},
		"PodMonitor":              map[string]any{"selector": selector, "podMetricsEndpoints": []any{}},
	}[kind.Kind]
	object := &unstructured.Unstructured{Object: map[string]any{}}
	if spec != nil {
		object.Object["spec"] = spec
	}
	object.SetGroupVersionKind(kind)
	object.SetNamespace(namespace)
	object.SetName(name)
	return object
}

func TestTheSpecDecidesWhichObjectsThereAre(t *testing.T) {
	namespace := newNamespace(t)
	startOperator(t, operatorOptions{namespaces: []string{namespace}, Options: controllers.Options{RedisURL: redistest.URL(t)}})
	create(t, property(namespace, "shop"))
	p := settled(t, namespace, "shop")

	host := "collect." + namespace + ".example.com"
	steps := []struct {
		name          string
		edit          func(*v1alpha1.PropertySpec)
		there, absent []string
	}{
		{"one collector needs no budget", func(s *v1alpha1.PropertySpec) { s.Collector.Replicas = new(int32(1)) },
			nil, []string{"PodDisruptionBudget shop-collector"}},
		{"several queriers do", func(s *v1alpha1.PropertySpec) { s.Query.Replicas = new(int32(3)) },
			[]string{"PodDisruptionBudget shop-query"}, nil},
		{"autoscaling makes an autoscaler", func(s *v1alpha1.PropertySpec) {
			s.Collector.Replicas, s.Collector.Autoscaling = nil, &v1alpha1.Autoscaling{MinReplicas: 3, MaxReplicas: 9}
		}, []string{"HorizontalPodAutoscaler shop-collector", "PodDisruptionBudget shop-collector"}, nil},
		{"and goes with it", func(s *v1alpha1.PropertySpec) { s.Collector.Autoscaling = nil },
			nil, []string{"HorizontalPodAutoscaler shop-collector"}},
		{"exposure by Ingress", func(s *v1alpha1.PropertySpec) {
			s.Exposure = v1alpha1.Exposure{Type: v1alpha1.ExposureIngress, CollectHost: host, APIHost: "api.example.com"}
		}, []string{"Ingress shop-collector", "Ingress shop-query"}, nil},
		{"without a host for the read API", func(s *v1alpha1.PropertySpec) { s.Exposure.APIHost = "" },
			[]string{"Ingress shop-collector"}, []string{"Ingress shop-query"}},
		{"exposure by Gateway", func(s *v1alpha1.PropertySpec) {
			s.Exposure.Type, s.Exposure.Gateway = v1alpha1.ExposureGateway, &v1alpha1.GatewayExposure{ParentRefs: []v1alpha1.GatewayReference{{Name: "public"}}}
		}, []string{"HTTPRoute shop-collector"}, []string{"Ingress shop-collector"}},
		{"no exposure", func(s *v1alpha1.PropertySpec) { s.Exposure = v1alpha1.Exposure{Type: v1alpha1.ExposureNone} },
			nil, []string{"HTTPRoute shop-collector"}},
	}
	for _, step := range steps {
		t.Run(step.name, func(t *testing.T) {
			change(t, &v1alpha1.Property{}, namespace, "shop", func(p *v1alpha1.Property) { step.edit(&p.Spec) })
			eventually(t, func() error {
				objects := names(owned(t, p))
				for _, name := range step.there {
					if !slices.Contains(objects, name) {
						return fmt.Errorf("no %s among %s", name, strings.Join(objects, ", "))
					}
				}
				for _, name := range step.absent {
					if slices.Contains(objects, name) {
						return fmt.Errorf("%s is still there", name)
					}
				}
				return nil
			})
		})
	}
}

func TestTheNumberOfCollectorsStaysWhenAnAutoscalerTakesOver(t *testing.T) {
	namespace := newNamespace(t)
	startOperator(t, operatorOptions{namespaces: []string{namespace}, Options: controllers.Options{RedisURL: redistest.URL(t)}})
	create(t, property(namespace, "shop", func(p *v1alpha1.Property) { p.Spec.Collector.Replicas = new(int32(7)) }))
	p := settled(t, namespace, "shop")
	quiet(t, p)

	replicas := func() int32 { return *get(t, &appsv1.Deployment{}, namespace, "shop-collector").Spec.Replicas }
	change(t, &v1alpha1.Property{}, namespace, "shop", func(p *v1alpha1.Property) {
		p.Spec.Collector.Replicas, p.Spec.Collector.Autoscaling = nil, &v1alpha1.Autoscaling{MinReplicas: 2, MaxReplicas: 9}
	})
	eventually(t, func() error {
		if !slices.Contains(names(owned(t, p)), "HorizontalPodAutoscaler shop-collector") {
			return fmt.Errorf("no autoscaler yet")
		}
		return nil
	})
	if got := replicas(); got != 7 {
		t.Errorf("%d collectors when the autoscaler took over, want 7 still", got)
	}
	change(t, &appsv1.Deployment{}, namespace, "shop-collector", func(d *appsv1.Deployment) { d.Spec.Replicas = new(int32(9)) })
	quiet(t, p)
	if got := replicas(); got != 9 {
		t.Errorf("the operator made %d of the autoscaler's 9 collectors", got)
	}
	change(t, &v1alpha1.Property{}, namespace, "shop", func(p *v1alpha1.Property) {
		p.Spec.Collector.Replicas, p.Spec.Collector.Autoscaling = new(int32(4)), nil
	})
	eventually(t, func() error {
		if got := replicas(); got != 4 {
			return fmt.Errorf("%d collectors, want 4 again", got)
		}
		return nil
	})
}
