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
	"strings"
	"sync"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

// The tests of this file run the whole program in this process: flags, Property files, a Redis of its own, all
// three roles, HTTP.

// patience bounds what is awaited; it is generous because machines are slow and the race detector is on.
const patience = 60 * time.Second

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
	w.stop = func() int {
		cancel()
		if !ended {
			code, ended = <-exited, true
		}
		return code
	}
	t.Cleanup(func() { w.stop() })

	await(t, "weir dev listens", func() bool {
		select {
		case code, ended = <-exited:
			t.Fatalf("weir dev ended with %d before it listened:\n%s", code, w.stderr.String())
		default:
		}
		return strings.Contains(w.stdout.String(), "listening on ")
	})
	text, err := os.ReadFile(filepath.Join(stateDir, "credentials.json"))
	if err != nil {
		t.Fatal(err)
	}
	var credentials devCredentials
	if err := json.Unmarshal(text, &credentials); err != nil {
		t.Fatal(err)
	}
	w.devProperty = credentials.Properties[0]
	return w
}

// await polls until done or the patience is over.
func await(t *testing.T, what string, done func() bool) {
	t.Helper()
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for !done() {
		select {
		case <-ticker.C:
		case <-deadline.C:
			t.Fatalf("not within %s: %s", patience, what)
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
		w.t.Fatalf("listing: %d %s", got.status, got.body)
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
