package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/weir-dev/weir/api/v1alpha1"
)

// definitionSchema is the schema in a CustomResourceDefinition, as JSON.
func definitionSchema(t *testing.T, definition map[string]any) string {
	t.Helper()
	versions, _, err := unstructured.NestedSlice(definition, "spec", "versions")
	if err != nil || len(versions) != 1 {
		t.Fatalf("the definition has the versions %v, %v; want one", versions, err)
	}
	content, err := json.Marshal(member(versions[0], "schema"))
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// installedSchema is that of the cluster's definition of Property.
func (s *suite) installedSchema(t *testing.T) string {
	t.Helper()
	definition := &unstructured.Unstructured{}
	definition.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"})
	if err := s.Get(t.Context(), client.ObjectKey{Name: "properties.weir.dev"}, definition); err != nil {
		t.Fatal(err)
	}
	return definitionSchema(t, definition.Object)
}

func upgrades(t *testing.T, s *suite) {
	file, err := os.ReadFile(filepath.Join(settings.chart, "files", "weir.dev_properties.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var definition map[string]any
	if err := yaml.Unmarshal(file, &definition); err != nil {
		t.Fatal(err)
	}
	want := definitionSchema(t, definition)

	s.claim(t, system)
	s.helm(t, settings.beforeChart, settings.beforeImage, nil)
	s.figure(t, "the definition of Property differs from that of the chart before", "%t", s.installedSchema(t) != want)
	property := s.expose(s.property("shop"))
	property.Spec.APIKeys = []v1alpha1.PropertyAPIKey{{Name: "first"}, {Name: "second"}}
	s.claim(t, property.Namespace)
	s.ensurePeer(t, property.Namespace)
	shop := s.apply(t, property)
	s.served(t, shop)
	shop.knows(t, shop.key(t, "first"), 202)
	redis := s.pod(t, system, "weir-redis-0")
	carried := "carried-" + time.Now().Format("150405")
	shop.repeats(t, carried)

	under := shop.startLoad(t, "upgrade", shop.key(t, "first"), shop.key(t, "second"))
	old := s.uids(t, shop.namespace)
	begin := time.Now()
	s.helm(t, settings.chart, settings.image, nil)
	s.figure(t, "helm upgrade to another image, until the operator is ready", "%.1f s", time.Since(begin).Seconds())
	shop.runs(t, settings.image)
	s.figure(t, "until every pod of the Property runs the new image", "%.1f s", time.Since(begin).Seconds())
	if diff := cmp.Diff(want, s.installedSchema(t)); diff != "" {
		t.Errorf("the definition of Property after the upgrade (-chart's +cluster's):\n%s", diff)
	}
	if now := s.pod(t, system, "weir-redis-0"); now.UID != redis.UID || now.Status.ContainerStatuses[0].RestartCount != redis.Status.ContainerStatuses[0].RestartCount {
		t.Error("the upgrade restarted Redis")
	}
	s.goneUIDs(t, shop.namespace, old)
	shop.repeats(t, carried)

	// The same image with other values: the operator is replaced, and no tenant.
	tenants := s.uids(t, shop.namespace)
	operators := s.uids(t, system)
	begin = time.Now()
	s.helm(t, settings.chart, settings.image, map[string]any{"operator": map[string]any{"podAnnotations": map[string]any{"e2e": "again"}}})
	s.goneUIDs(t, system, operators)
	s.figure(t, "helm upgrade with the same image, until the operators before have ended", "%.1f s", time.Since(begin).Seconds())
	shop.change(t, func(spec *v1alpha1.PropertySpec) {
		spec.EventAliases = map[string]v1alpha1.EventName{"page_view": "pageview"}
	})
	shop.ready(t) // so the new operator has looked at it
	if diff := cmp.Diff(tenants, s.uids(t, shop.namespace)); diff != "" {
		t.Errorf("an upgrade that leaves the image as it was replaced pods of tenants (-before +after):\n%s", diff)
	}

	// Back to the release before, and forth again.
	for _, to := range []struct{ chart, image string }{{settings.beforeChart, settings.beforeImage}, {settings.chart, settings.image}} {
		begin = time.Now()
		s.helm(t, to.chart, to.image, nil)
		shop.runs(t, to.image)
		s.figure(t, "back and forth, until every pod of the Property runs "+to.image, "%.1f s", time.Since(begin).Seconds())
		shop.repeats(t, carried)
	}
	if diff := cmp.Diff(want, s.installedSchema(t)); diff != "" {
		t.Errorf("the definition of Property after the way back and forth (-chart's +cluster's):\n%s", diff)
	}
	under.noneFailed(t, under.stop(t))
	under.allDelivered(t)
	if records, err := shop.list(t, "carried"); err != nil || len(records) != 1 {
		t.Errorf("an event that was sent again to each version is listed %d times, %v; want once", len(records), err)
	}
}

// repeats sends an event that has been sent before, but for the first time.
func (it *tenant) repeats(t *testing.T, id string) {
	t.Helper()
	it.accepts(t, it.key(t, "first"), fmt.Sprintf(`{"event": "carried", "event_id": %q}`, id))
}

// allDelivered waits until each event that is listed has been delivered. What a deliverer that was killed had taken, another one takes
// over after 45 seconds.
func (u *underway) allDelivered(t *testing.T) {
	t.Helper()
	first := -1 // how many were not when that was asked first
	took := within(t, 90*time.Second, "every event is delivered", func() error {
		records, err := u.list(t, u.event)
		if err != nil {
			return err
		}
		waiting := slices.DeleteFunc(records, func(one record) bool { return one.delivered(1) == nil })
		if first < 0 {
			first = len(waiting)
		}
		if len(waiting) > 0 {
			return fmt.Errorf("%d are not: %w", len(waiting), waiting[0].delivered(1))
		}
		return nil
	})
	u.figure(t, "from then on, until all are delivered", "%.1f s; %d were not at first", took.Seconds(), first)
}

// runs waits until every pod of the Property runs an image and is ready, and the Property too.
func (it *tenant) runs(t *testing.T, image string) {
	t.Helper()
	within(t, 3*time.Minute, "every pod of the Property runs "+image, func() error {
		for _, role := range []string{"collector", "deliverer", "query"} {
			pods := it.pods(t, it.namespace, roleOf(it.name, role))
			if len(pods) == 0 {
				return errors.New("there is no " + role)
			}
			for _, pod := range pods {
				if runs := pod.Spec.Containers[0].Image; runs != image || !ready(&pod) {
					return fmt.Errorf("%s runs %s, ready: %t", pod.Name, runs, ready(&pod))
				}
			}
		}
		return nil
	})
	it.ready(t)
}

// uids are those of a namespace's pods, Redis's and the suite's own aside.
func (s *suite) uids(t *testing.T, namespace string) map[types.UID]string {
	t.Helper()
	uids := map[types.UID]string{}
	for _, pod := range s.pods(t, namespace, nil) {
		if pod.Name != "weir-redis-0" && pod.Name != "peer" {
			uids[pod.UID] = pod.Name
		}
	}
	return uids
}

// goneUIDs waits until none of the pods is there any more.
func (s *suite) goneUIDs(t *testing.T, namespace string, uids map[types.UID]string) {
	t.Helper()
	within(t, 2*time.Minute, "the pods of before have ended", func() error {
		var pods corev1.PodList
		if err := s.List(t.Context(), &pods, client.InNamespace(namespace)); err != nil {
			return err
		}
		for _, pod := range pods.Items {
			if name, there := uids[pod.UID]; there {
				return errors.New(name + " has not")
			}
		}
		return nil
	})
}
