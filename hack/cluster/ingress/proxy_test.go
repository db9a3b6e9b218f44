package ingress

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// serve makes a proxy whose one host leads to the endpoints.
func serve(t *testing.T, endpoints ...string) (*Proxy, string) {
	t.Helper()
	proxy := NewProxy(slog.New(slog.DiscardHandler))
	proxy.Use(&Table{routes: []route{{host: "shop.test", path: "/", endpoints: endpoints}}})
	server := httptest.NewServer(proxy)
	t.Cleanup(server.Close)
	return proxy, server.URL
}

// post sends a request to the host through the proxy.
func post(t *testing.T, url, host, body string) (int, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/collect", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Host = host
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(content)
}

// address is HOST:PORT of a test server.
func address(server *httptest.Server) string { return server.Listener.Addr().String() }

// nobody is an address that refuses connections.
func nobody(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}

func TestAPodGetsTheRequestAsItWasSent(t *testing.T) {
	pod := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		w.WriteHeader(http.StatusAccepted)
		_, err = io.WriteString(w, r.Host+" "+r.URL.Path+" "+r.Header.Get("X-Forwarded-For")+" "+string(body))
		if err != nil {
			t.Error(err)
		}
	}))
	defer pod.Close()
	_, url := serve(t, address(pod))
	status, got := post(t, url, "shop.test", "hello")
	if diff := cmp.Diff("shop.test /collect 127.0.0.1 hello", got); diff != "" || status != http.StatusAccepted {
		t.Errorf("status %d, answer (-want +got):\n%s", status, diff)
	}
}

func TestAPodThatRefusesConnectionsFailsNoRequest(t *testing.T) {
	var served atomic.Int32
	pod := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { served.Add(1) }))
	defer pod.Close()
	_, url := serve(t, nobody(t), address(pod), nobody(t))
	for range 20 {
		if status, answer := post(t, url, "shop.test", "hello"); status != http.StatusOK {
			t.Fatalf("status %d: %s", status, answer)
		}
	}
	if got := served.Load(); got != 20 {
		t.Errorf("the pod served %d requests, want 20", got)
	}
}

func TestARequestThatWasSentIsNotSentAgain(t *testing.T) {
	var served atomic.Int32
	breaking := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		served.Add(1)
		connection, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		connection.Close()
	})
	first, second := httptest.NewServer(breaking), httptest.NewServer(breaking)
	defer first.Close()
	defer second.Close()
	_, url := serve(t, address(first), address(second))
	if status, _ := post(t, url, "shop.test", "hello"); status != http.StatusBadGateway {
		t.Errorf("status %d, want 502", status)
	}
	if got := served.Load(); got != 1 {
		t.Errorf("the pods got the request %d times, want once", got)
	}
}

func TestWhatCannotBeServedSaysWhy(t *testing.T) {
	for does, tt := range map[string]struct {
		host      string
		endpoints []string
		want      int
	}{
		"no Ingress has the host": {"else.test", nil, http.StatusNotFound},
		"no pod is ready":         {"shop.test", nil, http.StatusServiceUnavailable},
		"no pod answers":          {"shop.test", []string{nobody(t)}, http.StatusServiceUnavailable},
	} {
		t.Run(does, func(t *testing.T) {
			_, url := serve(t, tt.endpoints...)
			if status, answer := post(t, url, tt.host, ""); status != tt.want {
				t.Errorf("status %d (%s), want %d", status, answer, tt.want)
			}
		})
	}
}

func TestAPodThatLeavesFinishesWhatItHasBegun(t *testing.T) {
	entered, leave := make(chan struct{}), make(chan struct{})
	old := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		close(entered)
		<-leave
		if _, err := io.WriteString(w, "old"); err != nil {
			t.Error(err)
		}
	}))
	defer old.Close()
	fresh := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if _, err := io.WriteString(w, "fresh"); err != nil {
			t.Error(err)
		}
	}))
	defer fresh.Close()
	proxy, url := serve(t, address(old))
	answers := make(chan string, 1)
	go func() {
		_, answer := post(t, url, "shop.test", "")
		answers <- answer
	}()
	<-entered
	proxy.Use(&Table{routes: []route{{host: "shop.test", path: "/", endpoints: []string{address(fresh)}}}})
	if _, answer := post(t, url, "shop.test", ""); answer != "fresh" {
		t.Errorf("after the change %q answers, want fresh", answer)
	}
	close(leave)
	if answer := <-answers; answer != "old" {
		t.Errorf("the request begun before was answered by %q, want old", answer)
	}
}

func TestAHostIsServedWithItsCertificate(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{"*.shop.test"}, NotAfter: time.Now().Add(time.Hour)}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	encodedKey, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	one := rule("shop", "api.shop.test", "/", networkingv1.PathTypePrefix, "shop")
	one.Spec.TLS = []networkingv1.IngressTLS{{Hosts: []string{"*.shop.test"}, SecretName: "shop-tls"}}
	table, complaints := NewTable(State{Ingresses: []networkingv1.Ingress{one}, Secrets: []corev1.Secret{{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "shop-tls"},
		Data: map[string][]byte{
			corev1.TLSCertKey:       pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw}),
			corev1.TLSPrivateKeyKey: pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: encodedKey}),
		},
	}}})
	if len(complaints) > 0 {
		t.Fatal(complaints)
	}
	proxy := NewProxy(slog.New(slog.DiscardHandler))
	proxy.Use(table)
	got, err := proxy.Certificate(&tls.ClientHelloInfo{ServerName: "API.shop.test"})
	if err != nil || !bytes.Equal(got.Certificate[0], raw) {
		t.Errorf("the Secret's certificate is not served: %v", err)
	}
	for _, host := range []string{"else.test", "a.b.shop.test", ""} {
		if _, err := proxy.Certificate(&tls.ClientHelloInfo{ServerName: host}); err == nil {
			t.Errorf("%q is served with a certificate", host)
		}
	}
}
