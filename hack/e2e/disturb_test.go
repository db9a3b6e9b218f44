package e2e

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-dev/weir/api/v1alpha1"
)

func rotatesKeys(t *testing.T, s *suite) {
	shop := s.tenantOf(t, "shop")
	first := shop.key(t, "first")
	under := shop.startLoad(t, "rotate", first, shop.key(t, "second"))
	begin := time.Now()
	shop.change(t, func(spec *v1alpha1.PropertySpec) {
		spec.APIKeys = append(spec.APIKeys, v1alpha1.PropertyAPIKey{Name: "third"})
	})
	shop.ready(t)
	s.figure(t, "a key is added, until Ready", "%.1f s", time.Since(begin).Seconds())
	third := shop.key(t, "third")
	shop.knows(t, third, http.StatusAccepted)
	s.figure(t, "until every collector takes it", "%.1f s", time.Since(begin).Seconds())
	under.outside.Use(shop.collect + "/collect/" + third)
	under.goOn(t, 3*time.Second)
	begin = time.Now()
	shop.change(t, func(spec *v1alpha1.PropertySpec) {
		spec.APIKeys = []v1alpha1.PropertyAPIKey{{Name: "second"}, {Name: "third"}}
	})
	shop.knows(t, first, http.StatusUnauthorized)
	s.figure(t, "a key is removed, until no collector takes it", "%.1f s", time.Since(begin).Seconds())
	under.noneFailed(t, under.stop(t))
}

// knows waits until collectors answer events under a key with a status. Pods load a change one by one, so it asks, as a careful customer
// would, until so many in a row agree that none of them can have been passed over.
func (it *tenant) knows(t *testing.T, key string, want int) {
	t.Helper()
	within(t, 30*time.Second, fmt.Sprintf("collectors answer %d", want), func() error {
		for i := range 25 {
			if status, body := it.send(t, key, `{"event": "trial"}`); status != want {
				return fmt.Errorf("answer %d in a row is %d %s", i+1, status, body)
			}
		}
		return nil
	})
}

// accepts waits until a collector accepts an event that is sent with a key, and returns how long that took.
func (it *tenant) accepts(t *testing.T, key, event string) time.Duration {
	t.Helper()
	return within(t, time.Minute, "the event is accepted", func() error {
		if status, body := it.send(t, key, event); status != http.StatusAccepted {
			return fmt.Errorf("it is answered %d %s", status, body)
		}
		return nil
	})
}

func rollsCollectors(t *testing.T, s *suite) {
	shop := s.tenantOf(t, "shop")
	before := s.uids(t, shop.namespace)
	for _, pod := range append(s.pods(t, shop.namespace, roleOf("shop", "deliverer")), s.pods(t, shop.namespace, roleOf("shop", "query"))...) {
		delete(before, pod.UID)
	}
	under := shop.startLoad(t, "roll", shop.key(t, "third"), shop.key(t, "second"))
	begin := time.Now()
	must(t, "kubectl", "-n", shop.namespace, "rollout", "restart", "deployment/shop-collector")
	must(t, "kubectl", "-n", shop.namespace, "rollout", "status", "deployment/shop-collector", "--timeout=3m")
	s.figure(t, "two collectors replaced", "%.1f s", time.Since(begin).Seconds())
	shop.ready(t)
	for _, replicas := range []int32{3, 1, 2} {
		begin := time.Now()
		shop.change(t, func(spec *v1alpha1.PropertySpec) { spec.Collector.Replicas = &replicas })
		shop.ready(t)
		s.figure(t, fmt.Sprintf("scaled to %d collectors", replicas), "%.1f s", time.Since(begin).Seconds())
	}
	s.goneUIDs(t, shop.namespace, before)
	under.noneFailed(t, under.stop(t))
}

func survivesRedis(t *testing.T, s *suite) {
	shop := s.tenantOf(t, "shop")
	under := shop.startLoad(t, "redis", shop.key(t, "third"), shop.key(t, "second"))
	for _, end := range []struct {
		name string
		by   func()
	}{
		{"Redis killed", func() { s.kill(t, s.pod(t, system, "weir-redis-0"), "redis") }},
		{"Redis's pod deleted", func() { must(t, "kubectl", "-n", system, "delete", "pod", "weir-redis-0") }},
	} {
		begin := time.Now()
		end.by()
		within(t, 2*time.Minute, "Redis is back", func() error {
			if pod := s.pod(t, system, "weir-redis-0"); !ready(pod) || pod.DeletionTimestamp != nil {
				return fmt.Errorf("it is %s", pod.Status.Phase)
			}
			return nil
		})
		under.goOn(t, 2*time.Second)
		s.figure(t, end.name+", until Redis is ready and 2 s of events are accepted", "%.1f s", time.Since(begin).Seconds())
		shop.ready(t)
	}
	results := under.stop(t)
	under.failedOnly(t, results, "503")
	under.noneLost(t, results)
}

// pod reads a pod; one that is not there at the moment has no status.
func (s *suite) pod(t *testing.T, namespace, name string) *corev1.Pod {
	t.Helper()
	var pod corev1.Pod
	if err := client.IgnoreNotFound(s.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, &pod)); err != nil {
		t.Fatal(err)
	}
	return &pod
}

func survivesTheOperator(t *testing.T, s *suite) {
	shop := s.tenantOf(t, "shop")
	under := shop.startLoad(t, "operator", shop.key(t, "third"), shop.key(t, "second"))
	namespace := shop.namespace
	crowd := func(name string) *tenant { return &tenant{suite: s, namespace: namespace, name: name} }
	create := func(name string) {
		property := s.property(name)
		property.Namespace = namespace
		property.Spec.Collector.Replicas, property.Spec.Query.Replicas, property.Spec.Deliverer.Replicas = new(int32(1)), new(int32(0)), new(int32(0))
		if err := s.Create(t.Context(), property); err != nil {
			t.Fatal(err)
		}
	}
	extend := func(spec *v1alpha1.PropertySpec) {
		spec.APIKeys = append(spec.APIKeys, v1alpha1.PropertyAPIKey{Name: "extra"})
		spec.Deliverer.Replicas = new(int32(1))
	}
	remove := func(name string) {
		if err := s.Delete(t.Context(), crowd(name).get(t)); err != nil {
			t.Fatal(err)
		}
	}

	create("crowd-a")
	create("crowd-b")
	s.killOperators(t)
	create("crowd-c")
	begin := time.Now()
	for _, name := range []string{"crowd-a", "crowd-b", "crowd-c"} {
		crowd(name).ready(t)
	}
	s.figure(t, "Properties made while all operators are killed, until Ready", "%.1f s", time.Since(begin).Seconds())

	crowd("crowd-a").change(t, extend)
	remove("crowd-b")
	s.killOperators(t)
	crowd("crowd-c").change(t, extend)
	begin = time.Now()
	for _, name := range []string{"crowd-a", "crowd-c"} {
		crowd(name).ready(t)
		crowd(name).key(t, "extra")
		if pods := s.pods(t, namespace, roleOf(name, "deliverer")); len(pods) != 1 {
			t.Errorf("%s is Ready with %d deliverers, want 1", name, len(pods))
		}
	}
	crowd("crowd-b").isGone(t)
	s.figure(t, "Properties changed and deleted while all operators are killed, until Ready and gone", "%.1f s", time.Since(begin).Seconds())

	remove("crowd-a")
	remove("crowd-c")
	crowd("crowd-a").isGone(t)
	crowd("crowd-c").isGone(t)
	under.noneFailed(t, under.stop(t))
}

// killOperators kills every operator at the same time, the one that works and the one that waits.
func (s *suite) killOperators(t *testing.T) {
	t.Helper()
	for _, pod := range s.pods(t, system, map[string]string{"app.kubernetes.io/name": "weir-operator"}) {
		s.kill(t, &pod, "operator")
	}
}

func survivesTheKubelet(t *testing.T, s *suite) {
	shop := s.tenantOf(t, "shop")
	before := s.restarts(t)
	under := shop.startLoad(t, "kubelet", shop.key(t, "third"), shop.key(t, "second"))
	var nodes corev1.NodeList
	if err := s.List(t.Context(), &nodes); err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	must(t, settings.node, "restart", "kubelet")
	restarted := time.Now()
	within(t, time.Minute, "the kubelet reports again", func() error { // by its lease; the node's status it writes only where that changes
		var lease coordinationv1.Lease
		if err := s.Get(t.Context(), client.ObjectKey{Namespace: corev1.NamespaceNodeLease, Name: nodes.Items[0].Name}, &lease); err != nil {
			return err
		}
		if renewed := lease.Spec.RenewTime; renewed == nil || !renewed.After(restarted) {
			return fmt.Errorf("its lease was renewed at %v", renewed)
		}
		return nil
	})
	s.figure(t, "the kubelet is restarted, until it reports again", "%.1f s", time.Since(begin).Seconds())
	begin = time.Now()
	shop.change(t, func(spec *v1alpha1.PropertySpec) { spec.Query.Replicas = new(int32(2)) })
	shop.ready(t)
	s.figure(t, "a second query pod afterwards, until Ready", "%.1f s", time.Since(begin).Seconds())
	shop.change(t, func(spec *v1alpha1.PropertySpec) { spec.Query.Replicas = new(int32(1)) })
	shop.ready(t)
	for pod, count := range before {
		if now, there := s.restarts(t)[pod]; !there || now != count {
			t.Errorf("pod %s was restarted %d times before, and %d times now (there: %t)", pod, count, now, there)
		}
	}
	under.noneFailed(t, under.stop(t))
}

// restarts are those of the suite's pods, but for the query pods, by UID.
func (s *suite) restarts(t *testing.T) map[types.UID]int32 {
	t.Helper()
	counts := map[types.UID]int32{}
	for _, namespace := range []string{system, s.namespaceOf("shop")} {
		for _, pod := range s.pods(t, namespace, nil) {
			if pod.Labels["app.kubernetes.io/component"] == "query" {
				continue
			}
			for _, container := range pod.Status.ContainerStatuses {
				counts[pod.UID] += container.RestartCount
			}
		}
	}
	return counts
}
