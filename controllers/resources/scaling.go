package resources

import (
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	applyautoscaling "k8s.io/client-go/applyconfigurations/autoscaling/v2"
	applymeta "k8s.io/client-go/applyconfigurations/meta/v1"
	applypolicy "k8s.io/client-go/applyconfigurations/policy/v1"

	"github.com/weir-dev/weir/api/v1alpha1"
)

// targetUtilisation is the share of the requested CPU, in per cent, at which the autoscaler adds collectors.
const targetUtilisation = 75

// disruptionBudget lets nodes be drained one pod at a time. It is made where several pods run.
func disruptionBudget(property *v1alpha1.Property, role Role) Object {
	name := ObjectName(property, role)
	return Object{kindDisruption, property.Namespace, name, applypolicy.PodDisruptionBudget(name, property.Namespace).
		WithLabels(roleLabels(property, role)).
		WithOwnerReferences(ownedBy(property)).
		WithSpec(applypolicy.PodDisruptionBudgetSpec().
			WithMaxUnavailable(intstr.FromInt32(1)).
			// A pod that is not ready keeps nobody's requests waiting; without this it would keep the node from draining.
			WithUnhealthyPodEvictionPolicy(policyv1.AlwaysAllow).
			WithSelector(applymeta.LabelSelector().WithMatchLabels(selector(property, role))))}
}

// autoscaler decides how many collectors there are; the Deployment's replicas are its own then.
func autoscaler(property *v1alpha1.Property, bounds *v1alpha1.Autoscaling) Object {
	name := ObjectName(property, Collector)
	return Object{kindAutoscaler, property.Namespace, name, applyautoscaling.HorizontalPodAutoscaler(name, property.Namespace).
		WithLabels(roleLabels(property, Collector)).
		WithOwnerReferences(ownedBy(property)).
		WithSpec(applyautoscaling.HorizontalPodAutoscalerSpec().
			WithScaleTargetRef(applyautoscaling.CrossVersionObjectReference().
				WithAPIVersion(kindDeployment.GroupVersion().String()).WithKind(kindDeployment.Kind).WithName(name)).
			WithMinReplicas(minReplicas(bounds)).
			WithMaxReplicas(bounds.MaxReplicas).
			WithMetrics(applyautoscaling.MetricSpec().WithType(autoscalingv2.ResourceMetricSourceType).WithResource(
				applyautoscaling.ResourceMetricSource().WithName(corev1.ResourceCPU).WithTarget(
					applyautoscaling.MetricTarget().WithType(autoscalingv2.UtilizationMetricType).WithAverageUtilization(targetUtilisation)))))}
}
