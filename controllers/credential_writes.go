package controllers

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/controllers/resources"
)

const (
	// mostObjectWrites bounds how often keys and tokens are written to in one reconcile, so that thousands of them keep a worker no
	// longer from other Properties than a moment; mostAdoptions how often for owners, so that there are conditions in each.
	mostObjectWrites, mostAdoptions = 64, 32
	// objectPause is when the rest comes.
	objectPause = time.Second
)

// propertyRequest is the Property that a key or token names.
func propertyRequest(_ context.Context, object client.Object) []reconcile.Request {
	var name string
	switch object := object.(type) {
	case *v1alpha1.AccessToken:
		name = object.Spec.PropertyRef.Name
	case *v1alpha1.APIKey:
		name = object.Spec.PropertyRef.Name
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: object.GetNamespace(), Name: name}}}
}

// changesOfCredentials passes what is news of a key or token: that it is there, going or gone, that it is to be looked at again,
// and that somebody took an owner off it. Status and owners that the operator writes are none, nor is what it does not read.
func changesOfCredentials() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, after := e.ObjectOld, e.ObjectNew
		return before.GetGeneration() != after.GetGeneration() || before.GetResourceVersion() == after.GetResourceVersion() ||
			before.GetDeletionTimestamp().IsZero() != after.GetDeletionTimestamp().IsZero() ||
			len(after.GetOwnerReferences()) < len(before.GetOwnerReferences())
	}}
}

// objectMemory is what is remembered of a key or token from one reconcile to the next.
type objectMemory struct {
	// superseded are the versions that our writes have replaced, adopted says that one of these has made the Property its owner. Both
	// are forgotten when the cache has none of the versions any more.
	superseded []string
	adopted    bool
	// duplicate says that it was found to be a copy.
	duplicate bool
	// failed is when it could not be written to; zero where it could.
	failed time.Time
}

// recall says of each object what is known of it that the cache does not have, and forgets what is about others.
func (m *propertyMemory) recall(objects []*credentialObject, now time.Time, pause time.Duration) {
	known := map[types.UID]objectMemory{}
	for _, o := range objects {
		uid := o.object.GetUID()
		memory := m.objects[uid]
		o.written = slices.Contains(memory.superseded, o.object.GetResourceVersion())
		if !o.written {
			memory.superseded, memory.adopted = nil, false
		}
		if memory.adopted && o.adoption == unadopted {
			o.adoption = adopted
		}
		if now.Sub(memory.failed) >= pause {
			memory.failed = time.Time{}
		}
		o.resting, o.copied = !memory.failed.IsZero(), memory.duplicate
		if o.written || o.resting || o.copied {
			known[uid] = memory
		}
	}
	m.objects = known
}

// remember changes what is remembered of an object.
func (m *propertyMemory) remember(o *credentialObject, change func(*objectMemory)) {
	memory := m.objects[o.object.GetUID()]
	change(&memory)
	m.objects[o.object.GetUID()] = memory
}

// couldNot notes that an object could not be written to. It is left alone for a while: others have their turn.
func (r *Reconciler) couldNot(s *scope, o *credentialObject, err error) {
	s.errs = append(s.errs, err)
	o.resting, o.failed = true, true
	r.memories.of(s.property).remember(o, func(m *objectMemory) { m.failed = s.now })
	s.again(r.Options.objectRest())
}

// objectRest is for how long a key or token is left alone that could not be written to.
func (o *Options) objectRest() time.Duration { return cmp.Or(o.LongestBackoff, longestBackoff) }

// mayWrite takes one of the writes to keys and tokens that a reconcile has.
func (s *scope) mayWrite(most int) bool {
	if s.objectWrites >= most {
		s.again(objectPause)
		return false
	}
	s.objectWrites++
	return true
}

// adopt makes the Property an owner of an object, so that it goes with the Property. It returns false where that is not so yet.
func (r *Reconciler) adopt(ctx context.Context, s *scope, o *credentialObject) bool {
	if o.adoption == adopted {
		return true
	}
	if o.written { // the cache does not have that write yet
		s.again(cacheLag)
		return false
	}
	if o.resting {
		s.again(r.Options.objectRest())
		return false
	}
	if o.adoption == anothers || !s.mayWrite(mostAdoptions) {
		return false
	}
	changed := o.object.DeepCopyObject().(client.Object)
	changed.SetOwnerReferences(append(changed.GetOwnerReferences(), metav1.OwnerReference{
		APIVersion: v1alpha1.GroupVersion.String(), Kind: v1alpha1.Kind, Name: s.property.Name, UID: s.property.UID,
	}))
	err := r.Client.Patch(ctx, changed, client.MergeFromWithOptions(o.object, client.MergeFromWithOptimisticLock{}), client.FieldOwner(resources.ManagedBy))
	switch {
	case apierrors.IsNotFound(err):
		o.refused = &conditionReason{} // it is revoked, which the cache does not know yet
		return false
	case passing(err):
		s.again(cacheLag)
		return false
	case err != nil:
		err = objectFailed("take over", o.key(), nil, err)
		r.couldNot(s, o, err)
		if o.refused == nil {
			o.refused = &conditionReason{v1alpha1.ReasonPending, shortened(err.Error(), mostWords)}
		}
		return false
	}
	r.memories.of(s.property).wrote(o, changed)
	r.memories.of(s.property).remember(o, func(m *objectMemory) { m.adopted = true })
	o.object, o.adoption = changed, adopted
	return true
}

// wrote remembers that the cache is behind with an object.
func (m *propertyMemory) wrote(o *credentialObject, now client.Object) {
	if before := o.object.GetResourceVersion(); before != now.GetResourceVersion() {
		m.remember(o, func(m *objectMemory) { m.superseded = append(m.superseded, before) })
	}
}

// sayOfCredentials writes to each key and token whether it is in force, the ones first of which it matters that it is known.
// What cannot be written is none of the Property's conditions.
func (r *Reconciler) sayOfCredentials(ctx context.Context, s *scope) error {
	rank := func(o *credentialObject) int {
		switch {
		case o.refused == nil:
			return 1
		case o.refused.reason == v1alpha1.ReasonDuplicate:
			return 0
		}
		return 2
	}
	slices.SortStableFunc(s.made, func(a, b *credentialObject) int { return rank(a) - rank(b) })
	for _, o := range s.made {
		if o.refused != nil && o.adoption == unadopted {
			r.adopt(ctx, s, o)
		}
		status, why := s.verdictOf(o)
		if why.reason == "" || said(o, status, why) && (o.adoption == anothers || o.boundTo != "") {
			continue
		}
		if o.written {
			s.again(cacheLag)
			continue
		}
		if o.resting && !o.failed { // what has failed just now may be the owner alone
			s.again(r.Options.objectRest())
			continue
		}
		if !s.mayWrite(mostObjectWrites) {
			break
		}
		changed, err := r.writeVerdict(ctx, o, s.property.UID, status, why)
		if err != nil {
			r.couldNot(s, o, err)
			continue
		}
		r.memories.of(s.property).wrote(o, changed)
	}
	return nil
}

// verdictOf is what an object's condition shall say; without a reason it shall stay as it is.
func (s *scope) verdictOf(o *credentialObject) (metav1.ConditionStatus, conditionReason) {
	switch {
	case o.refused != nil:
		return metav1.ConditionFalse, *o.refused
	case o.adoption == unadopted, s.behind: // with the next reconcile
		return "", conditionReason{}
	case s.podsKnow(o.kind):
		return metav1.ConditionTrue, conditionReason{v1alpha1.ReasonReady, "the Property's pods are told"}
	case o.accepted():
		return "", conditionReason{} // they were told before
	}
	return metav1.ConditionFalse, conditionReason{v1alpha1.ReasonPending, "the Property's pods cannot be told yet; its conditions say why"}
}

// said says whether an object's condition is as it shall be.
func said(o *credentialObject, status metav1.ConditionStatus, why conditionReason) bool {
	ready := o.ready()
	return ready != nil && ready.Status == status && ready.Reason == why.reason && ready.Message == why.message
}

// writeVerdict writes an object's condition, and where it is the Property's that it is for good, and returns the object as it is then.
// One that is gone needs none.
func (r *Reconciler) writeVerdict(ctx context.Context, o *credentialObject, property types.UID, status metav1.ConditionStatus, why conditionReason) (client.Object, error) {
	changed := o.object.DeepCopyObject().(client.Object)
	now := credentialStatus(changed)
	if o.adoption != anothers && property != "" {
		now.PropertyUID = property
	}
	now.ObservedGeneration = changed.GetGeneration()
	meta.SetStatusCondition(&now.Conditions, metav1.Condition{
		Type: v1alpha1.ConditionReady, Status: status, Reason: why.reason, Message: why.message,
		ObservedGeneration: changed.GetGeneration(), LastTransitionTime: metav1.NewTime(r.Options.Now()),
	})
	err := r.Client.Status().Patch(ctx, changed, client.MergeFrom(o.object), client.FieldOwner(resources.ManagedBy))
	return changed, objectFailed("write the status of", o.key(), nil, client.IgnoreNotFound(err))
}

func credentialStatus(object client.Object) *v1alpha1.CredentialStatus {
	switch object := object.(type) {
	case *v1alpha1.AccessToken:
		return &object.Status
	case *v1alpha1.APIKey:
		return &object.Status
	}
	return &v1alpha1.CredentialStatus{}
}

// orphans says of keys and tokens that there is no Property for them. Those that had one go with it.
func (r *Reconciler) orphans(ctx context.Context, property types.NamespacedName) (ctrl.Result, error) {
	if strings.HasPrefix(property.Namespace, clusterOwned) {
		return ctrl.Result{}, nil
	}
	objects, err := r.credentialObjects(ctx, property, "")
	if err != nil {
		return ctrl.Result{}, err
	}
	why := *reasonf(v1alpha1.ReasonPropertyMissing, "spec.propertyRef: there is no Property %s in this namespace; make it, or delete this", property.Name)
	objects = slices.DeleteFunc(objects, func(o *credentialObject) bool {
		ready := o.ready()
		return said(o, metav1.ConditionFalse, why) || ready != nil && ready.Reason == v1alpha1.ReasonDuplicate // which is for good
	})
	if len(objects) == 0 {
		return ctrl.Result{}, nil
	}
	err = r.Live.Get(ctx, property, &v1alpha1.Property{})
	if err == nil { // the cache does not have it yet
		return ctrl.Result{RequeueAfter: cacheLag}, nil
	}
	if !apierrors.IsNotFound(err) {
		return ctrl.Result{}, err
	}
	if leases := r.Options.Leases; leases != nil {
		rival, err := leases.Rival(ctx, property.Namespace)
		if err != nil {
			return ctrl.Result{}, err
		}
		if rival != "" {
			return ctrl.Result{RequeueAfter: leases.Duration / 6}, nil
		}
	}
	var rest ctrl.Result
	if len(objects) > mostObjectWrites {
		objects, rest.RequeueAfter = objects[:mostObjectWrites], objectPause
	}
	var errs []error
	for _, o := range objects {
		_, err := r.writeVerdict(ctx, o, "", metav1.ConditionFalse, why)
		errs = append(errs, err)
	}
	return rest, errors.Join(errs...)
}
