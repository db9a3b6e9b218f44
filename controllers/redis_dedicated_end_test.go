package controllers_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-dev/weir/api/v1alpha1"
)

// redisSet waits for the StatefulSet of a Property's Redis to be made.
func redisSet(t testing.TB, namespace, property string) {
	t.Helper()
	eventually(t, func() error {
		return server.client.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: property + "-redis"}, &appsv1.StatefulSet{})
	})
}

// leftBehindSays waits for an event that says what is left, with some words in it.
func leftBehindSays(t testing.TB, namespace, words string) {
	t.Helper()
	eventually(t, func() error {
		var list eventsv1.EventList
		if err := server.client.List(t.Context(), &list, client.InNamespace(namespace)); err != nil {
			return err
		}
		for _, event := range list.Items {
			if event.Reason == "RedisLeftBehind" && strings.Contains(event.Note, words) {
				return nil
			}
		}
		return fmt.Errorf("none of %d events says %q", len(list.Items), words)
	})
}

// TestTheVolumeOfARedisOfAPropertysOwnFollowsThePolicyAtTheDeletion changes the policy and deletes the Property in one go, and holds back
// what the cluster says of the StatefulSet.
func TestTheVolumeOfARedisOfAPropertysOwnFollowsThePolicyAtTheDeletion(t *testing.T) {
	t.Parallel()
	for sentence, c := range map[string]struct {
		from, to v1alpha1.DeletionPolicy
		paused   bool
	}{
		"it shall stay after all":             {from: v1alpha1.DeletionPolicyDelete, to: v1alpha1.DeletionPolicyRetain},
		"it shall go after all":               {from: v1alpha1.DeletionPolicyRetain, to: v1alpha1.DeletionPolicyDelete},
		"it shall stay, said while paused":    {from: v1alpha1.DeletionPolicyDelete, to: v1alpha1.DeletionPolicyRetain, paused: true},
		"it shall go, as was said long since": {from: v1alpha1.DeletionPolicyDelete, to: v1alpha1.DeletionPolicyDelete},
	} {
		t.Run(sentence, func(t *testing.T) {
			t.Parallel()
			namespace, pod := newNamespace(t), newRedisPod(t)
			ran := startOperator(t, operatorOptions{namespaces: []string{namespace}, Options: pod.options()})
			create(t, property(namespace, "shop", dedicatedRedis, func(p *v1alpha1.Property) { p.Spec.DeletionPolicy = c.from }))
			redisSet(t, namespace, "shop")
			if c.paused {
				pausing(t, namespace, "shop", "true")
				awaitPause(t, namespace, "shop", "True "+v1alpha1.ReasonPaused)
			}
			ran.stop() // so that the next one sees both at once
			change(t, &v1alpha1.Property{}, namespace, "shop", func(p *v1alpha1.Property) { p.Spec.DeletionPolicy = c.to })
			if err := server.client.Delete(t.Context(), property(namespace, "shop")); err != nil {
				t.Fatal(err)
			}
			startOperator(t, operatorOptions{namespaces: []string{namespace}, Options: pod.options()})
			eventually(t, func() error {
				set := get(t, &appsv1.StatefulSet{}, namespace, "shop-redis")
				if got := set.Spec.PersistentVolumeClaimRetentionPolicy.WhenDeleted; string(got) != string(c.to) {
					return fmt.Errorf("the volume's policy is %s, want %s", got, c.to)
				}
				if set.DeletionTimestamp != nil {
					t.Fatal("the StatefulSet is deleted before the cluster has taken in what becomes of the volume")
				}
				return nil
			})
			get(t, &v1alpha1.Property{}, namespace, "shop")
			takenIn(t, namespace, "shop-redis")
			eventuallyWithin(t, 15*time.Second, func() error {
				return errors.Join(gone(namespace, "shop", &v1alpha1.Property{}), gone(namespace, "shop-redis", &appsv1.StatefulSet{}))
			})
		})
	}
}

// TestAVolumeOutlivesAStatefulSetThatSomebodyDeletes deletes it while there is no operator, and then the Property.
func TestAVolumeOutlivesAStatefulSetThatSomebodyDeletes(t *testing.T) {
	t.Parallel()
	namespace, pod := newNamespace(t), newRedisPod(t)
	ran := startOperator(t, operatorOptions{namespaces: []string{namespace}, Options: pod.options()})
	create(t, property(namespace, "shop", dedicatedRedis, func(p *v1alpha1.Property) { p.Spec.DeletionPolicy = v1alpha1.DeletionPolicyDelete }))
	redisSet(t, namespace, "shop")
	ran.stop()
	set := get(t, &appsv1.StatefulSet{}, namespace, "shop-redis")
	if got := set.Spec.PersistentVolumeClaimRetentionPolicy.WhenDeleted; got != appsv1.RetainPersistentVolumeClaimRetentionPolicyType {
		t.Errorf("the volume's policy is %s, want Retain", got)
	}
	for _, object := range []client.Object{set, property(namespace, "shop")} {
		if err := server.client.Delete(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	startOperator(t, operatorOptions{namespaces: []string{namespace}, Options: pod.options()})
	eventuallyWithin(t, 15*time.Second, func() error { return gone(namespace, "shop", &v1alpha1.Property{}) })
	leftBehindSays(t, namespace, "the claim data-shop-redis-0 stays")
}

// TestAVolumeThatShallStayStaysWhereTheClusterIsSlow never says that the StatefulSet is taken in.
func TestAVolumeThatShallStayStaysWhereTheClusterIsSlow(t *testing.T) {
	t.Parallel()
	for policy, orphans := range map[v1alpha1.DeletionPolicy]bool{v1alpha1.DeletionPolicyRetain: true, v1alpha1.DeletionPolicyDelete: false} {
		t.Run(string(policy), func(t *testing.T) {
			t.Parallel()
			namespace, pod := newNamespace(t), newRedisPod(t)
			options := pod.options()
			options.Now = func() time.Time { return time.Now().Add(2 * time.Minute) }
			startOperator(t, operatorOptions{namespaces: []string{namespace}, Options: options})
			create(t, property(namespace, "shop", dedicatedRedis, func(p *v1alpha1.Property) { p.Spec.DeletionPolicy = policy }))
			redisSet(t, namespace, "shop")
			deleted(t, namespace, "shop")
			if !orphans {
				if err := gone(namespace, "shop-redis", &appsv1.StatefulSet{}); err != nil {
					t.Error(err)
				}
				leftBehindSays(t, namespace, "the claim data-shop-redis-0 stays")
				return
			}
			set := get(t, &appsv1.StatefulSet{}, namespace, "shop-redis")
			if set.DeletionTimestamp == nil || !slices.Contains(set.Finalizers, metav1.FinalizerOrphanDependents) {
				t.Errorf("the StatefulSet was deleted at %v with %v, want it to orphan what is its", set.DeletionTimestamp, set.Finalizers)
			}
			leftBehindSays(t, namespace, "its pod shop-redis-0 stays too: delete that; and what is on the volume of the claim data-shop-redis-0 has no last day")
		})
	}
}
