package controllers_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/collector/redisserver/redistest"
	"github.com/weir-dev/weir/controllers"
)

// errKilled stands for the operator's death: from then on nothing of it reaches the API server.
var errKilled = errors.New("the operator is dead")

// dyingClient lets n writes through and reports the last of them as failed, as for an operator that dies before it
// hears of its success; then everything fails.
func dyingClient(n int64, died chan<- struct{}) func(client.Client) client.Client {
	var done atomic.Int64
	return func(c client.Client) client.Client {
		return &watchedClient{
			Client: c,
			before: func(string) error {
				if done.Load() >= n {
					return errKilled
				}
				return nil
			},
			after: func(string) error {
				if done.Add(1) != n {
					return nil
				}
				close(died)
				return errKilled
			},
		}
	}
}

// TestAnOperatorKilledAfterAnyOfItsWritesConverges kills an operator after its first write for a Property, another
// after the second write from the beginning, and so on for every write that a new Property takes. Its successor
// must come to the same objects, with the keys that the dead one made.
func TestAnOperatorKilledAfterAnyOfItsWritesConverges(t *testing.T) {
	address := redistest.URL(t)
	spec := func(p *v1alpha1.Property) {
		p.Spec.Collector.Autoscaling = &v1alpha1.Autoscaling{MinReplicas: 2, MaxReplicas: 4}
		p.Spec.Platforms = []v1alpha1.Platform{{Name: "console", Type: v1alpha1.PlatformLog}}
	}
	namespace := newNamespace(t)
	undisturbed := startOperator(t, operatorOptions{namespaces: []string{namespace}, Options: controllers.Options{RedisURL: address}})
	create(t, property(namespace, "shop", spec))
	want := names(quiet(t, settled(t, namespace, "shop")))
	writes := undisturbed.writes.Load()
	undisturbed.stop()
	if writes < 20 {
		t.Fatalf("a new Property took %d writes: the test no longer sees them", writes)
	}
	t.Logf("%d writes for a new Property with %d objects", writes, len(want))

	for n := int64(1); n <= writes; n++ {
		t.Run(fmt.Sprintf("after write %d", n), func(t *testing.T) {
			namespace := newNamespace(t)
			died := make(chan struct{})
			first := startOperator(t, operatorOptions{
				namespaces: []string{namespace}, Options: controllers.Options{RedisURL: address}, wrap: dyingClient(n, died),
			})
			create(t, property(namespace, "shop", spec))
			// How often the status is written varies with what falls together, so the last few may never come.
			select {
			case <-died:
			case <-time.After(10 * time.Second):
				if n <= int64(len(want)) {
					t.Errorf("the operator did not come to write %d for %d objects", n, len(want))
				}
			}
			first.stop()
			var keys map[string][]byte
			secret := &corev1.Secret{}
			if server.client.Get(context.Background(), client.ObjectKey{Namespace: namespace, Name: "shop-credentials"}, secret) == nil {
				keys = secret.Data
			}

			startOperator(t, operatorOptions{namespaces: []string{namespace}, Options: controllers.Options{RedisURL: address}})
			p := settled(t, namespace, "shop")
			eventually(t, func() error {
				if diff := cmp.Diff(want, names(owned(t, p))); diff != "" {
					return fmt.Errorf("objects (-want +got):\n%s", diff)
				}
				return nil
			})
			if now := get(t, secret, namespace, "shop-credentials").Data; keys != nil && !maps.EqualFunc(keys, now, slices.Equal[[]byte]) {
				t.Error("the successor has made other keys or tokens")
			}
		})
	}
}
