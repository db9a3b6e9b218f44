package resources

import (
	"cmp"
	"maps"
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"
	applycore "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/weir-dev/weir/api/v1alpha1"
)

// PodDefaults are what the pods of all Properties have, by the operator's wish. What a Property says goes before it, key by key, and
// lists are joined. It is written in YAML by whoever runs the operator; [PodDefaults.Check] says what of it is wrong.
type PodDefaults struct {
	// ImagePullSecrets are Secrets in the namespace of each Property.
	ImagePullSecrets []v1alpha1.SecretReference `json:"imagePullSecrets,omitempty"`
	// Labels and Annotations are the pods', beside Weir's own.
	Labels      map[string]string `json:"labels,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
	// PriorityClassName is a PriorityClass that the cluster has.
	PriorityClassName string `json:"priorityClassName,omitempty"`
	// Env is the container's environment, beside what Weir sets.
	Env []corev1.EnvVar `json:"env,omitempty"`
	// Tolerations are added to the Property's.
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`
	// NodeSelector are labels of nodes.
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`
	// TopologySpreadConstraints are told apart by topologyKey and whenUnsatisfiable. One without a labelSelector means the pods of the
	// same role of the same Property.
	TopologySpreadConstraints []corev1.TopologySpreadConstraint `json:"topologySpreadConstraints,omitempty"`
}

// with returns what a role's pods have where their Property says this.
func (d *PodDefaults) with(own *v1alpha1.PodOptions) *v1alpha1.PodOptions {
	merged := own.DeepCopy()
	merged.NodeSelector = under(own.NodeSelector, d.NodeSelector)
	merged.PodAnnotations = under(own.PodAnnotations, d.Annotations)
	merged.Tolerations = joined(merged.Tolerations, d.Tolerations, func(a, b corev1.Toleration) bool { return reflect.DeepEqual(a, b) })
	merged.ImagePullSecrets = joined(merged.ImagePullSecrets, d.ImagePullSecrets, func(a, b v1alpha1.SecretReference) bool { return a == b })
	merged.TopologySpreadConstraints = joined(merged.TopologySpreadConstraints, d.TopologySpreadConstraints, sameSpread)
	return merged
}

// sameSpread says whether two constraints have the same key in a pod's list of them.
func sameSpread(a, b corev1.TopologySpreadConstraint) bool {
	return a.TopologyKey == b.TopologyKey && a.WhenUnsatisfiable == b.WhenUnsatisfiable
}

// under returns a map with what is only below it, nil where both are empty.
func under(own, below map[string]string) map[string]string {
	if len(own)+len(below) == 0 {
		return nil
	}
	merged := map[string]string{}
	maps.Copy(merged, below)
	maps.Copy(merged, own)
	return merged
}

// joined is a list followed by what of another is not in it.
func joined[T any](own, further []T, same func(a, b T) bool) []T {
	list := slices.Clip(own)
	for _, element := range further {
		if !slices.ContainsFunc(own, func(o T) bool { return same(o, element) }) {
			list = append(list, element)
		}
	}
	return list
}

// environment are the container's variables: the defaults', in their order, and then Weir's own.
func (d *PodDefaults) environment(own map[string]string) []*applycore.EnvVarApplyConfiguration {
	var list []*applycore.EnvVarApplyConfiguration
	for i := range d.Env {
		list = append(list, asConfiguration[applycore.EnvVarApplyConfiguration](&d.Env[i]))
	}
	for _, name := range slices.SortedFunc(maps.Keys(own), cmp.Compare) {
		list = append(list, applycore.EnvVar().WithName(name).WithValue(own[name]))
	}
	return list
}
