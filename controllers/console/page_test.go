package console

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/collector/auth"
	"github.com/weir-dev/weir/collector/config"
	"github.com/weir-dev/weir/collector/redisserver/redistest"
	"github.com/weir-dev/weir/collector/role"
	"github.com/weir-dev/weir/collector/server"
	streams "github.com/weir-dev/weir/collector/stream"
	chromium "github.com/weir-dev/weir/hack/browser"
)

// The tests page_*_test.go open the console in a real browser, which signs in at the provider. Behind the console are the real API
// server and, where there are numbers, the pods' real program with a Redis of its own.

// seat is somebody's at the console: a tab of a browser.
type seat struct {
	*chromium.Tab
	c *running
}

// seat opens the console in a new browser, as whoever has the name at the provider. It is signed in by being sent there and back.
func (c *running) seat(t *testing.T, name, path string, prepare ...chromedp.Action[chromedp.Void]) *seat {
	t.Helper()
	c.provider.letIn(map[string]any{"sub": name})
	s := &seat{chromium.Open(t, chromium.Options{AnyCertificate: true, Prepare: prepare}), c}
	s.show(path)
	return s
}

// show opens a path of the console and waits until it shows what it is to show.
func (s *seat) show(path string) {
	s.Do(chromedp.Navigate(s.c.url + path))
	s.settle()
}

// endSessions has everybody's time run out.
func (c *running) endSessions() {
	c.sessions.mu.Lock()
	defer c.sessions.mu.Unlock()
	for _, one := range c.sessions.all {
		c.sessions.remove(one)
	}
}

// settle waits until the page has no answer to wait for.
func (s *seat) settle() {
	s.Await("the page has its answers", `document.querySelector('#main h1') && !document.querySelector('.start, .loading, [aria-busy=true]')`)
}

// path is where the tab is.
func (s *seat) path() string {
	return chromium.Look[string](s.Tab, `location.pathname + location.search`)
}

// holds says whether a text is anywhere where a page can keep one: what it shows, its address, its cookies, its storage.
func (s *seat) holds(text string) bool {
	return chromium.Look[bool](s.Tab, `[document.documentElement.outerHTML, location.href, document.cookie, document.title, JSON.stringify([localStorage, sessionStorage, history.state]),
	...[...document.querySelectorAll('input')].map(({value}) => value)].some((place) => place.includes(`+chromium.Quote(text)+`))`)
}

// below is where a Property's page lies.
func below(p *v1alpha1.Property) string {
	return "/namespaces/" + p.Namespace + "/properties/" + p.Name + "/"
}

// propertyPods are a Property's, as one process that takes events and answers questions about them.
type propertyPods struct {
	t         *testing.T
	directory string
	address   string
}

// firstKey is the API key that pods begin with.
const firstKey = "wk_0123456789ABCDEFGHIJKLMNOPQ2WYluI"

// startPods runs them, and has the console reach them.
func (c *running) startPods(t *testing.T, p *v1alpha1.Property) *propertyPods {
	t.Helper()
	redis := redistest.URL(t)
	connected, err := streams.Dial(redis, streams.DialOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer connected.Close()
	if err := connected.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	pods := &propertyPods{t: t, directory: t.TempDir()}
	pods.write(config.PropertyFile, config.Property{
		Namespace: p.Namespace, Name: p.Name, Currency: p.Spec.Currency, TimeZone: "UTC", DeduplicationWindowHours: 168,
		Retention: config.Retention{Days: 62, MaxEvents: 1000}, Limits: config.Limits{MaxBodyBytes: 65536},
	})
	pods.write(config.SettingsFile, config.Settings{CollectURL: "https://in.example.com", APIURL: "https://api.example.com"})
	pods.write(config.ConsoleFile, auth.Verifier{Audience: string(p.UID), Keys: []auth.PublicKey{c.key.Public()}})
	pods.know(firstKey)
	pods.write(config.AccessTokensFile, []auth.Credential{})
	pods.writeText(config.RedisURLFile, redis)

	listener, err := server.Listen(t.Context(), "127.0.0.1:0", "--listen")
	if err != nil {
		t.Fatal(err)
	}
	pods.address = listener.Addr().String()
	ctx, cancel := context.WithCancel(context.Background())
	ended, ready := make(chan error, 1), make(chan struct{})
	go func() {
		ended <- role.Run(ctx, role.Options{
			Roles: []role.Name{role.Collect, role.Query}, Directories: []string{pods.directory}, Listener: listener, Logger: slog.New(slog.DiscardHandler),
			Ready: func() error { close(ready); return nil },
		})
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the pods ended with %v", err)
		}
	})
	select {
	case <-ready:
	case <-time.After(time.Minute):
		t.Fatal("the pods are not ready within a minute")
	}
	c.serve(p, pods.address)
	return pods
}

// know gives the pods the hashes of API keys, as the operator does.
func (p *propertyPods) know(keys ...string) {
	p.t.Helper()
	var known []auth.Credential
	for i, key := range keys {
		known = append(known, auth.Credential{Name: fmt.Sprintf("key-%d", i), Hash: auth.HashOf(key)})
	}
	p.write(config.APIKeysFile, known)
}

func (p *propertyPods) write(path string, content any) {
	p.t.Helper()
	text, err := json.Marshal(content)
	if err != nil {
		p.t.Fatal(err)
	}
	p.writeText(path, string(text))
}

// writeText replaces a file in one step, as the kubelet does.
func (p *propertyPods) writeText(path, text string) {
	p.t.Helper()
	file := filepath.Join(p.directory, path)
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		p.t.Fatal(err)
	}
	if err := os.WriteFile(file+".new", []byte(text), 0o600); err != nil {
		p.t.Fatal(err)
	}
	if err := os.Rename(file+".new", file); err != nil {
		p.t.Fatal(err)
	}
}

// send sends an event with a key, and returns the status.
func (p *propertyPods) send(key, body string) int {
	p.t.Helper()
	answer, err := http.Post("http://"+p.address+"/collect/"+url.PathEscape(key), "application/json", strings.NewReader(body))
	if err != nil {
		p.t.Fatal(err)
	}
	defer answer.Body.Close()
	return answer.StatusCode
}

// sell sends orders, each with its value.
func (p *propertyPods) sell(currency string, values ...string) {
	p.t.Helper()
	for i, value := range values {
		if got := p.send(firstKey, fmt.Sprintf(`{"event": "purchase", "event_id": "order-%d", "client_id": "c%[1]d", "data": {"value": %s, "currency": %q}}`, i, value, currency)); got != http.StatusAccepted {
			p.t.Fatalf("an order of %s: got %d", value, got)
		}
	}
}

// report sets a condition of an object's, as the operator does.
func report(t *testing.T, object client.Object, conditions *[]metav1.Condition, condition metav1.Condition) {
	t.Helper()
	if err := cluster.admin.Get(t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
		t.Fatal(err)
	}
	meta.SetStatusCondition(conditions, condition)
	if err := cluster.admin.Status().Update(t.Context(), object); err != nil {
		t.Fatal(err)
	}
}
