package controllers_test

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/collector/connect"
	"github.com/weir-dev/weir/collector/stream"
	"github.com/weir-dev/weir/controllers"
	"github.com/weir-dev/weir/controllers/resources"
)

// byHand drives reconcilers one reconcile at a time. They share a cache of one namespace, and nothing else: each is
// an operator that has just started.
type byHand struct {
	namespace string
	manager   manager.Manager
}

func newByHand(t testing.TB) *byHand {
	t.Helper()
	h := &byHand{namespace: newNamespace(t)}
	var err error
	h.manager, err = ctrl.NewManager(server.config, ctrl.Options{
		Scheme: server.scheme, Cache: controllers.CacheOptions([]string{h.namespace}), Logger: logr.Discard(),
		Metrics: metricsserver.Options{BindAddress: "0"},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	if err := controllers.Index(ctx, h.manager.GetFieldIndexer()); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- h.manager.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("the cache ended with %v", err)
		}
	})
	if !h.manager.GetCache().WaitForCacheSync(ctx) {
		t.Fatal("the cache does not come up")
	}
	return h
}

// mortal is a reconciler with a fuse.
type mortal struct {
	*controllers.Reconciler
	fuse *fuse
}

// start makes an operator; stop ends its connections.
func (h *byHand) start(f *fuse, options controllers.Options, recorder events.EventRecorder) (operator *mortal, stop func()) {
	if options.Image == "" {
		options.Image = "weir:test"
	}
	if options.Now == nil {
		options.Now = time.Now
	}
	redis := controllers.NewRedisAccess(slog.New(slog.DiscardHandler), stream.TLSFiles{}, loopback, time.Now)
	reconciler := &controllers.Reconciler{
		Client: &watchedClient{Client: h.manager.GetClient(), before: func(string) error { return f.burn() }, after: func(string) error { return f.ash() }},
		Live:   mortalReader{h.manager.GetAPIReader(), f}, Redis: redis, History: controllers.NewHistoryAccess(slog.New(slog.DiscardHandler), connect.TLSFiles{}, loopback, time.Now), Recorder: recorder, Options: options,
		Available: func() map[schema.GroupVersionKind]bool {
			found := map[schema.GroupVersionKind]bool{}
			for _, kind := range resources.OptionalKinds() {
				found[kind] = true
			}
			return found
		},
	}
	return &mortal{reconciler, f}, func() {
		ended, cancel := context.WithCancel(context.Background())
		cancel()
		_ = redis.Start(ended) // it closes what it has
	}
}

// live reconciles until there is nothing more to do, or until the operator dies; over says when a deletion is done.
func (h *byHand) live(t testing.TB, operator *mortal, name string, over func() bool) {
	t.Helper()
	ctx := context.Background()
	request := reconcile.Request{NamespacedName: client.ObjectKey{Namespace: h.namespace, Name: name}}
	quiet := 0
	eventually(t, func() error {
		before := operator.fuse.writes.Load()
		result, err := operator.Reconcile(ctx, request)
		if operator.fuse.dead() || over() {
			return nil
		}
		// A cache that is behind makes for a reconcile that finds nothing to do, but not for several in a row.
		if quiet++; err != nil || operator.fuse.writes.Load() != before || (result.RequeueAfter > 0 && result.RequeueAfter < time.Second) || !h.seen(ctx, name) {
			quiet = 0
		}
		if quiet >= 3 {
			return nil
		}
		return errors.Join(errors.New("there is still something to do"), err)
	})
}

// seen says whether the cache has the Property as the server has it.
func (h *byHand) seen(ctx context.Context, name string) bool {
	var cached, live v1alpha1.Property
	key := client.ObjectKey{Namespace: h.namespace, Name: name}
	if h.manager.GetClient().Get(ctx, key, &cached) != nil || server.client.Get(ctx, key, &live) != nil {
		return false
	}
	return cached.ResourceVersion == live.ResourceVersion
}

// errKilled stands for the operator's death: from then on nothing of it reaches the API server or Redis.
var errKilled = errors.New("the operator is dead")

// fuse kills an operator after its n-th call, to whichever server: that call is made, but the operator does not hear
// what came of it.
type fuse struct {
	left          atomic.Int64
	calls, writes atomic.Int64
}

func newFuse(calls int64) *fuse {
	f := &fuse{}
	f.left.Store(calls)
	return f
}

// forever is more calls than any operator makes.
const forever = 1 << 40

// take counts a call and says whether it may be made, and whether it is the last.
func (f *fuse) take() (made, last bool) {
	left := f.left.Add(-1)
	if left >= 0 {
		f.calls.Add(1)
	}
	return left >= 0, left == 0
}

func (f *fuse) dead() bool { return f.left.Load() <= 0 }

// burn is called ahead of a write to the API server, ash after it.
func (f *fuse) burn() error {
	if made, _ := f.take(); !made {
		return errKilled
	}
	f.writes.Add(1)
	return nil
}

func (f *fuse) ash() error {
	if f.dead() {
		return errKilled
	}
	return nil
}

// mortalReader reads past the cache as long as the operator lives.
type mortalReader struct {
	client.Reader
	fuse *fuse
}

func (r mortalReader) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	made, last := r.fuse.take()
	if !made {
		return errKilled
	}
	err := r.Reader.Get(ctx, key, object, options...)
	if last {
		return errKilled
	}
	return err
}

func (r mortalReader) List(context.Context, client.ObjectList, ...client.ListOption) error {
	return errors.New("the operator lists past the cache, which this test does not count")
}

// redisProxy stands between operators and Redis. Each connection belongs to the fuse that is in when it is made;
// whatever is written to it in one piece, a command or a pipeline, is a call.
type redisProxy struct {
	target *url.URL
	url    string
	fuse   atomic.Pointer[fuse]
}

func newRedisProxy(t testing.TB, address string) *redisProxy {
	t.Helper()
	target, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &redisProxy{target: target, url: (&url.URL{Scheme: "redis", User: target.User, Host: listener.Addr().String()}).String()}
	p.fuse.Store(newFuse(forever))
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			go p.serve(connection.(*net.TCPConn), p.fuse.Load())
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		serving.Wait()
	})
	return p
}

// setAway has Redis end every connection, or take them again.
func (p *redisProxy) setAway(away bool) {
	p.fuse.Load().left.Store(0)
	p.fuse.Store(newFuse(forever))
	if away {
		p.fuse.Store(newFuse(0))
	}
}

func (p *redisProxy) serve(connection net.Conn, f *fuse) {
	defer connection.Close()
	network, address := "tcp", p.target.Host
	if p.target.Scheme == "unix" {
		network, address = "unix", p.target.Path
	}
	redis, err := (&net.Dialer{}).DialContext(context.Background(), network, address)
	if err != nil {
		return
	}
	defer redis.Close()
	var deaf atomic.Bool
	go func() {
		defer connection.Close()
		buffer := make([]byte, 64<<10)
		for {
			n, err := redis.Read(buffer)
			if err != nil || deaf.Load() {
				return
			}
			if _, err := connection.Write(buffer[:n]); err != nil {
				return
			}
		}
	}()
	buffer := make([]byte, 64<<10)
	for {
		n, err := connection.Read(buffer)
		if err != nil {
			return
		}
		made, last := f.take()
		if !made {
			return
		}
		deaf.Store(last)
		if _, err := redis.Write(buffer[:n]); err != nil {
			return
		}
	}
}
