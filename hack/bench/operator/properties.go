package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/collector/platforms"
	"github.com/weir-dev/weir/controllers/resources"
)

// writers is how many requests this program has under way at a time.
const writers = 8

// side runs do for each of n things, several at a time, and returns the first error.
func side(ctx context.Context, n int, do func(ctx context.Context, i int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	next := make(chan int)
	var all sync.WaitGroup
	for range writers {
		all.Go(func() {
			for i := range next {
				if err := do(ctx, i); err != nil {
					cancel(err)
					return
				}
			}
		})
	}
	for i := range n {
		select {
		case next <- i:
		case <-ctx.Done():
		}
	}
	close(next)
	all.Wait()
	return context.Cause(ctx)
}

func (b *bench) key(i int) types.NamespacedName {
	return types.NamespacedName{Namespace: fmt.Sprintf("bench-%d", i%b.namespaces), Name: fmt.Sprintf("shop-%d", i)}
}

// property is like what people have: two platforms, a host of its own, else the defaults.
func (b *bench) property(i int) *v1alpha1.Property {
	key := b.key(i)
	p := &v1alpha1.Property{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
	p.Spec.Currency = "EUR"
	p.Spec.Platforms = []v1alpha1.Platform{
		{Name: "console", Type: platforms.TypeLog},
		{Name: "crm", Type: platforms.TypeWebhook, Settings: platforms.Settings{Webhook: &platforms.Webhook{URL: "https://crm.example.com/hook"}},
			CredentialsSecretRef: &v1alpha1.SecretReference{Name: "crm"}},
	}
	p.Spec.Exposure = v1alpha1.Exposure{
		Type: v1alpha1.ExposureIngress, CollectHost: key.Name + ".collect.example.com", APIHost: "api.example.com",
	}
	return p
}

// createAll makes the namespaces, and in each the Secret that its Properties refer to, and then the Properties. It
// returns when each has been created.
func (b *bench) createAll(ctx context.Context) ([]time.Time, error) {
	err := side(ctx, b.namespaces, func(ctx context.Context, i int) error {
		name := b.key(i).Namespace
		if err := b.cluster.client.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
			return err
		}
		return b.cluster.client.Create(ctx, &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: "crm"}, StringData: map[string]string{"signingSecret": "whsec_bench"}})
	})
	if err != nil {
		return nil, err
	}
	created := make([]time.Time, b.properties)
	return created, side(ctx, b.properties, func(ctx context.Context, i int) error {
		created[i] = time.Now()
		return b.cluster.client.Create(ctx, b.property(i))
	})
}

// applied says whether the operator has applied everything that the Property asks for: the status is written last.
func applied(p *v1alpha1.Property) bool {
	return p.Status.ObservedGeneration == p.Generation && meta.IsStatusConditionTrue(p.Status.Conditions, v1alpha1.ConditionRedisReady)
}

// awaitAll waits until every Property is as wanted and returns when each was seen to be.
func (b *bench) awaitAll(ctx context.Context, wanted func(*v1alpha1.Property) bool) ([]time.Time, error) {
	ctx, cancel := context.WithTimeout(ctx, 15*time.Minute)
	defer cancel()
	index := make(map[types.NamespacedName]int, b.properties)
	for i := range b.properties {
		index[b.key(i)] = i
	}
	seen, left := make([]time.Time, b.properties), b.properties
	for left > 0 {
		// A watch begins with everything that is there. The server ends one that does not keep up.
		watching, err := b.cluster.client.Watch(ctx, &v1alpha1.PropertyList{})
		if err != nil {
			return nil, fmt.Errorf("%d Properties are not as wanted yet: %w", left, err)
		}
		for event := range watching.ResultChan() {
			p, isProperty := event.Object.(*v1alpha1.Property)
			if !isProperty || !wanted(p) {
				continue
			}
			if i := index[types.NamespacedName{Namespace: p.Namespace, Name: p.Name}]; seen[i].IsZero() {
				seen[i] = time.Now()
				left--
			}
			if left == 0 {
				break
			}
		}
		watching.Stop()
	}
	return seen, nil
}

// rollOut reports of every Deployment that its pods run, as the deployment controller would.
func (b *bench) rollOut(ctx context.Context) error {
	roles := resources.RolesOf(&v1alpha1.Property{})
	return side(ctx, b.properties*len(roles), func(ctx context.Context, i int) error {
		key := b.key(i / len(roles))
		key.Name += "-" + string(roles[i%len(roles)])
		return b.report(ctx, key)
	})
}

func (b *bench) report(ctx context.Context, key types.NamespacedName) error {
	deployment := &appsv1.Deployment{}
	if err := b.cluster.client.Get(ctx, key, deployment); err != nil {
		return err
	}
	n := *deployment.Spec.Replicas
	deployment.Status = appsv1.DeploymentStatus{
		ObservedGeneration: deployment.Generation, Replicas: n, UpdatedReplicas: n, ReadyReplicas: n, AvailableReplicas: n,
	}
	return b.cluster.client.Status().Update(ctx, deployment)
}

// versions returns the versions of everything that the operator has made, and how many objects of each kind.
func (b *bench) versions(ctx context.Context) (versions map[string]string, kinds map[string]int, err error) {
	versions, kinds = map[string]string{}, map[string]int{}
	for _, kind := range append(resources.Kinds(), v1alpha1.GroupVersion.WithKind(v1alpha1.Kind)) {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		options := []client.ListOption{client.MatchingLabels{resources.LabelManagedBy: resources.ManagedBy}}
		if kind.Kind == v1alpha1.Kind {
			options = nil
		}
		if err := b.cluster.client.List(ctx, list, options...); err != nil {
			return nil, nil, err
		}
		for i := range list.Items {
			versions[kind.Kind+" "+list.Items[i].Namespace+"/"+list.Items[i].Name] = list.Items[i].ResourceVersion
		}
		kinds[kind.Kind] = len(list.Items)
	}
	return versions, kinds, nil
}

// aChange edits a Property; what changes by it is an object of a kind with that suffix to its name.
type aChange struct {
	name   string
	list   client.ObjectList
	suffix string
	edit   func(*v1alpha1.Property)
}

func changes() []aChange {
	return []aChange{
		{"an alias: the ConfigMap", &corev1.ConfigMapList{}, "-config", func(p *v1alpha1.Property) {
			p.Spec.EventAliases = map[string]v1alpha1.EventName{fmt.Sprintf("view_%d", rand.Uint32()): "pageview"}
		}},
		{"a new API key: the Secret of hashes", &corev1.SecretList{}, "-api-keys", func(p *v1alpha1.Property) {
			p.Spec.APIKeys = append(p.Spec.APIKeys, v1alpha1.PropertyAPIKey{Name: fmt.Sprintf("key-%d", len(p.Spec.APIKeys))})
		}},
		{"a node selector: the query's Deployment", &appsv1.DeploymentList{}, "-query", func(p *v1alpha1.Property) {
			p.Spec.Query.NodeSelector = map[string]string{"pool": fmt.Sprint(rand.Uint32())}
		}},
	}
}

// latencies changes Properties one after the other and returns how long each took from before the change was sent
// until the object that it concerns was seen to have changed, sorted.
func (b *bench) latencies(ctx context.Context, change aChange) ([]time.Duration, error) {
	var took []time.Duration
	for range b.changes {
		key := b.key(rand.IntN(b.properties))
		d, err := b.changeOne(ctx, key, change)
		if err != nil {
			return nil, fmt.Errorf("change %s: %w", key, err)
		}
		took = append(took, d)
	}
	slices.Sort(took)
	return took, nil
}

func (b *bench) changeOne(ctx context.Context, key types.NamespacedName, change aChange) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	p := &v1alpha1.Property{}
	if err := b.cluster.client.Get(ctx, key, p); err != nil {
		return 0, err
	}
	object := types.NamespacedName{Namespace: key.Namespace, Name: key.Name + change.suffix}
	if err := b.cluster.client.List(ctx, change.list, client.InNamespace(key.Namespace), client.MatchingFields{"metadata.name": object.Name}); err != nil {
		return 0, err
	}
	watching, err := b.cluster.client.Watch(ctx, change.list, client.InNamespace(key.Namespace), client.MatchingFields{"metadata.name": object.Name},
		&client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: change.list.GetResourceVersion()}})
	if err != nil {
		return 0, err
	}
	defer watching.Stop()
	before := p.DeepCopy()
	change.edit(p)
	start := time.Now()
	if err := b.cluster.client.Patch(ctx, p, client.MergeFrom(before)); err != nil {
		return 0, err
	}
	select {
	case <-watching.ResultChan():
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	took := time.Since(start)
	if _, isDeployment := change.list.(*appsv1.DeploymentList); isDeployment {
		return took, b.report(ctx, object)
	}
	return took, nil
}
