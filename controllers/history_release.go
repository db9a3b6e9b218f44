package controllers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/collector/history/access"
	"github.com/weir-dev/weir/controllers/resources"
)

// endHistory removes the users of a history that the spec has no more, once no pod needs them; the data stay. Their Secrets say that
// this is still to be done, and where.
func (r *Reconciler) endHistory(ctx context.Context, s *scope) error {
	if s.property.Spec.HasHistory() {
		return nil
	}
	names := []string{resources.RedisSecretName(s.property, resources.Archive)}
	for _, role := range access.Roles() {
		names = append(names, resources.HistorySecretName(s.property, role))
	}
	left, err := r.ownSecrets(ctx, s, names)
	if err != nil || len(left) == 0 {
		return err
	}
	if used, err := r.historyUsed(ctx, s); err != nil || used {
		return err // a pod that goes has it looked at again
	}
	if err := r.Redis.removeUser(ctx, s.property, resources.Archive); err != nil {
		s.again(historyRetry) // RedisReady says why
		return nil
	}
	done, err := r.releaseHistory(ctx, s.property, false)
	if err != nil {
		log.FromContext(ctx).Info("the users of a history that is switched off cannot be removed yet", "reason", err.Error())
	}
	if !done {
		s.again(historyRetry)
		return nil
	}
	for i := range left {
		if err := client.IgnoreNotFound(r.Client.Delete(ctx, &left[i])); err != nil {
			return objectFailed("delete", secretKey(left[i].Name), nil, err)
		}
	}
	r.History.forget(keyOf(s.property))
	return r.removeFinalizer(ctx, s, HistoryFinalizer)
}

// ownSecrets are those of the names that there are and that are the Property's.
func (r *Reconciler) ownSecrets(ctx context.Context, s *scope, names []string) ([]metav1.PartialObjectMetadata, error) {
	var found []metav1.PartialObjectMetadata
	for _, name := range names {
		metadata := metav1.PartialObjectMetadata{}
		metadata.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
		err := r.Client.Get(ctx, client.ObjectKey{Namespace: s.property.Namespace, Name: name}, &metadata)
		if client.IgnoreNotFound(err) != nil {
			return nil, objectFailed("read", secretKey(name), nil, err)
		}
		if err == nil && metav1.IsControlledBy(&metadata, s.property) && metadata.DeletionTimestamp == nil {
			metadata.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
			found = append(found, metadata)
		}
	}
	return found, nil
}

// historyUsed says whether pods may still reach the history: those that were made to, which answer for some seconds more when they are
// replaced, and those that are about to be.
func (r *Reconciler) historyUsed(ctx context.Context, s *scope) (bool, error) {
	pods, err := r.running(ctx, s.property)
	used := slices.ContainsFunc(pods, func(pod metav1.PartialObjectMetadata) bool { return pod.Annotations[resources.AnnotationHistory] != "" })
	query := s.deployments[resources.Query]
	return used || query == nil || query.reason == v1alpha1.ReasonProgressing, err
}

// releaseHistory removes users and, with drop, data. It finds the history even where the Secret with the server's URL went first, as
// it does when a whole namespace is deleted.
func (r *Reconciler) releaseHistory(ctx context.Context, property *v1alpha1.Property, drop bool) (done bool, err error) {
	spec, err := r.historyServer(ctx, property)
	if err != nil {
		return false, err
	}
	target, missing, err := r.historyTarget(ctx, property, spec)
	if err != nil {
		return false, err
	}
	if missing != nil {
		home, known := r.History.home(keyOf(property))
		if !known {
			return false, errors.New(missing.message)
		}
		target = home
	}
	place := placeOf(property)
	if spec != nil {
		place.Cluster = spec.Cluster
	}
	done, err = r.History.release(keyOf(property), target, place, drop)
	if problem := historyProblemOf(target, err); problem != nil {
		err = errors.New(problem.message)
	}
	return done, err
}

// historyServer is where the history is, by the spec or by what a role's Secret has kept of it.
func (r *Reconciler) historyServer(ctx context.Context, property *v1alpha1.Property) (*v1alpha1.ClickHouse, error) {
	if property.Spec.HasHistory() {
		return property.Spec.History.ClickHouse, nil
	}
	for _, role := range access.Roles() {
		secret, err := r.readSecret(ctx, property, resources.HistorySecretName(property, role))
		if err != nil {
			return nil, err
		}
		var spec *v1alpha1.ClickHouse
		if secret != nil && metav1.IsControlledBy(secret, property) && json.Unmarshal(secret.Data[historyKeyServer], &spec) == nil {
			return spec, nil
		}
	}
	return nil, nil
}

// finishHistory removes the users of a Property that is deleted and, by the deletion policy, the data. It says whether to wait. A server
// that is away is waited for no longer than Redis is.
func (r *Reconciler) finishHistory(ctx context.Context, property *v1alpha1.Property, overdue bool) (wait bool) {
	if !controllerutil.ContainsFinalizer(property, HistoryFinalizer) {
		return false
	}
	drop := property.Spec.DeletionPolicy == v1alpha1.DeletionPolicyDelete
	done, err := r.releaseHistory(ctx, property, drop)
	if done {
		r.History.forget(keyOf(property))
		return false
	}
	if !overdue {
		if err != nil {
			log.FromContext(ctx).Info("the history of a deleted Property cannot be removed yet", "reason", err.Error())
		}
		return true
	}
	r.letGoHistory(ctx, property, drop, err)
	return false
}

// letGoHistory says what of a Property is left in a ClickHouse that is away, and has it removed when that is back.
func (r *Reconciler) letGoHistory(ctx context.Context, property *v1alpha1.Property, drop bool, cause error) {
	place := placeOf(property)
	left, mend := "users", []string{}
	for _, role := range access.Roles() {
		mend = append(mend, "DROP USER IF EXISTS `"+place.UserName(role)+"`")
	}
	if drop {
		left, mend = "users and data", append(mend, "DROP DATABASE IF EXISTS `"+place.Database()+"`")
	}
	become := "they are removed when it is back while this operator runs and no Property of the name is there; otherwise"
	gone := func(ctx context.Context) bool {
		return apierrors.IsNotFound(r.Live.Get(ctx, client.ObjectKeyFromObject(property), &v1alpha1.Property{}))
	}
	if !r.History.owe(keyOf(property), gone) {
		become = "nobody else removes them:"
	}
	if cause == nil {
		cause = errors.New("it does not answer in time")
	}
	note := fmt.Sprintf("%s of the history are left in ClickHouse, which could not be cleared of them (%.250s); %s run %s", left, cause.Error(), become, strings.Join(mend, "; "))
	log.FromContext(ctx).Info("the history of a deleted Property is let go", "note", note)
	r.Recorder.Eventf(property, nil, corev1.EventTypeWarning, "HistoryLeftBehind", "Delete", "%s", shortened(note, mostNote))
}
