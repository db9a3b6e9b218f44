// Package controllers makes of every Property what it asks for: credentials, users in Redis, and the objects that
// package resources renders.
package controllers

import (
	"context"
	"errors"
	"net/netip"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/collector/audit"
	"github.com/weir-dev/weir/collector/auth"
	"github.com/weir-dev/weir/collector/config"
	"github.com/weir-dev/weir/collector/connect"
	"github.com/weir-dev/weir/collector/platforms"
	"github.com/weir-dev/weir/controllers/resources"
)

// Finalizer holds a Property until its users, and if so its data, are gone from Redis. It is set before anything is made
// there, and not earlier: a Property whose Redis has never answered has nothing to wait for.
const Finalizer = "weir.dev/redis"

// HistoryFinalizer does the same of a history in ClickHouse.
const HistoryFinalizer = "weir.dev/history"

// Options are what the operator decides for all Properties.
type Options struct {
	// OperatorClass is the class whose Properties are served; "" for those without one.
	OperatorClass string
	// RedisURL is the Redis of Properties that bring none; "" for none. It has a user who may administer.
	RedisURL string
	// RedisTLS is what is trusted and shown there; the files are read again when they change.
	RedisTLS RedisFiles
	// RedisCertificates keeps the certificates there new, and says in RedisTLS's place what is trusted; nil where that is not the operator's to do.
	RedisCertificates *RedisCertificates
	// RedisAllowCIDRs are private ranges in which the operator may connect to the Redis that a Property brings.
	RedisAllowCIDRs []netip.Prefix
	// RedisImage is what the Redis runs that is made for a Property; "" where none is made.
	RedisImage string
	// RedisAddress is where that Redis is reached, by namespace and Service; nil for the Service's name and port.
	RedisAddress func(namespace, service string) string
	// ClickHouseURL is the ClickHouse of Properties whose history names none; "" for none. It has a user who may administer.
	ClickHouseURL string
	// ClickHouseTLS is what is trusted and shown there; the files are read again when they change.
	ClickHouseTLS connect.TLSFiles
	// ClickHouseAllowCIDRs are private ranges in which the operator may connect to the ClickHouse that a Property brings.
	ClickHouseAllowCIDRs []netip.Prefix
	// Image is what the pods run.
	Image string
	// EgressAllowCIDRs are private ranges that deliveries may reach.
	EgressAllowCIDRs []netip.Prefix
	// TrustedProxyCIDRs are where those connect from whose X-Forwarded-For the collectors believe.
	TrustedProxyCIDRs []netip.Prefix
	// WithholdUnsaid says that no platform gets an event whose visitor has said nothing of a purpose that it requires,
	// whatever Properties say.
	WithholdUnsaid bool
	// PlatformEndpoints are base URLs in place of the platforms' own.
	PlatformEndpoints map[platforms.Type]string
	// Exposure bounds how Properties are reached from outside, Pods what they may say of their pods.
	Exposure ExposureRules
	Pods     PodRules
	// Network bounds who may reach the pods.
	Network resources.NetworkRules
	// DeliveryProxy is what deliveries go through; without a URL there is none.
	DeliveryProxy config.DeliveryProxy
	// AnyUser leaves the pods' user and groups to the cluster, as OpenShift wants it.
	AnyUser bool
	// Tracing says where the pods send spans.
	Tracing resources.Tracing
	// PodDefaults are what the pods of all Properties have.
	PodDefaults resources.PodDefaults
	// Audit is told which API keys and access tokens come and go; nil for none.
	Audit *audit.Log
	// Console keeps the keys with which the cluster's console signs; nil for no console.
	Console *ConsoleKeys
	// Leases keep other releases from the same namespaces; nil where there can be none.
	Leases *NamespaceLeases
	// SyncPeriod is the longest time until a Property is looked at again without being told of a change; 0 for ever.
	SyncPeriod time.Duration
	// LongestBackoff is how long what failed waits at most to be tried again; 0 for half a minute.
	LongestBackoff time.Duration
	// Now is the clock; nil for the machine's.
	Now func() time.Time
}

// redisTLS says what is trusted and shown in the operator's own Redis.
func (o *Options) redisTLS() TLSSource {
	if o.RedisCertificates != nil {
		return o.RedisCertificates
	}
	return o.RedisTLS
}

// Reconciler makes the cluster and Redis what Properties ask for.
type Reconciler struct {
	// Client writes, and reads from the cache: Properties, their keys and tokens, and Deployments whole, all else as metadata.
	Client client.Client
	// Live reads past the cache: the Secrets' values, which no cache holds.
	Live     client.Reader
	Redis    *RedisAccess
	History  *HistoryAccess
	Recorder events.EventRecorder
	Options  Options
	// Available says which optional kinds the cluster has, nil as long as that is not known.
	Available func() map[schema.GroupVersionKind]bool

	// memories are what reconciles leave to the next one of the same Property.
	memories memories
}

// +kubebuilder:rbac:groups=weir.dev,resources=properties,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=weir.dev,resources=properties/status,verbs=patch
// +kubebuilder:rbac:groups=weir.dev,resources=properties/finalizers,verbs=update
// +kubebuilder:rbac:groups=weir.dev,resources=accesstokens;apikeys,verbs=get;list;watch;patch;delete
// +kubebuilder:rbac:groups=weir.dev,resources=accesstokens/status;apikeys/status,verbs=patch
// +kubebuilder:rbac:groups="",resources=secrets,verbs=get;list;watch;create;update;patch;delete
// +kubebuilder:rbac:groups="",resources=configmaps;services;serviceaccounts,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups="",resources=pods,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=apps,resources=deployments;statefulsets,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=autoscaling,resources=horizontalpodautoscalers,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=policy,resources=poddisruptionbudgets,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=networking.k8s.io,resources=ingresses;networkpolicies,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=networking.k8s.io,resources=ingressclasses,verbs=get
// +kubebuilder:rbac:groups=gateway.networking.k8s.io,resources=httproutes,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=monitoring.coreos.com,resources=podmonitors,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=coordination.k8s.io,resources=leases,resourceNames=operator.weir.dev,verbs=get;create;update
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// Reconcile brings one Property closer to what it asks for. What its owner has to mend becomes a condition. So does what
// fails, which is tried again, later each time.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	result, err := r.reconcile(ctx, request)
	if ctx.Err() != nil { // an operator that ends has failed at nothing: the next one looks at every Property
		return ctrl.Result{}, nil
	}
	return result, err
}

func (r *Reconciler) reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	property := &v1alpha1.Property{}
	if err := r.Client.Get(ctx, request.NamespacedName, property); err != nil {
		if apierrors.IsNotFound(err) {
			r.forget(request.NamespacedName)
			return r.orphans(ctx, request.NamespacedName)
		}
		return ctrl.Result{}, err
	}
	if property.Spec.OperatorClass != r.Options.OperatorClass { // which may have been made in place of one of ours
		r.forget(request.NamespacedName)
		return ctrl.Result{}, nil
	}
	memory := r.memories.of(property)
	if memory.superseded == property.ResourceVersion {
		return ctrl.Result{RequeueAfter: cacheLag}, nil // the cache does not have our last write
	}
	memory.begin()
	if leases := r.Options.Leases; leases != nil {
		rival, err := leases.Rival(ctx, property.Namespace)
		if err != nil {
			return ctrl.Result{}, r.notReady(ctx, property, err)
		}
		if rival != "" {
			return ctrl.Result{RequeueAfter: leases.Duration / 6}, nil
		}
	}
	available := r.Available()
	consoleKeys, known := r.Options.Console.trusted()
	if available == nil || !known { // an operator that has just started would say that there are none, and take back what it has told of them
		return ctrl.Result{RequeueAfter: cacheLag}, nil
	}
	if !property.DeletionTimestamp.IsZero() {
		result, err := r.finish(ctx, property)
		return result, r.notReady(ctx, property, err)
	}
	if isPaused(property) { // and not being deleted: no namespace is to hang on it
		return ctrl.Result{}, r.pause(ctx, property)
	}
	if strings.HasPrefix(property.Namespace, clusterOwned) {
		return ctrl.Result{}, r.writeNotReady(ctx, property, *reasonf(v1alpha1.ReasonNamespaceNotServed,
			"metadata.namespace: no Properties are served in the cluster's own namespaces, kube-*; make it in another"))
	}
	property.Spec.Exposure = r.Options.Exposure.complete(property)
	s := &scope{podProblems: r.Options.refusedPods(property), property: property, options: r.Options, now: r.Options.Now(), available: available, consoleKeys: consoleKeys}
	r.run(ctx, s)
	if s.behind {
		return ctrl.Result{RequeueAfter: cacheLag}, nil // with what a reconcile knows then there is something to say
	}
	if err := errors.Join(append(s.errs, r.writeStatus(ctx, s))...); err != nil {
		return ctrl.Result{}, err
	}
	return s.next(), nil
}

// forget drops what is known of a Property that is not there, or not ours.
func (r *Reconciler) forget(property types.NamespacedName) {
	r.memories.forget(property)
	r.Redis.forget(property)
	r.History.forget(property)
}

// clusterOwned begins the names of the cluster's own namespaces. In them the operator makes nothing: what runs there has
// rights over the whole cluster.
const clusterOwned = "kube-"

// cacheLag is how long to wait for the cache to catch up.
const cacheLag = 100 * time.Millisecond

// run calls the phases in order. One that fails stops what needs it, and nothing else.
func (r *Reconciler) run(ctx context.Context, s *scope) {
	for _, phase := range []struct {
		condition string
		run       func(context.Context, *scope) error
	}{
		{v1alpha1.ConditionExposed, r.hostOwnership},
		{v1alpha1.ConditionCredentialsReady, r.credentials},
		{v1alpha1.ConditionCredentialsReady, r.madeCredentials},
		{v1alpha1.ConditionCredentialsReady, r.sessionKeys},
		{v1alpha1.ConditionRedisReady, r.redisAccess},
		{v1alpha1.ConditionHistoryReady, r.history},
		{v1alpha1.ConditionErasuresReady, r.erasures},
		{v1alpha1.ConditionWorkloadsAvailable, r.workloads},
		{v1alpha1.ConditionCredentialsReady, r.sayOfCredentials},
		{v1alpha1.ConditionExposed, r.exposed},
		{v1alpha1.ConditionWorkloadsAvailable, r.observe},
		{v1alpha1.ConditionHistoryReady, r.endHistory},
	} {
		s.failed(phase.condition, phase.run(ctx, s))
	}
	s.versions()
}

// addFinalizer comes before anything is made in Redis or ClickHouse, and removeFinalizer after all of it is gone.
func (r *Reconciler) addFinalizer(ctx context.Context, s *scope, finalizer string) error {
	return r.patchFinalizers(ctx, s, func(p *v1alpha1.Property) bool { return controllerutil.AddFinalizer(p, finalizer) })
}

func (r *Reconciler) removeFinalizer(ctx context.Context, s *scope, finalizer string) error {
	return r.patchFinalizers(ctx, s, func(p *v1alpha1.Property) bool { return controllerutil.RemoveFinalizer(p, finalizer) })
}

func (r *Reconciler) patchFinalizers(ctx context.Context, s *scope, change func(*v1alpha1.Property) bool) error {
	patched := s.property.DeepCopy()
	if !change(patched) {
		return nil
	}
	err := r.Client.Patch(ctx, patched, client.MergeFromWithOptions(s.property, client.MergeFromWithOptimisticLock{}))
	if err != nil {
		return objectFailed("change the finalizers of", propertyKey(s.property), nil, err)
	}
	s.property.Finalizers, s.property.ResourceVersion = patched.Finalizers, patched.ResourceVersion
	return nil
}

func propertyKey(property *v1alpha1.Property) objectKey {
	return objectKey{v1alpha1.GroupVersion.WithKind(v1alpha1.Kind), property.Name}
}

// scope is what one reconcile finds out, phase by phase. What the owner has to mend is an error, which a condition
// tells of; the other phases go on.
type scope struct {
	property  *v1alpha1.Property
	options   Options
	now       time.Time
	available map[schema.GroupVersionKind]bool
	// consoleKeys verify what the console signs.
	consoleKeys []auth.PublicKey

	// exposureProblem is why the Property may not have its hosts.
	exposureProblem *conditionReason
	// exposureGap is what is missing for the hosts to lead to the pods, although all that was asked for is made.
	exposureGap *conditionReason
	// exposureKept leaves what exposes the Property as it is in spite of the error.
	exposureKept bool
	// podProblems are what of the roles' pods the operator does not allow: their Deployments are left as they are.
	podProblems map[resources.Role]*conditionReason
	// credentials are in the clear; accepted is the Property with the API keys and access tokens that there are.
	credentials        resources.Credentials
	accepted           *v1alpha1.Property
	credentialsProblem *conditionReason
	credentialsNote    *conditionReason
	// credentialsUnknown says that they could not be read or made: what the pods go by stays as it is.
	credentialsUnknown bool
	// made are the keys and tokens that are objects of their own, toldSecrets the Secrets of hashes that are as they shall be,
	// objectWrites how many of the objects were written to.
	made         []*credentialObject
	toldSecrets  map[string]bool
	objectWrites int
	// access is what the roles reach Redis with, each that has a Secret for it; nil where nobody knows the Redis.
	access       *roleAccess
	redisProblem *conditionReason
	redisNote    *conditionReason
	// redisSecrets says that the Secrets are there of the Redis that is made for the Property: without them nothing of it is made or changed.
	redisSecrets bool
	// history is what the pods reach the history with; nil where there is none. historyUnknown says that it could not be read or
	// made: the pods that reach it stay as they are.
	history        *historyAccess
	historyUnknown bool
	historyProblem *conditionReason
	// archivePause is why the archive does not copy, archiveLags whether it is far behind.
	archivePause *conditionReason
	archiveLags  bool
	// ledgerParts is over how many Secrets the ledger of erasures is spread; 0 where there is none yet. erasureProblem is why
	// persons cannot be erased, or not from Redis's files.
	ledgerParts    int
	erasureProblem *conditionReason
	// configurationProblem is what of the spec the pods would refuse; foreign is
	// whose name is taken, by condition.
	configurationProblem *conditionReason
	foreign              map[string][]string
	// foreignObjects are the objects whose names are taken: no pod may mount them.
	foreignObjects   map[objectKey]bool
	deployments      map[resources.Role]*deploymentState
	platformProblems []platformProblem
	sourceProblems   []conditionReason
	// versionProblems are what is to be said of versions of platforms' interfaces that end soon, or have ended.
	versionProblems []conditionReason
	// errs are what failed, failures the same by condition. behind says that the cache does not have what we wrote.
	errs     []error
	failures map[string][]conditionReason
	behind   bool
	// lookAgain is when to reconcile without being told to; 0 for never.
	lookAgain time.Duration
}

// again has the Property reconciled after a while without being told to; the soonest wish counts.
func (s *scope) again(after time.Duration) {
	if s.lookAgain == 0 || after < s.lookAgain {
		s.lookAgain = after
	}
}

// next is when the Property is reconciled again at the latest. Without a cause that is at some time in the second half of the period, each
// Property at another one, and after all that have changed.
func (s *scope) next() ctrl.Result {
	rest := wait.Jitter(s.options.SyncPeriod/2, 1)
	if s.lookAgain > 0 && s.lookAgain < rest || rest == 0 {
		return ctrl.Result{RequeueAfter: s.lookAgain}
	}
	return ctrl.Result{RequeueAfter: rest, Priority: new(handler.LowPriority)}
}

// conditionReason is a reason and message for a condition.
type conditionReason struct{ reason, message string }

// platformProblem is why deliveries to a platform stand still.
type platformProblem struct {
	platform string
	conditionReason
}
