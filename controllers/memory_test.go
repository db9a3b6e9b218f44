package controllers_test

import (
	"context"
	"errors"
	"testing"

	"github.com/redis/go-redis/v9"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/collector/redisserver/redistest"
	"github.com/weir-dev/weir/controllers"
)

// frozenCache goes on having one Property as it was.
type frozenCache struct {
	client.Client
	frozen *v1alpha1.Property
}

func (c *frozenCache) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	if p, isProperty := object.(*v1alpha1.Property); isProperty && c.frozen != nil {
		c.frozen.DeepCopyInto(p)
		return nil
	}
	return c.Client.Get(ctx, key, object, options...)
}

// TestACacheWithoutTheLastWriteIsWaitedFor has the cache go on having a Property as it was ahead of the operator's write.
func TestACacheWithoutTheLastWriteIsWaitedFor(t *testing.T) {
	hand, address, ctx := newByHand(t), redistest.URL(t), context.Background()
	admin := dial(t, address)
	rows := map[string]struct {
		name string
		// have is what the operator writes for, again what happens before it looks again.
		have, again func(t *testing.T, name string)
	}{
		"a status is not written twice": {
			"changed",
			func(t *testing.T, name string) {
				change(t, &v1alpha1.Property{}, hand.namespace, name, func(p *v1alpha1.Property) { p.Spec.TimeZone = "Europe/Berlin" })
			},
			func(*testing.T, string) {},
		},
		"what was let go does not cost another one of its name its data": {
			"deleted",
			func(t *testing.T, name string) {
				if err := server.client.Delete(ctx, property(hand.namespace, name)); err != nil {
					t.Fatal(err)
				}
			},
			func(t *testing.T, name string) { create(t, property(hand.namespace, name)) },
		},
	}
	for sentence, row := range rows {
		t.Run(sentence, func(t *testing.T) {
			operator, stop := hand.start(newFuse(forever), controllers.Options{RedisURL: address}, &events.FakeRecorder{})
			defer stop()
			cache := &frozenCache{Client: operator.Client}
			operator.Client = cache
			request := reconcile.Request{NamespacedName: client.ObjectKey{Namespace: hand.namespace, Name: row.name}}
			create(t, property(hand.namespace, row.name, func(p *v1alpha1.Property) { p.Spec.DeletionPolicy = v1alpha1.DeletionPolicyDelete }))
			hand.live(t, operator, row.name, func() bool { return false })

			row.have(t, row.name)
			eventually(t, func() error {
				if !hand.seen(ctx, row.name) {
					return errors.New("the cache has not seen it yet")
				}
				return nil
			})
			before := &v1alpha1.Property{}
			if err := hand.manager.GetClient().Get(ctx, request.NamespacedName, before); err != nil {
				t.Fatal(err)
			}
			cache.frozen = before
			eventually(t, func() error {
				_, err := operator.Reconcile(ctx, request)
				now := &v1alpha1.Property{}
				if found := server.client.Get(ctx, request.NamespacedName, now); found == nil && now.ResourceVersion == before.ResourceVersion {
					return errors.Join(errors.New("the operator has not written yet"), err)
				}
				return err
			})
			row.again(t, row.name)
			stream := "weir:{" + hand.namespace + "/" + row.name + "}:events"
			if err := admin.XAdd(ctx, &redis.XAddArgs{Stream: stream, Values: []string{"e", "x"}}).Err(); err != nil {
				t.Fatal(err)
			}
			writes := operator.fuse.writes.Load()
			result, err := operator.Reconcile(ctx, request)
			if wrote := operator.fuse.writes.Load() - writes; err != nil || wrote != 0 || result.RequeueAfter == 0 {
				t.Errorf("looking again made %d writes, error %v, and looks again after %s; want none, and soon", wrote, err, result.RequeueAfter)
			}
			if left := admin.Exists(ctx, stream).Val(); left != 1 {
				t.Error("the data is gone")
			}

			cache.frozen = nil
			hand.live(t, operator, row.name, func() bool { return false })
		})
	}
}
