package controllers

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/controllers/resources"
)

// noteForeign remembers that an object under a name of the Property's is somebody else's.
func (s *scope) noteForeign(key objectKey) {
	if s.foreignObjects == nil {
		s.foreignObjects = map[objectKey]bool{}
	}
	s.foreignObjects[key] = true
}

// mountsForeign says whether a Deployment's or StatefulSet's pods would mount a Secret or a ConfigMap under a name of the Property's that is somebody
// else's. What the spec itself names is the tenant's to choose.
func (s *scope) mountsForeign(object resources.Object) (bool, error) {
	if len(s.foreignObjects) == 0 {
		return false, nil
	}
	desired, err := object.Unstructured()
	if err != nil {
		return false, err
	}
	var workload struct {
		Spec struct {
			Template corev1.PodTemplateSpec `json:"template"`
		} `json:"spec"`
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(desired.Object, &workload); err != nil {
		return false, err
	}
	for i := range workload.Spec.Template.Spec.Volumes {
		for _, mounted := range mountedBy(&workload.Spec.Template.Spec.Volumes[i]) {
			if s.foreignObjects[mounted] {
				return true, nil
			}
		}
	}
	return false, nil
}

// mountedBy are the Secrets and ConfigMaps of a volume.
func mountedBy(volume *corev1.Volume) []objectKey {
	var found []objectKey
	secret := func(name string) { found = append(found, secretKey(name)) }
	settings := func(name string) {
		found = append(found, objectKey{corev1.SchemeGroupVersion.WithKind("ConfigMap"), name})
	}
	if volume.Secret != nil {
		secret(volume.Secret.SecretName)
	}
	if volume.ConfigMap != nil {
		settings(volume.ConfigMap.Name)
	}
	if volume.Projected == nil {
		return found
	}
	for _, source := range volume.Projected.Sources {
		if source.Secret != nil {
			secret(source.Secret.Name)
		}
		if source.ConfigMap != nil {
			settings(source.ConfigMap.Name)
		}
	}
	return found
}

// maybeOurs says whether the name of an object that is left alone is the Property's, or nobody's yet.
func (r *Reconciler) maybeOurs(ctx context.Context, property *v1alpha1.Property, object resources.Object) (bool, error) {
	current, err := r.currentMetadata(ctx, object)
	return current == nil || metav1.IsControlledBy(current, property), err
}
