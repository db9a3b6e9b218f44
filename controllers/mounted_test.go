package controllers_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/collector/config"
	"github.com/weir-dev/weir/collector/redisserver/redistest"
	"github.com/weir-dev/weir/controllers"
)

// TestNoPodMountsWhatSomebodyElseHasMade has somebody make an object that pods would mount before the operator does: with it, whoever may
// write Secrets would choose the proxy, the ranges that deliveries may reach, or who is let in.
func TestNoPodMountsWhatSomebodyElseHasMade(t *testing.T) {
	t.Parallel()
	namespace, data := newNamespace(t), map[string]string{"url": "http://mine:3128"}
	proxy := config.DeliveryProxy{URL: "http://proxy.example.com:3128"}
	startOperator(t, operatorOptions{namespaces: []string{namespace}, Options: controllers.Options{RedisURL: redistest.URL(t), DeliveryProxy: proxy}})
	for name, test := range map[string]struct {
		suffix    string
		object    client.Object
		condition string
		waiting   []string
	}{
		"proxied":  {"delivery-proxy", &corev1.Secret{StringData: data}, v1alpha1.ConditionWorkloadsAvailable, []string{"deliverer"}},
		"settings": {"config", &corev1.ConfigMap{Data: data}, v1alpha1.ConditionWorkloadsAvailable, []string{"collector", "deliverer", "query"}},
		"keys":     {"api-keys", &corev1.Secret{StringData: data}, v1alpha1.ConditionWorkloadsAvailable, []string{"collector"}},
		"tokens":   {"access-tokens", &corev1.Secret{StringData: data}, v1alpha1.ConditionWorkloadsAvailable, []string{"query"}},
		"signing":  {"sessions", &corev1.Secret{StringData: data}, v1alpha1.ConditionCredentialsReady, []string{"query"}},
		"reaching": {"redis-query", &corev1.Secret{StringData: data}, v1alpha1.ConditionRedisReady, []string{"query"}},
		"erasing":  {"erasures", &corev1.Secret{StringData: data}, v1alpha1.ConditionErasuresReady, []string{"collector", "deliverer", "query"}},
	} {
		t.Run(test.suffix, func(t *testing.T) {
			t.Parallel()
			test.object.SetNamespace(namespace)
			test.object.SetName(name + "-" + test.suffix)
			create(t, test.object)
			create(t, property(namespace, name, func(p *v1alpha1.Property) {
				p.Spec.AccessTokens = []v1alpha1.PropertyAccessToken{{Name: "bi"}}
			}))
			p := waitFor(t, namespace, name, test.condition, metav1.ConditionFalse, v1alpha1.ReasonObjectConflict)
			if said := message(p, test.condition); !strings.Contains(said, test.object.GetName()) {
				t.Errorf("the condition does not name it: %s", said)
			}
			made := func(role string) bool {
				err := server.client.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name + "-" + role}, &appsv1.Deployment{})
				if client.IgnoreNotFound(err) != nil {
					t.Fatal(err)
				}
				return err == nil
			}
			for _, role := range []string{"collector", "deliverer", "query"} {
				if got, want := made(role), !slices.Contains(test.waiting, role); got != want {
					t.Errorf("the Deployment of the %s is there: %t, want %t", role, got, want)
				}
			}
			if err := server.client.Delete(t.Context(), test.object); err != nil {
				t.Fatal(err)
			}
			eventually(t, func() error {
				for _, role := range test.waiting {
					if !made(role) {
						return fmt.Errorf("the name is free, and the %s is not made", role)
					}
				}
				return nil
			})
		})
	}
}

// TestADeploymentStaysWhileTheProxysNameIsTaken gives an operator a proxy whose Secret somebody has made first: deliverers are not told
// to go through what stands there.
func TestADeploymentStaysWhileTheProxysNameIsTaken(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	options := controllers.Options{RedisURL: redistest.URL(t)}
	running := startOperator(t, operatorOptions{namespaces: []string{namespace}, Options: options})
	create(t, property(namespace, "shop"))
	settled(t, namespace, "shop")
	running.stop()
	before := get(t, &appsv1.Deployment{}, namespace, "shop-deliverer").Generation
	create(t, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "shop-delivery-proxy"}, StringData: map[string]string{"url": "http://mine:3128"}})
	options.DeliveryProxy.URL = "http://proxy.example.com:3128"
	startOperator(t, operatorOptions{namespaces: []string{namespace}, Options: options})
	waitFor(t, namespace, "shop", v1alpha1.ConditionWorkloadsAvailable, metav1.ConditionFalse, v1alpha1.ReasonObjectConflict)
	if after := get(t, &appsv1.Deployment{}, namespace, "shop-deliverer").Generation; after != before {
		t.Errorf("the deliverer's Deployment was changed: generation %d, before %d", after, before)
	}
}
