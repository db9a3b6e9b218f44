package console

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/collector/audit"
	"github.com/weir-dev/weir/collector/auth"
	"github.com/weir-dev/weir/collector/config"
	"github.com/weir-dev/weir/collector/redisserver/redistest"
	"github.com/weir-dev/weir/collector/role"
	"github.com/weir-dev/weir/collector/server"
	"github.com/weir-dev/weir/collector/stream"
)

// realPods runs a Property's collectors and query pods on a real Redis, as one process, and returns their address and audit log. Their API
// key is key-1.
func (c *running) realPods(t *testing.T, p *v1alpha1.Property) (address string, acts *buffer) {
	t.Helper()
	redis := redistest.URL(t)
	client, err := stream.Dial(redis, stream.DialOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if err := client.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	directory := t.TempDir()
	for path, content := range map[string]any{
		config.PropertyFile: config.Property{
			Namespace: p.Namespace, Name: p.Name, Currency: "EUR", TimeZone: "UTC", DeduplicationWindowHours: 168,
			Retention: config.Retention{Days: 62, MaxEvents: 1000}, Limits: config.Limits{MaxBodyBytes: 65536},
		},
		config.APIKeysFile:      []auth.Credential{{Name: "first", Hash: auth.HashOf("key-1")}},
		config.AccessTokensFile: []auth.Credential{},
		config.ConsoleFile:      auth.Verifier{Audience: string(p.UID), Keys: []auth.PublicKey{c.key.Public()}},
		config.RedisURLFile:     nil,
	} {
		text, err := json.Marshal(content)
		if path == config.RedisURLFile {
			text = []byte(redis)
		}
		if err != nil || os.MkdirAll(filepath.Dir(filepath.Join(directory, path)), 0o700) != nil || os.WriteFile(filepath.Join(directory, path), text, 0o600) != nil {
			t.Fatalf("%s cannot be written", path)
		}
	}
	listener, err := server.Listen(t.Context(), "127.0.0.1:0", "--listen")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended, log := make(chan error, 1), &buffer{}
	logger, acts := slog.New(slog.NewTextHandler(log, nil)), &buffer{}
	go func() {
		ended <- role.Run(ctx, role.Options{
			Roles: []role.Name{role.Collect, role.Query}, Directories: []string{directory}, Listener: listener, Consumer: "test",
			Logger: logger, Audit: audit.New(acts, logger, time.Now),
		})
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the pods ended with %v: %s", err, log)
		}
	})
	return listener.Addr().String(), acts
}

// TestPeopleReadAPropertysOwnPods asks the real ones: with the rights of a reader, a writer and an admin, in the person's own name.
func TestPeopleReadAPropertysOwnPods(t *testing.T) {
	t.Parallel()
	c := start(t)
	p, writer, base := c.reader(t, editor...)
	address, acts := c.realPods(t, p)
	c.serve(p, address)
	grant(t, "User", "eve-"+p.Namespace, p.Namespace, "get properties/events")
	grant(t, "User", "ida-"+p.Namespace, p.Namespace, chief...)
	reader, admin := c.as("eve-"+p.Namespace), c.as("ida-"+p.Namespace)
	for _, text := range []string{`{"event":"pageview","client_id":"1234567890.1700000000"}`, `{"event":"purchase","client_id":"1234567890.1700000000","data":{"order_id":"A","value":19.99,"currency":"EUR"}}`} {
		eventually(t, "an event is taken", func() bool {
			return writer.do(http.MethodPost, "http://"+address+"/collect/key-1", text).status == http.StatusAccepted
		})
	}
	eventually(t, "the figures are there", func() bool {
		return strings.Contains(writer.get("/api/properties").body, `"figures":{"purchases":1,"revenue":19.99,"pageviews":1,"add_to_carts":0,"unique_visitors":1},"problem":null`)
	})
	for name, test := range map[string]struct {
		who                *browser
		method, path, body string
		header             []string
		status             int
		want               string
	}{
		"a reader lists events":                  {who: reader, method: "GET", path: "api/events", status: 200, want: `"purchase"`},
		"a reader takes them away as CSV":        {who: reader, method: "GET", path: "api/events?period=7d", header: []string{"Accept: text/csv"}, status: 200, want: "event_id"},
		"a reader takes them away whole":         {who: reader, method: "GET", path: "api/events?period=7d", header: []string{"Accept: application/x-ndjson"}, status: 200, want: `"A"`},
		"a reader is told what a filter lacks":   {who: reader, method: "GET", path: "api/events?period=1y", status: 422, want: `"period"`},
		"a reader does not replay":               {who: reader, method: "POST", path: "api/deliveries/replay", body: `{}`, status: 403, want: "unauthorized"},
		"a writer is told what a replay lacks":   {who: writer, method: "POST", path: "api/deliveries/replay", body: `{}`, status: 422, want: `"errors"`},
		"a writer does not erase":                {who: writer, method: "POST", path: "api/erasures", body: `{}`, status: 403, want: "unauthorized"},
		"an admin is told what an erasure lacks": {who: admin, method: "POST", path: "api/erasures", body: `{}`, status: 422, want: `"errors"`},
	} {
		got := test.who.do(test.method, base+test.path, test.body, test.header...)
		if got.status != test.status || !strings.Contains(got.body, test.want) {
			t.Errorf("%s: got %d %s, want %d %s", name, got.status, got.body, test.status, test.want)
		}
	}
	page := reader.get(base + "api/events?limit=1")
	if next := page.header.Get("Link"); next != "" {
		target, _, _ := strings.Cut(strings.TrimPrefix(next, "<"), ">")
		if got := reader.get(target); got.status != http.StatusOK || got.body == page.body {
			t.Errorf("the next page, %s: got %d %s", target, got.status, got.body)
		}
	}
	want := `"act":"events.exported","property":"` + p.Namespace + `/shop","actor":{"kind":"user","name":"eve-` + p.Namespace + `","scope":"read"}`
	eventually(t, "the audit log names the person", func() bool { return strings.Contains(acts.String(), want) })
}
