package controllers

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/controllers/resources"
)

const (
	// releaseTimeout is when a Property whose Redis cannot be cleared is let go: a namespace must not hang on it for ever.
	releaseTimeout = 2 * time.Minute
	// deletionPause is between attempts.
	deletionPause = 2 * time.Second
)

// finish ends the pods, takes their users out of Redis and, by the deletion policy, removes the data or gives it
// a last day. Then it deletes the objects, which would go by their owner references anyway, so that a Property of
// the same name need not wait for that.
func (r *Reconciler) finish(ctx context.Context, property *v1alpha1.Property) (ctrl.Result, error) {
	if !controllerutil.ContainsFinalizer(property, Finalizer) && !controllerutil.ContainsFinalizer(property, HistoryFinalizer) {
		return ctrl.Result{}, nil
	}
	overdue := r.Options.Now().Sub(property.DeletionTimestamp.Time) >= releaseTimeout
	if err := r.endWorkloads(ctx, property); err != nil {
		return ctrl.Result{}, err
	}
	// What is under way is finished before the users go, which ends their connections.
	left, err := r.podsLeft(ctx, property)
	if err != nil {
		return ctrl.Result{}, err
	}
	if left > 0 && !overdue {
		return ctrl.Result{RequeueAfter: deletionPause}, nil
	}
	wait := r.finishHistory(ctx, property, overdue)
	if err := r.releaseRedis(ctx, property); err != nil {
		if !overdue {
			log.FromContext(ctx).Info("Redis cannot be cleared of a deleted Property yet", "reason", err.Error())
			return ctrl.Result{RequeueAfter: deletionPause}, nil
		}
		r.letGo(ctx, property, err)
	}
	if wait {
		return ctrl.Result{RequeueAfter: deletionPause}, nil
	}
	kept, wait, err := r.endDedicated(ctx, property, overdue)
	if err != nil || wait {
		return ctrl.Result{RequeueAfter: deletionPause}, err
	}
	if _, err := r.ownLedger(ctx, property); err != nil {
		return ctrl.Result{}, err
	}
	published, err := r.allPublished(ctx, property)
	if err != nil {
		return ctrl.Result{}, err
	}
	if err := r.deleteOwned(ctx, property, r.Available(), kept); err != nil {
		return ctrl.Result{}, err
	}
	r.revokeAll(ctx, property, published)
	before := property.DeepCopy()
	controllerutil.RemoveFinalizer(property, Finalizer)
	controllerutil.RemoveFinalizer(property, HistoryFinalizer)
	if err := r.Client.Patch(ctx, property, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return ctrl.Result{}, objectFailed("take the finalizer off", propertyKey(before), nil, client.IgnoreNotFound(err))
	}
	r.memories.of(property).superseded = before.ResourceVersion
	return ctrl.Result{}, nil
}

// letGo says what of a Property is left in a Redis that cannot be cleared, and has it removed when that Redis is back.
func (r *Reconciler) letGo(ctx context.Context, property *v1alpha1.Property, cause error) {
	become := "they are removed when that Redis is back while this operator runs and no Property of the name is there; otherwise remove them with ACL DELUSER"
	gone := func(ctx context.Context) bool {
		return apierrors.IsNotFound(r.Live.Get(ctx, client.ObjectKeyFromObject(property), &v1alpha1.Property{}))
	}
	if !r.Redis.owe(property, gone) {
		become = "remove them with ACL DELUSER: nobody else does"
	}
	// The cause is bounded because an event's note is, to 1,024 bytes.
	note := fmt.Sprintf("the users %s and the keys weir:{%s/%s}:* are left in Redis, which could not be cleared of them (%.250s); %s",
		strings.Join(redisUserNames(property), ", "), property.Namespace, property.Name, cause.Error(), become)
	r.leftBehind(ctx, property, note)
}

// leftBehind says what of a deleted Property's Redis is there still.
func (r *Reconciler) leftBehind(ctx context.Context, property *v1alpha1.Property, note string) {
	log.FromContext(ctx).Info("a deleted Property is let go", "note", note)
	r.Recorder.Eventf(property, nil, corev1.EventTypeWarning, "RedisLeftBehind", "Delete", "%s", shortened(note, mostNote))
}

// endWorkloads deletes what runs pods, and what would start them again.
func (r *Reconciler) endWorkloads(ctx context.Context, property *v1alpha1.Property) error {
	var errs []error
	for _, kind := range []schema.GroupVersionKind{
		{Group: "autoscaling", Version: "v2", Kind: "HorizontalPodAutoscaler"}, {Group: "apps", Version: "v1", Kind: "Deployment"},
	} {
		owned, err := r.owned(ctx, property, kind)
		if err != nil {
			return err
		}
		for i := range owned {
			if owned[i].DeletionTimestamp != nil {
				continue
			}
			owned[i].SetGroupVersionKind(kind)
			err := r.Client.Delete(ctx, &owned[i], client.PropagationPolicy(metav1.DeletePropagationBackground))
			errs = append(errs, objectFailed("delete", objectKey{kind, owned[i].Name}, nil, client.IgnoreNotFound(err)))
		}
	}
	return errors.Join(errs...)
}

// releaseRedis finds the Property's Redis even where the Secret with its URL went first, as it does when a whole
// namespace is deleted. One that was made for the Property goes with it.
func (r *Reconciler) releaseRedis(ctx context.Context, property *v1alpha1.Property) error {
	if !controllerutil.ContainsFinalizer(property, Finalizer) || property.Spec.DedicatedRedis() != nil {
		return nil
	}
	target, missing, err := r.redisTarget(ctx, property)
	if err != nil {
		return err
	}
	if missing != nil {
		home, known := r.Redis.home(keyOf(property))
		if !known {
			return errors.New(missing.message)
		}
		target = home
	}
	if err := r.Redis.release(ctx, target, property); err != nil {
		return explainRedis(err)
	}
	return nil
}

func redisUserNames(property *v1alpha1.Property) []string {
	var names []string
	for _, role := range resources.Roles() {
		names = append(names, redisUserName(property, role))
	}
	return names
}
