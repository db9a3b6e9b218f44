package controllers

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/controllers/resources"
)

// workers is how many Properties are reconciled at once: what takes time is waiting for the API server.
const workers = 8

// optionalInterval is how often to look whether the cluster has got one of the optional kinds, unknownInterval the same where it
// has never been found out which of them it has.
const optionalInterval, unknownInterval = 30 * time.Second, time.Second

// NewScheme returns the types that the operator knows.
func NewScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	return scheme, nil
}

// CacheOptions keep the cache small: only what carries our label, and of everything but Properties, their keys and tokens, and
// Deployments only the metadata. Secrets are all watched, for Properties refer to Secrets of their owners', but no cache holds
// a Secret's value. Without namespaces the whole cluster is watched. No optional kind is named here: the cluster may
// lack it. Nothing is told of again without a change, which would have every Property looked at at once: see [Options.SyncPeriod].
func CacheOptions(namespaces []string) cache.Options {
	all := cache.ByObject{Label: labels.Everything()}
	options := cache.Options{
		SyncPeriod:           new(time.Duration),
		DefaultTransform:     slim,
		DefaultLabelSelector: labels.SelectorFromSet(labels.Set{resources.LabelManagedBy: resources.ManagedBy}),
		ByObject: map[client.Object]cache.ByObject{
			&v1alpha1.Property{}: all, &v1alpha1.AccessToken{}: all, &v1alpha1.APIKey{}: all,
			partial(corev1.SchemeGroupVersion.WithKind("Secret")): all,
		},
	}
	if len(namespaces) > 0 {
		options.DefaultNamespaces = map[string]cache.Config{}
		for _, namespace := range namespaces {
			options.DefaultNamespaces[namespace] = cache.Config{}
		}
	}
	return options
}

func partial(kind schema.GroupVersionKind) *metav1.PartialObjectMetadata {
	metadata := &metav1.PartialObjectMetadata{}
	metadata.SetGroupVersionKind(kind)
	return metadata
}

// Setup makes the manager reconcile Properties. Wrap, where it is not nil, stands between the reconciler and the
// API server.
func Setup(ctx context.Context, mgr manager.Manager, options Options, logger *slog.Logger, wrap func(client.Client) client.Client) error {
	writer := mgr.GetClient()
	if wrap != nil {
		writer = wrap(writer)
	}
	if options.Now == nil {
		options.Now = time.Now
	}
	options.Exposure.OperatorClass = options.OperatorClass
	redis := NewRedisAccess(logger, options.redisTLS(), options.RedisAllowCIDRs, options.Now)
	redis.audit = options.Audit
	history := NewHistoryAccess(logger, options.ClickHouseTLS, options.ClickHouseAllowCIDRs, options.Now)
	optional := &optionalKinds{manager: mgr}
	r := &Reconciler{
		Client: writer, Live: mgr.GetAPIReader(), Redis: redis, History: history, Recorder: mgr.GetEventRecorder(resources.ManagedBy),
		Options: options, Available: optional.available,
	}
	if err := index(ctx, mgr.GetFieldIndexer(), options.Exposure); err != nil {
		return err
	}
	owner := handler.EnqueueRequestsFromMapFunc(controllerRequest)
	backoff := newBackoff(options.LongestBackoff)
	build := ctrl.NewControllerManagedBy(mgr).Named("property").
		WithOptions(controller.Options{MaxConcurrentReconciles: workers, RateLimiter: backoff}).
		For(&v1alpha1.Property{}, builder.WithPredicates(changesOfProperties(backoff))).
		Watches(&v1alpha1.Property{}, handler.EnqueueRequestsFromMapFunc(r.rivalRequests), builder.WithPredicates(predicate.Or(predicate.GenerationChangedPredicate{}, othersHosts(options.OperatorClass)))).
		Watches(&v1alpha1.AccessToken{}, handler.EnqueueRequestsFromMapFunc(propertyRequest), builder.WithPredicates(changesOfCredentials())).
		Watches(&v1alpha1.APIKey{}, handler.EnqueueRequestsFromMapFunc(propertyRequest), builder.WithPredicates(changesOfCredentials())).
		Watches(&appsv1.Deployment{}, owner).
		WatchesMetadata(partial(corev1.SchemeGroupVersion.WithKind("Secret")), handler.EnqueueRequestsFromMapFunc(r.referringRequests)).
		WatchesMetadata(partial(corev1.SchemeGroupVersion.WithKind("Pod")), handler.EnqueueRequestsFromMapFunc(podRequests)).
		WatchesRawSource(source.TypedChannel(redis.changed, noticed())).
		WatchesRawSource(source.TypedChannel(history.changed, noticed()))
	for _, kind := range resources.Kinds() {
		if kind.Kind != "Deployment" {
			build = build.WatchesMetadata(partial(kind), owner)
		}
	}
	built, err := build.Build(r)
	if err != nil {
		return fmt.Errorf("set up the controller: %w", err)
	}
	optional.watch = func(kind schema.GroupVersionKind) error {
		return built.Watch(source.Kind[client.Object](mgr.GetCache(), partial(kind), owner))
	}
	optional.logger, optional.redis = logger, redis
	if err := mgr.Add(optional); err != nil {
		return err
	}
	if options.Leases != nil {
		if err := mgr.Add(options.Leases); err != nil {
			return err
		}
	}
	if options.RedisCertificates != nil {
		if err := mgr.Add(options.RedisCertificates); err != nil {
			return err
		}
	}
	if console := options.Console; console != nil {
		console.properties, console.changed = mgr.GetClient(), redis.changed
		if err := mgr.Add(console); err != nil {
			return err
		}
	}
	if err := mgr.Add(history); err != nil {
		return err
	}
	return mgr.Add(redis)
}

// controllerRequest is the Property that controls an object. The library's own handler looks the kind of every owner up at
// the API server's list of kinds, which was a fifth of all that the operator allocated.
func controllerRequest(_ context.Context, object client.Object) []reconcile.Request {
	owner := metav1.GetControllerOfNoCopy(object)
	if owner == nil || owner.Kind != v1alpha1.Kind {
		return nil
	}
	if group, err := schema.ParseGroupVersion(owner.APIVersion); err != nil || group.Group != v1alpha1.GroupVersion.Group {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: object.GetNamespace(), Name: owner.Name}}}
}

// noticed has the Property of a notice reconciled.
func noticed() handler.TypedEventHandler[types.NamespacedName, reconcile.Request] {
	return handler.TypedEnqueueRequestsFromMapFunc(func(_ context.Context, property types.NamespacedName) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: property}}
	})
}

// index makes the lookups of the reconciler cheap.
func index(ctx context.Context, indexer client.FieldIndexer, exposure ExposureRules) error {
	property := &v1alpha1.Property{}
	indexers := exposure.indexers()
	indexers[indexSecret] = referredSecrets
	for field, values := range indexers {
		if err := indexer.IndexField(ctx, property, field, values); err != nil {
			return err
		}
	}
	for object, values := range map[client.Object]client.IndexerFunc{&v1alpha1.AccessToken{}: propertyOfToken, &v1alpha1.APIKey{}: propertyOfKey} {
		if err := indexer.IndexField(ctx, object, indexProperty, values); err != nil {
			return err
		}
	}
	for _, kind := range resources.Kinds() {
		var object client.Object = partial(kind)
		if kind == kindDeployment {
			object = &appsv1.Deployment{}
		}
		if err := indexer.IndexField(ctx, object, indexOwner, ownerOf); err != nil {
			return err
		}
	}
	return nil
}

// indexSecret finds Properties by the Secrets that they refer to.
const indexSecret = "weir.dev/secret"

func referredSecrets(object client.Object) []string {
	spec := &object.(*v1alpha1.Property).Spec
	names := map[string]bool{}
	for _, key := range spec.APIKeys {
		if key.SecretKeyRef != nil {
			names[key.SecretKeyRef.Name] = true
		}
	}
	for _, token := range spec.AccessTokens {
		if token.SecretKeyRef != nil {
			names[token.SecretKeyRef.Name] = true
		}
	}
	for _, platform := range spec.Platforms {
		if platform.CredentialsSecretRef != nil {
			names[platform.CredentialsSecretRef.Name] = true
		}
	}
	for _, source := range spec.Sources {
		names[source.SecretRef.Name] = true
		if source.APISecretRef != nil {
			names[source.APISecretRef.Name] = true
		}
	}
	if ingress := spec.Exposure.Ingress; ingress != nil && ingress.TLSSecretName != "" {
		names[ingress.TLSSecretName] = true
	}
	if spec.Redis != nil && spec.Redis.URLSecretKeyRef != nil {
		names[spec.Redis.URLSecretKeyRef.Name] = true
		for _, certificate := range resources.RedisCertificates(spec.Redis) {
			names[certificate.Ref.Name] = true
		}
	}
	if history := spec.History.ClickHouse; history != nil && history.URLSecretKeyRef != nil {
		names[history.URLSecretKeyRef.Name] = true
		for _, certificate := range resources.HistoryCertificates(history) {
			names[certificate.Ref.Name] = true
		}
	}
	list := make([]string, 0, len(names))
	for name := range maps.Keys(names) {
		list = append(list, name)
	}
	return list
}

// referringRequests are the Properties that a changed Secret concerns, beside its owner.
func (r *Reconciler) referringRequests(ctx context.Context, secret client.Object) []reconcile.Request {
	var list v1alpha1.PropertyList
	if err := r.Client.List(ctx, &list, client.InNamespace(secret.GetNamespace()), client.MatchingFields{indexSecret: secret.GetName()}); err != nil {
		return nil // the cache does not fail once it has started
	}
	requests := requestsFor(list.Items)
	if name := secret.GetLabels()[resources.LabelInstance]; name != "" { // a ledger of erasures, which no Property controls
		requests = append(requests, reconcile.Request{NamespacedName: types.NamespacedName{Namespace: secret.GetNamespace(), Name: name}})
	}
	return requests
}

// rivalRequests are the Properties that may now have what another had.
func (r *Reconciler) rivalRequests(ctx context.Context, object client.Object) []reconcile.Request {
	others, err := r.rivals(ctx, object.(*v1alpha1.Property))
	if err != nil {
		return nil // the cache does not fail once it has started
	}
	return requestsFor(others)
}

// othersHosts passes that a Property which another operator serves has got other hosts, and that a pause keeps some from others, or
// does not any more.
func othersHosts(class string) predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, after := e.ObjectOld.(*v1alpha1.Property), e.ObjectNew.(*v1alpha1.Property)
		return keptBy(before) != keptBy(after) || after.Spec.OperatorClass != class && given(before) != given(after)
	}}
}

func requestsFor(properties []v1alpha1.Property) []reconcile.Request {
	requests := make([]reconcile.Request, len(properties))
	for i := range properties {
		requests[i].NamespacedName = keyOf(&properties[i])
	}
	return requests
}

// podRequests is the Property of a pod: a new pod is told of its configuration.
func podRequests(_ context.Context, pod client.Object) []reconcile.Request {
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: pod.GetNamespace(), Name: pod.GetLabels()[resources.LabelInstance]}}}
}

// optionalKinds finds out which kinds of the Gateway API and the Prometheus operator the cluster has, and watches
// those that it gets later.
type optionalKinds struct {
	manager manager.Manager
	watch   func(schema.GroupVersionKind) error
	logger  *slog.Logger
	redis   *RedisAccess

	mu    sync.Mutex
	found map[schema.GroupVersionKind]bool
	// looked says that each was looked for once.
	looked bool
}

// available says which kinds the cluster has, nil as long as it is not known of all.
func (o *optionalKinds) available() map[schema.GroupVersionKind]bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.looked {
		return nil
	}
	available := map[schema.GroupVersionKind]bool{}
	maps.Copy(available, o.found)
	return available
}

// Start looks until ctx ends.
func (o *optionalKinds) Start(ctx context.Context) error {
	for {
		wait := optionalInterval
		if err := o.look(ctx); err != nil {
			o.logger.WarnContext(ctx, "look for optional kinds", "error", err)
			if o.available() == nil {
				wait = unknownInterval
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(wait):
		}
	}
}

func (o *optionalKinds) look(ctx context.Context) error {
	for _, kind := range resources.OptionalKinds() {
		if err := o.lookFor(ctx, kind); err != nil {
			return err
		}
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.looked = true
	return nil
}

// lookFor watches a kind that the cluster has got.
func (o *optionalKinds) lookFor(ctx context.Context, kind schema.GroupVersionKind) error {
	o.mu.Lock()
	known, looked := o.found[kind], o.looked
	o.mu.Unlock()
	if known {
		return nil
	}
	_, err := o.manager.GetRESTMapper().RESTMapping(kind.GroupKind(), kind.Version)
	if meta.IsNoMatchError(err) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := o.manager.GetFieldIndexer().IndexField(ctx, partial(kind), indexOwner, ownerOf); err != nil {
		return err
	}
	if err := o.watch(kind); err != nil {
		return err
	}
	o.mu.Lock()
	if o.found == nil {
		o.found = map[schema.GroupVersionKind]bool{}
	}
	o.found[kind] = true
	o.mu.Unlock()
	o.logger.InfoContext(ctx, "the cluster has another kind", "kind", kind.Kind)
	if !looked {
		return nil // each Property waits for this, and is looked at again soon
	}
	return o.redis.changed.tellAll(ctx, o.manager.GetClient())
}
