package controllers_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/collector/redisserver"
	"github.com/weir-dev/weir/collector/redisserver/redistest"
	"github.com/weir-dev/weir/controllers"
)

// errStillThere says that a read found what should be gone.
var errStillThere = errors.New("it was read")

func deleted(t testing.TB, namespace, name string) {
	t.Helper()
	if err := server.client.Delete(context.Background(), property(namespace, name)); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() error {
		err := server.client.Get(context.Background(), client.ObjectKey{Namespace: namespace, Name: name}, &v1alpha1.Property{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("the Property is still there (%w)", errors.Join(err, errStillThere))
	})
}

func TestDeletionByItsPolicy(t *testing.T) {
	address := tenantsRedis(t)
	admin, ctx := dial(t, address), context.Background()
	usersLeft := func(namespace string) int {
		users, err := admin.ACLList(ctx).Result()
		if err != nil {
			t.Fatal(err)
		}
		return strings.Count(strings.Join(users, "\n"), "weir:"+namespace+"/")
	}
	fill := func(stream string) {
		if err := admin.XAdd(ctx, &redis.XAddArgs{Stream: stream, Values: []string{"e", "x"}}).Err(); err != nil {
			t.Fatal(err)
		}
	}

	t.Run("Retain keeps the data until its retention, and a Property of the same name finds it again", func(t *testing.T) {
		namespace := newNamespace(t)
		startOperator(t, operatorOptions{namespaces: []string{namespace}, Options: controllers.Options{RedisURL: address}})
		create(t, property(namespace, "shop", func(p *v1alpha1.Property) { p.Spec.Retention.Days = 7 }))
		settled(t, namespace, "shop")
		stream := "weir:{" + namespace + "/shop}:events"
		fill(stream)
		deleted(t, namespace, "shop")
		if n := usersLeft(namespace); n != 0 {
			t.Errorf("%d users are left in Redis", n)
		}
		if ttl := admin.TTL(ctx, stream).Val(); ttl < 167*time.Hour || ttl > 168*time.Hour {
			t.Errorf("the stream lives for %v, want 168h", ttl)
		}

		create(t, property(namespace, "shop"))
		settled(t, namespace, "shop")
		if ttl := admin.TTL(ctx, stream).Val(); ttl != -1 {
			t.Errorf("a Property of the same name has data that goes in %v", ttl)
		}
		if n := admin.XLen(ctx, stream).Val(); n != 1 {
			t.Errorf("it finds %d events, want 1", n)
		}
	})
	t.Run("Delete removes the data, and nobody else's", func(t *testing.T) {
		namespace := newNamespace(t)
		startOperator(t, operatorOptions{namespaces: []string{namespace}, Options: controllers.Options{RedisURL: address}})
		for _, name := range []string{"shop", "other"} {
			create(t, property(namespace, name, func(p *v1alpha1.Property) { p.Spec.DeletionPolicy = v1alpha1.DeletionPolicyDelete }))
			settled(t, namespace, name)
			fill("weir:{" + namespace + "/" + name + "}:events")
		}
		deleted(t, namespace, "shop")
		if keys := admin.Keys(ctx, "weir:{"+namespace+"/shop}*").Val(); len(keys) > 0 {
			t.Errorf("keys are left: %v", keys)
		}
		if n := admin.XLen(ctx, "weir:{"+namespace+"/other}:events").Val(); n != 1 {
			t.Errorf("the other Property has %d events, want 1", n)
		}
		if n := usersLeft(namespace); n != 3 {
			t.Errorf("there are %d users, want the other Property's 3", n)
		}
	})
	for sentence, paused := range map[string]bool{"a Secret with the Redis URL that went first": false, "such a Secret of a Property that is paused": true} {
		t.Run(sentence, func(t *testing.T) {
			namespace := newNamespace(t)
			startOperator(t, operatorOptions{namespaces: []string{namespace}})
			mine := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "mine"}, StringData: map[string]string{"url": address}}
			create(t, mine)
			create(t, property(namespace, "shop", ownRedis("mine")))
			settled(t, namespace, "shop")
			if paused {
				pausing(t, namespace, "shop", "true")
				awaitPause(t, namespace, "shop", "True "+v1alpha1.ReasonPaused)
			}
			if err := server.client.Delete(ctx, mine); err != nil {
				t.Fatal(err)
			}
			if !paused {
				waitFor(t, namespace, "shop", v1alpha1.ConditionRedisReady, metav1.ConditionFalse, v1alpha1.ReasonSecretMissing)
			}
			deleted(t, namespace, "shop")
			if n := usersLeft(namespace); n != 0 {
				t.Errorf("%d users are left in Redis", n)
			}
		})
	}
}

// withheldSecret is a client that is refused one Secret once withheld is set.
type withheldSecret struct {
	client.Client
	name     string
	withheld *atomic.Bool
}

func (c *withheldSecret) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	if c.withheld.Load() && key.Name == c.name {
		return apierrors.NewServiceUnavailable("no storage today")
	}
	return c.Client.Get(ctx, key, object, options...)
}

func TestAPropertyIsLetGoWhenItsRedisCannotBeCleared(t *testing.T) {
	twoMinutesLater := func() time.Time { return time.Now().Add(2 * time.Minute) }
	leftBehind := func(t *testing.T, namespace string, want ...string) {
		t.Helper()
		want = append(want, "weir:"+namespace+"/shop:collector", "weir:{"+namespace+"/shop}:*")
		eventually(t, func() error {
			var list eventsv1.EventList
			if err := server.client.List(context.Background(), &list, client.InNamespace(namespace)); err != nil {
				return err
			}
			for _, event := range list.Items {
				if event.Reason == "RedisLeftBehind" {
					for _, words := range want {
						if !strings.Contains(event.Note, words) {
							t.Errorf("the event says %q, want in it %q", event.Note, words)
						}
					}
					return nil
				}
			}
			return fmt.Errorf("no event says what is left, among %d", len(list.Items))
		})
	}
	t.Run("because it cannot be reached", func(t *testing.T) {
		namespace, proxy := newNamespace(t), newRedisProxy(t, redistest.URL(t))
		startOperator(t, operatorOptions{namespaces: []string{namespace}, Options: controllers.Options{RedisURL: proxy.url, Now: twoMinutesLater}})
		create(t, property(namespace, "shop"))
		settled(t, namespace, "shop")
		proxy.setAway(true)
		deleted(t, namespace, "shop")
		leftBehind(t, namespace, "it ends the connection", "when that Redis is back")
	})
	t.Run("because the API server does not say where it is", func(t *testing.T) {
		namespace, withheld := newNamespace(t), &atomic.Bool{}
		startOperator(t, operatorOptions{
			namespaces: []string{namespace}, Options: controllers.Options{Now: twoMinutesLater},
			wrap: func(c client.Client) client.Client { return &withheldSecret{c, "mine", withheld} },
		})
		create(t, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "mine"}, StringData: map[string]string{"url": tenantsRedis(t)}})
		create(t, property(namespace, "shop", ownRedis("mine")))
		settled(t, namespace, "shop")
		withheld.Store(true)
		deleted(t, namespace, "shop")
		leftBehind(t, namespace, "no storage today")
	})
}

func TestAPropertyWaitsForItsRedisForTwoMinutes(t *testing.T) {
	namespace := newNamespace(t)
	proxy := newRedisProxy(t, redistest.URL(t))
	first := startOperator(t, operatorOptions{namespaces: []string{namespace}, Options: controllers.Options{RedisURL: proxy.url}})
	create(t, property(namespace, "shop"))
	settled(t, namespace, "shop")
	proxy.setAway(true)
	if err := server.client.Delete(context.Background(), property(namespace, "shop")); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() error {
		for name := range owned(t, get(t, &v1alpha1.Property{}, namespace, "shop")) {
			if strings.HasPrefix(name, "Deployment") {
				return fmt.Errorf("%s still runs", name)
			}
		}
		return nil
	})
	first.stop()
	if p := get(t, &v1alpha1.Property{}, namespace, "shop"); len(p.Finalizers) != 1 {
		t.Errorf("the Property has been let go at once: %v", p.Finalizers)
	}
	proxy.setAway(false)
	startOperator(t, operatorOptions{namespaces: []string{namespace}, Options: controllers.Options{RedisURL: proxy.url}})
	eventually(t, func() error {
		err := server.client.Get(context.Background(), client.ObjectKey{Namespace: namespace, Name: "shop"}, &v1alpha1.Property{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("the Property is still there (%w)", errors.Join(err, errStillThere))
	})
}

// TestANamespaceIsNeverHeldUpByARedisThatIsGone deletes a namespace, as far as this API server goes without the controller
// that empties namespaces: nothing can be made in it any more, and each object is deleted.
func TestANamespaceIsNeverHeldUpByARedisThatIsGone(t *testing.T) {
	t.Parallel()
	namespace, ctx := newNamespace(t), context.Background()
	redisServer, logged := redistest.Start(t, redisserver.Options{Loopback: true}), &lockedBuffer{}
	var later atomic.Int64
	startOperator(t, operatorOptions{
		namespaces: []string{namespace}, log: slog.New(slog.NewTextHandler(logged, nil)),
		Options: controllers.Options{Now: func() time.Time { return time.Now().Add(time.Duration(later.Load())) }},
	})
	mine := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "mine"}, StringData: map[string]string{"url": redisServer.URL()}}
	create(t, mine)
	create(t, property(namespace, "shop", ownRedis("mine"), func(p *v1alpha1.Property) { p.Spec.DeletionPolicy = v1alpha1.DeletionPolicyDelete }))
	p := settled(t, namespace, "shop")
	quiet(t, p)
	if err := redisServer.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := server.client.Delete(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}); err != nil {
		t.Fatal(err)
	}
	// In any order, as that controller does: Secrets before the Property.
	for _, object := range []client.Object{mine, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "shop-credentials"}}, p} {
		if err := server.client.Delete(ctx, object); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, func() error {
		for name := range owned(t, get(t, &v1alpha1.Property{}, namespace, "shop")) {
			if strings.HasPrefix(name, "Deployment") {
				return fmt.Errorf("%s still runs", name)
			}
		}
		if !strings.Contains(logged.String(), "Redis cannot be cleared") {
			return errors.New("the operator has not tried to clear Redis")
		}
		return nil
	})
	if p := get(t, &v1alpha1.Property{}, namespace, "shop"); len(p.Finalizers) != 1 {
		t.Errorf("the Property has been let go at once: %v", p.Finalizers)
	}
	later.Store(int64(2 * time.Minute))
	eventually(t, func() error {
		if left := names(owned(t, p)); len(left) > 0 {
			return fmt.Errorf("there are still %v", left)
		}
		err := server.client.Get(ctx, client.ObjectKeyFromObject(p), &v1alpha1.Property{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("the Property is still there (%w)", errors.Join(err, errStillThere))
	})
	// No event can be made in a namespace that is being deleted: the log says what is left.
	for _, words := range []string{"weir:" + namespace + "/shop:collector", "weir:{" + namespace + "/shop}:*"} {
		if !strings.Contains(logged.String(), words) {
			t.Errorf("the operator's log does not name %s:\n%s", words, logged.String())
		}
	}
}

// TestWhatWasLeftInARedisGoesWhenItIsBack has a Redis be away for as long as a deleted Property is held, and then come back.
func TestWhatWasLeftInARedisGoesWhenItIsBack(t *testing.T) {
	rows := map[string]struct {
		policy v1alpha1.DeletionPolicy
		tenant bool
		// again has a Property of the same name be made before Redis is back.
		again bool
		users int
		data  func(left bool, lives time.Duration) bool
	}{
		"users go, and data that is retained gets its last day": {
			v1alpha1.DeletionPolicyRetain, false, false, 0, func(left bool, lives time.Duration) bool { return left && lives > 61*24*time.Hour },
		},
		"data that is to be deleted goes": {
			v1alpha1.DeletionPolicyDelete, false, false, 0, func(left bool, _ time.Duration) bool { return !left },
		},
		"a tenant's Redis is cleared likewise": {
			v1alpha1.DeletionPolicyDelete, true, false, 0, func(left bool, _ time.Duration) bool { return !left },
		},
		"a Property of the same name has them for itself": {
			v1alpha1.DeletionPolicyDelete, false, true, 3, func(left bool, lives time.Duration) bool { return left && lives == -1 },
		},
	}
	for sentence, row := range rows {
		t.Run(sentence, func(t *testing.T) {
			t.Parallel()
			namespace, proxy, ctx := newNamespace(t), newRedisProxy(t, redistest.URL(t)), t.Context()
			admin := dial(t, redisBehind(proxy))
			var later atomic.Int64
			options := controllers.Options{RedisURL: proxy.url, Now: func() time.Time { return time.Now().Add(time.Duration(later.Load())) }}
			edit := func(p *v1alpha1.Property) { p.Spec.DeletionPolicy = row.policy }
			if row.tenant {
				options.RedisURL = ""
				create(t, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "mine"}, StringData: map[string]string{"url": proxy.url}})
				edit = func(p *v1alpha1.Property) { p.Spec.DeletionPolicy = row.policy; ownRedis("mine")(p) }
			}
			startOperator(t, operatorOptions{namespaces: []string{namespace}, Options: options})
			create(t, property(namespace, "shop", edit))
			settled(t, namespace, "shop")
			stream, foreign := "weir:{"+namespace+"/shop}:events", "weir:elsewhere/shop:query"
			for _, command := range [][]any{{"xadd", stream, "*", "e", "x"}, {"acl", "setuser", foreign, "on", ">theirs"}} {
				if err := admin.Do(ctx, command...).Err(); err != nil {
					t.Fatal(err)
				}
			}
			proxy.setAway(true)
			later.Store(int64(2 * time.Minute))
			deleted(t, namespace, "shop")
			if row.again {
				create(t, property(namespace, "shop", edit))
				waitFor(t, namespace, "shop", v1alpha1.ConditionRedisReady, metav1.ConditionFalse, v1alpha1.ReasonRedisUnreachable)
			}
			proxy.setAway(false)
			if row.again {
				settled(t, namespace, "shop")
			}
			eventually(t, func() error {
				users, err := admin.Do(ctx, "acl", "users").StringSlice()
				if err != nil {
					return err
				}
				ours := 0
				for _, user := range users {
					if strings.HasPrefix(user, "weir:"+namespace+"/shop:") {
						ours++
					}
				}
				left, lives := admin.Exists(ctx, stream).Val() == 1, admin.TTL(ctx, stream).Val()
				if !row.data(left, lives) || ours != row.users || !slices.Contains(users, foreign) {
					return fmt.Errorf("the data is there: %t, for %v, with the users %v", left, lives, users)
				}
				return nil
			})
		})
	}
}

// redisBehind is where the Redis is that a proxy stands before.
func redisBehind(p *redisProxy) string { return p.target.String() }

func TestATenantsRedisThatStaysAwayIsForgottenAfterAnHour(t *testing.T) {
	for sentence, row := range map[string]struct {
		own   bool
		looks int
		want  bool
	}{
		"a tenant's, short of an hour":      {false, 1199, false},
		"a tenant's, after an hour":         {false, 1200, true},
		"the operator's own, after a day":   {true, 28800, false},
		"the operator's own, after an hour": {true, 1200, false},
	} {
		t.Run(sentence, func(t *testing.T) {
			if got := controllers.Overdue(row.own, row.looks); got != row.want {
				t.Errorf("it is given up: %t, want %t", got, row.want)
			}
		})
	}
}
