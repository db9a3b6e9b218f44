package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-dev/weir/api/v1alpha1"
)

// transient are the kinds that Kubernetes itself makes and removes, whoever asks.
var transient = []string{"Event", "EndpointSlice", "Endpoints", "ControllerRevision", "Lease", "PodMetrics"}

// kinds are all kinds that can be listed: those of namespaces, or those of the cluster.
func (s *suite) kinds(namespaced bool) ([]schema.GroupVersionKind, error) {
	lists, err := s.discovery.ServerPreferredResources()
	if err != nil {
		return nil, err
	}
	var kinds []schema.GroupVersionKind
	for _, list := range discovery.FilteredBy(discovery.SupportsAllVerbs{Verbs: []string{"list", "delete"}}, lists) {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return nil, err
		}
		for _, kind := range list.APIResources {
			if kind.Namespaced == namespaced && !slices.Contains(transient, kind.Kind) {
				kinds = append(kinds, version.WithKind(kind.Kind))
			}
		}
	}
	return kinds, nil
}

// everything lists the objects of all kinds in a namespace, or those of the cluster where that is "", as Kind/name.
func (s *suite) everything(t *testing.T, namespace string, options ...client.ListOption) ([]string, error) {
	t.Helper()
	kinds, err := s.kinds(namespace != "")
	if err != nil {
		return nil, err
	}
	var names []string
	for _, kind := range kinds {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(kind)
		if err := s.List(t.Context(), list, append(options, client.InNamespace(namespace))...); err != nil {
			return nil, err
		}
		for _, object := range list.Items {
			names = append(names, kind.Kind+"/"+object.Name)
		}
	}
	slices.Sort(names)
	return names, nil
}

// objects lists what a Property has, and itself.
func (s *suite) objects(t *testing.T, namespace, property string) ([]string, error) {
	t.Helper()
	names, err := s.everything(t, namespace, client.MatchingLabels{"app.kubernetes.io/instance": property, "app.kubernetes.io/name": "weir"})
	if err != nil {
		return nil, err
	}
	itself := &metav1.PartialObjectMetadata{}
	itself.SetGroupVersionKind(schema.GroupVersionKind{Group: "weir.dev", Version: "v1alpha1", Kind: "Property"})
	if err := s.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: property}, itself); err == nil {
		names = append(names, "Property/"+property)
	} else if client.IgnoreNotFound(err) != nil {
		return nil, err
	}
	return names, nil
}

// isGone waits until a deleted Property and all that it had are gone, and its users in Redis. It returns how long it took.
func (it *tenant) isGone(t *testing.T) time.Duration {
	t.Helper()
	return within(t, 3*time.Minute, it.name+" is gone", func() error {
		left, err := it.objects(t, it.namespace, it.name)
		if err != nil {
			return err
		}
		for user := range strings.FieldsSeq(it.administrator(t, "ACL USERS")[0]) {
			if strings.HasPrefix(user, fmt.Sprintf("weir:%s/%s:", it.namespace, it.name)) {
				left = append(left, "the Redis user "+user)
			}
		}
		if len(left) > 0 {
			return fmt.Errorf("there are %s", strings.Join(left, ", "))
		}
		return nil
	})
}

// redisKeys are the Property's, in order.
func (it *tenant) redisKeys(t *testing.T) []string {
	t.Helper()
	keys := strings.Fields(it.administrator(t, "KEYS "+it.stream("*"))[0])
	slices.Sort(keys)
	return keys
}

// lifetime is how long Redis will still keep the Property's events; 0 is for ever.
func (it *tenant) lifetime(t *testing.T) time.Duration {
	t.Helper()
	answer := it.administrator(t, "PTTL "+it.stream("events"))[0]
	milliseconds, err := strconv.Atoi(answer)
	if err != nil || milliseconds < -1 {
		t.Fatalf("Redis says %s of the life of %s", answer, it.stream("events"))
	}
	return time.Duration(max(milliseconds, 0)) * time.Millisecond
}

// stock sends some events and returns the listing of them.
func (it *tenant) stock(t *testing.T) []record {
	t.Helper()
	key := it.key(t, "default")
	const count = 20
	it.knows(t, key, http.StatusAccepted)
	for i := range count {
		body, err := json.Marshal(map[string]any{
			"event": "purchase", "event_id": fmt.Sprintf("stock-%d", i), "client_id": "ann", "data": map[string]any{"value": i, "currency": "EUR", "order_id": fmt.Sprint(i)},
		})
		if err != nil {
			t.Fatal(err)
		}
		if status, answer := it.send(t, key, string(body)); status != http.StatusAccepted {
			t.Fatalf("event %d: %d %s", i, status, answer)
		}
	}
	return it.stocked(t, count)
}

// stocked waits until so many purchases are listed and delivered, and returns them.
func (it *tenant) stocked(t *testing.T, count int) []record {
	t.Helper()
	var records []record
	within(t, 30*time.Second, "the purchases are listed as delivered", func() error {
		var err error
		if records, err = it.list(t, "purchase"); err != nil {
			return err
		}
		for _, one := range records {
			if err := one.delivered(1); err != nil {
				return err
			}
		}
		if len(records) != count {
			return fmt.Errorf("%d of %d are listed", len(records), count)
		}
		return nil
	})
	return records
}

func deletes(t *testing.T, s *suite) {
	add := func(name string, policy v1alpha1.DeletionPolicy) *tenant {
		property := s.expose(s.property(name))
		property.Spec.DeletionPolicy = policy
		return s.apply(t, property)
	}
	remove := func(it *tenant, what string) {
		if err := s.Delete(t.Context(), it.get(t)); err != nil {
			t.Fatal(err)
		}
		s.figure(t, what, "%.1f s", it.isGone(t).Seconds())
	}

	keeper := add("keeper", "Retain")
	before := keeper.stock(t)
	remove(keeper, "a Property with Retain is deleted, until it and its users are gone")
	// 62 days is the retention that a Property has by default.
	if ttl := keeper.lifetime(t); ttl < 61*24*time.Hour || ttl > 62*24*time.Hour {
		t.Errorf("the retained events expire in %s, want 62 days", ttl)
	}
	keeper = add("keeper", "Delete")
	if diff := cmp.Diff(before, keeper.stocked(t, len(before))); diff != "" {
		t.Errorf("a Property of the same name finds other events than before (-before +now):\n%s", diff)
	}
	if ttl := keeper.lifetime(t); ttl != 0 {
		t.Errorf("the events that were found again expire in %s, want never", ttl)
	}
	if keys := keeper.redisKeys(t); len(keys) == 0 {
		t.Error("a Property with events has no keys in Redis")
	}
	remove(keeper, "a Property with Delete is deleted, until it and its users are gone")
	if keys := keeper.redisKeys(t); len(keys) > 0 {
		t.Errorf("Redis still has %s", strings.Join(keys, ", "))
	}
}

func uninstalls(t *testing.T, s *suite) {
	var properties v1alpha1.PropertyList
	if err := s.List(t.Context(), &properties); err != nil {
		t.Fatal(err)
	}
	var namespaces []string
	for _, property := range properties.Items {
		if s.node || property.Namespace == system {
			namespaces = append(namespaces, property.Namespace)
			must(t, "kubectl", "-n", property.Namespace, "delete", "property", property.Name, "--timeout=3m")
		}
	}
	if users := strings.Fields(s.administrator(t, "ACL USERS")[0]); slices.ContainsFunc(users, func(user string) bool { return strings.HasPrefix(user, "weir:") }) {
		t.Errorf("Redis still has users of Properties: %v", users)
	}
	begin := time.Now()
	must(t, "helm", "uninstall", release, "--namespace", system, "--wait", "--timeout", "3m")
	s.figure(t, "helm uninstall", "%.1f s", time.Since(begin).Seconds())

	// What Kubernetes makes in every namespace, what the customer has made, and the volume, which uninstalling leaves on purpose.
	known := []string{"ConfigMap/kube-root-ca.crt", "ServiceAccount/default", "Pod/peer", "Service/peer", "Secret/shop-crm", "PersistentVolumeClaim/data-weir-redis-0"}
	namespaces = append(namespaces, system)
	within(t, 2*time.Minute, "nothing but the volume is left in the namespaces", func() error {
		for _, namespace := range namespaces {
			names, err := s.everything(t, namespace)
			if err != nil {
				return err
			}
			names = slices.DeleteFunc(names, func(name string) bool {
				return slices.Contains(known, name) || !s.node && !strings.Contains(name, "weir")
			})
			if len(names) > 0 {
				return fmt.Errorf("%s has %s", namespace, strings.Join(names, ", "))
			}
		}
		return nil
	})
	var claim corev1.PersistentVolumeClaim
	if err := s.Get(t.Context(), client.ObjectKey{Namespace: system, Name: "data-weir-redis-0"}, &claim); err != nil {
		t.Errorf("the volume's claim: %v, want it kept", err)
	}
	if !s.node {
		return // other releases may be there
	}
	definitions := []string{
		"CustomResourceDefinition/accesstokens.weir.dev", "CustomResourceDefinition/apikeys.weir.dev", "CustomResourceDefinition/properties.weir.dev",
	}
	names, err := s.everything(t, "", client.MatchingLabels{"app.kubernetes.io/part-of": "weir", "app.kubernetes.io/instance": release})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(definitions, slices.Compact(names)); diff != "" {
		t.Errorf("what of the release is left in the cluster (-want +got):\n%s", diff)
	}
}
