package controllers_test

import (
	"encoding/base64"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/collector/config"
	"github.com/weir-dev/weir/collector/redisserver/redistest"
	"github.com/weir-dev/weir/collector/role"
	"github.com/weir-dev/weir/controllers"
)

// forwarder is an HTTP proxy by which every address leads to one server, for a user with the password of the moment.
type forwarder struct {
	*httptest.Server
	to string

	mu       sync.Mutex
	password string
	asked    map[string]int // by the status that was answered and the target
}

func newForwarder(t testing.TB, to, password string) *forwarder {
	t.Helper()
	f := &forwarder{to: to, password: password, asked: map[string]int{}}
	f.Server = httptest.NewServer(f)
	t.Cleanup(f.Close)
	return f
}

func (f *forwarder) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	status := http.StatusOK
	if r.Header.Get("Proxy-Authorization") != "Basic "+base64.StdEncoding.EncodeToString([]byte("weir:"+f.password)) {
		status = http.StatusProxyAuthRequired
	}
	f.asked[fmt.Sprintf("%d %s", status, r.Host)]++
	f.mu.Unlock()
	if status != http.StatusOK || r.Method != http.MethodConnect {
		w.WriteHeader(status)
		return
	}
	there, err := (&net.Dialer{}).DialContext(r.Context(), "tcp", f.to)
	if err != nil {
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	defer there.Close()
	here, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer here.Close()
	_, _ = io.WriteString(here, "HTTP/1.1 200 OK\r\n\r\n")
	go func() { _, _ = io.Copy(there, buffered) }()
	_, _ = io.Copy(here, there)
}

func (f *forwarder) count(answer string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.asked[answer]
}

// reached is the host that the webhook below names, as the proxy is asked for it.
const reached = "93.184.216.34:80"

// TestDeliveriesGoThroughTheProxy runs a real deliverer with what the operator gives it. Another password reaches it without a
// restart, and no password is in a status, an event or the log.
func TestDeliveriesGoThroughTheProxy(t *testing.T) {
	t.Parallel()
	namespace, secret := newNamespace(t), newSigningSecret()
	hook := newReceiver(t, secret)
	proxy := newForwarder(t, strings.TrimPrefix(hook.URL, "http://"), "hunter2-first")
	first := controllers.Options{
		RedisURL: redistest.URL(t), DeliveryProxy: config.DeliveryProxy{URL: strings.Replace(proxy.URL, "://", "://weir:hunter2-first@", 1)},
	}
	log := &lockedBuffer{}
	running := startOperator(t, operatorOptions{namespaces: []string{namespace}, Options: first, log: slog.New(slog.NewTextHandler(log, nil))})
	create(t, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "crm"}, StringData: map[string]string{"signingSecret": secret}})
	create(t, property(namespace, "shop", webhookTo(hook, "crm"), func(p *v1alpha1.Property) { p.Spec.Platforms[0].Webhook.URL = "http://93.184.216.34/hook" }))
	settled(t, namespace, "shop")
	rollOut(t, namespace, "shop")
	waitFor(t, namespace, "shop", v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonReady)
	collect, _ := pod(t, namespace, "shop", "collector", role.Collect)
	_, said := pod(t, namespace, "shop", "deliverer", role.Deliver)
	key := credential(t, namespace, "shop", "api-key.default")
	delivered := func(t *testing.T, n int) {
		t.Helper()
		if got := send(t, collect, key); got != http.StatusAccepted {
			t.Fatalf("the event is answered %d", got)
		}
		eventually(t, func() error {
			if taken, _ := hook.counts(); taken < n {
				return fmt.Errorf("%d events were delivered, want %d", taken, n)
			}
			return nil
		})
	}
	delivered(t, 1)
	if proxy.count("200 "+reached) == 0 {
		t.Error("the proxy was not asked")
	}
	policy := get(t, &networkingv1.NetworkPolicy{}, namespace, "shop-deliverer")
	for _, rule := range policy.Spec.Egress {
		for _, peer := range rule.To {
			if peer.IPBlock != nil && peer.IPBlock.CIDR != "127.0.0.1/32" {
				t.Errorf("the deliverer may go around the proxy, to %s", peer.IPBlock.CIDR)
			}
		}
	}

	generation := get(t, &appsv1.Deployment{}, namespace, "shop-deliverer").Generation
	running.stop()
	proxy.mu.Lock()
	proxy.password = "hunter2-second"
	proxy.mu.Unlock()
	proxy.CloseClientConnections()
	second := first
	second.DeliveryProxy.URL = strings.Replace(proxy.URL, "://", "://weir:hunter2-second@", 1)
	running = startOperator(t, operatorOptions{namespaces: []string{namespace}, Options: second, log: slog.New(slog.NewTextHandler(log, nil))})
	delivered(t, 2)
	if after := get(t, &appsv1.Deployment{}, namespace, "shop-deliverer").Generation; after != generation {
		t.Error("the deliverer was replaced for another password of the proxy's")
	}
	running.stop()

	third := first
	third.DeliveryProxy = config.DeliveryProxy{}
	startOperator(t, operatorOptions{namespaces: []string{namespace}, Options: third, log: slog.New(slog.NewTextHandler(log, nil))})
	eventually(t, func() error {
		err := server.client.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "shop-delivery-proxy"}, &corev1.Secret{})
		if client.IgnoreNotFound(err) != nil || err == nil {
			return fmt.Errorf("the Secret of the proxy that there is no more: %w", err)
		}
		return nil
	})
	for what, text := range map[string]string{"the operator's log": log.String(), "the deliverer's log": said.String(), "the status": fmt.Sprint(get(t, &v1alpha1.Property{}, namespace, "shop").Status)} {
		if strings.Contains(text, "hunter2") {
			t.Errorf("%s holds the proxy's password", what)
		}
	}
}
