package controllers

import (
	"context"
	"errors"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/collector/config"
	"github.com/weir-dev/weir/collector/history/access"
	"github.com/weir-dev/weir/controllers/resources"
)

// handoverOwner keeps a Deployment's replicas where they are while they pass to an autoscaler.
const handoverOwner = resources.ManagedBy + "-handover"

// foreignInterval is how often to look whether a name has become free: no cache has what is not ours.
const foreignInterval = 5 * time.Second

// workloads applies everything that the Property asks for and removes what it no longer asks for. What needs something
// that is missing, or refused, stays as it is; an object that is refused stops no other one.
func (r *Reconciler) workloads(ctx context.Context, s *scope) error {
	options := resources.Options{
		EgressAllowCIDRs: r.Options.EgressAllowCIDRs, TrustedProxyCIDRs: r.Options.TrustedProxyCIDRs, WithholdUnsaid: r.Options.WithholdUnsaid, PlatformEndpoints: r.Options.PlatformEndpoints, Image: r.Options.Image,
		Network: r.Options.Network, ConsoleKeys: s.consoleKeys, PodDefaults: r.Options.PodDefaults,
		RedisImage: r.Options.RedisImage, DeliveryProxy: r.Options.DeliveryProxy, Tracing: r.Options.Tracing, AnyUser: r.Options.AnyUser,
	}
	options.CollectURL, options.APIURL = s.urls()
	input := resources.Input{
		Credentials: s.credentials, Options: options,
		Withheld: s.exposureProblem != nil && !s.exposureKept, Available: s.available,
		LedgerParts: s.ledgerParts,
	}
	if s.access != nil {
		input.RedisURLs, input.RedisPort = s.access.urls, s.access.port
	}
	if s.history != nil {
		input.HistoryURLs, input.HistoryPort = s.history.urls, s.history.port
	}
	input.Options.HistoryPending = len(input.HistoryURLs) < len(access.Roles())
	if input.Options.HistoryPending {
		input.HistoryURLs = nil // both roles or none
	}
	objects, files, err := resources.Build(s.accepted, input)
	if err != nil {
		s.configurationProblem = reasonf(v1alpha1.ReasonConfigurationInvalid, "%s", specErrors(err))
		return r.revokedAllTheSame(ctx, s)
	}
	var errs []error
	for _, object := range objects {
		if s.leftAlone(object) {
			continue
		}
		ours, err := r.make(ctx, s, object)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if !ours {
			s.taken(object)
		}
	}
	return errors.Join(append(errs, r.prune(ctx, s.property, s.available, objects), r.tellPods(ctx, s, files))...)
}

// revokedAllTheSame applies the hashes of keys and tokens where nothing else of the spec can be: what is revoked is refused. Where
// there are none yet, there are no pods either.
func (r *Reconciler) revokedAllTheSame(ctx context.Context, s *scope) error {
	objects, err := resources.Hashes(s.accepted, s.credentials)
	if err != nil {
		return nil // which is what the condition says
	}
	var errs []error
	for _, object := range objects {
		version, err := r.secretVersion(ctx, object.Namespace, object.Name)
		if err != nil || version == "" || s.leftAlone(object) {
			errs = append(errs, err)
			continue
		}
		ours, err := r.make(ctx, s, object)
		if errs = append(errs, err); err == nil && !ours {
			s.taken(object)
		}
	}
	return errors.Join(errs...)
}

// taken notes that an object of the name is somebody else's.
func (s *scope) taken(object resources.Object) {
	if s.foreign == nil {
		s.foreign = map[string][]string{}
	}
	key := objectKey{object.GroupVersionKind, object.Name}
	s.noteForeign(key)
	condition := s.conditionOf(key, v1alpha1.ConditionWorkloadsAvailable)
	s.foreign[condition] = append(s.foreign[condition], object.Kind+" "+object.Name)
	s.again(foreignInterval)
}

// make applies one object, after what has to come before. A Deployment or StatefulSet stays as it is, or is not made, while its pods would mount
// what somebody else has put under the name of something of the Property's: they would go by it.
func (r *Reconciler) make(ctx context.Context, s *scope, object resources.Object) (ours bool, err error) {
	switch object.Kind {
	case "Deployment", "StatefulSet":
		mounts, err := s.mountsForeign(object)
		if err != nil {
			return false, err
		}
		if mounts {
			return r.maybeOurs(ctx, s.property, object)
		}
		if err := r.handOver(ctx, s, object); err != nil {
			return false, err
		}
	case "Secret":
		if object.Name == resources.DeliveryProxySecretName(s.property) {
			break
		}
		ours, err = r.applyCredentials(ctx, s.property, object)
		s.told(object.Name, ours && err == nil)
		return ours, err
	}
	return r.apply(ctx, s.property, object)
}

// leftAlone says whether an object stays as it is, or is not made, because the operator does not allow what is asked of
// it, or because what it is made from is missing.
func (s *scope) leftAlone(object resources.Object) bool {
	switch {
	case object.Name == resources.DedicatedRedisName(s.property):
		return !s.redisSecrets || object.Kind == "StatefulSet" && s.options.RedisImage == ""
	case resources.Exposes(object.GroupVersionKind):
		return s.exposureProblem != nil
	case object.Kind == "Secret" && object.Name == resources.DeliveryProxySecretName(s.property):
		return false
	case object.Kind == "Secret": // the hashes of keys and tokens
		return s.credentialsUnknown
	case object.Kind == "ConfigMap":
		return s.historyUnknown
	case object.Kind == "NetworkPolicy":
		return s.access == nil || s.historyUnknown
	case object.Kind == "Deployment":
		for _, role := range resources.RolesOf(s.property) {
			if object.Name == resources.ObjectName(s.property, role) {
				return s.podProblems[role] != nil || !s.hasAccess(role) || s.ledgerParts == 0 || s.historyLacks(role)
			}
		}
	}
	return false
}

// hasAccess says whether a role's pods have what they reach Redis with.
func (s *scope) hasAccess(role resources.Role) bool {
	return s.access != nil && s.access.urls[role] != ""
}

// historyLacks says whether nobody knows what a role's pods reach the history with, or whether it is not there yet and the role has
// nothing to do without it.
func (s *scope) historyLacks(role resources.Role) bool {
	return role.HistoryRole() != "" && s.historyUnknown || role == resources.Archive && (s.history == nil || s.history.urls[role.HistoryRole()] == "")
}

// specErrors words what the pods would refuse as fields of the spec.
func specErrors(err error) string {
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

// handOver keeps the number of pods when an autoscaler, or somebody else, is to decide it from now on: a field that its last
// owner gives up falls back to its default, one pod. Who owns it the server says; it is asked when the Deployment has changed.
func (r *Reconciler) handOver(ctx context.Context, s *scope, object resources.Object) error {
	memory := r.memories.of(s.property)
	if !object.LeavesReplicas() {
		delete(memory.handedOver, object.Name)
		return nil
	}
	current, err := r.deploymentNamed(ctx, s.property.Namespace, object.Name)
	if err != nil || current == nil || current.Spec.Replicas == nil || !metav1.IsControlledBy(current, s.property) {
		return err
	}
	if memory.handedOver[object.Name] {
		return nil
	}
	ours, err := r.ownsReplicas(ctx, object)
	if err != nil {
		return err
	}
	if !ours {
		memory.handedOver[object.Name] = true
		return nil
	}
	kept := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"replicas": int64(*current.Spec.Replicas)}}}
	kept.SetGroupVersionKind(object.GroupVersionKind)
	kept.SetNamespace(object.Namespace)
	kept.SetName(object.Name)
	err = r.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(kept), client.FieldOwner(handoverOwner), client.ForceOwnership)
	return objectFailed("keep the replicas of", objectKey{object.GroupVersionKind, object.Name}, nil, err)
}

// ownsReplicas says whether the operator itself, and nobody whom it has handed them over to, owns a Deployment's replicas.
func (r *Reconciler) ownsReplicas(ctx context.Context, object resources.Object) (bool, error) {
	metadata := partial(object.GroupVersionKind)
	if err := r.Live.Get(ctx, client.ObjectKey{Namespace: object.Namespace, Name: object.Name}, metadata); err != nil {
		return false, objectFailed("read", objectKey{object.GroupVersionKind, object.Name}, nil, client.IgnoreNotFound(err))
	}
	for _, entry := range metadata.ManagedFields {
		if entry.Manager == resources.ManagedBy && entry.FieldsV1 != nil && strings.Contains(string(entry.FieldsV1.GetRawBytes()), `"f:replicas"`) {
			return true, nil
		}
	}
	return false, nil
}

// deployment returns a role's Deployment from the cache, nil where there is none.
func (r *Reconciler) deployment(ctx context.Context, property *v1alpha1.Property, role resources.Role) (*appsv1.Deployment, error) {
	return r.deploymentNamed(ctx, property.Namespace, resources.ObjectName(property, role))
}

func (r *Reconciler) deploymentNamed(ctx context.Context, namespace, name string) (*appsv1.Deployment, error) {
	deployment := &appsv1.Deployment{}
	if err := r.Client.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, deployment); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	return deployment, nil
}

// tellPods writes the hash of what a role's pods have mounted to the running ones. The kubelet syncs a pod that
// changes at once, its volumes too, where it would otherwise take a minute or more.
func (r *Reconciler) tellPods(ctx context.Context, s *scope, files map[string][]byte) error {
	var errs []error
	for _, role := range resources.RolesOf(s.property) {
		if !s.hasAccess(role) || s.historyLacks(role) || (s.credentialsUnknown && role.HasCredentials()) {
			continue // what they have mounted stays as it is
		}
		errs = append(errs, r.tellPodsOf(ctx, s, role, files))
	}
	return errors.Join(errs...)
}

func (r *Reconciler) tellPodsOf(ctx context.Context, s *scope, role resources.Role, files map[string][]byte) error {
	versions := map[string]string{}
	for _, name := range resources.MountedSecrets(s.property, role) {
		version, err := r.secretVersion(ctx, s.property.Namespace, name)
		if err != nil {
			return err
		}
		versions[name] = version
	}
	hash := resources.ConfigHash(resources.RoleFiles(role, files), config.Redis{URL: s.access.urls[role], TLS: s.access.tls}, s.historyOf(role), versions)
	pods := &metav1.PartialObjectMetadataList{}
	pods.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("PodList"))
	err := r.Client.List(ctx, pods, client.InNamespace(s.property.Namespace), client.MatchingLabels{
		resources.LabelInstance: s.property.Name, resources.LabelComponent: string(role), resources.LabelManagedBy: resources.ManagedBy,
	})
	if err != nil {
		return err
	}
	var errs []error
	for i := range pods.Items {
		errs = append(errs, r.tellPod(ctx, &pods.Items[i], hash))
	}
	return errors.Join(errs...)
}

// historyOf is what a role's pods reach the history with.
func (s *scope) historyOf(role resources.Role) config.ClickHouse {
	if s.history == nil || role.HistoryRole() == "" {
		return config.ClickHouse{}
	}
	return config.ClickHouse{URL: s.history.urls[role.HistoryRole()], TLS: s.history.tls}
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
	err := client.IgnoreNotFound(r.Client.Patch(ctx, pod, client.MergeFrom(before), client.FieldOwner(resources.ManagedBy)))
	return objectFailed("annotate", objectKey{pod.GroupVersionKind(), pod.Name}, nil, err)
}
