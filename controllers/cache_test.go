package controllers_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/collector/platforms"
	"github.com/weir-dev/weir/collector/redisserver/redistest"
	"github.com/weir-dev/weir/controllers"
)

// requestRecorder notes what the operator lists and watches: the resource, and in which form it wants it.
type requestRecorder struct {
	next http.RoundTripper

	mu    sync.Mutex
	forms map[string]map[string]bool
}

func (r *requestRecorder) RoundTrip(request *http.Request) (*http.Response, error) {
	_, resource, _ := strings.Cut(request.URL.Path, "/namespaces/")
	if _, collection, found := strings.Cut(resource, "/"); found && request.Method == http.MethodGet && !strings.Contains(collection, "/") {
		r.mu.Lock()
		if r.forms[collection] == nil {
			r.forms[collection] = map[string]bool{}
		}
		r.forms[collection][request.Header.Get("Accept")] = true
		r.mu.Unlock()
	}
	return r.next.RoundTrip(request)
}

// TestNoCacheHoldsWhatASecretHolds watches what the operator asks for, and looks into its cache: of Secrets it has
// the metadata, without the annotation in which kubectl repeats the values.
func TestNoCacheHoldsWhatASecretHolds(t *testing.T) {
	const value = "a-value-that-no-cache-may-hold"
	namespace := newNamespace(t)
	create(t, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "foreign", Annotations: map[string]string{corev1.LastAppliedConfigAnnotation: value}},
		StringData: map[string]string{"key": value},
	})
	recorder := &requestRecorder{forms: map[string]map[string]bool{}}
	recorded := rest.CopyConfig(server.config)
	recorded.Wrap(func(next http.RoundTripper) http.RoundTripper { recorder.next = next; return recorder })
	skip := true
	mgr, err := ctrl.NewManager(recorded, ctrl.Options{
		Scheme: server.scheme, Cache: controllers.CacheOptions([]string{namespace}), Logger: logr.Discard(),
		Metrics: metricsserver.Options{BindAddress: "0"}, Controller: config.Controller{SkipNameValidation: &skip},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	if err := controllers.Setup(ctx, mgr, controllers.Options{RedisURL: redistest.URL(t), Image: "weir:test"}, slog.New(slog.DiscardHandler), nil); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	defer func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("the operator ended with %v", err)
		}
	}()
	create(t, property(namespace, "shop"))
	settled(t, namespace, "shop")

	cached := &metav1.PartialObjectMetadataList{}
	cached.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("SecretList"))
	eventually(t, func() error {
		if err := mgr.GetCache().List(ctx, cached, client.InNamespace(namespace)); err != nil {
			return err
		}
		if len(cached.Items) < 7 {
			return fmt.Errorf("the cache knows %d Secrets, want the foreign one and the Property's six", len(cached.Items))
		}
		return nil
	})
	text, err := json.Marshal(cached)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(text), value) {
		t.Error("the cache holds the annotation in which kubectl repeats a Secret")
	}
	recorder.mu.Lock()
	defer recorder.mu.Unlock()
	if len(recorder.forms["secrets"]) == 0 {
		t.Fatalf("Secrets are not watched, only %v", slices.Sorted(maps.Keys(recorder.forms)))
	}
	for resource, forms := range recorder.forms {
		for form := range forms {
			whole := !strings.Contains(form, "as=PartialObjectMetadata")
			if whole != slices.Contains([]string{"properties", "accesstokens", "apikeys", "deployments"}, resource) {
				t.Errorf("%s are asked for as %q", resource, form)
			}
		}
	}
}

// TestAnotherOperatorReplacesPodsForAnotherImageAlone runs one operator after the other, as an upgrade does.
func TestAnotherOperatorReplacesPodsForAnotherImageAlone(t *testing.T) {
	namespace := newNamespace(t)
	o := operatorOptions{namespaces: []string{namespace}, Options: controllers.Options{RedisURL: redistest.URL(t), Image: "weir:1"}}
	first := startOperator(t, o)
	create(t, property(namespace, "shop"))
	p := settled(t, namespace, "shop")
	quiet(t, p)
	first.stop()
	generations := func() map[string]int64 {
		found := map[string]int64{}
		for _, role := range []string{"collector", "deliverer", "query"} {
			found[role] = get(t, &appsv1.Deployment{}, namespace, "shop-"+role).Generation
		}
		return found
	}
	before := generations()

	// What it allows is another matter than what the pods run.
	o.EgressAllowCIDRs = []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}
	o.PlatformEndpoints = map[platforms.Type]string{platforms.TypeMeta: "https://meta.example.com"}
	o.Exposure.AllowedHosts = map[string][]string{"*": {"example.com"}}
	second := startOperator(t, o)
	eventually(t, func() error {
		if text := get(t, &corev1.ConfigMap{}, namespace, "shop-config").Data["property.json"]; !strings.Contains(text, "10.0.0.0/8") {
			return fmt.Errorf("the second operator has not applied its ranges: %s", text)
		}
		return nil
	})
	quiet(t, p)
	second.stop()
	if after := generations(); !maps.Equal(before, after) {
		t.Errorf("another operator with the same image has replaced pods: %v, before %v", after, before)
	}

	o.Image = "weir:2"
	startOperator(t, o)
	eventually(t, func() error {
		for role, generation := range generations() {
			if generation == before[role] {
				return fmt.Errorf("the pods of %s do not run the new image", role)
			}
		}
		return nil
	})
}

// lookCounter counts how often the operator looks at each Property: a reconcile begins with that.
type lookCounter struct {
	client.Client
	mu    sync.Mutex
	looks map[string]int
}

func (l *lookCounter) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	if _, isProperty := object.(*v1alpha1.Property); isProperty {
		l.mu.Lock()
		l.looks[key.Name]++
		l.mu.Unlock()
	}
	return l.Client.Get(ctx, key, object, options...)
}

func (l *lookCounter) wrap(c client.Client) client.Client {
	l.Client, l.looks = c, map[string]int{}
	return l
}

func (l *lookCounter) lookedAt() map[string]int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Clone(l.looks)
}

// TestEveryPropertyIsLookedAtAgainWithoutAWrite has everything looked at again and again, much sooner than the ten
// hours that it takes otherwise.
func TestEveryPropertyIsLookedAtAgainWithoutAWrite(t *testing.T) {
	namespace := newNamespace(t)
	counter := &lookCounter{}
	running := startOperator(t, operatorOptions{
		namespaces: []string{namespace}, Options: controllers.Options{RedisURL: redistest.URL(t), SyncPeriod: time.Second}, wrap: counter.wrap,
	})
	for i := range 3 {
		create(t, property(namespace, fmt.Sprintf("shop-%d", i)))
	}
	for i := range 3 {
		quiet(t, settled(t, namespace, fmt.Sprintf("shop-%d", i)))
	}
	writes, before := running.writes.Load(), counter.lookedAt()
	eventually(t, func() error {
		for name, n := range counter.lookedAt() {
			if n < before[name]+3 {
				return fmt.Errorf("%s was looked at only %d times", name, n-before[name])
			}
		}
		return nil
	})
	if got := running.since(writes); len(got) > 0 {
		t.Errorf("looking again has written: %v", got)
	}
}

// TestPropertiesThatShareAnAPIHostDoNotConcernEachOther: the host of the read API may be one for all, so a change
// of one Property must not have all the others reconciled.
func TestPropertiesThatShareAnAPIHostDoNotConcernEachOther(t *testing.T) {
	namespace := newNamespace(t)
	counter := &lookCounter{}
	startOperator(t, operatorOptions{namespaces: []string{namespace}, Options: controllers.Options{RedisURL: redistest.URL(t)}, wrap: counter.wrap})
	for i := range 5 {
		create(t, property(namespace, fmt.Sprintf("sharing-%d", i), func(p *v1alpha1.Property) {
			p.Spec.Exposure = v1alpha1.Exposure{Type: v1alpha1.ExposureIngress,
				CollectHost: fmt.Sprintf("collect-%d.sharing.example.com", i), APIHost: "api.sharing.example.com"}
		}))
	}
	for i := range 5 {
		quiet(t, settled(t, namespace, fmt.Sprintf("sharing-%d", i)))
	}
	looks := counter.lookedAt()
	change(t, &v1alpha1.Property{}, namespace, "sharing-0", func(p *v1alpha1.Property) { p.Spec.TimeZone = "Europe/Berlin" })
	quiet(t, settled(t, namespace, "sharing-0"))
	for name, n := range counter.lookedAt() {
		if changed := n > looks[name]; changed != (name == "sharing-0") {
			t.Errorf("%s was looked at %d times when sharing-0 changed", name, n-looks[name])
		}
	}
}
