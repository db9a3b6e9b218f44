package role_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-dev/weir/collector/config"
	"github.com/weir-dev/weir/collector/deliver"
	"github.com/weir-dev/weir/collector/platforms"
	"github.com/weir-dev/weir/collector/stream"
)

// TestTheOperatorIsToldWhatAPersonHasToMend has one deliverer with a platform for each kind of answer.
func TestTheOperatorIsToldWhatAPersonHasToMend(t *testing.T) {
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		first, _, _ := strings.Cut(strings.Trim(r.URL.Path, "/"), "/")
		status, err := strconv.Atoi(first)
		if err != nil {
			t.Errorf("a request for %s", r.URL.Path)
			status = http.StatusTeapot
		}
		if status == http.StatusTooManyRequests {
			w.Header().Set("Retry-After", "60")
		}
		w.WriteHeader(status)
		_, _ = w.Write([]byte(`{"error":{"message":"x","code":2,"is_transient":true},"code":40100}`))
	}))
	defer receiver.Close()
	property := shop("misconfigured")
	if err := json.Unmarshal([]byte(`{"allowCIDRs": ["127.0.0.1/32"]}`), &property.Egress); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{}
	var names []string
	add := func(platform platforms.Platform, reason deliver.Misconfiguration) {
		property.Platforms, names = append(property.Platforms, platform), append(names, platform.Name)
		if reason != "" {
			want[platform.Name] = string(reason)
		}
	}
	webhook := func(name, url string) platforms.Platform {
		return platforms.Platform{Name: name, Type: platforms.TypeWebhook, Settings: platforms.Settings{Webhook: &platforms.Webhook{URL: url}}}
	}
	for status, reason := range map[int]deliver.Misconfiguration{
		200: "", 401: deliver.CredentialsRejected, 403: deliver.ConfigurationRejected, 404: deliver.ConfigurationRejected, 405: deliver.ConfigurationRejected,
		410: deliver.ConfigurationRejected, 301: deliver.ConfigurationRejected, 400: "", 408: "", 425: "", 429: "", 500: "", 503: "",
	} {
		add(webhook(fmt.Sprintf("answers-%d", status), fmt.Sprint(receiver.URL, "/", status)), reason)
	}
	add(webhook("denied", "http://127.0.0.2:9/"), deliver.EgressDenied)
	add(webhook("unreachable", "http://127.0.0.1:1/"), "")
	add(webhook("keyless", receiver.URL+"/200"), deliver.SecretInvalid)
	add(webhook("unfit", receiver.URL+"/200"), deliver.SecretInvalid)
	// What passes by itself has codes of the platform's own as well.
	add(platforms.Platform{Name: "transient", Type: platforms.TypeMeta, Settings: platforms.Settings{Meta: &platforms.Meta{PixelID: "1"}}, Endpoint: receiver.URL + "/400"}, "")

	p := startPod(t, property)
	for _, platform := range names {
		secret := "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
		switch platform {
		case "keyless":
			continue
		case "unfit":
			secret = "whsec_short"
		case "transient":
			p.writeText(config.PlatformsDir+"/"+platform+"/accessToken", "x")
			continue
		}
		p.writeText(config.PlatformsDir+"/"+platform+"/signingSecret", secret)
	}
	p.await("ready", func() bool { return p.request(http.MethodGet, p.metrics+"/readyz", "", nil) == http.StatusOK })
	// Events go on coming, for only a platform that fails for several requests with new ones is down.
	body := `{"event": "pageview", "client_id": "1.2", "context": {"page_url": "https://shop.example/", "user_agent": "Mozilla/5.0 (X11; Linux x86_64) Firefox/145.0"}}`
	p.await("the platforms that are down are paused", func() bool {
		if got := p.request(http.MethodPost, p.collect+"/collect/key-1", body, http.Header{"Content-Type": {"application/json"}}); got != http.StatusAccepted {
			t.Fatalf("collect: %d", got)
		}
		paused := p.metricsOf("weir_platform_paused")
		for _, platform := range []string{"answers-408", "answers-429", "answers-500", "answers-503", "unreachable", "transient", "denied"} {
			if !strings.Contains(paused, `platform="`+platform+`",property="misconfigured"} 1`) {
				return false
			}
		}
		return true
	})

	redis, err := config.LoadRedis(p.directory)
	if err != nil {
		t.Fatal(err)
	}
	client, err := stream.Dial(redis.URL, stream.DialOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	errs := client.Stream(property.Namespace, property.Name)
	told := func(want map[string]string) func() bool {
		return func() bool {
			got, err := errs.PausedPlatforms(t.Context(), names)
			return err == nil && cmp.Equal(want, got)
		}
	}
	p.await(fmt.Sprint("the operator is told of ", want), told(want))

	p.writeText(config.PlatformsDir+"/keyless/signingSecret", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
	delete(want, "keyless")
	p.await("the operator is no longer told of what has been mended", told(want))
	if err := p.stop(); err != nil {
		t.Errorf("stop: %v", err)
	}
}
