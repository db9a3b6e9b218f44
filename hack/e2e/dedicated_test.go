package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/weir-dev/weir/api/v1alpha1"
)

// makesRedis gives a Property a Redis of its own, ends that one's pod under load, and deletes the Property with either policy.
func makesRedis(t *testing.T, s *suite) {
	add := func(policy v1alpha1.DeletionPolicy) *tenant {
		property := s.expose(s.property("own"))
		property.Spec.DeletionPolicy = policy
		property.Spec.Redis = &v1alpha1.Redis{Dedicated: &v1alpha1.DedicatedRedis{Storage: resource.MustParse("1Gi"), Memory: resource.MustParse("64Mi")}}
		begin := time.Now()
		own := s.apply(t, property)
		s.figure(t, "a Property with a Redis of its own, until Ready", "%.1f s", time.Since(begin).Seconds())
		return own
	}
	remove := func(own *tenant, what string, want ...string) {
		if err := s.Delete(t.Context(), own.get(t)); err != nil {
			t.Fatal(err)
		}
		took := within(t, 3*time.Minute, "only what shall stay is left", func() error {
			left, err := own.objects(t, own.namespace, own.name)
			if err != nil {
				return err
			}
			if !slices.Equal(left, want) {
				return fmt.Errorf("there are %s, want %v", strings.Join(left, ", "), want)
			}
			return nil
		})
		s.figure(t, what, "%.1f s", took.Seconds())
	}

	own := add(v1alpha1.DeletionPolicyRetain)
	if users := own.administrator(t, "ACL USERS")[0]; strings.Contains(users, "weir:"+own.namespace+"/") {
		t.Errorf("the operator's Redis has users of a Property with a Redis of its own: %s", users)
	}
	before := own.stock(t)

	s.startPeer(t, own.namespace)
	under := own.startLoad(t, "own-redis", own.key(t, "default"), own.key(t, "default"))
	begin := time.Now()
	must(t, "kubectl", "-n", own.namespace, "delete", "pod", "own-redis-0")
	under.goOn(t, 2*time.Second)
	s.figure(t, "its Redis's pod deleted, until 2 s of events are accepted", "%.1f s", time.Since(begin).Seconds())
	own.ready(t)
	results := under.stop(t)
	under.failedOnly(t, results, "503")
	under.noneLost(t, results)

	remove(own, "it is deleted with Retain, until only the volume is left", "PersistentVolumeClaim/data-own-redis-0")
	own = add(v1alpha1.DeletionPolicyDelete)
	if diff := cmp.Diff(before, own.stocked(t, len(before))); diff != "" {
		t.Errorf("a Property of the same name finds other events on the volume than before (-before +now):\n%s", diff)
	}
	remove(own, "it is deleted with Delete, until the volume is gone too")
}
