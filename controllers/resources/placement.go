package resources

import (
	"encoding/json"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	applycore "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/weir-dev/weir/api/v1alpha1"
)

// place puts the closed list of what a Property may say of its pods into a pod.
func place(pod *applycore.PodSpecApplyConfiguration, options *v1alpha1.PodOptions, pods map[string]string) {
	pod.WithNodeSelector(options.NodeSelector)
	for i := range options.Tolerations {
		pod.WithTolerations(asConfiguration[applycore.TolerationApplyConfiguration](&options.Tolerations[i]))
	}
	if options.Affinity != nil {
		pod.WithAffinity(asConfiguration[applycore.AffinityApplyConfiguration](options.Affinity))
	}
	for _, constraint := range spread(options.TopologySpreadConstraints, pods) {
		pod.WithTopologySpreadConstraints(asConfiguration[applycore.TopologySpreadConstraintApplyConfiguration](&constraint))
	}
	for _, secret := range options.ImagePullSecrets {
		pod.WithImagePullSecrets(applycore.LocalObjectReference().WithName(secret.Name))
	}
}

// spread completes constraints that name no pods with the role's own.
func spread(constraints []corev1.TopologySpreadConstraint, pods map[string]string) []corev1.TopologySpreadConstraint {
	completed := make([]corev1.TopologySpreadConstraint, len(constraints))
	for i, constraint := range constraints {
		if constraint.LabelSelector == nil {
			constraint.LabelSelector = &metav1.LabelSelector{MatchLabels: pods}
		}
		completed[i] = constraint
	}
	return completed
}

// asConfiguration turns a type of the API into its apply configuration, whose JSON is the same.
func asConfiguration[C, T any](value *T) *C {
	configuration := new(C)
	text, err := json.Marshal(value)
	if err == nil {
		err = json.Unmarshal(text, configuration)
	}
	if err != nil {
		return nil // cannot be: the value came from JSON, and the two types are generated from one
	}
	return configuration
}
