package role_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/weir-dev/weir/collector/config"
	"github.com/weir-dev/weir/collector/platforms"
)

// metricsOf returns the lines of /metrics that begin with a name.
func (p *pod) metricsOf(name string) string {
	p.t.Helper()
	request, err := http.NewRequestWithContext(p.t.Context(), http.MethodGet, p.metrics+"/metrics", nil)
	if err != nil {
		p.t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		p.t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		p.t.Fatal(err)
	}
	var found []string
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, name+"{") {
			found = append(found, line)
		}
	}
	return strings.Join(found, "")
}

// A refused credential pauses its platform alone, says so, and is healed by another Secret without a restart.
func TestACorrectedSecretHealsItsPlatform(t *testing.T) {
	var others, received atomic.Int32
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { others.Add(1) }))
	defer other.Close()
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer the-right-one" {
			w.WriteHeader(http.StatusBadRequest)
			_, _ = io.WriteString(w, `{"error":{"type":"OAuthException","code":190,"message":"the token is bad"}}`)
			return
		}
		received.Add(1)
		_, _ = io.WriteString(w, `{"events_received":1}`)
	}))
	defer api.Close()

	property := shop("healing")
	property.Platforms = []platforms.Platform{
		{Name: "meta", Type: platforms.TypeMeta, Settings: platforms.Settings{Meta: &platforms.Meta{PixelID: "42"}}, Endpoint: api.URL},
		{Name: "crm", Type: platforms.TypeWebhook, Settings: platforms.Settings{Webhook: &platforms.Webhook{URL: other.URL}}},
	}
	if err := json.Unmarshal([]byte(`{"allowCIDRs": ["127.0.0.0/8"]}`), &property.Egress); err != nil {
		t.Fatal(err)
	}
	p := startPod(t, property)
	p.writeText(config.PlatformsDir+"/crm/signingSecret", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
	p.writeText(config.PlatformsDir+"/meta/accessToken", "an-old-one")
	p.await("ready", func() bool { return p.request(http.MethodGet, p.metrics+"/readyz", "", nil) == http.StatusOK })
	body := `{"event": "pageview", "client_id": "1.2", "context": {"page_url": "https://shop.example/", "user_agent": "Mozilla/5.0 (X11; Linux x86_64) Firefox/145.0"}}`
	if got := p.request(http.MethodPost, p.collect+"/collect/key-1", body, http.Header{"Content-Type": {"application/json"}}); got != http.StatusAccepted {
		t.Fatalf("collect: %d", got)
	}
	p.await("the pause, with its reason", func() bool {
		return strings.Contains(p.metricsOf("weir_platform_error"), `platform="meta",property="healing",reason="unauthorized"} 1`)
	})
	p.await("the other platform's delivery", func() bool { return others.Load() == 1 })
	if got := p.metricsOf("weir_platform_paused"); !strings.Contains(got, `platform="crm",property="healing"} 0`) {
		t.Errorf("the other platform is paused:\n%s", got)
	}

	p.writeText(config.PlatformsDir+"/meta/accessToken", "the-right-one")
	p.await("the delivery", func() bool { return received.Load() == 1 })
	p.await("the end of the pause", func() bool {
		return p.metricsOf("weir_platform_error") == "" && strings.Contains(p.metricsOf("weir_platform_paused"), `platform="meta",property="healing"} 0`)
	})
	if err := p.stop(); err != nil {
		t.Errorf("stop: %v", err)
	}
}
