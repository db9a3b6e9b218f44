// Package controllers makes of every Property what it asks for: credentials, users in Redis, and the objects that
// package resources renders.
package controllers

import (
	"context"
	"net/netip"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/collector/config"
	"github.com/weir-dev/weir/controllers/resources"
)

// Finalizer holds a Property until its users, and if so its data, are gone from Redis.
const Finalizer = "weir.dev/redis"

// Options are what the operator decides for all Properties.
type Options struct {
	// RedisURL is the Redis of Properties that bring none; "" for none. It has a user who may administer.
	RedisURL string
	// RedisAllowCIDRs are private ranges in which the operator may connect to the Redis that a Property brings.
	RedisAllowCIDRs []netip.Prefix
	// Image is what the pods run.
	Image string
	// EgressAllowCIDRs are private ranges that deliveries may reach.
	EgressAllowCIDRs []netip.Prefix
	// PlatformEndpoints are base URLs in place of the platforms' own.
	PlatformEndpoints map[config.PlatformType]string
	// Exposure bounds how Properties are reached from outside, Pods what they may say of their pods.
	Exposure ExposureRules
	Pods     PodRules
	// Network bounds who may reach the pods.
	Network resources.NetworkRules
	// Leases keep other releases from the same namespaces; nil where there can be none.
	Leases *NamespaceLeases
	// Now is the clock; nil for the machine's.
	Now func() time.Time
}

// Reconciler makes the cluster and Redis what Properties ask for.
type Reconciler struct {
	// Client writes, and reads from the cache: Properties and Deployments whole, all else as metadata.
	Client client.Client
	// Live reads past the cache: the Secrets' values, which no cache holds.
	Live     client.Reader
	Redis    *RedisAccess
	Recorder events.EventRecorder
	Options  Options
	// Available says which optional kinds the cluster has.
	Available func() map[schema.GroupVersionKind]bool

	secrets secretCache
	applied appliedObjects
	// written are the statuses that were written last, by the Properties' UIDs.
	written sync.Map
	// released are the Properties that were let go last, by name: their UIDs.
	released sync.Map
}

// +kubebuilder:rbac:groups=weir.dev,resources=properties,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=weir.dev,resources=properties/status,verbs=patch
// +kubebuilder:rbac:groups=weir.dev,resources=properties/finalizers,verbs=update
// +kubebuilder:rbac:groups="",resources=secrets,verbs=get;list;watch;create;update;patch;delete
// +kubebuilder:rbac:groups="",resources=configmaps;services;serviceaccounts,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups="",resources=pods,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=apps,resources=deployments,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=autoscaling,resources=horizontalpodautoscalers,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=policy,resources=poddisruptionbudgets,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=networking.k8s.io,resources=ingresses;networkpolicies,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=gateway.networking.k8s.io,resources=httproutes,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=monitoring.coreos.com,resources=podmonitors,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=coordination.k8s.io,resources=leases,resourceNames=operator.weir.dev,verbs=get;create;update
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// Reconcile brings one Property closer to what it asks for. An error is retried, later each time; what its owner
// has to mend becomes a condition instead.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	property := &v1alpha1.Property{}
	if err := r.Client.Get(ctx, request.NamespacedName, property); err != nil {
		if apierrors.IsNotFound(err) {
			r.released.Delete(request.NamespacedName)
		}
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if leases := r.Options.Leases; leases != nil {
		if rival, err := leases.Rival(ctx, property.Namespace); rival != "" || err != nil {
			return ctrl.Result{RequeueAfter: leases.Duration / 6}, err
		}
	}
	if !property.DeletionTimestamp.IsZero() {
		return r.finish(ctx, property)
	}
	if strings.HasPrefix(property.Namespace, clusterOwned) {
		return ctrl.Result{}, r.refuseNamespace(ctx, property)
	}
	if err := r.addFinalizer(ctx, property); err != nil {
		return ctrl.Result{}, err
	}
	property.Spec.Exposure = r.Options.Exposure.complete(property)
	r.recallStatus(property)
	s := &scope{podFaults: r.Options.refusedPods(property), property: property, cachedVersion: property.ResourceVersion, options: r.Options, now: r.Options.Now(), available: r.Available()}
	err := r.run(ctx, s,
		r.claims,
		r.credentials,
		r.redisAccess,
		r.workloads,
		r.observe,
	)
	if statusErr := r.writeStatus(ctx, s); err == nil {
		err = statusErr
	}
	if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) {
		return ctrl.Result{RequeueAfter: cacheLag}, nil // the cache is behind what we wrote, or somebody else was faster
	}
	return ctrl.Result{RequeueAfter: s.lookAgain}, err
}

// clusterOwned begins the names of the cluster's own namespaces. In them the operator makes nothing: what runs there has
// rights over the whole cluster.
const clusterOwned = "kube-"

// refuseNamespace says why nothing is made of a Property.
func (r *Reconciler) refuseNamespace(ctx context.Context, property *v1alpha1.Property) error {
	before := property.DeepCopy()
	property.Status.ObservedGeneration = property.Generation
	meta.SetStatusCondition(&property.Status.Conditions, metav1.Condition{
		Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonNamespaceNotServed,
		Message:            "metadata.namespace: no Properties are served in the cluster's own namespaces, kube-*; make it in another",
		ObservedGeneration: property.Generation, LastTransitionTime: metav1.NewTime(r.Options.Now()),
	})
	if equality.Semantic.DeepEqual(before.Status, property.Status) {
		return nil
	}
	return r.Client.Status().Patch(ctx, property, client.MergeFrom(before), client.FieldOwner(resources.ManagedBy))
}

// cacheLag is how long to wait for the cache to catch up.
const cacheLag = 100 * time.Millisecond

// run calls the phases in order until one fails.
func (r *Reconciler) run(ctx context.Context, s *scope, phases ...func(context.Context, *scope) error) error {
	for _, phase := range phases {
		if err := phase(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

// addFinalizer comes before anything is made in Redis.
func (r *Reconciler) addFinalizer(ctx context.Context, property *v1alpha1.Property) error {
	before := property.DeepCopy()
	if !controllerutil.AddFinalizer(property, Finalizer) {
		return nil
	}
	return r.Client.Patch(ctx, property, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
}

// scope is what one reconcile finds out, phase by phase. What the owner has to mend is a fault, which a condition
// tells of; the other phases go on.
type scope struct {
	property *v1alpha1.Property
	// cachedVersion is the Property's version at the start; writing changes it.
	cachedVersion string
	options       Options
	now           time.Time
	available     map[schema.GroupVersionKind]bool

	// exposureFault is why the Property may not have its hosts.
	exposureFault *fault
	// exposureKept leaves what exposes the Property as it is in spite of the fault.
	exposureKept bool
	// podFaults are what of the roles' pods the operator does not allow: their Deployments are left as they are.
	podFaults map[resources.Role]*fault
	// credentials are in the clear; accepted is the Property with the API keys that there are.
	credentials      resources.Credentials
	accepted         *v1alpha1.Property
	credentialsFault *fault
	// access is what the roles reach Redis with; nil until there are users.
	access     *roleAccess
	redisFault *fault
	redisNote  *fault
	// configurationFault is what of the spec the pods would refuse; foreign is whose name is taken.
	configurationFault *fault
	foreign            []string
	deployments        map[resources.Role]*deploymentState
	platformFaults     []platformFault
	// lookAgain is when to reconcile without being told to; 0 for never.
	lookAgain time.Duration
}

// again has the Property reconciled after a while without being told to; the soonest wish counts.
func (s *scope) again(after time.Duration) {
	if s.lookAgain == 0 || after < s.lookAgain {
		s.lookAgain = after
	}
}

// fault is a reason and message for a condition.
type fault struct{ reason, message string }

// platformFault is why deliveries to a platform stand still.
type platformFault struct {
	platform string
	fault
}
