package role_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-dev/weir/collector/auth"
	"github.com/weir-dev/weir/collector/backup"
	"github.com/weir-dev/weir/collector/config"
	"github.com/weir-dev/weir/collector/platforms"
	"github.com/weir-dev/weir/collector/redisserver/redistest"
	"github.com/weir-dev/weir/collector/role"
	"github.com/weir-dev/weir/collector/stream"
)

// counting is a webhook's receiver that counts what it has taken by id. While it is away it takes nothing.
type counting struct {
	mu    sync.Mutex
	away  bool
	taken map[string]int
}

func (c *counting) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.away {
		http.Error(w, "", http.StatusServiceUnavailable)
		return
	}
	c.taken[r.Header.Get("webhook-id")]++
	w.WriteHeader(http.StatusNoContent)
}

func (c *counting) goAway(away bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.away = away
}

// count is how many ids were taken, and how often altogether.
func (c *counting) count() (ids, times int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, n := range c.taken {
		times += n
	}
	return len(c.taken), times
}

// questions are what the read API is asked before and after.
var questions = []string{
	"analytics/summary", "analytics/breakdown?by=source", "analytics/breakdown?by=event", "events/stats", "analytics/series", "analytics/daily",
	"events?limit=200", "deliveries", "rejections", "analytics/funnel?steps[]=pageview&steps[]=purchase", "analytics/attribution", "settings",
}

var instant = regexp.MustCompile(`"to":"[^"]*\.\d{3}Z"`)

// answers are those to all questions.
func (p *pod) answers() map[string]string {
	p.t.Helper()
	all := map[string]string{}
	for _, question := range questions {
		request, err := http.NewRequestWithContext(p.t.Context(), http.MethodGet, p.collect+"/api/v1/properties/reader/"+question, http.NoBody)
		if err != nil {
			p.t.Fatal(err)
		}
		request.Header.Set("Authorization", "Bearer token-1")
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			p.t.Fatal(err)
		}
		text, err := io.ReadAll(response.Body)
		response.Body.Close()
		if err != nil {
			p.t.Fatal(err)
		}
		// A series ends now.
		all[question] = fmt.Sprint(response.StatusCode, " ", instant.ReplaceAllString(string(text), `"to":"now"`))
	}
	return all
}

// alone runs the roles on what the pod has in its directory, until the test has done with it.
func (p *pod) alone(roles ...role.Name) (stop func()) {
	p.t.Helper()
	p.run(roles...)
	p.await("ready", p.ready)
	return func() {
		if err := p.stop(); err != nil {
			p.t.Errorf("stop: %v", err)
		}
	}
}

// visit posts what the n-th visitor does, who has several devices and an account.
func (p *pod) visit(n int) {
	p.t.Helper()
	events := []string{
		fmt.Sprintf(`{"event":"pageview","client_id":"phone-%d","page_url":"https://shop.example/?utm_source=news"}`, n),
		fmt.Sprintf(`{"event":"pageview","client_id":"laptop-%d","user_id":"user-%d"}`, n, n),
		fmt.Sprintf(`{"event":"purchase","event_id":"order-event-%d","client_id":"phone-%d","user_id":"user-%d","data":{"value":%d,"currency":"EUR","order_id":"%d"}}`, n, n, n, n+1, n),
	}
	for _, body := range events {
		if status := p.request(http.MethodPost, p.collect+"/collect/key-1", body, http.Header{"Content-Type": {"application/json"}}); status != http.StatusAccepted {
			p.t.Fatalf("status %d", status)
		}
	}
}

// One life of a Property ends in the middle of its deliveries, and another one begins from the backup in another Redis.
func TestAPropertyLivesOnFromItsBackup(t *testing.T) {
	t.Parallel()
	receiver := &counting{taken: map[string]int{}}
	server := httptest.NewServer(receiver)
	defer server.Close()
	p := &pod{t: t, directory: t.TempDir(), property: shop("reader"), log: &logBuffer{}}
	p.property.Egress = config.Egress{AllowCIDRs: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}
	p.property.Platforms = []platforms.Platform{{Name: "crm", Type: platforms.TypeWebhook, Settings: platforms.Settings{Webhook: &platforms.Webhook{URL: server.URL}}}}
	p.write(config.PropertyFile, p.property)
	p.write(config.APIKeysFile, []auth.Credential{{Name: "first", Hash: auth.HashOf("key-1")}})
	p.write(config.AccessTokensFile, []auth.Credential{{Name: "first", Hash: auth.HashOf("token-1"), Scope: auth.ScopeRead}})
	p.writeText("platforms/crm/signingSecret", "whsec_"+strings.Repeat("A", 43)+"=")
	first, second := redistest.URL(t), redistest.URL(t)
	for _, address := range []string{first, second} {
		loadLibrary(t, address)
	}
	p.writeText(config.RedisURLFile, first)

	stop := p.alone(role.Collect, role.Deliver, role.Query)
	const visitors, delivered = 20, 10
	for n := range delivered {
		p.visit(n)
	}
	p.await("the first events are delivered", func() bool { ids, _ := receiver.count(); return ids == 3*delivered })
	receiver.goAway(true)
	for n := delivered; n < visitors; n++ {
		p.visit(n)
	}
	p.request(http.MethodPost, p.collect+"/collect/key-1", `{"event":"purchase","data":{"value":"much"}}`, http.Header{"Content-Type": {"application/json"}})
	p.await("the refused event is listed", func() bool { return strings.Contains(p.answers()["rejections"], "purchase") })
	p.await("some wait for another attempt", func() bool {
		return strings.Contains(p.answers()["deliveries"], `"retrying"`) && !strings.Contains(p.answers()["deliveries"], `"retrying":0`)
	})
	stop()
	stop = p.alone(role.Query)
	before := p.answers()

	file := filepath.Join(t.TempDir(), "shop.weir")
	var said bytes.Buffer
	surroundings := backup.Environment{Stdout: &said, Stderr: &said, Getenv: func(string) string { return "" }, Version: "test"}
	args := []string{"--redis-url", first, "--property", "default/reader", "--to", file}
	if code := backup.Command(t.Context(), "weir backup", args, surroundings); code != 0 {
		t.Fatalf("exit code %d: %s", code, &said)
	}
	stop()
	args = []string{"--redis-url", second, "--property", "default/reader", file}
	if code := backup.RestoreCommand(t.Context(), "weir restore", args, surroundings); code != 0 {
		t.Fatalf("exit code %d: %s", code, &said)
	}

	p.writeText(config.RedisURLFile, second)
	stop = p.alone(role.Query)
	after := p.answers()
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("the answers have changed (-before +after):\n%s", diff)
	}
	for _, question := range questions {
		if !strings.HasPrefix(after[question], "200 ") {
			t.Errorf("%s: %s", question, after[question])
		}
	}
	if _, times := receiver.count(); times != 3*delivered {
		t.Fatalf("%d deliveries before the second life", times)
	}
	stop()
	receiver.goAway(false)
	stop = p.alone(role.Collect, role.Deliver, role.Query)
	defer stop()
	p.await("all events are delivered", func() bool { ids, _ := receiver.count(); return ids >= 3*visitors })
	p.visit(visitors)
	p.await("what comes now is delivered too", func() bool { ids, _ := receiver.count(); return ids >= 3*visitors+3 })
	// An event of the first life is not stored twice.
	body := `{"event":"purchase","event_id":"order-event-3","data":{"value":4,"currency":"EUR","order_id":"3"}}`
	if status := p.request(http.MethodPost, p.collect+"/collect/key-1", body, http.Header{"Content-Type": {"application/json"}}); status != http.StatusAccepted {
		t.Fatalf("status %d", status)
	}
	p.await("as the read API says", func() bool {
		var answer struct {
			Data struct {
				Totals []struct{ Delivered int }
			}
		}
		p.read("deliveries", &answer)
		return len(answer.Data.Totals) == 1 && answer.Data.Totals[0].Delivered == 3*visitors+3
	})
	if ids, times := receiver.count(); ids != 3*visitors+3 || times != ids {
		t.Errorf("%d events were delivered %d times, want %d once each", ids, times, 3*visitors+3)
	}
}

// loadLibrary does what the operator does with a Redis.
func loadLibrary(t *testing.T, address string) {
	t.Helper()
	client, err := stream.Dial(address, stream.DialOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if err := client.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
}
