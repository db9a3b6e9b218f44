package controllers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/controllers/resources"
)

// endDedicated ends the Redis that was made for a Property, if there is one, but for deleting its objects. It says whether to wait with
// that, and which of them not to delete.
func (r *Reconciler) endDedicated(ctx context.Context, property *v1alpha1.Property, overdue bool) (kept map[objectKey]bool, wait bool, err error) {
	if property.Spec.DedicatedRedis() == nil {
		return nil, false, nil
	}
	volume, err := r.settleVolume(ctx, property, overdue)
	if err != nil || volume == volumeAwaited {
		return nil, volume == volumeAwaited, err
	}
	claim := "data-" + resources.RedisPodName(property)
	var left []string // is said in one event: a second one of the same reason passes for the first one again, whatever it says
	if volume == setOrphans {
		left = append(left, fmt.Sprintf("the cluster has not taken in that the volume of %s stays; so that it does, its pod %s stays too: delete that",
			resources.DedicatedRedisName(property), resources.RedisPodName(property)))
	}
	if volume == volumeStays {
		left = append(left, fmt.Sprintf("the claim %s stays, where there is one, because its StatefulSet went before the cluster had taken in that "+
			"the volume shall go along: delete the claim", claim))
	}
	if cause := r.releaseDedicated(ctx, property); cause != nil {
		left = append(left, fmt.Sprintf("what is on the volume of the claim %s has no last day, because its Redis could not be told (%.250s); "+
			"a Property of the name finds it there, otherwise delete the claim: nobody else does", claim, cause.Error()))
	}
	if len(left) > 0 {
		r.leftBehind(ctx, property, strings.Join(left, "; and "))
	}
	if volume != volumeSettled {
		kept = map[objectKey]bool{dedicatedSetKey(property): true}
	}
	return kept, false, nil
}

// volumeEnd says what becomes of the volume of a deleted Property, and of the StatefulSet that has it.
type volumeEnd int

const (
	// volumeSettled: the cluster will do with the volume what it shall, so that the StatefulSet may be deleted, where there is one.
	volumeSettled volumeEnd = iota
	// volumeAwaited: the cluster has not taken in yet what it shall do.
	volumeAwaited
	// setLeftAlone: the StatefulSet is somebody else's, or goes already, and is not deleted.
	setLeftAlone
	// setOrphans: the StatefulSet goes already, and leaves its pod.
	setOrphans
	// volumeStays: the StatefulSet goes already, or is gone, and has left a volume that shall go too.
	volumeStays
)

// volumePolicy is what becomes of the volume of a deleted Property, as the cluster is told.
func volumePolicy(property *v1alpha1.Property) appsv1.PersistentVolumeClaimRetentionPolicyType {
	if property.Spec.DeletionPolicy == v1alpha1.DeletionPolicyDelete {
		return appsv1.DeletePersistentVolumeClaimRetentionPolicyType
	}
	return appsv1.RetainPersistentVolumeClaimRetentionPolicyType
}

// settleVolume has the cluster do with the volume what the deletion policy says now, which may be newer than the StatefulSet, and waits until
// it has taken that in. Where it does not in time, and the volume is to stay, the StatefulSet orphans what it has: its pod stays, and somebody
// has to delete that.
func (r *Reconciler) settleVolume(ctx context.Context, property *v1alpha1.Property, overdue bool) (volumeEnd, error) {
	key := dedicatedSetKey(property)
	set, err := r.dedicatedSet(ctx, property)
	switch {
	case err != nil:
		return volumeSettled, err
	case set == nil:
		return r.volumeWithoutSet(ctx, property)
	case !metav1.IsControlledBy(set, property):
		return setLeftAlone, nil
	case set.DeletionTimestamp != nil && slices.Contains(set.Finalizers, metav1.FinalizerOrphanDependents):
		return setOrphans, nil
	}
	policy, retains := volumePolicy(property), appsv1.RetainPersistentVolumeClaimRetentionPolicyType
	if set.DeletionTimestamp != nil {
		if has := set.Spec.PersistentVolumeClaimRetentionPolicy; policy != retains && (has == nil || has.WhenDeleted != policy) {
			return volumeStays, nil
		}
		return setLeftAlone, nil
	}
	if has := set.Spec.PersistentVolumeClaimRetentionPolicy; has == nil || has.WhenDeleted != policy {
		before := set.DeepCopy()
		set.Spec.PersistentVolumeClaimRetentionPolicy = &appsv1.StatefulSetPersistentVolumeClaimRetentionPolicy{
			WhenDeleted: policy, WhenScaled: retains,
		}
		err = objectFailed("change", key, nil, r.Client.Patch(ctx, set, client.MergeFrom(before), client.FieldOwner(resources.ManagedBy)))
	}
	switch {
	case err == nil && set.Status.ObservedGeneration >= set.Generation:
		return volumeSettled, nil
	case !overdue:
		return volumeAwaited, err
	}
	end, propagation, uid := setOrphans, metav1.DeletePropagationOrphan, set.UID
	if policy != retains {
		end, propagation = volumeStays, metav1.DeletePropagationBackground
	}
	err = r.Client.Delete(ctx, set, client.Preconditions{UID: &uid}, client.PropagationPolicy(propagation))
	if client.IgnoreNotFound(err) != nil {
		return volumeSettled, objectFailed("delete", key, nil, err)
	}
	return end, nil
}

// volumeWithoutSet says what becomes of the volume where somebody has deleted the StatefulSet before: nobody deletes it.
func (r *Reconciler) volumeWithoutSet(ctx context.Context, property *v1alpha1.Property) (volumeEnd, error) {
	if property.Spec.DeletionPolicy != v1alpha1.DeletionPolicyDelete {
		return volumeSettled, nil
	}
	made, err := r.readSecret(ctx, property, resources.RedisAdminSecretName(property))
	if err != nil || made == nil || !metav1.IsControlledBy(made, property) { // there never was one
		return volumeSettled, err
	}
	return volumeStays, nil
}

// releaseDedicated gives the data a last day where they stay on the volume and Redis still answers. Where it does not, they stay without
// one, and nobody removes them: who reads them is a Property of the name. It returns why Redis could not be told.
func (r *Reconciler) releaseDedicated(ctx context.Context, property *v1alpha1.Property) error {
	defer r.Redis.forget(keyOf(property))
	if property.Spec.DeletionPolicy == v1alpha1.DeletionPolicyDelete {
		return nil
	}
	target, missing, err := r.dedicatedTarget(ctx, property)
	if err == nil && missing != nil {
		err = errors.New(missing.message)
	}
	if err == nil {
		err = r.Redis.release(ctx, target, property)
	}
	return explainRedis(err)
}
