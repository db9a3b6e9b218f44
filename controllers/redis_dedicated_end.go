package controllers

import (
	"context"
	"errors"
	"fmt"

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
	kept, wait, err = r.settleVolume(ctx, property, overdue)
	if err == nil && !wait {
		r.releaseDedicated(ctx, property)
	}
	return kept, wait, err
}

// settleVolume has the cluster do with the volume what the deletion policy says now, which may be newer than the StatefulSet, and waits until
// it has taken that in. Where it does not in time, and the volume is to stay, the StatefulSet goes without taking anything along: its pod
// stays, and somebody has to delete that.
func (r *Reconciler) settleVolume(ctx context.Context, property *v1alpha1.Property, overdue bool) (kept map[objectKey]bool, wait bool, err error) {
	set, key := &appsv1.StatefulSet{}, objectKey{appsv1.SchemeGroupVersion.WithKind("StatefulSet"), resources.DedicatedRedisName(property)}
	kept = map[objectKey]bool{key: true}
	if err := r.Live.Get(ctx, client.ObjectKey{Namespace: property.Namespace, Name: key.name}, set); err != nil {
		return nil, false, objectFailed("read", key, nil, client.IgnoreNotFound(err))
	}
	if !metav1.IsControlledBy(set, property) || set.DeletionTimestamp != nil {
		return kept, false, nil
	}
	policy := resources.RedisVolumePolicy(property)
	if has := set.Spec.PersistentVolumeClaimRetentionPolicy; has == nil || has.WhenDeleted != policy {
		before := set.DeepCopy()
		set.Spec.PersistentVolumeClaimRetentionPolicy = &appsv1.StatefulSetPersistentVolumeClaimRetentionPolicy{
			WhenDeleted: policy, WhenScaled: appsv1.RetainPersistentVolumeClaimRetentionPolicyType,
		}
		err = objectFailed("change", key, nil, r.Client.Patch(ctx, set, client.MergeFrom(before), client.FieldOwner(resources.ManagedBy)))
	}
	switch {
	case err == nil && set.Status.ObservedGeneration >= set.Generation:
		return nil, false, nil
	case !overdue:
		return nil, true, err
	case policy != appsv1.RetainPersistentVolumeClaimRetentionPolicyType:
		return nil, false, nil
	}
	uid := set.UID
	err = r.Client.Delete(ctx, set, client.Preconditions{UID: &uid}, client.PropagationPolicy(metav1.DeletePropagationOrphan))
	if client.IgnoreNotFound(err) != nil {
		return nil, false, objectFailed("delete", key, nil, err)
	}
	r.leftBehind(ctx, property, fmt.Sprintf("the cluster has not taken in that the volume of %s stays; so that it does, its pod %s stays too: delete that",
		key.name, resources.RedisPodName(property)))
	return kept, false, nil
}

// releaseDedicated gives the data a last day where they stay on the volume and Redis still answers. Where it does not, they stay without
// one, and nobody removes them: who reads them is a Property of the name.
func (r *Reconciler) releaseDedicated(ctx context.Context, property *v1alpha1.Property) {
	if property.Spec.DeletionPolicy != v1alpha1.DeletionPolicyDelete {
		target, missing, err := r.dedicatedTarget(ctx, property)
		if err == nil && missing == nil {
			err = r.Redis.release(ctx, target, property)
		}
		if missing != nil {
			err = errors.New(missing.message)
		}
		if err != nil {
			r.leftBehind(ctx, property, fmt.Sprintf("what is on the volume of the claim data-%s has no last day, because its Redis could not be told (%.250s); "+
				"a Property of the name finds it there, otherwise delete the claim: nobody else does", resources.RedisPodName(property), explainRedis(err).Error()))
		}
	}
	r.Redis.forget(keyOf(property))
}
