package controllers_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/collector/redisserver"
	"github.com/weir-dev/weir/controllers"
	program "github.com/weir-dev/weir/controllers/operator"
)

// dedicatedRedis asks for a Redis that the operator makes.
func dedicatedRedis(p *v1alpha1.Property) {
	p.Spec.Redis = &v1alpha1.Redis{Dedicated: &v1alpha1.DedicatedRedis{Storage: resource.MustParse("8Gi"), Memory: resource.MustParse("64Mi")}}
}

// redisPod plays the kubelet to the pod of a Property's Redis: it runs the init container's command and then Redis, with the files that
// the StatefulSet mounts. Its directory is the volume.
type redisPod struct {
	dir, address string
	process      *exec.Cmd
}

// newRedisPod says where the pod will be reached; it does not run yet.
func newRedisPod(t testing.TB) *redisPod {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	p := &redisPod{dir: t.TempDir(), address: listener.Addr().String()}
	t.Cleanup(p.stop)
	return p
}

// at is what the operator reaches in place of the Service.
func (p *redisPod) at(_, _ string) string { return p.address }

// options are those of an operator that makes Redis, and reaches it here.
func (p *redisPod) options() controllers.Options {
	return controllers.Options{RedisImage: "redis:test", RedisAddress: p.at}
}

// stop ends Redis as the end of its pod does.
func (p *redisPod) stop() {
	if p.process != nil {
		_ = p.process.Process.Kill()
		_ = p.process.Wait() // it was killed
		p.process = nil
	}
}

// files mounts a volume's files into the directory.
func (p *redisPod) files(t testing.TB, data map[string][]byte, items []corev1.KeyToPath) {
	t.Helper()
	for _, item := range items {
		if err := os.WriteFile(filepath.Join(p.dir, item.Path), data[item.Key], 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// takenIn plays the controller of StatefulSets: it says that one is observed as it is now.
func takenIn(t testing.TB, namespace, name string) {
	t.Helper()
	eventually(t, func() error {
		set := &appsv1.StatefulSet{}
		if err := server.client.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, set); err != nil {
			return client.IgnoreNotFound(err)
		}
		set.Status.ObservedGeneration = set.Generation
		return server.client.Status().Update(t.Context(), set)
	})
}

// start starts the pod as the StatefulSet has it, which has been taken in.
func (p *redisPod) start(t testing.TB, namespace, property string) {
	t.Helper()
	defer takenIn(t, namespace, property+"-redis")
	set := &appsv1.StatefulSet{}
	eventually(t, func() error {
		return server.client.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: property + "-redis"}, set)
	})
	pod := set.Spec.Template.Spec
	for _, volume := range pod.Volumes {
		switch {
		case volume.Secret != nil:
			p.files(t, get(t, &corev1.Secret{}, namespace, volume.Secret.SecretName).Data, volume.Secret.Items)
		case volume.ConfigMap != nil:
			text := get(t, &corev1.ConfigMap{}, namespace, volume.ConfigMap.Name).Data["redis.conf"]
			_, port, _ := net.SplitHostPort(p.address)
			text = strings.NewReplacer("/data", p.dir, "/etc/weir/redis-tls", p.dir, "tls-port 6379", "tls-port "+port, "bind * -::*", "bind 127.0.0.1").Replace(text)
			p.files(t, map[string][]byte{"conf": []byte(text)}, []corev1.KeyToPath{{Key: "conf", Path: "redis.conf"}})
		}
	}
	var args []string
	for _, argument := range pod.InitContainers[0].Args {
		args = append(args, strings.NewReplacer("/data", p.dir, "/etc/weir/redis", p.dir).Replace(argument))
	}
	if code := program.Run(t.Context(), "test", args, io.Discard, t.Output()); code != 0 {
		t.Fatalf("%v ended with %d", args, code)
	}
	binary, err := redisserver.Find(t.Context(), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	p.process = exec.Command(binary.Path, filepath.Join(p.dir, "redis.conf"))
	p.process.Env = binary.Environment()
	p.process.Stdout, p.process.Stderr = t.Output(), t.Output()
	if err := p.process.Start(); err != nil {
		t.Fatal(err)
	}
}

// dial speaks to Redis as somebody whose URL a Secret has.
func (p *redisPod) dial(t testing.TB, namespace, secret, ca string) *redis.Client {
	t.Helper()
	options, err := redis.ParseURL(string(get(t, &corev1.Secret{}, namespace, secret).Data["url"]))
	if err != nil {
		t.Fatal(err)
	}
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM(get(t, &corev1.Secret{}, namespace, ca).Data["ca.crt"])
	options.TLSConfig = &tls.Config{RootCAs: trusted, MinVersion: tls.VersionTLS12, ServerName: "127.0.0.1"}
	options.Protocol = 2
	dialled := redis.NewClient(options)
	t.Cleanup(func() { _ = dialled.Close() })
	return dialled
}

// TestAPropertyGetsARedisOfItsOwn has the operator make one, runs it as its objects say, and deletes the Property.
func TestAPropertyGetsARedisOfItsOwn(t *testing.T) {
	t.Parallel()
	namespace, pod, ctx := newNamespace(t), newRedisPod(t), context.Background()
	ran := startOperator(t, operatorOptions{namespaces: []string{namespace}, Options: pod.options()})
	create(t, property(namespace, "shop", dedicatedRedis))
	p := waitFor(t, namespace, "shop", v1alpha1.ConditionRedisReady, metav1.ConditionFalse, v1alpha1.ReasonRedisUnreachable)
	eventually(t, func() error {
		get(t, p, namespace, "shop")
		want := "spec.redis.dedicated: redis cannot be reached: it refuses connections; its pod shop-redis-0 is not there yet; kubectl describe statefulset shop-redis says why"
		if got := message(p, v1alpha1.ConditionRedisReady); !strings.HasPrefix(got, want) {
			return fmt.Errorf("RedisReady says %q", got)
		}
		return nil
	})
	pod.start(t, namespace, "shop")
	p = settled(t, namespace, "shop")
	for _, role := range []string{"collector", "deliverer", "query"} {
		mine := pod.dial(t, namespace, "shop-redis-"+role, "shop-redis-"+role)
		if got := mine.Do(ctx, "acl", "whoami").Err(); got == nil || !strings.Contains(got.Error(), "NOPERM") {
			t.Errorf("the %s is answered %v, want a user of its own who may not ask", role, got)
		}
	}
	admin := pod.dial(t, namespace, "shop-redis-admin", "shop-redis-tls")
	if got := admin.ConfigGet(ctx, "maxmemory").Val()["maxmemory"]; got != "67108864" {
		t.Errorf("maxmemory is %s, want the spec's", got)
	}
	events := "weir:{" + namespace + "/shop}:events"
	if err := admin.XAdd(ctx, &redis.XAddArgs{Stream: events, Values: []string{"e", "x"}}).Err(); err != nil {
		t.Fatal(err)
	}
	if wrote := quiet(t, p); len(wrote) == 0 {
		t.Error("there are no objects")
	}
	before := ran.writes.Load()
	change(t, &v1alpha1.Property{}, namespace, "shop", func(p *v1alpha1.Property) { p.Spec.Redis.Dedicated.Memory = resource.MustParse("128Mi") })
	eventually(t, func() error {
		if got := get(t, &corev1.ConfigMap{}, namespace, "shop-redis").Data["redis.conf"]; !strings.Contains(got, "maxmemory 134217728\n") {
			return errors.New("the configuration has the memory of before")
		}
		return nil
	})
	for _, call := range ran.since(before) {
		if strings.HasPrefix(call, "delete") {
			t.Errorf("a change of memory makes the operator %s", call)
		}
	}
	change(t, &appsv1.StatefulSet{}, namespace, "shop-redis", func(*appsv1.StatefulSet) {})
	set := get(t, &appsv1.StatefulSet{}, namespace, "shop-redis")
	set.Status = appsv1.StatefulSetStatus{Replicas: 1, UpdatedReplicas: 0, ObservedGeneration: set.Generation}
	if err := server.client.Status().Update(ctx, set); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() error {
		get(t, p, namespace, "shop")
		if got := message(p, v1alpha1.ConditionRedisReady); !strings.Contains(got, "its pod shop-redis-0 is of before a change") {
			return fmt.Errorf("RedisReady says %q", got)
		}
		return nil
	})

	deleted(t, namespace, "shop")
	if ttl := admin.TTL(ctx, events).Val(); ttl < 61*24*time.Hour || ttl > 62*24*time.Hour {
		t.Errorf("the events that stay on the volume live for %v, want 62 days", ttl)
	}
	if err := server.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "shop-redis"}, &appsv1.StatefulSet{}); !apierrors.IsNotFound(err) {
		t.Errorf("the StatefulSet is still there: %v", err)
	}

	// Another Property of the name has the volume again, with a password and an authority of its own.
	pod.stop()
	create(t, property(namespace, "shop", dedicatedRedis))
	waitFor(t, namespace, "shop", v1alpha1.ConditionRedisReady, metav1.ConditionFalse, v1alpha1.ReasonRedisUnreachable)
	pod.start(t, namespace, "shop")
	settled(t, namespace, "shop")
	admin = pod.dial(t, namespace, "shop-redis-admin", "shop-redis-tls")
	if n, ttl := admin.XLen(ctx, events).Val(), admin.TTL(ctx, events).Val(); n != 1 || ttl != -1 {
		t.Errorf("it finds %d events that live for %v, want the one for good", n, ttl)
	}
}

// TestTheDeletionOfAPropertyWaitsForNoRedisOfItsOwn deletes Properties whose Redis has gone.
func TestTheDeletionOfAPropertyWaitsForNoRedisOfItsOwn(t *testing.T) {
	t.Parallel()
	for sentence, c := range map[string]struct {
		policy  v1alpha1.DeletionPolicy
		secrets bool
	}{
		"Retain":                     {policy: v1alpha1.DeletionPolicyRetain},
		"Delete":                     {policy: v1alpha1.DeletionPolicyDelete},
		"Retain, without its Secret": {policy: v1alpha1.DeletionPolicyRetain, secrets: true},
	} {
		t.Run(sentence, func(t *testing.T) {
			t.Parallel()
			namespace, pod := newNamespace(t), newRedisPod(t)
			options := pod.options()
			ran := startOperator(t, operatorOptions{namespaces: []string{namespace}, Options: options})
			create(t, property(namespace, "shop", dedicatedRedis, func(p *v1alpha1.Property) { p.Spec.DeletionPolicy = c.policy }))
			pod.start(t, namespace, "shop")
			settled(t, namespace, "shop")
			set := get(t, &appsv1.StatefulSet{}, namespace, "shop-redis")
			if got := set.Spec.PersistentVolumeClaimRetentionPolicy.WhenDeleted; got != appsv1.RetainPersistentVolumeClaimRetentionPolicyType {
				t.Errorf("the volume's policy is %s, want Retain while the Property lives: else whoever deletes the StatefulSet deletes all events", got)
			}
			pod.stop()
			if c.secrets {
				ran.stop()
				for _, name := range []string{"shop-redis-admin", "shop-redis-tls"} {
					if err := server.client.Delete(t.Context(), get(t, &corev1.Secret{}, namespace, name)); err != nil {
						t.Fatal(err)
					}
				}
				if err := server.client.Delete(t.Context(), get(t, &v1alpha1.Property{}, namespace, "shop")); err != nil {
					t.Fatal(err)
				}
				startOperator(t, operatorOptions{namespaces: []string{namespace}, Options: options})
				eventuallyWithin(t, 15*time.Second, func() error { return gone(namespace, "shop", &v1alpha1.Property{}) })
			} else {
				if err := server.client.Delete(t.Context(), get(t, &v1alpha1.Property{}, namespace, "shop")); err != nil {
					t.Fatal(err)
				}
				eventuallyWithin(t, 15*time.Second, func() error {
					takenIn(t, namespace, "shop-redis")
					return gone(namespace, "shop", &v1alpha1.Property{})
				})
			}
			if c.policy == v1alpha1.DeletionPolicyRetain {
				leftBehindSays(t, namespace, "what is on the volume of the claim data-shop-redis-0 has no last day")
			}
		})
	}
}

// TestARedisOfAPropertysOwnMountsNothingOfSomebodyElses puts others' objects under its names.
func TestARedisOfAPropertysOwnMountsNothingOfSomebodyElses(t *testing.T) {
	t.Parallel()
	meta := func(namespace, name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: namespace, Name: name}
	}
	for sentence, c := range map[string]struct {
		object func(namespace string) client.Object
		says   string
	}{
		"the administrator's Secret": {func(n string) client.Object { return &corev1.Secret{ObjectMeta: meta(n, "shop-redis-admin")} }, "Secret shop-redis-admin exists and is not this Property's"},
		"the certificates":           {func(n string) client.Object { return &corev1.Secret{ObjectMeta: meta(n, "shop-redis-tls")} }, "Secret shop-redis-tls exists and is not this Property's"},
		"the configuration":          {func(n string) client.Object { return &corev1.ConfigMap{ObjectMeta: meta(n, "shop-redis")} }, "ConfigMap shop-redis: not this Property's"},
	} {
		t.Run(sentence, func(t *testing.T) {
			t.Parallel()
			namespace, pod := newNamespace(t), newRedisPod(t)
			foreign := c.object(namespace)
			create(t, foreign)
			startOperator(t, operatorOptions{namespaces: []string{namespace}, Options: pod.options()})
			create(t, property(namespace, "shop", dedicatedRedis))
			p := waitFor(t, namespace, "shop", v1alpha1.ConditionRedisReady, metav1.ConditionFalse, v1alpha1.ReasonObjectConflict)
			if got := message(p, v1alpha1.ConditionRedisReady); !strings.Contains(got, c.says) {
				t.Errorf("RedisReady says %q, want %q in it", got, c.says)
			}
			if err := gone(namespace, "shop-redis", &appsv1.StatefulSet{}); err != nil {
				t.Error(err)
			}
			if err := server.client.Delete(t.Context(), foreign); err != nil {
				t.Fatal(err)
			}
			pod.start(t, namespace, "shop")
			settled(t, namespace, "shop")
		})
	}
}

func TestARedisOfAPropertysOwnIsNotOfferedByEveryOperator(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	startOperator(t, operatorOptions{namespaces: []string{namespace}})
	create(t, property(namespace, "shop", dedicatedRedis))
	p := waitFor(t, namespace, "shop", v1alpha1.ConditionRedisReady, metav1.ConditionFalse, v1alpha1.ReasonRedisNotOffered)
	if got := message(p, v1alpha1.ConditionRedisReady); !strings.Contains(got, "start it with --redis-image") {
		t.Errorf("RedisReady says %q", got)
	}
	deleted(t, namespace, "shop")
	for _, object := range []client.Object{&appsv1.StatefulSet{}, &corev1.ConfigMap{}, &networkingv1.NetworkPolicy{}} {
		if err := gone(namespace, "shop-redis", object); err != nil {
			t.Error(err)
		}
	}
}

// TestARedisOfAPropertysOwnIsLookedAfterByAnOperatorThatMakesNone starts an operator without the image after one with it.
func TestARedisOfAPropertysOwnIsLookedAfterByAnOperatorThatMakesNone(t *testing.T) {
	t.Parallel()
	namespace, pod := newNamespace(t), newRedisPod(t)
	ran := startOperator(t, operatorOptions{namespaces: []string{namespace}, Options: pod.options()})
	create(t, property(namespace, "shop", dedicatedRedis))
	pod.start(t, namespace, "shop")
	settled(t, namespace, "shop")
	ran.stop()
	admin, user := pod.dial(t, namespace, "shop-redis-admin", "shop-redis-tls"), "weir:"+namespace+"/shop:query"
	if n, err := admin.Do(t.Context(), "acl", "deluser", user).Int(); n != 1 || err != nil {
		t.Fatalf("%d users are removed, error %v", n, err)
	}
	change(t, &v1alpha1.Property{}, namespace, "shop", func(p *v1alpha1.Property) { p.Spec.Redis.Dedicated.Memory = resource.MustParse("128Mi") })
	startOperator(t, operatorOptions{namespaces: []string{namespace}, Options: controllers.Options{RedisAddress: pod.at}})
	p := waitFor(t, namespace, "shop", v1alpha1.ConditionRedisReady, metav1.ConditionTrue, v1alpha1.ReasonRedisNotOffered)
	if got := message(p, v1alpha1.ConditionRedisReady); !strings.Contains(got, "the StatefulSet shop-redis stays as it is") {
		t.Errorf("RedisReady says %q", got)
	}
	if users := admin.ACLList(t.Context()).Val(); !strings.Contains(strings.Join(users, "\n"), user) {
		t.Errorf("%s is not put back among %d users", user, len(users))
	}
	set := get(t, &appsv1.StatefulSet{}, namespace, "shop-redis").Spec.Template.Spec.Containers[0]
	if got := set.Resources.Requests.Memory().String(); set.Image != "redis:test" || got != "64Mi" {
		t.Errorf("the StatefulSet runs %q in %s, want it as it was", set.Image, got)
	}
}

// TestWhyARedisOfAPropertysOwnDoesNotRun plays pods that do not start.
func TestWhyARedisOfAPropertysOwnDoesNotRun(t *testing.T) {
	waiting := func(reason string) corev1.PodStatus {
		return corev1.PodStatus{Phase: corev1.PodPending, InitContainerStatuses: []corev1.ContainerStatus{
			{Name: "acl-file", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: "s3cret"}}},
		}}
	}
	for sentence, c := range map[string]struct {
		status corev1.PodStatus
		want   string
	}{
		"no node has room": {corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{{
			Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Message: "0/1 nodes are available: pod has unbound immediate PersistentVolumeClaims.",
		}}}, "cannot be scheduled: 0/1 nodes are available: pod has unbound immediate PersistentVolumeClaims."},
		"its image is not to be had": {waiting("ImagePullBackOff"), "waits with ImagePullBackOff in its container acl-file"},
		"it is being started":        {waiting("PodInitializing"), "is being started; kubectl describe pod shop-redis-0 says what it waits for"},
		"it runs":                    {corev1.PodStatus{Phase: corev1.PodRunning}, "runs and does not answer: it loads its data, or a NetworkPolicy keeps the operator from it"},
	} {
		t.Run(sentence, func(t *testing.T) {
			if got := controllers.StateOfPod(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "shop-redis-0"}, Status: c.status}); got != c.want {
				t.Errorf("its pod %s; want: %s", got, c.want)
			}
		})
	}
}

// TestTheOperatorGoesToPrivateAddressesForARedisItMade and to none that belongs to its own machine.
func TestTheOperatorGoesToPrivateAddressesForARedisItMade(t *testing.T) {
	guard := controllers.InsideGuard()
	for address, want := range map[string]bool{
		"10.96.0.1": true, "100.64.0.7": true, "172.16.3.4": true, "192.168.1.1": true, "fd12::1": true, "203.0.113.1": false,
		"127.0.0.1": false, "::1": false, "169.254.169.254": false, "100.100.100.200": false, "fd00:ec2::254": false, "fe80::1": false,
	} {
		if got := guard.Permits(netip.MustParseAddr(address)); got != want {
			t.Errorf("%s is permitted: %v, want %v", address, got, want)
		}
	}
}

// TestTheSecretSaysNothingOfWhereTheOperatorConnects writes another URL into the administrator's Secret.
func TestTheSecretSaysNothingOfWhereTheOperatorConnects(t *testing.T) {
	t.Parallel()
	namespace, pod := newNamespace(t), newRedisPod(t)
	startOperator(t, operatorOptions{namespaces: []string{namespace}, Options: pod.options()})
	create(t, property(namespace, "shop", dedicatedRedis))
	pod.start(t, namespace, "shop")
	settled(t, namespace, "shop")
	var asked atomic.Int64
	elsewhere := nonsense(t, func(net.Conn, <-chan struct{}) { asked.Add(1) })
	own := bytes.Clone(get(t, &corev1.Secret{}, namespace, "shop-redis-admin").Data["url"])
	change(t, &corev1.Secret{}, namespace, "shop-redis-admin", func(s *corev1.Secret) { s.Data["url"] = []byte("rediss://weir:x@" + elsewhere) })
	eventually(t, func() error {
		if got := get(t, &corev1.Secret{}, namespace, "shop-redis-admin").Data["url"]; !bytes.Equal(got, own) {
			return errors.New("the URL is still the other one")
		}
		return nil
	})
	settled(t, namespace, "shop")
	if n := asked.Load(); n != 0 {
		t.Errorf("the operator has connected there %d times", n)
	}
}

// movingClock is a clock that a test turns.
type movingClock struct {
	mu    sync.Mutex
	ahead time.Duration
}

func (c *movingClock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Now().Add(c.ahead)
}

// TestTheCertificatesOfARedisOfAPropertysOwnAreRenewed turns the clock until they are due, and has Redis read the new ones.
func TestTheCertificatesOfARedisOfAPropertysOwnAreRenewed(t *testing.T) {
	t.Parallel()
	namespace, pod, clock := newNamespace(t), newRedisPod(t), &movingClock{}
	options := pod.options()
	options.Now = clock.now
	startOperator(t, operatorOptions{namespaces: []string{namespace}, Options: options})
	create(t, property(namespace, "shop", dedicatedRedis))
	pod.start(t, namespace, "shop")
	settled(t, namespace, "shop")
	before := get(t, &corev1.Secret{}, namespace, "shop-redis-tls").Data
	clock.mu.Lock()
	clock.ahead = 61 * 24 * time.Hour
	clock.mu.Unlock()
	change(t, &v1alpha1.Property{}, namespace, "shop", func(p *v1alpha1.Property) { p.Spec.Retention.Days = 30 })
	var after map[string][]byte
	eventually(t, func() error {
		if after = get(t, &corev1.Secret{}, namespace, "shop-redis-tls").Data; bytes.Equal(after["tls.crt"], before["tls.crt"]) {
			return errors.New("the certificate is the one before")
		}
		return nil
	})
	if !bytes.Equal(after["ca.crt"], before["ca.crt"]) {
		t.Error("the authority was made anew although it lasts")
	}
	pod.files(t, after, []corev1.KeyToPath{{Key: "tls.crt", Path: "tls.crt"}, {Key: "tls.key", Path: "tls.key"}, {Key: "ca.crt", Path: "ca.crt"}})
	clock.mu.Lock()
	clock.ahead += 2 * time.Hour
	clock.mu.Unlock()
	eventually(t, func() error {
		trusted := x509.NewCertPool()
		trusted.AppendCertsFromPEM(after["ca.crt"])
		connection, err := (&tls.Dialer{Config: &tls.Config{RootCAs: trusted, MinVersion: tls.VersionTLS12, Time: clock.now}}).DialContext(t.Context(), "tcp", pod.address)
		if err != nil {
			return err
		}
		defer connection.Close()
		shown := connection.(*tls.Conn).ConnectionState().PeerCertificates[0]
		pair, err := tls.X509KeyPair(after["tls.crt"], after["tls.key"])
		if err == nil && !shown.Equal(pair.Leaf) {
			err = errors.New("Redis shows another certificate")
		}
		return err
	})
}
