package controllers_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/collector/platforms"
	"github.com/weir-dev/weir/collector/redisserver/redistest"
	"github.com/weir-dev/weir/collector/role"
	"github.com/weir-dev/weir/controllers"
)

func TestAPIKeysFollowThePropertyInRunningPods(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	startOperator(t, operatorOptions{namespaces: []string{namespace}, Options: controllers.Options{RedisURL: redistest.URL(t)}})
	create(t, property(namespace, "shop"))
	settled(t, namespace, "shop")
	collect, _ := pod(t, namespace, "shop", "collector", role.Collect)
	read, _ := pod(t, namespace, "shop", "query", role.Query)
	first, token := credential(t, namespace, "shop", "api-key.default"), credential(t, namespace, "shop", "access-token.default")
	if got := send(t, collect, first); got != http.StatusAccepted {
		t.Fatalf("the key is answered %d, want 202", got)
	}
	eventually(t, func() error {
		if status, body := list(t, read, "shop", token); status != http.StatusOK || !strings.Contains(body, "pageview") {
			return fmt.Errorf("the read API answers %d without the event", status)
		}
		return nil
	})
	keys := func(keys ...v1alpha1.PropertyAPIKey) {
		change(t, &v1alpha1.Property{}, namespace, "shop", func(p *v1alpha1.Property) { p.Spec.APIKeys = keys })
	}
	answers := func(t *testing.T, want int, key func() string) {
		t.Helper()
		eventually(t, func() error {
			if got := send(t, collect, key()); got != want {
				return fmt.Errorf("the key is answered %d, want %d", got, want)
			}
			return nil
		})
	}
	brought := func(key string) func() string { return func() string { return key } }
	own, next := v1alpha1.PropertyAPIKey{Name: "default"}, v1alpha1.PropertyAPIKey{Name: "next"}
	legacy := v1alpha1.PropertyAPIKey{Name: "legacy", SecretKeyRef: &v1alpha1.SecretKeyReference{Name: "brought", Key: "key"}}

	// The first key is used all the while: no request may fail until it is revoked.
	using := startTraffic(t, http.StatusAccepted, func() int { return send(t, collect, first) })
	t.Run("a second key beside the first", func(t *testing.T) {
		keys(own, next)
		answers(t, http.StatusAccepted, func() string { return credential(t, namespace, "shop", "api-key.next") })
	})
	t.Run("a key that the owner brings", func(t *testing.T) {
		create(t, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "brought"}, StringData: map[string]string{"key": "an-old-key-of-the-owner\n"}})
		keys(own, next, legacy)
		answers(t, http.StatusAccepted, brought("an-old-key-of-the-owner"))
	})
	t.Run("another value in the owner's Secret", func(t *testing.T) {
		change(t, &corev1.Secret{}, namespace, "brought", func(s *corev1.Secret) { s.Data["key"] = []byte("a-newer-key-of-the-owner") })
		answers(t, http.StatusAccepted, brought("a-newer-key-of-the-owner"))
		answers(t, http.StatusUnauthorized, brought("an-old-key-of-the-owner"))
	})
	t.Run("a brought key whose Secret is deleted is revoked", func(t *testing.T) {
		if err := server.client.Delete(context.Background(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "brought"}}); err != nil {
			t.Fatal(err)
		}
		answers(t, http.StatusUnauthorized, brought("a-newer-key-of-the-owner"))
	})
	t.Run("a key that becomes publishable is another one", func(t *testing.T) {
		secret := credential(t, namespace, "shop", "api-key.next")
		keys(own, v1alpha1.PropertyAPIKey{Name: "next", Type: v1alpha1.APIKeyPublishable, AllowedOrigins: []v1alpha1.Origin{"https://www.shop.example"}})
		answers(t, http.StatusAccepted, func() string { return credential(t, namespace, "shop", "publishable-key.next") })
		answers(t, http.StatusUnauthorized, brought(secret))
		keys(own, next)
		answers(t, http.StatusAccepted, func() string { return credential(t, namespace, "shop", "api-key.next") })
	})
	using.end(t, "the first key, while others came and went")
	t.Run("the first key is revoked", func(t *testing.T) {
		keys(next)
		answers(t, http.StatusUnauthorized, brought(first))
		answers(t, http.StatusAccepted, func() string { return credential(t, namespace, "shop", "api-key.next") })
	})
}

func TestAccessTokensFollowThePropertyInRunningPods(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	startOperator(t, operatorOptions{namespaces: []string{namespace}, Options: controllers.Options{RedisURL: redistest.URL(t)}})
	create(t, property(namespace, "shop"))
	settled(t, namespace, "shop")
	read, _ := pod(t, namespace, "shop", "query", role.Query)
	first := credential(t, namespace, "shop", "access-token.default")
	tokens := func(tokens ...v1alpha1.PropertyAccessToken) {
		change(t, &v1alpha1.Property{}, namespace, "shop", func(p *v1alpha1.Property) { p.Spec.AccessTokens = tokens })
	}
	answers := func(t *testing.T, want int, token func() string) {
		t.Helper()
		eventually(t, func() error {
			if got, _ := list(t, read, "shop", token()); got != want {
				return fmt.Errorf("the token is answered %d, want %d", got, want)
			}
			return nil
		})
	}
	value := func(name string) func() string {
		return func() string { return credential(t, namespace, "shop", "access-token."+name) }
	}
	own, next := v1alpha1.PropertyAccessToken{Name: "default"}, v1alpha1.PropertyAccessToken{Name: "next"}
	until := func(expiration time.Time) v1alpha1.PropertyAccessToken {
		return v1alpha1.PropertyAccessToken{Name: "guest", ExpirationTime: &metav1.Time{Time: expiration}}
	}

	using := startTraffic(t, http.StatusOK, func() int { status, _ := list(t, read, "shop", first); return status })
	t.Run("a second token beside the first", func(t *testing.T) {
		tokens(own, next)
		answers(t, http.StatusOK, value("next"))
	})
	t.Run("a token that expires later", func(t *testing.T) {
		tokens(own, next, until(time.Now().Add(time.Hour)))
		answers(t, http.StatusOK, value("guest"))
	})
	guest := value("guest")()
	t.Run("it expires without anything being changed", func(t *testing.T) {
		tokens(own, next, until(time.Now().Add(2*time.Second)))
		waitFor(t, namespace, "shop", v1alpha1.ConditionCredentialsReady, metav1.ConditionTrue, v1alpha1.ReasonReady)
		answers(t, http.StatusUnauthorized, value("guest"))
	})
	t.Run("it works again, the same as before, when it is given more time", func(t *testing.T) {
		tokens(own, next, until(time.Now().Add(time.Hour)))
		answers(t, http.StatusOK, func() string { return guest })
	})
	t.Run("it is revoked", func(t *testing.T) {
		tokens(own, next)
		answers(t, http.StatusUnauthorized, func() string { return guest })
	})
	using.end(t, "the first token, while others came and went")
	t.Run("the first token is revoked", func(t *testing.T) {
		tokens(next)
		answers(t, http.StatusUnauthorized, func() string { return first })
		answers(t, http.StatusOK, value("next"))
	})
}

// TestRedisPasswordsAreRotatedUnderRunningPods rotates the passwords of all roles while each is at work.
func TestRedisPasswordsAreRotatedUnderRunningPods(t *testing.T) {
	namespace, address := newNamespace(t), redistest.URL(t)
	var later atomic.Int64
	startOperator(t, operatorOptions{namespaces: []string{namespace}, Options: controllers.Options{
		RedisURL: address, Now: func() time.Time { return time.Now().Add(time.Duration(later.Load())) },
	}})
	create(t, property(namespace, "shop", func(p *v1alpha1.Property) {
		p.Spec.Platforms = []v1alpha1.Platform{{Name: "console", Type: platforms.TypeLog}}
	}))
	settled(t, namespace, "shop")
	generation := get(t, &appsv1.Deployment{}, namespace, "shop-collector").Generation
	collect, _ := pod(t, namespace, "shop", "collector", role.Collect)
	read, _ := pod(t, namespace, "shop", "query", role.Query)
	_, delivered := pod(t, namespace, "shop", "deliverer", role.Deliver)
	key, token := credential(t, namespace, "shop", "api-key.default"), credential(t, namespace, "shop", "access-token.default")
	admin, ctx := dial(t, address), context.Background()

	sending := startTraffic(t, http.StatusAccepted, func() int { return send(t, collect, key) })
	reading := startTraffic(t, http.StatusOK, func() int { status, _ := list(t, read, "shop", token); return status })
	works := func(address string) bool { return dial(t, address).Ping(ctx).Err() == nil }
	old, roles := map[string]string{}, []string{"collector", "deliverer", "query"}
	for _, role := range roles {
		secret := get(t, &corev1.Secret{}, namespace, "shop-redis-"+role)
		old[role] = string(secret.Data["url"])
		if err := server.client.Delete(ctx, secret); err != nil {
			t.Fatal(err)
		}
	}
	for _, role := range roles {
		eventually(t, func() error {
			secret := &corev1.Secret{}
			if err := server.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "shop-redis-" + role}, secret); err != nil {
				return err
			}
			if next := string(secret.Data["url"]); next == old[role] || !works(next) {
				return fmt.Errorf("the %s has no other password that holds", role)
			}
			return nil
		})
		if !works(old[role]) {
			t.Errorf("the old password of the %s holds no longer while pods have it", role)
		}
	}
	if now := get(t, &appsv1.Deployment{}, namespace, "shop-collector").Generation; now != generation {
		t.Error("another password has replaced the pods")
	}

	later.Store(int64(controllers.RedisOverlap))
	change(t, &v1alpha1.Property{}, namespace, "shop", func(p *v1alpha1.Property) { p.Annotations = map[string]string{"look": "again"} })
	for _, role := range roles {
		eventually(t, func() error {
			if works(old[role]) {
				return fmt.Errorf("the old password of the %s still holds after the overlap", role)
			}
			return nil
		})
	}
	// Connections outlive their password; those that come after them need the new one.
	for _, role := range roles {
		if err := admin.Do(ctx, "client", "kill", "user", "weir:"+namespace+"/shop:"+role).Err(); err != nil {
			t.Fatal(err)
		}
	}
	before := strings.Count(delivered.String(), "pageview")
	eventually(t, func() error {
		if now := strings.Count(delivered.String(), "pageview"); now <= before+100 {
			return fmt.Errorf("%d events were delivered with the old password, %d with the new one", before, now-before)
		}
		for _, role := range roles {
			list, err := admin.ClientList(ctx).Result()
			if err != nil {
				return err
			}
			if !strings.Contains(list, "user=weir:"+namespace+"/shop:"+role) {
				return fmt.Errorf("the %s is not connected", role)
			}
		}
		return nil
	})
	sending.end(t, "collecting, while the passwords changed")
	reading.end(t, "reading, while the passwords changed")
}

func TestRunningPodsAreToldOfAChangedConfiguration(t *testing.T) {
	namespace := newNamespace(t)
	startOperator(t, operatorOptions{namespaces: []string{namespace}, Options: controllers.Options{RedisURL: redistest.URL(t)}})
	create(t, property(namespace, "shop"))
	settled(t, namespace, "shop")
	quiet(t, get(t, &v1alpha1.Property{}, namespace, "shop"))
	deployment := get(t, &appsv1.Deployment{}, namespace, "shop-collector")
	create(t, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "shop-collector-1", Labels: deployment.Spec.Template.Labels},
		Spec:       deployment.Spec.Template.Spec,
	})
	var told string
	hash := func() string {
		return get(t, &corev1.Pod{}, namespace, "shop-collector-1").Annotations["weir.dev/config"]
	}
	eventually(t, func() error {
		if told = hash(); told == "" {
			return errors.New("the pod has not been told")
		}
		return nil
	})
	generation := deployment.Generation
	change(t, &v1alpha1.Property{}, namespace, "shop", func(p *v1alpha1.Property) {
		p.Spec.APIKeys = append(p.Spec.APIKeys, v1alpha1.PropertyAPIKey{Name: "next"})
	})
	eventually(t, func() error {
		if hash() == told {
			return errors.New("the pod has not been told of the new key")
		}
		return nil
	})
	if now := get(t, &appsv1.Deployment{}, namespace, "shop-collector").Generation; now != generation {
		t.Error("a new key has replaced the pods")
	}
}

// rollOut plays the deployment controller: it reports that all pods run as the spec has them.
func rollOut(t testing.TB, namespace, property string, further ...string) {
	t.Helper()
	for _, suffix := range append([]string{"collector", "deliverer", "query"}, further...) {
		eventually(t, func() error {
			d := get(t, &appsv1.Deployment{}, namespace, property+"-"+suffix)
			n := *d.Spec.Replicas
			d.Status = appsv1.DeploymentStatus{ObservedGeneration: d.Generation, Replicas: n, UpdatedReplicas: n, ReadyReplicas: n, AvailableReplicas: n}
			return server.client.Status().Update(context.Background(), d)
		})
	}
}
