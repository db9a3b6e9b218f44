package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/collector/redisserver"
	"github.com/weir-dev/weir/collector/redisserver/redistest"
)

// The tests of this file run the whole program in this process: flags, Property files, a Redis of its own, all
// three roles, HTTP.

// timeout bounds what is awaited; it is generous because machines are slow and the race detector is on.
const timeout = 60 * time.Second

// logBuffer collects output that is written while it is read.
type logBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *logBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// weirDev is a running `weir dev`.
type weirDev struct {
	t              *testing.T
	stdout, stderr logBuffer
	devProperty
	stop func() int // drains and returns the exit code
	wait func() int // returns the exit code when it has ended of itself
}

// startWeirDev runs `weir dev` until it listens. Flags for files and the state directory come from the caller.
func startWeirDev(t *testing.T, stateDir string, args ...string) *weirDev {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	w := &weirDev{t: t}
	exited := make(chan int, 1)
	go func() {
		args := append([]string{"dev", "--listen", "127.0.0.1:0", "--state-dir", stateDir}, args...)
		exited <- run(ctx, args, &w.stdout, &w.stderr)
	}()
	code, ended := 0, false
	w.wait = func() int {
		if !ended {
			code, ended = <-exited, true
		}
		return code
	}
	w.stop = func() int { cancel(); return w.wait() }
	t.Cleanup(func() { w.stop() })

	await(t, "weir dev listens", func() bool {
		select {
		case code, ended = <-exited:
			t.Fatalf("weir dev ended with %d before it listened:\n%s", code, w.stderr.String())
		default:
		}
		return strings.Contains(w.stdout.String(), "listening on ")
	})
	w.devProperty = w.served(stateDir)[0]
	return w
}

// served are the properties of credentials.json.
func (w *weirDev) served(stateDir string) []devProperty {
	w.t.Helper()
	text, err := os.ReadFile(filepath.Join(stateDir, "credentials.json"))
	if err != nil {
		w.t.Fatal(err)
	}
	var credentials devCredentials
	if err := json.Unmarshal(text, &credentials); err != nil {
		w.t.Fatal(err)
	}
	return credentials.Properties
}

// killRedis kills the redis-server that weir dev runs below its state directory, as a crash would.
func killRedis(t *testing.T, stateDir string) {
	t.Helper()
	address, err := os.ReadFile(filepath.Join(stateDir, "redis", "redis.url"))
	if err != nil {
		t.Fatal(err)
	}
	options, err := redis.ParseURL(strings.TrimSpace(string(address)))
	if err != nil {
		t.Fatal(err)
	}
	client := redis.NewClient(options)
	defer client.Close()
	info, err := client.InfoMap(t.Context(), "server").Result()
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(info["Server"]["process_id"])
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
}

// await polls until done or the timeout.
func await(t *testing.T, what string, done func() bool) {
	t.Helper()
	deadline := time.NewTimer(timeout)
	defer deadline.Stop()
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for !done() {
		select {
		case <-ticker.C:
		case <-deadline.C:
			t.Fatalf("not within %s: %s", timeout, what)
		}
	}
}

// answer is what came back for a request.
type answer struct {
	status int
	header http.Header
	body   string
}

// do sends a request and reads the whole answer.
func do(t *testing.T, method, address, body string, header map[string]string) answer {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, address, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range header {
		request.Header.Set(name, value)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer{response.StatusCode, response.Header, string(text)}
}

// collect posts a body to the collection endpoint with the property's first key.
func (w *weirDev) collect(body string) answer {
	w.t.Helper()
	return do(w.t, http.MethodPost, w.CollectURL+"/collect/"+w.APIKeys[0].Key, body, map[string]string{"Content-Type": "application/json"})
}

// read asks the read API below the property with the property's first token.
func (w *weirDev) read(path string) answer {
	w.t.Helper()
	return do(w.t, http.MethodGet, w.BaseURL+"/properties/"+w.ID+path, "", map[string]string{"Authorization": "Bearer " + w.AccessTokens[0].Token})
}

// object decodes an answer.
func (a answer) object(t *testing.T) map[string]any {
	t.Helper()
	var object map[string]any
	if err := json.Unmarshal([]byte(a.body), &object); err != nil {
		t.Fatalf("answer %d is no JSON object: %s", a.status, a.body)
	}
	return object
}

// listing returns the records of the newest events.
func (w *weirDev) listing() []eventRecord {
	w.t.Helper()
	got := w.read("/events")
	if got.status != http.StatusOK {
		w.t.Fatalf("listing: %d %s\n%s", got.status, got.body, w.stderr.String())
	}
	var page struct{ Data []eventRecord }
	if err := json.Unmarshal([]byte(got.body), &page); err != nil {
		w.t.Fatal(err)
	}
	return page.Data
}

// eventRecord is the part of a listing's record that the tests look at.
type eventRecord struct {
	EventID    string      `json:"event_id"`
	Event      string      `json:"event"`
	ReceivedAt string      `json:"received_at"`
	Value      json.Number `json:"value"`
	Currency   string      `json:"currency"`
	OrderID    string      `json:"order_id"`
	Visitor    string      `json:"visitor"`
	Delivery   []struct {
		Platform  string `json:"platform"`
		Status    string `json:"status"`
		LatencyMS *int   `json:"latency_ms"`
		Reason    string `json:"reason"`
	} `json:"delivery"`
}

// statuses maps each platform to what the event's delivery record says.
func (r eventRecord) statuses() map[string]string {
	all := map[string]string{}
	for _, d := range r.Delivery {
		all[d.Platform] = d.Status
	}
	return all
}

const webhookSecret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

// webhookReceiver is a customer's server: it verifies what it gets and keeps it.
type webhookReceiver struct {
	*httptest.Server
	mu     sync.Mutex
	bodies []string
	ids    []string
}

func newWebhookReceiver(t *testing.T) *webhookReceiver {
	t.Helper()
	verifier, err := standardwebhooks.NewWebhook(webhookSecret)
	if err != nil {
		t.Fatal(err)
	}
	r := &webhookReceiver{}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		body, err := io.ReadAll(request.Body)
		if err == nil {
			err = verifier.Verify(body, request.Header)
		}
		if err != nil {
			t.Errorf("webhook: %v", err)
			http.Error(w, "no", http.StatusUnauthorized)
			return
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		r.bodies = append(r.bodies, string(body))
		r.ids = append(r.ids, request.Header.Get("webhook-id"))
	}))
	t.Cleanup(r.Close)
	return r
}

func (r *webhookReceiver) received() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]string(nil), r.bodies...)
}

// shopFile writes a Property with a Log and a Webhook platform, and returns the file.
func shopFile(t *testing.T, hook string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "shop.yaml")
	manifest := `
apiVersion: weir.dev/v1alpha1
kind: Property
metadata: {name: shop}
spec:
  currency: EUR
  timeZone: Europe/Berlin
  eventAliases: {page_view: pageview}
  accessTokens:
  - {name: default, scope: read}
  - {name: gone, scope: read, expirationTime: "2020-01-01T00:00:00Z"}
  platforms:
  - {name: console, type: Log}
  - {name: crm, type: Webhook, webhook: {url: "` + hook + `"}, credentialsSecretRef: {name: shop-crm}}
---
apiVersion: v1
kind: Secret
metadata: {name: shop-crm}
stringData: {signingSecret: ` + webhookSecret + `}
`
	if err := os.WriteFile(file, []byte(manifest), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestDevKeepsCredentialsOfPropertiesThatAreNotServed(t *testing.T) {
	state, folder := filepath.Join(t.TempDir(), "state"), t.TempDir()
	file := func(name, spec string) string {
		path := filepath.Join(folder, name+".yaml")
		text := "apiVersion: weir.dev/v1alpha1\nkind: Property\nmetadata: {name: " + name + "}\nspec: " + spec + "\n"
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	shop, blog := file("shop", "{currency: EUR}"), file("blog", "{currency: EUR, apiKeys: [], accessTokens: []}")

	first := startWeirDev(t, state, "-f", shop)
	first.stop()
	between := startWeirDev(t, state, "-f", blog)
	if between.ID != "blog" || strings.Contains(between.stdout.String(), "curl") {
		t.Errorf("a property without keys and tokens is introduced as %s", between.stdout.String())
	}
	between.stop()
	again := startWeirDev(t, state, "-f", shop)
	if diff := cmp.Diff(first.APIKeys, again.APIKeys); diff != "" {
		t.Errorf("API keys (-before +after):\n%s", diff)
	}
	if _, err := os.Stat(filepath.Join(state, "pods", "default", "blog")); !os.IsNotExist(err) {
		t.Errorf("the configuration of a property that is served no more: %v", err)
	}
}

func TestRenewedCredentials(t *testing.T) {
	property := func(names ...string) *loadedProperty {
		p := &loadedProperty{Property: &v1alpha1.Property{}}
		p.Name = "shop"
		for _, name := range names {
			p.Spec.APIKeys = append(p.Spec.APIKeys, v1alpha1.PropertyAPIKey{Name: name})
		}
		return p
	}
	brought := property("old")
	brought.apiKeys = map[string]string{"old": "a-key-that-the-owner-brings"}
	first := devCredentials{}.renewed([]*loadedProperty{brought}, "http://h")
	if got := first.Properties[0].APIKeys[0].Key; got != "a-key-that-the-owner-brings" {
		t.Errorf("the brought key is %q", got)
	}
	second := first.renewed([]*loadedProperty{property("old")}, "http://h")
	if got := second.Properties[0].APIKeys[0].Key; !strings.HasPrefix(got, "wk_") {
		t.Errorf("without its Secret the key is still %q", got)
	}
	third := second.renewed([]*loadedProperty{property("old", "new")}, "http://h")
	if third.Properties[0].APIKeys[0] != second.Properties[0].APIKeys[0] || third.Properties[0].APIKeys[1].Key == "" {
		t.Errorf("keys after one more was asked for: %+v", third.Properties[0].APIKeys)
	}
}

func TestDevEndsWhenItsRedisDoes(t *testing.T) {
	state := filepath.Join(t.TempDir(), "state")
	weir := startWeirDev(t, state, "-f", shopFile(t, "http://127.0.0.1:9/"))
	killRedis(t, state)
	if code := weir.wait(); code != 1 || !strings.Contains(weir.stderr.String(), "has ended of itself; its log is in") {
		t.Errorf("exit code %d:\n%s", code, weir.stderr.String())
	}
}

func TestDevLoadsTheLibraryIntoARedisThatLostIt(t *testing.T) {
	server := redistest.Start(t, redisserver.Options{})
	weir := startWeirDev(t, filepath.Join(t.TempDir(), "state"), "-f", shopFile(t, "http://127.0.0.1:9/"), "--redis", server.URL())
	if got := weir.collect(`{"event": "lead"}`); got.status != http.StatusAccepted {
		t.Fatalf("%d %s", got.status, got.body)
	}
	if err := server.Kill(); err != nil { // it keeps nothing
		t.Fatal(err)
	}
	if err := server.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	await(t, "events are taken again", func() bool { return weir.collect(`{"event": "lead"}`).status == http.StatusAccepted })
}

func TestDevServesOneNameInTwoNamespaces(t *testing.T) {
	folder := writeManifests(t, map[string]string{
		"1.yaml": "apiVersion: weir.dev/v1alpha1\nkind: Property\nmetadata: {name: shop, namespace: production}\nspec: {currency: EUR}\n",
		"2.yaml": "apiVersion: weir.dev/v1alpha1\nkind: Property\nmetadata: {name: shop, namespace: staging}\nspec: {currency: EUR}\n",
	})
	state := filepath.Join(t.TempDir(), "state")
	weir := startWeirDev(t, state, "-f", folder)
	served := weir.served(state)
	if len(served) != 2 || served[0].Namespace != "production" || served[1].Namespace != "staging" {
		t.Fatalf("served are %+v", served)
	}
	for _, p := range served {
		weir.devProperty = p
		if got := weir.collect(`{"event": "` + p.Namespace + `", "event_id": "1"}`); got.body != `{"ok":true,"event_id":"1"}` {
			t.Errorf("%s: %d %s", p.Namespace, got.status, got.body)
		}
	}
	for _, p := range served {
		weir.devProperty = p
		await(t, p.Namespace+" has its event", func() bool { return strings.Contains(weir.read("/events").body, `"event":"`+p.Namespace+`"`) })
		if got := weir.read("/events"); strings.Count(got.body, `"event_id":"1"`) != 1 {
			t.Errorf("%s has others' events: %s", p.Namespace, got.body)
		}
	}
	weir.stop()
	again := startWeirDev(t, state, "-f", filepath.Join(folder, "2.yaml"))
	if diff := cmp.Diff(served[1].APIKeys, again.APIKeys); diff != "" {
		t.Errorf("API keys of staging (-before +after):\n%s", diff)
	}
}
