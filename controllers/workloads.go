package controllers

import (
	"context"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/controllers/resources"
)

// handoverOwner keeps a Deployment's replicas where they are while they pass to an autoscaler.
const handoverOwner = resources.ManagedBy + "-handover"

// foreignInterval is how often to look whether a name has become free: no cache has what is not ours.
const foreignInterval = 5 * time.Second

// workloads applies everything that the Property asks for and removes what it no longer asks for. Where something
// that it needs is missing, what runs is left as it is.
func (r *Reconciler) workloads(ctx context.Context, s *scope) error {
	if s.accepted == nil || s.access == nil || s.credentials.AccessTokens == nil {
		return nil
	}
	options := resources.Options{
		EgressAllowCIDRs: r.Options.EgressAllowCIDRs, PlatformEndpoints: r.Options.PlatformEndpoints, Image: r.Options.Image,
		Network: r.Options.Network,
	}
	objects, err := resources.Build(s.accepted, resources.Input{
		Credentials: s.credentials, Options: options, RedisURLs: s.access.urls, RedisPort: s.access.port,
		Withheld: s.exposureFault != nil && !s.exposureKept, Available: s.available,
	})
	if err != nil {
		s.configurationFault = newFault(v1alpha1.ReasonConfigurationInvalid, "%s", specFaults(err))
		return nil
	}
	for _, object := range objects {
		if s.leftAlone(object) {
			continue
		}
		if object.Kind == "Deployment" {
			if err := r.handOver(ctx, s, object); err != nil {
				return err
			}
		}
		ours, err := r.apply(ctx, s.property, object)
		if err != nil {
			return err
		}
		if !ours {
			s.foreign = append(s.foreign, object.Kind+" "+object.Name)
			s.again(foreignInterval)
		}
	}
	if err := r.prune(ctx, s.property, s.available, objects); err != nil {
		return err
	}
	files, err := resources.PodConfig(s.accepted, s.credentials, options)
	if err != nil {
		return err
	}
	return r.tellPods(ctx, s, files)
}

// leftAlone says whether an object stays as it is, or is not made, because the operator does not allow what is asked of it.
func (s *scope) leftAlone(object resources.Object) bool {
	if resources.Exposes(object.GroupVersionKind) {
		return s.exposureFault != nil
	}
	if object.Kind != "Deployment" {
		return false
	}
	for role := range s.podFaults {
		if object.Name == resources.ObjectName(s.property, role) {
			return true
		}
	}
	return false
}

// specFaults words what the pods would refuse as fields of the spec.
func specFaults(err error) string {
	var lines []string
	for line := range strings.Lines(err.Error()) {
		line = strings.TrimSpace(line)
		if !strings.HasPrefix(line, "spec.") {
			line = "spec." + line
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "; ")
}

// handOver keeps the number of pods when an autoscaler is to decide it from now on: a field that its last owner
// gives up falls back to its default, one pod.
func (r *Reconciler) handOver(ctx context.Context, s *scope, object resources.Object) error {
	desired, err := object.Unstructured()
	if err != nil {
		return err
	}
	if _, found, _ := unstructured.NestedFieldNoCopy(desired.Object, "spec", "replicas"); found {
		return nil
	}
	autoscaler := schema.GroupVersionKind{Group: "autoscaling", Version: "v2", Kind: "HorizontalPodAutoscaler"}
	already, err := r.owned(ctx, s.property, autoscaler)
	if err != nil || len(already) > 0 {
		return err
	}
	current, err := r.deployment(ctx, s.property, resources.Collector)
	if err != nil || current == nil || current.Spec.Replicas == nil || !metav1.IsControlledBy(current, s.property) {
		return err
	}
	kept := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"replicas": int64(*current.Spec.Replicas)}}}
	kept.SetGroupVersionKind(object.GroupVersionKind)
	kept.SetNamespace(object.Namespace)
	kept.SetName(object.Name)
	return r.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(kept), client.FieldOwner(handoverOwner), client.ForceOwnership)
}

// deployment returns a role's Deployment from the cache, nil where there is none.
func (r *Reconciler) deployment(ctx context.Context, property *v1alpha1.Property, role resources.Role) (*appsv1.Deployment, error) {
	deployment := &appsv1.Deployment{}
	key := types.NamespacedName{Namespace: property.Namespace, Name: resources.ObjectName(property, role)}
	if err := r.Client.Get(ctx, key, deployment); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	return deployment, nil
}

// tellPods writes the hash of what a role's pods have mounted to the running ones. The kubelet syncs a pod that
// changes at once, its volumes too, where it would otherwise take a minute or more.
func (r *Reconciler) tellPods(ctx context.Context, s *scope, files map[string][]byte) error {
	for _, role := range resources.Roles() {
		versions := map[string]string{}
		if role == resources.Deliverer {
			for _, name := range resources.PlatformSecrets(s.property) {
				version, err := r.secretVersion(ctx, s.property.Namespace, name)
				if err != nil {
					return err
				}
				versions[name] = version
			}
		}
		hash := resources.ConfigHash(resources.RoleFiles(role, files), s.access.urls[role], versions)
		pods := &metav1.PartialObjectMetadataList{}
		pods.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("PodList"))
		err := r.Client.List(ctx, pods, client.InNamespace(s.property.Namespace), client.MatchingLabels{
			resources.LabelInstance: s.property.Name, resources.LabelComponent: string(role), resources.LabelManagedBy: resources.ManagedBy,
		})
		if err != nil {
			return err
		}
		for i := range pods.Items {
			if err := r.tellPod(ctx, &pods.Items[i], hash); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *Reconciler) tellPod(ctx context.Context, pod *metav1.PartialObjectMetadata, hash string) error {
	if pod.Annotations[resources.AnnotationConfig] == hash || pod.DeletionTimestamp != nil {
		return nil
	}
	pod.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Pod"))
	before := pod.DeepCopy()
	if pod.Annotations == nil {
		pod.Annotations = map[string]string{}
	}
	pod.Annotations[resources.AnnotationConfig] = hash
	return client.IgnoreNotFound(r.Client.Patch(ctx, pod, client.MergeFrom(before), client.FieldOwner(resources.ManagedBy)))
}
