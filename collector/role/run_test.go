package role_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weir-dev/weir/collector/audit"
	"github.com/weir-dev/weir/collector/auth"
	"github.com/weir-dev/weir/collector/config"
	"github.com/weir-dev/weir/collector/platforms"
	"github.com/weir-dev/weir/collector/redisserver/redistest"
	"github.com/weir-dev/weir/collector/role"
	"github.com/weir-dev/weir/collector/server"
	"github.com/weir-dev/weir/collector/session"
	"github.com/weir-dev/weir/collector/stream"
)

// pod is a running tenant process with its configuration directory.
type pod struct {
	t         *testing.T
	directory string
	property  config.Property
	collect   string // address of the HTTP side
	metrics   string
	log       *logBuffer
	acts      logBuffer // the audit log
	stop      func() error
}

// logBuffer collects log lines that are read while more are written.
type logBuffer struct {
	mu   sync.Mutex
	text strings.Builder
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

func startPod(t *testing.T, property config.Property) *pod {
	t.Helper()
	address := redistest.URL(t)
	client, err := stream.Dial(address, stream.DialOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if err := client.Load(t.Context()); err != nil {
		t.Fatal(err)
	}

	p := &pod{t: t, directory: t.TempDir(), property: property, log: &logBuffer{}}
	p.write(config.PropertyFile, property)
	p.write(config.APIKeysFile, []auth.Credential{{Name: "first", Hash: auth.HashOf("key-1")}})
	p.write(config.AccessTokensFile, []auth.Credential{{Name: "first", Hash: auth.HashOf("token-1"), Scope: auth.ScopeRead}})
	p.writeText(config.RedisURLFile, address)

	p.run(role.Collect, role.Deliver, role.Query)
	return p
}

// run starts the process on what has been written to its directory.
func (p *pod) run(roles ...role.Name) {
	p.t.Helper()
	listener, err := server.Listen(p.t.Context(), "127.0.0.1:0", "--listen")
	if err != nil {
		p.t.Fatal(err)
	}
	metrics, err := server.Listen(p.t.Context(), "127.0.0.1:0", "--metrics-listen")
	if err != nil {
		p.t.Fatal(err)
	}
	p.collect, p.metrics = "http://"+listener.Addr().String(), "http://"+metrics.Addr().String()
	ctx, cancel := context.WithCancel(p.t.Context())
	ended := make(chan error, 1)
	logger := slog.New(slog.NewTextHandler(p.log, nil))
	go func() {
		ended <- role.Run(ctx, role.Options{
			Roles: roles, Directories: []string{p.directory},
			Listener: listener, MetricsListener: metrics, Consumer: "test", Logger: logger, Audit: audit.New(&p.acts, logger, time.Now),
		})
	}()
	p.stop = func() error { cancel(); return <-ended }
}

func (p *pod) write(path string, content any) {
	p.t.Helper()
	text, err := json.Marshal(content)
	if err != nil {
		p.t.Fatal(err)
	}
	p.writeText(path, string(text))
}

// writeText replaces a file in one step, as the kubelet does.
func (p *pod) writeText(path, text string) {
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

// send posts an event and returns the status.
func (p *pod) send(key, name string) int {
	p.t.Helper()
	return p.request(http.MethodPost, p.collect+"/collect/"+key, `{"event": "`+name+`"}`, http.Header{"Content-Type": {"application/json"}})
}

// list asks for the listing and returns the status.
func (p *pod) list(token string) int {
	p.t.Helper()
	return p.request(http.MethodGet, p.collect+"/api/v1/properties/"+p.property.Name+"/events", "", http.Header{"Authorization": {"Bearer " + token}})
}

func (p *pod) request(method, address, body string, header http.Header) int {
	p.t.Helper()
	request, err := http.NewRequestWithContext(p.t.Context(), method, address, strings.NewReader(body))
	if err != nil {
		p.t.Fatal(err)
	}
	maps.Copy(request.Header, header)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		p.t.Fatal(err)
	}
	defer response.Body.Close()
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		p.t.Fatal(err)
	}
	return response.StatusCode
}

func (p *pod) await(what string, done func() bool) {
	p.t.Helper()
	deadline := time.NewTimer(time.Minute)
	defer deadline.Stop()
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for !done() {
		select {
		case <-ticker.C:
		case <-deadline.C:
			p.t.Fatalf("not within a minute: %s", what)
		}
	}
}

func shop(name string) config.Property {
	return config.Property{
		Namespace: "default", Name: name, Currency: "EUR", TimeZone: "UTC", DeduplicationWindowHours: 168,
		Retention: config.Retention{Days: 62, MaxEvents: 1000}, Limits: config.Limits{MaxBodyBytes: 65536},
	}
}

func TestAChangedConfigurationIsServedWithoutARestart(t *testing.T) {
	p := startPod(t, shop("reload"))
	p.await("ready", func() bool { return p.request(http.MethodGet, p.metrics+"/readyz", "", nil) == http.StatusOK })
	if got := p.send("key-1", "lead"); got != http.StatusAccepted {
		t.Fatalf("the first key: %d", got)
	}

	t.Run("a new key is taken and a removed one refused", func(t *testing.T) {
		p.write(config.APIKeysFile, []auth.Credential{{Name: "second", Hash: auth.HashOf("key-2")}})
		p.await("the second key is taken", func() bool { return p.send("key-2", "lead") == http.StatusAccepted })
		if got := p.send("key-1", "lead"); got != http.StatusUnauthorized {
			t.Errorf("the removed key: %d", got)
		}
	})
	t.Run("a new token is taken and a removed one refused", func(t *testing.T) {
		p.write(config.AccessTokensFile, []auth.Credential{{Name: "second", Hash: auth.HashOf("token-2"), Scope: auth.ScopeRead}})
		p.await("the second token is taken", func() bool { return p.list("token-2") == http.StatusOK })
		if got := p.list("token-1"); got != http.StatusUnauthorized {
			t.Errorf("the removed token: %d", got)
		}
	})
	t.Run("people sign in by keys that are new, and broken ones keep nobody else out", func(t *testing.T) {
		signIn := func() int {
			return p.request(http.MethodPost, p.collect+"/properties/reload/session", `{"token": "token-2"}`, http.Header{"Content-Type": {"application/json"}})
		}
		if got := signIn(); got != http.StatusServiceUnavailable {
			t.Errorf("without keys: %d", got)
		}
		p.writeText(config.SessionKeysFile, session.NewKey())
		p.await("people sign in", func() bool { return signIn() == http.StatusNoContent })
		p.writeText(config.SessionKeysFile, "guessable")
		p.await("nobody signs in", func() bool { return signIn() == http.StatusServiceUnavailable })
		if got := p.list("token-2"); got != http.StatusOK {
			t.Errorf("the token beside broken keys: %d", got)
		}
		if text := p.log.String(); !strings.Contains(text, "nobody can sign in to the page") || strings.Contains(text, "guessable") {
			t.Errorf("the log says\n%s", text)
		}
	})
	t.Run("a bad file changes nothing until it is mended", func(t *testing.T) {
		p.writeText(config.APIKeysFile, "[{")
		p.write(config.AccessTokensFile, []auth.Credential{{Name: "third", Hash: auth.HashOf("token-3"), Scope: auth.ScopeRead}})
		p.await("the error is logged", func() bool { return strings.Contains(p.log.String(), "the changed configuration cannot be used") })
		if got := p.send("key-2", "lead"); got != http.StatusAccepted {
			t.Errorf("the key from before: %d", got)
		}
		// All files are loaded together, so the good one waits for the bad one.
		if got := p.list("token-3"); got != http.StatusUnauthorized {
			t.Errorf("the token from beside the bad file: %d", got)
		}
		p.write(config.APIKeysFile, []auth.Credential{{Name: "third", Hash: auth.HashOf("key-3")}})
		p.await("the third key is taken", func() bool { return p.send("key-3", "lead") == http.StatusAccepted })
		p.await("the third token is taken", func() bool { return p.list("token-3") == http.StatusOK })
	})
	t.Run("a refused change is refused whole", func(t *testing.T) {
		changed := p.property
		changed.Currency = "USD"
		p.write(config.AccessTokensFile, []auth.Credential{{Name: "fourth", Hash: auth.HashOf("token-4"), Scope: auth.ScopeRead}})
		p.write(config.PropertyFile, changed)
		p.await("the refusal is logged", func() bool {
			return strings.Contains(p.log.String(), "currency of a property that is served cannot change")
		})
		p.write(config.PropertyFile, p.property)
		p.await("the fourth token is taken once the currency is what it was", func() bool { return p.list("token-4") == http.StatusOK })
	})
	t.Run("another Redis is refused whole, another user of it is not", func(t *testing.T) {
		redis, err := config.LoadRedis(p.directory)
		if err != nil {
			t.Fatal(err)
		}
		p.write(config.AccessTokensFile, []auth.Credential{{Name: "fifth", Hash: auth.HashOf("token-5"), Scope: auth.ScopeRead}})
		p.writeText(config.RedisURLFile, "redis://127.0.0.1:1")
		p.await("the refusal is logged", func() bool {
			return strings.Contains(p.log.String(), "the Redis of a property that is served cannot change")
		})
		if got := p.list("token-5"); got == http.StatusOK {
			t.Error("the token from beside the other Redis is taken")
		}
		p.writeText(config.RedisURLFile, strings.Replace(redis.URL, "://", "://default:any@", 1))
		p.await("the fifth token is taken", func() bool { return p.list("token-5") == http.StatusOK })
	})
	t.Run("a new platform gets the events from then on", func(t *testing.T) {
		var received atomic.Int32
		hook := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { received.Add(1) }))
		defer hook.Close()
		p.writeText(config.PlatformsDir+"/crm/signingSecret", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
		changed := p.property
		changed.Platforms = []platforms.Platform{{Name: "crm", Type: platforms.TypeWebhook, Settings: platforms.Settings{Webhook: &platforms.Webhook{URL: hook.URL}}}}
		if err := json.Unmarshal([]byte(`{"allowCIDRs": ["127.0.0.0/8"]}`), &changed.Egress); err != nil {
			t.Fatal(err)
		}
		p.write(config.PropertyFile, changed)
		p.await("an event reaches the platform", func() bool { p.send("key-3", "lead"); return received.Load() > 0 })
	})
	if err := p.stop(); err != nil {
		t.Errorf("stop: %v", err)
	}
}

func TestRunRefusesABadConfiguration(t *testing.T) {
	for name, test := range map[string]struct {
		files map[string]string
		want  string
	}{
		"no property file":         {nil, config.PropertyFile},
		"a member that is unknown": {map[string]string{config.PropertyFile: `{"namespace": "default", "colour": 1}`}, "colour"},
	} {
		t.Run(name, func(t *testing.T) {
			p := &pod{t: t, directory: t.TempDir()}
			for path, text := range test.files {
				p.writeText(path, text)
			}
			err := role.Run(t.Context(), role.Options{Roles: []role.Name{role.Collect}, Directories: []string{p.directory}, Logger: slog.New(slog.DiscardHandler)})
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want an error with %q", err, test.want)
			}
		})
	}
}

func TestParse(t *testing.T) {
	for list, want := range map[string]string{
		"collect":               "[collect]",
		"deliver, query":        "[deliver query]",
		"collect,deliver,query": "[collect deliver query]",
		"archive":               "[archive]",
		"":                      "a role is missing; the roles are collect, deliver, query and archive",
		"collect,":              "a role is missing; the roles are collect, deliver, query and archive",
		"fly":                   `"fly" is no role; the roles are collect, deliver, query and archive`,
		"query,query":           "query is named twice",
	} {
		roles, err := role.Parse(list)
		got := fmt.Sprint(roles)
		if err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("Parse(%q) is %s, want %s", list, got, want)
		}
	}
}
