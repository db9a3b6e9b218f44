package controllers_test

import (
	"fmt"
	"maps"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/collector/redisserver/redistest"
	"github.com/weir-dev/weir/controllers"
	"github.com/weir-dev/weir/controllers/resources"
)

// TestDefaultsForAllPods: an operator that starts with other ones replaces the pods once, and one that starts with the same does not.
func TestDefaultsForAllPods(t *testing.T) {
	t.Parallel()
	namespace, redis := newNamespace(t), redistest.URL(t)
	rules := controllers.PodRules{AllowedAnnotations: []string{"team"}} // and no toleration: that bounds Properties
	options := controllers.Options{RedisURL: redis, Pods: rules}
	first := startOperator(t, operatorOptions{namespaces: []string{namespace}, Options: options})
	create(t, property(namespace, "shop", func(p *v1alpha1.Property) {
		p.Spec.Query.PodAnnotations = map[string]string{"team": "shop"}
		p.Spec.Collector.Autoscaling = &v1alpha1.Autoscaling{MinReplicas: 2, MaxReplicas: 3}
		p.Spec.Collector.ImagePullSecrets = []v1alpha1.SecretReference{{Name: "registry"}}
	}))
	settled(t, namespace, "shop")
	generations := func() map[resources.Role]int64 {
		found := map[resources.Role]int64{}
		for _, role := range []resources.Role{resources.Collector, resources.Deliverer, resources.Query} {
			found[role] = get(t, &appsv1.Deployment{}, namespace, "shop-"+string(role)).Generation
		}
		return found
	}
	before := generations()
	first.stop()

	options.PodDefaults = resources.PodDefaults{
		ImagePullSecrets: []v1alpha1.SecretReference{{Name: "registry"}},
		Labels:           map[string]string{"cost-centre": "4711"}, Annotations: map[string]string{"team": "platform", "sidecar.istio.io/inject": "true"},
		Env:               []corev1.EnvVar{{Name: "NODE", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "status.hostIP"}}}},
		PriorityClassName: "tenants", Tolerations: []corev1.Toleration{{Key: "tenants", Operator: corev1.TolerationOpExists}},
		NodeSelector: map[string]string{"pool": "tenants"},
		TopologySpreadConstraints: []corev1.TopologySpreadConstraint{
			{MaxSkew: 1, TopologyKey: "topology.kubernetes.io/zone", WhenUnsatisfiable: corev1.ScheduleAnyway},
		},
	}
	want := maps.Clone(before)
	for role := range want {
		want[role]++
	}
	for _, operator := range []string{"the first that has them", "the next"} {
		running := startOperator(t, operatorOptions{namespaces: []string{namespace}, Options: options})
		// A change of the Property's that no pod is replaced for shows that it has been looked at.
		change(t, &v1alpha1.Property{}, namespace, "shop", func(p *v1alpha1.Property) { p.Spec.Retention.Days++ })
		settled(t, namespace, "shop")
		eventually(t, func() error {
			if got := generations(); !maps.Equal(got, want) {
				return fmt.Errorf("%s: the Deployments' generations are %v, want %v", operator, got, want)
			}
			return nil
		})
		running.stop()
	}
	query := get(t, &appsv1.Deployment{}, namespace, "shop-query").Spec.Template
	if query.Annotations["team"] != "shop" || query.Annotations["sidecar.istio.io/inject"] != "true" || query.Labels["cost-centre"] != "4711" {
		t.Errorf("the query's pods have the annotations %v and labels %v", query.Annotations, query.Labels)
	}
	pod := query.Spec
	if pod.PriorityClassName != "tenants" || len(pod.Tolerations) != 1 || pod.NodeSelector["pool"] != "tenants" || len(pod.TopologySpreadConstraints) != 1 || len(pod.Containers[0].Env) != 1 {
		t.Errorf("the query's pods are %+v", pod)
	}
	if secrets := get(t, &appsv1.Deployment{}, namespace, "shop-collector").Spec.Template.Spec.ImagePullSecrets; len(secrets) != 1 {
		t.Errorf("the collector's pods have the pull secrets %v, want the one that both name once", secrets)
	}
}
