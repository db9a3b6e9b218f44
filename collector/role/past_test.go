package role_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weir-dev/weir/collector/auth"
	"github.com/weir-dev/weir/collector/config"
	"github.com/weir-dev/weir/collector/platforms"
	"github.com/weir-dev/weir/collector/stream"
)

// choosy is a webhook's receiver that refuses everything until it is told to take it.
type choosy struct {
	mu             sync.Mutex
	takes          bool
	refused, taken []string // ids
}

func (c *choosy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	c.mu.Lock()
	defer c.mu.Unlock()
	if id := r.Header.Get("webhook-id"); c.takes {
		c.taken = append(c.taken, id)
		w.WriteHeader(http.StatusNoContent)
	} else {
		c.refused = append(c.refused, id)
		http.Error(w, "", http.StatusBadRequest)
	}
}

func (c *choosy) counts() (refused, taken int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.refused), len(c.taken)
}

// replay asks for a replay of all that has failed since a day.
func (p *pod) replay(from string) (status, replayed int, message string) {
	p.t.Helper()
	body := `{"platform": "crm", "from": "` + from + `", "status": ["failed"]}`
	request, err := http.NewRequestWithContext(p.t.Context(), http.MethodPost, p.collect+"/api/v1/properties/reader/deliveries/replay", strings.NewReader(body))
	if err != nil {
		p.t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer token-1")
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		p.t.Fatal(err)
	}
	defer response.Body.Close()
	var answer struct {
		Message string
		Data    struct{ Replayed int }
	}
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		p.t.Fatal(err)
	}
	return response.StatusCode, answer.Data.Replayed, answer.Message
}

// deliveredHere is how many deliveries failed, and how many did not, as the read API says.
func (p *pod) deliveredHere() (failed, delivered int) {
	p.t.Helper()
	var answer struct {
		Data struct {
			Totals []struct {
				Platform          string
				Failed, Delivered int
			}
		}
	}
	p.read("deliveries", &answer)
	for _, totals := range answer.Data.Totals {
		failed, delivered = failed+totals.Failed, delivered+totals.Delivered
	}
	return failed, delivered
}

// length is how many events Redis has.
func (p *pod) length(address string) int64 {
	p.t.Helper()
	client, err := stream.Dial(address, stream.DialOptions{})
	if err != nil {
		p.t.Fatal(err)
	}
	defer client.Close()
	bounds, err := client.Stream("default", "reader").Bounds(p.t.Context())
	if err != nil {
		p.t.Fatal(err)
	}
	return bounds.Length
}

func TestAReplayReachesBackToTheBeginningOfTheHistory(t *testing.T) {
	receiver := &choosy{}
	server := httptest.NewServer(receiver)
	defer server.Close()
	p, _ := startArchived(t, true)
	p.await("ready", p.ready) // with the configuration before, so that it is seen to change
	p.write(config.AccessTokensFile, []auth.Credential{{Name: "first", Hash: auth.HashOf("token-1"), Scope: auth.ScopeWrite}})
	p.writeText("platforms/crm/signingSecret", "whsec_"+strings.Repeat("A", 43)+"=")
	p.property.Egress = config.Egress{AllowCIDRs: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}
	p.property.Platforms = []platforms.Platform{{Name: "crm", Type: platforms.TypeWebhook, Settings: platforms.Settings{Webhook: &platforms.Webhook{URL: server.URL}}}}
	p.write(config.PropertyFile, p.property)
	p.await("it serves that", func() bool { return strings.Contains(p.log.String(), "platforms=1") })
	const events = 5
	for range events {
		p.buy()
	}
	p.await("all have failed, and that is in the history", func() bool { failed, _ := p.deliveredHere(); return failed == events })

	p.property.Retention.MaxEvents = 1
	p.write(config.PropertyFile, p.property)
	address := strings.TrimSpace(p.text(config.RedisURLFile))
	p.await("Redis lets go of them", func() bool { return p.length(address) == 1 })
	receiver.mu.Lock()
	receiver.takes = true
	receiver.mu.Unlock()

	if status, replayed, message := p.replay(time.Now().AddDate(0, -6, 0).Format(time.DateOnly)); status != http.StatusAccepted || replayed != events {
		t.Fatalf("a replay of everything: %d, %d were put back, %q", status, replayed, message)
	}
	p.await("all were delivered, as the read API says", func() bool { _, delivered := p.deliveredHere(); return delivered == events })
	refused, taken := receiver.counts()
	if refused != events || taken != events {
		t.Errorf("%d were refused and %d taken, want %d each", refused, taken, events)
	}
	receiver.mu.Lock()
	defer receiver.mu.Unlock()
	before := map[string]bool{}
	for _, id := range receiver.refused {
		before[id] = true
	}
	for _, id := range receiver.taken {
		if !before[id] {
			t.Error("an event came under another delivery id than before")
		}
	}
	if status, replayed, _ := p.replay(time.Now().AddDate(0, -6, 0).Format(time.DateOnly)); status != http.StatusAccepted || replayed != 0 {
		t.Errorf("the same again: %d, %d were put back", status, replayed)
	}
}

// text is what a file of the pod's configuration says.
func (p *pod) text(file string) string {
	p.t.Helper()
	text, err := os.ReadFile(filepath.Join(p.directory, file))
	if err != nil {
		p.t.Fatal(err)
	}
	return string(text)
}
