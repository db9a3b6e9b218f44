package controllers_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/collector/platforms"
	"github.com/weir-dev/weir/collector/redisserver/redistest"
	"github.com/weir-dev/weir/controllers"
)

// life is one Property from its creation through a change to its deletion. Each part is begun by an operator that
// dies and finished by its successor, which begins the next part.
type life struct {
	*byHand
	t     testing.TB
	name  string
	admin *redis.Client
	proxy *redisProxy

	operator *mortal
	stop     func()
}

// succeed puts in an operator that has just started.
func (l *life) succeed() {
	f := newFuse(forever)
	l.proxy.fuse.Store(f)
	l.operator, l.stop = l.start(f, controllers.Options{
		RedisURL: l.proxy.url, Exposure: controllers.ExposureRules{AllowedHosts: map[string][]string{l.namespace: {"*.crash.example.com"}}},
	}, &events.FakeRecorder{})
}

// part reconciles with the operator, which dies after some calls, then with its successor. It returns how many calls
// the first one made, and whether it died.
func (l *life) part(calls int64, over func() bool) (made int64, died bool) {
	l.t.Helper()
	before := l.operator.fuse.calls.Load()
	l.operator.fuse.left.Store(calls)
	l.live(l.t, l.operator, l.name, over)
	made, died = l.operator.fuse.calls.Load()-before, l.operator.fuse.dead()
	if !died {
		l.operator.fuse.left.Store(forever)
		return made, died
	}
	l.stop()
	secrets := l.secrets()
	l.succeed()
	if !over() {
		l.live(l.t, l.operator, l.name, over)
	}
	if !over() {
		l.keptAll(secrets)
	}
	return made, died
}

// secrets are the values that are made once, as they are now.
func (l *life) secrets() map[string]string {
	l.t.Helper()
	values := map[string]string{}
	for _, suffix := range []string{"credentials", "erasures", "redis-collector", "redis-deliverer", "redis-query"} {
		secret := &corev1.Secret{}
		err := server.client.Get(context.Background(), client.ObjectKey{Namespace: l.namespace, Name: l.name + "-" + suffix}, secret)
		if client.IgnoreNotFound(err) != nil {
			l.t.Fatal(err)
		}
		for key, value := range secret.Data {
			values[suffix+"/"+key] = string(value)
		}
	}
	return values
}

// keptAll checks that an operator has left keys, tokens and passwords as its predecessor made them.
func (l *life) keptAll(before map[string]string) {
	l.t.Helper()
	now := l.secrets()
	for key, value := range before {
		if got, there := now[key]; there && got != value {
			l.t.Errorf("%s: the successor has made another %s", l.name, key)
		}
	}
}

// state is what there is of the Property: its objects, its conditions, who may use Redis.
func (l *life) state() []string {
	l.t.Helper()
	ctx := context.Background()
	p := get(l.t, &v1alpha1.Property{}, l.namespace, l.name)
	lines := []string{fmt.Sprint("finalizers: ", p.Finalizers), fmt.Sprint("observed: ", p.Status.ObservedGeneration == p.Generation)}
	for _, c := range p.Status.Conditions {
		lines = append(lines, fmt.Sprint(c.Type, ": ", c.Status, " ", c.Reason))
	}
	lines = append(lines, names(owned(l.t, p))...)
	for _, user := range l.users() {
		lines = append(lines, "Redis user "+strings.TrimPrefix(user, "weir:"+l.namespace+"/"))
	}
	for _, role := range []string{"collector", "deliverer", "query"} {
		pods := asRole(l.t, l.namespace, l.name, role)
		for key, may := range map[string]string{l.events(): "may use its keys", "weir:{other}:events": "may not use another's"} {
			err := pods.Do(ctx, ofRole(role, key)...).Err()
			if denied := err != nil && strings.Contains(err.Error(), "NOPERM"); denied == strings.Contains(may, "not") {
				lines = append(lines, role+" "+may)
			} else {
				lines = append(lines, fmt.Sprint(role, " ", key, ": ", err))
			}
		}
	}
	for i := range lines {
		lines[i] = strings.ReplaceAll(lines[i], l.name, "shop")
	}
	slices.Sort(lines)
	return lines
}

// ofRole is a command on a key that a role may use on its own. What Redis says of the other arguments does not matter.
func ofRole(role, key string) []any {
	if role == "collector" {
		return []any{"fcall", "weir_allow", 1, key, "x"}
	}
	return []any{"xrange", key, "-", "+"}
}

// users are the Property's users in Redis.
func (l *life) users() []string {
	l.t.Helper()
	all, err := l.admin.Do(context.Background(), "acl", "users").StringSlice()
	if err != nil {
		l.t.Fatal(err)
	}
	slices.Sort(all)
	return slices.DeleteFunc(all, func(user string) bool { return !strings.HasPrefix(user, "weir:"+l.namespace+"/"+l.name+":") })
}

func (l *life) events() string { return "weir:{" + l.namespace + "/" + l.name + "}:events" }

// gone says whether the Property is.
func (l *life) gone() bool {
	return apierrors.IsNotFound(server.client.Get(context.Background(), client.ObjectKey{Namespace: l.namespace, Name: l.name}, &v1alpha1.Property{}))
}

// leftovers are what of a deleted Property is still there but for what its policy keeps.
func (l *life) leftovers(p *v1alpha1.Property) []string {
	l.t.Helper()
	ctx := context.Background()
	left := append(names(owned(l.t, p)), l.users()...)
	for _, key := range l.admin.Keys(ctx, "weir:{"+l.namespace+"/"+l.name+"}:*").Val() {
		if p.Spec.DeletionPolicy == v1alpha1.DeletionPolicyDelete || l.admin.PTTL(ctx, key).Val() < 0 {
			left = append(left, key)
		}
	}
	if p.Spec.DeletionPolicy == v1alpha1.DeletionPolicyRetain && l.admin.XLen(ctx, l.events()).Val() != 1 {
		left = append(left, "no events, though they are retained")
	}
	return left
}

// dying is after how many calls the operators of a life die.
type dying struct{ created, changed, deleted int64 }

// run leads the life and returns how many calls each of the operators made that could die, and how many died.
func (l *life) run(after dying, policy v1alpha1.DeletionPolicy) (made dying, died int) {
	l.t.Helper()
	l.succeed()
	defer func() { l.stop() }()
	never := func() bool { return false }
	note := func(calls int64, dead bool) int64 {
		if dead {
			died++
		}
		return calls
	}
	create(l.t, property(l.namespace, l.name, func(p *v1alpha1.Property) {
		p.Spec.DeletionPolicy = policy
		p.Spec.Collector.Autoscaling = &v1alpha1.Autoscaling{MinReplicas: 2, MaxReplicas: 4}
		p.Spec.Platforms = []v1alpha1.Platform{{Name: "console", Type: platforms.TypeLog}}
		p.Spec.Exposure = v1alpha1.Exposure{Type: v1alpha1.ExposureIngress, CollectHost: l.name + ".crash.example.com"}
	}))
	made.created = note(l.part(after.created, never))
	l.compare(created())

	// An autoscaler and an Ingress fewer, a key and a PodDisruptionBudget more.
	change(l.t, &v1alpha1.Property{}, l.namespace, l.name, func(p *v1alpha1.Property) {
		p.Spec.Collector = v1alpha1.Collector{Replicas: new(int32(1))}
		p.Spec.Query.Replicas = new(int32(2))
		p.Spec.Exposure = v1alpha1.Exposure{Type: v1alpha1.ExposureNone}
		p.Spec.APIKeys = append(p.Spec.APIKeys, v1alpha1.PropertyAPIKey{Name: "next"})
		p.Spec.Platforms = nil
	})
	made.changed = note(l.part(after.changed, never))
	l.compare(changed())

	ctx := context.Background()
	if err := l.admin.XAdd(ctx, &redis.XAddArgs{Stream: l.events(), Values: []string{"e", "x"}}).Err(); err != nil {
		l.t.Fatal(err)
	}
	p := get(l.t, &v1alpha1.Property{}, l.namespace, l.name)
	if err := server.client.Delete(ctx, p); err != nil {
		l.t.Fatal(err)
	}
	made.deleted = note(l.part(after.deleted, l.gone))
	if left := l.leftovers(p); !l.gone() || len(left) > 0 {
		l.t.Errorf("%s: of the deleted Property there is still: %v", l.name, left)
	}
	return made, died
}

// compare checks what an operator, or its successor, has come to.
func (l *life) compare(want []string) {
	l.t.Helper()
	slices.Sort(want)
	if diff := cmp.Diff(want, l.state()); diff != "" {
		l.t.Errorf("%s: the operator has not come to what it should (-want +got):\n%s", l.name, diff)
	}
}

// created is what a Property with an autoscaler, an Ingress and a platform comes to.
func created() []string {
	return append(common("Exposed: True Ready"),
		"HorizontalPodAutoscaler shop-collector", "Ingress shop-collector", "PodDisruptionBudget shop-collector")
}

// changed is what it comes to without them, and with two queriers.
func changed() []string {
	return append(common("Exposed: True NotExposed"), "PodDisruptionBudget shop-query")
}

// common is what it comes to in either case, and what else is said.
func common(more string) []string {
	lines := []string{
		more,
		"finalizers: [weir.dev/redis]", "observed: true", "CredentialsReady: True Ready", "RedisReady: True Ready",
		"WorkloadsAvailable: False Progressing", "PlatformsReady: True Ready", "VersionsSupported: True Ready", "SourcesReady: True Ready", "ErasuresReady: True Ready", "Ready: False Progressing",
		"ConfigMap shop-config", "PodMonitor shop-pods", "Secret shop-access-tokens", "Secret shop-api-keys", "Secret shop-credentials", "Secret shop-erasures", "Secret shop-sessions",
		"Service shop-collector", "Service shop-query",
	}
	for _, role := range []string{"collector", "deliverer", "query"} {
		lines = append(lines, "Deployment shop-"+role, "NetworkPolicy shop-"+role, "ServiceAccount shop-"+role, "Secret shop-redis-"+role,
			"Redis user shop:"+role, role+" may use its keys", role+" may not use another's")
	}
	return lines
}

// TestAnOperatorKilledAfterAnyOfItsCallsConverges kills an operator after its first call to the API server or Redis,
// another after the second, and so on for every call that the creation, a change and the deletion of a Property take,
// whether it reads or writes. Its successor must come to what an operator comes to that nobody kills.
func TestAnOperatorKilledAfterAnyOfItsCallsConverges(t *testing.T) {
	hand, address := newByHand(t), redistest.URL(t)
	admin := dial(t, address)
	begin := func(t testing.TB, name string) *life {
		return &life{byHand: hand, t: t, name: name, admin: admin, proxy: newRedisProxy(t, address)}
	}
	undisturbed := dying{forever, forever, forever}
	calls, _ := begin(t, "undisturbed").run(undisturbed, v1alpha1.DeletionPolicyDelete)
	kept, _ := begin(t, "retained").run(undisturbed, v1alpha1.DeletionPolicyRetain)
	t.Logf("calls of an operator that nobody kills: %+v, and %d to delete what is retained", calls, kept.deleted)
	if t.Failed() || calls.created < 38 || calls.changed < 10 || calls.deleted < 23 || kept.deleted < 23 {
		t.Fatal("what one comes to that nobody kills is not as it should be, or the test no longer sees its calls")
	}

	// One life for each call of the creation; a change and a deletion take fewer, so that they come round.
	lives := max(calls.created, calls.changed, calls.deleted+kept.deleted)
	const workers = 6
	var killed atomic.Int64
	var all sync.WaitGroup
	for worker := range int64(workers) {
		all.Go(func() {
			for n := worker + 1; n <= lives; n += workers {
				after := dying{(n-1)%calls.created + 1, (n-1)%calls.changed + 1, (n-1)%calls.deleted + 1}
				policy := v1alpha1.DeletionPolicyDelete
				if n > calls.deleted {
					after.deleted, policy = (n-calls.deleted-1)%kept.deleted+1, v1alpha1.DeletionPolicyRetain
				}
				_, died := begin(t, fmt.Sprint("killed-", n)).run(after, policy)
				killed.Add(int64(died))
			}
		})
	}
	all.Wait()
	// How many calls are made varies with what falls together, so the last few may never come.
	if got := killed.Load(); got < 3*lives*9/10 {
		t.Errorf("%d operators were killed in %d lives, want nearly 3 in each", got, lives)
	}
}

// cutOff is a cluster that answers no more once the operator ends.
type cutOff struct{ client.Client }

func (cutOff) Get(ctx context.Context, _ client.ObjectKey, _ client.Object, _ ...client.GetOption) error {
	return ctx.Err()
}

// TestAnOperatorThatEndsComplainsOfNothing is in the middle of a Property's.
func TestAnOperatorThatEndsComplainsOfNothing(t *testing.T) {
	t.Parallel()
	ctx, end := context.WithCancel(t.Context())
	end()
	got, err := (&controllers.Reconciler{Client: cutOff{}}).Reconcile(ctx, ctrl.Request{})
	if err != nil || !got.IsZero() {
		t.Errorf("it returns %+v, %v, want nothing", got, err)
	}
}
