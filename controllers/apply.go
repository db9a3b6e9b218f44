package controllers

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"unique"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/collector/config"
	"github.com/weir-dev/weir/collector/history/access"
	"github.com/weir-dev/weir/controllers/resources"
)

type objectKey struct {
	schema.GroupVersionKind
	name string
}

// digest tells the key apart from those of the Property's other objects, in less memory.
func (k objectKey) digest() digest {
	return digestOf([]byte(k.String() + " " + k.name))
}

// appliedState remembers what was applied last and what the object looked like before and afterwards, so that nothing
// is sent while neither has changed. A cache that still has the one before is behind: nobody can bring that back. An
// operator that has just started applies everything once; the server does not write what is the same.
type appliedState struct{ asked, before, found digest }

// digest tells texts apart.
type digest [16]byte

func digestOf(text []byte) digest {
	sum := sha256.Sum256(text)
	return digest(sum[:16])
}

// noVersion is older than every object of a namespace: the namespace itself was written before it.
const noVersion = "1"

// apply brings one object to what is desired, with one field owner. It returns false where the name is taken by
// something that is not the Property's.
func (r *Reconciler) apply(ctx context.Context, property *v1alpha1.Property, object resources.Object) (bool, error) {
	made, err := r.applyFirst(ctx, property, object)
	if made || err != nil {
		return made, err
	}
	return r.applyAgain(ctx, property, object)
}

// applyFirst makes an object that has never been asked for before and that the cache does not have, and says whether it did.
// It asks nobody whether the name is free: the server makes what is not there, and refuses to change what has another version.
// Whatever it refuses, [Reconciler.applyAgain] finds out why.
func (r *Reconciler) applyFirst(ctx context.Context, property *v1alpha1.Property, object resources.Object) (bool, error) {
	key, memory := objectKey{object.GroupVersionKind, object.Name}, r.memories.of(property)
	if !memory.first(key) {
		return false, nil
	}
	current, err := r.cachedMetadata(ctx, object)
	if err != nil || current != nil {
		return false, err
	}
	text, err := object.JSON()
	if err != nil {
		return false, err
	}
	desired, err := object.Unstructured()
	if err != nil {
		return false, err
	}
	desired.SetResourceVersion(noVersion)
	if r.send(ctx, desired) != nil {
		return false, nil
	}
	memory.applied[key.digest()] = appliedState{digestOf(text), digest{}, digestOf([]byte(fieldsDigest(desired.GetManagedFields())))}
	return true, nil
}

// applyAgain looks at the object before it applies it.
func (r *Reconciler) applyAgain(ctx context.Context, property *v1alpha1.Property, object resources.Object) (bool, error) {
	text, err := object.JSON()
	if err != nil {
		return false, err
	}
	asked := digestOf(text)

	current, err := r.currentMetadata(ctx, object)
	if err != nil {
		return false, err
	}
	if current != nil && !metav1.IsControlledBy(current, property) {
		return false, nil
	}
	key := objectKey{object.GroupVersionKind, object.Name}
	applied := r.memories.of(property).applied
	known := applied[key.digest()]
	var found digest
	if current != nil {
		found = digestOf([]byte(fieldsDigest(current.ManagedFields)))
		if known.asked == asked && (found == known.found || found == known.before) {
			return true, nil
		}
	}
	desired, err := object.Unstructured()
	if err != nil {
		return false, err
	}
	held := object.Values() // which no error may show
	if err := r.send(ctx, desired); err != nil {
		return false, objectFailed("apply", key, held, err)
	}
	applied[key.digest()] = appliedState{asked, found, digestOf([]byte(fieldsDigest(desired.GetManagedFields())))}
	return true, nil
}

// send applies what is desired, which becomes what the server answers.
func (r *Reconciler) send(ctx context.Context, desired *unstructured.Unstructured) error {
	return r.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(desired), client.FieldOwner(resources.ManagedBy), client.ForceOwnership)
}

// currentMetadata returns the object as the cache has it, or as the server has it where the cache has not: what
// carries none of our labels is in no cache. It is nil where there is none, and else must not be changed.
func (r *Reconciler) currentMetadata(ctx context.Context, object resources.Object) (*metav1.PartialObjectMetadata, error) {
	if cached, err := r.cachedMetadata(ctx, object); err != nil || cached != nil {
		return cached, err
	}
	metadata := partial(object.GroupVersionKind)
	err := r.Live.Get(ctx, types.NamespacedName{Namespace: object.Namespace, Name: object.Name}, metadata)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return metadata, objectFailed("read", objectKey{object.GroupVersionKind, object.Name}, nil, err)
}

// cachedMetadata returns the object as the cache has it, nil where it has none. It must not be changed.
func (r *Reconciler) cachedMetadata(ctx context.Context, object resources.Object) (*metav1.PartialObjectMetadata, error) {
	metadata := partial(object.GroupVersionKind)
	key := types.NamespacedName{Namespace: object.Namespace, Name: object.Name}
	var err error
	if object.GroupVersionKind == kindDeployment { // the cache has them once, whole
		deployment := &appsv1.Deployment{}
		err = r.Client.Get(ctx, key, deployment, client.UnsafeDisableDeepCopy)
		metadata.ObjectMeta = deployment.ObjectMeta
	} else {
		err = r.Client.Get(ctx, key, metadata, client.UnsafeDisableDeepCopy)
	}
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return metadata, objectFailed("read", objectKey{object.GroupVersionKind, object.Name}, nil, err)
}

// prune deletes what is the Property's and no longer desired. The Secrets that are made once stay.
func (r *Reconciler) prune(ctx context.Context, property *v1alpha1.Property, available map[schema.GroupVersionKind]bool, desired []resources.Object) error {
	wanted := map[objectKey]bool{}
	for _, object := range desired {
		wanted[objectKey{object.GroupVersionKind, object.Name}] = true
	}
	secret := schema.GroupVersionKind{Version: "v1", Kind: "Secret"}
	wanted[objectKey{secret, resources.CredentialsSecretName(property)}] = true
	wanted[objectKey{secret, resources.SessionsSecretName(property)}] = true
	wanted[objectKey{secret, resources.RedisAdminSecretName(property)}] = true
	wanted[objectKey{secret, resources.RedisTLSSecretName(property)}] = true
	for _, role := range resources.Roles() { // that of a role which has gone is deleted after its user
		wanted[objectKey{secret, resources.RedisSecretName(property, role)}] = true
	}
	for _, role := range access.Roles() {
		wanted[objectKey{secret, resources.HistorySecretName(property, role)}] = true
	}
	for part := range config.MaxLedgerParts {
		wanted[objectKey{secret, resources.ErasuresSecretName(property, part)}] = true
	}
	return r.deleteOwned(ctx, property, available, wanted)
}

// deleteOwned deletes all of the Property's objects but those that are wanted. What is wanted was decided with the
// same optional kinds: one that has been found since is not looked at.
func (r *Reconciler) deleteOwned(ctx context.Context, property *v1alpha1.Property, available map[schema.GroupVersionKind]bool, wanted map[objectKey]bool) error {
	kinds := resources.Kinds()
	for kind, there := range available {
		if there {
			kinds = append(kinds, kind)
		}
	}
	var errs []error
	for _, kind := range kinds {
		owned, err := r.owned(ctx, property, kind)
		if err != nil {
			errs = append(errs, err)
		}
		for i := range owned {
			key := objectKey{kind, owned[i].Name}
			if wanted[key] || owned[i].DeletionTimestamp != nil {
				continue
			}
			owned[i].SetGroupVersionKind(kind)
			uid := owned[i].UID
			err := r.Client.Delete(ctx, &owned[i], client.Preconditions{UID: &uid}, client.PropagationPolicy(metav1.DeletePropagationBackground))
			if client.IgnoreNotFound(err) != nil && !apierrors.IsConflict(err) {
				errs = append(errs, objectFailed("delete", key, nil, err))
				continue
			}
			delete(r.memories.of(property).applied, key.digest())
		}
	}
	return errors.Join(errs...)
}

// indexOwner finds objects by the UID of the Property that controls them.
const indexOwner = "weir.dev/owner"

func ownerOf(object client.Object) []string {
	if owner := metav1.GetControllerOf(object); owner != nil {
		return []string{string(owner.UID)}
	}
	return nil
}

// kindDeployment is the one kind of which the cache has more than the metadata: the status tells how rollouts go.
var kindDeployment = appsv1.SchemeGroupVersion.WithKind("Deployment")

// owned lists the Property's objects of a kind from the cache. What they point to must not be changed.
func (r *Reconciler) owned(ctx context.Context, property *v1alpha1.Property, kind schema.GroupVersionKind) ([]metav1.PartialObjectMetadata, error) {
	options := []client.ListOption{client.InNamespace(property.Namespace), client.MatchingFields{indexOwner: string(property.UID)}, client.UnsafeDisableDeepCopy}
	if kind == kindDeployment {
		var deployments appsv1.DeploymentList
		err := r.Client.List(ctx, &deployments, options...)
		items := make([]metav1.PartialObjectMetadata, len(deployments.Items))
		for i := range items {
			items[i].ObjectMeta = deployments.Items[i].ObjectMeta
		}
		return items, err
	}
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	err := r.Client.List(ctx, list, options...)
	return list.Items, err
}

// fieldsDigest changes when somebody changes an object otherwise than through its status: the server notes every
// such change in the managed fields.
func fieldsDigest(fields []metav1.ManagedFieldsEntry) string {
	if len(fields) == 1 && fields[0].Operation == digestOperation {
		return fields[0].Manager
	}
	sum := sha256.New()
	for _, entry := range fields {
		if entry.Subresource != "" || entry.Time == nil {
			continue
		}
		fmt.Fprintf(sum, "%s %s %d ", entry.Manager, entry.Operation, entry.Time.Unix())
		var fields any // in one order of its members, whichever way it came here
		if entry.FieldsV1 == nil || json.Unmarshal(entry.FieldsV1.GetRawBytes(), &fields) != nil {
			continue
		}
		if text, err := json.Marshal(fields); err == nil {
			sum.Write(text)
		}
	}
	return hex.EncodeToString(sum.Sum(nil)[:16])
}

// digestOperation marks managed fields that have been replaced by their digest.
const digestOperation metav1.ManagedFieldsOperationType = "Digest"

// slim takes out of an object that goes into the cache what nobody reads there. The managed fields, most of the
// metadata's size, are replaced by their digest. Annotations go too: the one of kubectl apply repeats the whole
// object, which for a Secret is what no cache may hold. Labels are read of pods and ledgers of erasures alone.
func slim(object any) (any, error) {
	accessor, isObject := object.(metav1.Object)
	if !isObject {
		return object, nil // a tombstone
	}
	switch object := object.(type) {
	case *v1alpha1.Property:
		object.ManagedFields = nil
		object.Annotations = selected(object.Annotations, map[string]string{v1alpha1.AnnotationPaused: "", resources.AnnotationLogLevel: ""})
		return object, nil
	case *v1alpha1.AccessToken, *v1alpha1.APIKey:
		accessor.SetManagedFields(nil)
		accessor.SetAnnotations(nil)
		accessor.SetLabels(nil)
		return object, nil
	case *appsv1.Deployment:
		object.Spec.Template, object.Spec.Selector = corev1.PodTemplateSpec{}, nil // what it shall be is applied, not read
	}
	accessor.SetManagedFields([]metav1.ManagedFieldsEntry{{Operation: digestOperation, Manager: fieldsDigest(accessor.GetManagedFields())}})
	shareTexts(accessor)
	owner := metav1.GetControllerOfNoCopy(accessor)
	if accessor.GetLabels()[resources.LabelManagedBy] != resources.ManagedBy || (owner != nil && owner.Kind == v1alpha1.Kind) {
		accessor.SetLabels(nil)
	}
	var kept map[string]string
	for _, key := range []string{resources.AnnotationConfig, annotationErasures, annotationLedgerLost} {
		if value, found := accessor.GetAnnotations()[key]; found {
			if kept == nil {
				kept = map[string]string{}
			}
			kept[key] = value
		}
	}
	accessor.SetAnnotations(kept)
	return object, nil
}

// shareTexts has an object share what all of a Property's objects have in common: each comes with copies of its own.
func shareTexts(object metav1.Object) {
	object.SetNamespace(unique.Make(object.GetNamespace()).Value())
	owners := object.GetOwnerReferences()
	for i := range owners {
		owner := &owners[i]
		owner.APIVersion, owner.Kind = unique.Make(owner.APIVersion).Value(), unique.Make(owner.Kind).Value()
		owner.Name, owner.UID = unique.Make(owner.Name).Value(), unique.Make(owner.UID).Value()
	}
}
