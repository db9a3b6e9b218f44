package controllers_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	managerconfig "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/collector/stream"
	"github.com/weir-dev/weir/controllers"
	"github.com/weir-dev/weir/controllers/kubetest"
)

// apiServer is a real etcd and kube-apiserver, without the controllers of a cluster: no pods, no garbage
// collection, no rollouts but those that a test plays.
type apiServer struct {
	config *rest.Config
	scheme *runtime.Scheme
	client client.Client
}

// server is started once for all tests; each has a namespace of its own.
var server *apiServer

var namespaces atomic.Int64

func TestMain(m *testing.M) { os.Exit(runTests(m)) }

func runTests(m *testing.M) int {
	stream.RouteLogs(slog.New(slog.DiscardHandler))
	started, err := kubetest.Start("..", func(environment *envtest.Environment) {
		environment.CRDDirectoryPaths = append(environment.CRDDirectoryPaths, "testdata/crds")
		// Every Property of these tests has two Services, and the usual range has 254 addresses.
		environment.ControlPlane.GetAPIServer().Configure().Set("service-cluster-ip-range", "10.0.0.0/16")
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() {
		if err := started.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, "stop etcd and kube-apiserver:", err)
		}
	}()
	server = &apiServer{started.Config, started.Client.Scheme(), started.Client}
	return m.Run()
}

// newNamespace makes a namespace for one test.
func newNamespace(t testing.TB) string {
	t.Helper()
	name := fmt.Sprintf("test-%d", namespaces.Add(1))
	create(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	return name
}

// operator is a running operator; it counts what it writes.
type operator struct {
	writes *atomic.Int64
	stop   func()

	mu    sync.Mutex
	calls []string
}

type operatorOptions struct {
	namespaces []string
	controllers.Options
	wrap func(client.Client) client.Client
	log  *slog.Logger
	// user is as whom it speaks to the API server; nobody's rights are bounded by default.
	user string
}

// startOperator runs the operator for some namespaces until the test, or whoever calls stop, ends it.
func startOperator(t testing.TB, o operatorOptions) *operator {
	t.Helper()
	skip := true
	if o.Image == "" {
		o.Image = "weir:test"
	}
	if o.RedisAllowCIDRs == nil {
		o.RedisAllowCIDRs = loopback
	}
	if o.ClickHouseAllowCIDRs == nil {
		o.ClickHouseAllowCIDRs = loopback
	}
	if o.Exposure.AllowedHosts == nil {
		o.Exposure.AllowedHosts = map[string][]string{"*": {"*"}}
	}
	if o.log == nil {
		o.log = slog.New(slog.DiscardHandler)
	}
	config := rest.CopyConfig(server.config)
	config.Impersonate.UserName = o.user
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Scheme: server.scheme, Cache: controllers.CacheOptions(o.namespaces), Logger: logr.FromSlogHandler(o.log.Handler()),
		Metrics: metricsserver.Options{BindAddress: "0"}, Controller: managerconfig.Controller{SkipNameValidation: &skip},
	})
	if err != nil {
		t.Fatal(err)
	}
	running := &operator{writes: &atomic.Int64{}}
	wrap := func(c client.Client) client.Client {
		c = &watchedClient{Client: c, before: func(call string) error {
			running.mu.Lock()
			defer running.mu.Unlock()
			running.calls = append(running.calls, call)
			running.writes.Add(1)
			return nil
		}}
		if o.wrap != nil {
			c = o.wrap(c)
		}
		return c
	}
	ctx, cancel := context.WithCancel(context.Background())
	if err := controllers.Setup(ctx, mgr, o.Options, o.log, wrap); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	running.stop = func() {
		if cancel == nil {
			return
		}
		cancel()
		cancel = nil
		if err := <-done; err != nil {
			t.Errorf("the operator ended with %v", err)
		}
	}
	t.Cleanup(running.stop)
	return running
}

// since returns the calls after the first n.
func (o *operator) since(n int64) []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.calls[n:])
}

// watchedClient calls before ahead of every write, and passes its error on in place of writing; after where the
// write has been done.
type watchedClient struct {
	client.Client
	before func(call string) error
	after  func(call string) error
}

func (c *watchedClient) around(call string, write func() error) error {
	if err := c.before(call); err != nil {
		return err
	}
	err := write()
	if err == nil && c.after != nil {
		return c.after(call)
	}
	return err
}

func describe(verb string, object any) string {
	if u, isObject := object.(interface{ GetName() string }); isObject {
		if k, hasKind := object.(interface{ GetKind() string }); hasKind {
			return fmt.Sprintf("%s %s %s", verb, k.GetKind(), u.GetName())
		}
	}
	if o, ok := object.(client.Object); ok {
		return fmt.Sprintf("%s %T %s", verb, object, o.GetName())
	}
	return fmt.Sprintf("%s %T", verb, object)
}

func (c *watchedClient) Create(ctx context.Context, obj client.Object, opts ...client.CreateOption) error {
	return c.around(describe("create", obj), func() error { return c.Client.Create(ctx, obj, opts...) })
}

func (c *watchedClient) Update(ctx context.Context, obj client.Object, opts ...client.UpdateOption) error {
	return c.around(describe("update", obj), func() error { return c.Client.Update(ctx, obj, opts...) })
}

func (c *watchedClient) Delete(ctx context.Context, obj client.Object, opts ...client.DeleteOption) error {
	return c.around(describe("delete", obj), func() error { return c.Client.Delete(ctx, obj, opts...) })
}

func (c *watchedClient) Patch(ctx context.Context, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
	return c.around(describe("patch", obj), func() error { return c.Client.Patch(ctx, obj, patch, opts...) })
}

func (c *watchedClient) Apply(ctx context.Context, obj runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
	return c.around(describe("apply", obj), func() error { return c.Client.Apply(ctx, obj, opts...) })
}

func (c *watchedClient) Status() client.SubResourceWriter {
	return &watchedStatus{c.Client.Status(), c}
}

type watchedStatus struct {
	client.SubResourceWriter
	client *watchedClient
}

func (s *watchedStatus) Patch(ctx context.Context, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
	return s.client.around(describe("patch status of", obj), func() error { return s.SubResourceWriter.Patch(ctx, obj, patch, opts...) })
}

// eventually polls until check returns nil.
func eventually(t testing.TB, check func() error) {
	t.Helper()
	eventuallyWithin(t, 30*time.Second, check)
}

// eventuallyWithin waits for so long until a check succeeds.
func eventuallyWithin(t testing.TB, timeout time.Duration, check func() error) {
	t.Helper()
	deadline := time.Now().Add(timeout)
	ticker := time.NewTicker(25 * time.Millisecond)
	defer ticker.Stop()
	for {
		err := check()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("still after %s: %v", timeout, err)
		}
		<-ticker.C
	}
}

func create(t testing.TB, object client.Object) {
	t.Helper()
	if err := server.client.Create(context.Background(), object); err != nil {
		t.Fatalf("create %T %s: %v", object, object.GetName(), err)
	}
}

func get[T client.Object](t testing.TB, object T, namespace, name string) T {
	t.Helper()
	if err := server.client.Get(context.Background(), client.ObjectKey{Namespace: namespace, Name: name}, object); err != nil {
		t.Fatalf("get %T %s: %v", object, name, err)
	}
	return object
}

// change edits an object with what the server has of it.
func change[T client.Object](t testing.TB, object T, namespace, name string, edit func(T)) {
	t.Helper()
	eventually(t, func() error {
		get(t, object, namespace, name)
		edit(object)
		return server.client.Update(context.Background(), object)
	})
}

// property is a small one.
func property(namespace, name string, edit ...func(*v1alpha1.Property)) *v1alpha1.Property {
	p := &v1alpha1.Property{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	p.Spec.Currency = "EUR"
	for _, e := range edit {
		e(p)
	}
	return p
}

// waitFor waits until a condition of the Property's is as wanted, for its newest generation.
func waitFor(t testing.TB, namespace, name, condition string, status metav1.ConditionStatus, reason string) *v1alpha1.Property {
	t.Helper()
	p := &v1alpha1.Property{}
	eventually(t, func() error {
		get(t, p, namespace, name)
		found := meta.FindStatusCondition(p.Status.Conditions, condition)
		switch {
		case found == nil:
			return fmt.Errorf("%s: no condition %s", name, condition)
		case found.Status != status || found.Reason != reason:
			return fmt.Errorf("%s: %s is %s %s (%s), want %s %s", name, condition, found.Status, found.Reason, found.Message, status, reason)
		case p.Status.ObservedGeneration != p.Generation:
			return fmt.Errorf("%s: generation %d is not observed yet", name, p.Generation)
		}
		return nil
	})
	return p
}

// message returns a condition's message.
func message(p *v1alpha1.Property, condition string) string {
	if found := meta.FindStatusCondition(p.Status.Conditions, condition); found != nil {
		return found.Message
	}
	return ""
}
