package role_test

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weir-dev/weir/collector/auth"
	"github.com/weir-dev/weir/collector/clickhouse"
	"github.com/weir-dev/weir/collector/clickhouse/clickhousetest"
	"github.com/weir-dev/weir/collector/config"
	"github.com/weir-dev/weir/collector/history/imports"
	"github.com/weir-dev/weir/collector/history/schema"
	"github.com/weir-dev/weir/collector/redisserver/redistest"
	"github.com/weir-dev/weir/collector/role"
	"github.com/weir-dev/weir/collector/stream"
)

// startArchived runs a pod with all roles, whose Property has a history where that is switched on.
func startArchived(t *testing.T, switchedOn bool) (*pod, *clickhousetest.Proxy) {
	t.Helper()
	address := redistest.URL(t)
	redis, err := stream.Dial(address, stream.DialOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer redis.Close()
	if err := redis.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	proxy := clickhousetest.StartProxy(t, clickhousetest.Shared(t))
	client, err := clickhouse.Dial(proxy.URL(), clickhouse.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if _, err := schema.Ensure(t.Context(), client); err != nil {
		t.Fatal(err)
	}
	p := &pod{t: t, directory: t.TempDir(), property: shop("reader"), log: &logBuffer{}}
	p.write(config.APIKeysFile, []auth.Credential{{Name: "first", Hash: auth.HashOf("key-1")}})
	p.write(config.AccessTokensFile, []auth.Credential{{Name: "first", Hash: auth.HashOf("token-1"), Scope: auth.ScopeRead}})
	p.writeText(config.RedisURLFile, address)
	p.writeText(config.HistoryURLFile, proxy.URL())
	p.switchHistory(switchedOn)
	p.run(role.Collect, role.Deliver, role.Query, role.Archive)
	t.Cleanup(func() {
		if err := p.stop(); err != nil {
			t.Errorf("stop: %v", err)
		}
	})
	return p, proxy
}

// switchHistory switches the Property's history on or off.
func (p *pod) switchHistory(on bool) {
	p.t.Helper()
	p.property.History = nil
	if on {
		p.property.History = &config.History{RetentionDays: 1095}
	}
	p.write(config.PropertyFile, p.property)
}

// buy posts a purchase and returns the status.
func (p *pod) buy() int {
	p.t.Helper()
	return p.request(http.MethodPost, p.collect+"/collect/key-1", `{"event":"purchase","data":{"value":1,"currency":"EUR"}}`, http.Header{"Content-Type": {"application/json"}})
}

// counted is how many purchases there are; false where that is not answered.
func (p *pod) counted() (count int, answered bool) {
	count, _, status := p.purchases()
	return count, status == http.StatusOK
}

// has says whether the pod has a metric of its property.
func (p *pod) has(metric string) bool {
	p.t.Helper()
	request, err := http.NewRequestWithContext(p.t.Context(), http.MethodGet, p.metrics+"/metrics", http.NoBody)
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
	return strings.Contains(string(text), metric+`{namespace="default",property="reader"}`)
}

func TestAnEventIsInAnswersFromTheHistoryWithinThreeSeconds(t *testing.T) {
	p, _ := startArchived(t, true)
	p.await("ready", p.ready)
	for n := range 5 {
		if got := p.buy(); got != http.StatusAccepted {
			t.Fatalf("not accepted: %d", got)
		}
		accepted := time.Now()
		p.await("the event is counted", func() bool { count, _ := p.counted(); return count == n+1 })
		if took := time.Since(accepted); took > 3*time.Second {
			t.Errorf("it took %s", took)
		}
	}
	t.Run("and Weir-As-Of is not before the event", func(t *testing.T) {
		accepted := time.Now().UTC()
		p.await("as of now", func() bool {
			_, asOf, _ := p.purchases()
			at, err := time.Parse(time.RFC3339, asOf)
			return err == nil && at.After(accepted)
		})
	})
	t.Run("and nothing is held in memory", func(t *testing.T) {
		if p.has("weir_view_events") || !p.has("weir_history_lag_seconds") {
			t.Error("the pod has a view, or no history")
		}
	})
	t.Run("and it is shown whole", func(t *testing.T) {
		var listed struct {
			Data []struct {
				EventID string `json:"event_id"`
			}
		}
		p.read("events", &listed)
		var shown struct {
			Data struct {
				Event            string
				AttemptsComplete bool `json:"attempts_complete"`
			}
		}
		if answer := p.read("events/"+listed.Data[0].EventID, &shown); answer.StatusCode != http.StatusOK || shown.Data.Event != "purchase" || !shown.Data.AttemptsComplete {
			t.Errorf("got %d %+v", answer.StatusCode, shown)
		}
	})
}

func TestAHistoryThatIsAwayIsSaidAndComesBack(t *testing.T) {
	p, proxy := startArchived(t, true)
	p.await("ready", p.ready)
	p.buy()
	p.await("the event is counted", func() bool { count, _ := p.counted(); return count == 1 })

	proxy.Add(clickhousetest.Fault{CutBefore: true})
	for range 3 {
		var answer struct{ Message string }
		got := p.read("analytics/summary", &answer)
		if got.StatusCode != http.StatusServiceUnavailable || got.Header.Get("Retry-After") == "" || answer.Message != "The history cannot be read at the moment." {
			t.Errorf("while it is away: %d %q, Retry-After %q", got.StatusCode, answer.Message, got.Header.Get("Retry-After"))
		}
	}
	if !p.ready() {
		t.Error("the pod is not ready, though it answers")
	}
	if connected := p.metric("weir_history_connected"); connected != 0 {
		t.Errorf("weir_history_connected is %v", connected)
	}
	if got := p.buy(); got != http.StatusAccepted {
		t.Errorf("an event meanwhile: %d", got)
	}

	proxy.Heal()
	p.await("both events are counted", func() bool { count, _ := p.counted(); return count == 2 })
	for said, times := range map[string]int{"the history cannot be read;": 1, "the history can be read again": 1} {
		if got := strings.Count(p.log.String(), said); got != times {
			t.Errorf("%q stands %d times in the log, want %d:\n%s", said, got, times, p.log.String())
		}
	}
	if strings.Contains(p.log.String(), proxy.URL()) {
		t.Error("the log has the URL")
	}
}

func TestAHistoryIsSwitchedOnAndOffWhileQuestionsAreAnswered(t *testing.T) {
	p, _ := startArchived(t, false)
	p.await("ready", p.ready)
	for range 3 {
		p.buy()
	}
	p.await("the past is counted", func() bool { count, _ := p.counted(); return count == 3 })
	takesOver := func(engine string) {
		t.Helper()
		p.await("the "+engine+" takes over", func() bool {
			if count, answered := p.counted(); !answered || count < 3 {
				t.Fatalf("before the %s: %d are counted, answered %t", engine, count, answered)
			}
			return strings.Contains(p.log.String(), "from="+engine)
		})
	}

	p.switchHistory(true)
	takesOver("history")
	if count, _ := p.counted(); count != 3 {
		t.Errorf("the history has %d of the past, want 3", count)
	}
	p.buy()
	p.await("the next one is counted", func() bool { count, _ := p.counted(); return count == 4 })
	if p.has("weir_view_events") {
		t.Error("the view is still there")
	}

	p.switchHistory(false)
	takesOver("view")
	if count, _ := p.counted(); count != 4 {
		t.Errorf("the view has %d, want 4", count)
	}
	p.buy()
	p.await("the last one is counted", func() bool { count, _ := p.counted(); return count == 5 })
	if p.has("weir_history_ready") {
		t.Error("the history is still there")
	}
}

func TestOnceTheHistoryIsSwitchedOffAnswersSayThatAnImportedPastIsMissing(t *testing.T) {
	p, _ := startArchived(t, true)
	p.await("ready", p.ready)
	p.buy()
	p.await("the event is counted", func() bool { count, _ := p.counted(); return count == 1 })

	imported := time.Now().UTC().Add(-48 * time.Hour).Truncate(time.Second)
	lines := filepath.Join(t.TempDir(), "past.ndjson")
	line := `{"type":"track","event":"lead","messageId":"m1","anonymousId":"c","receivedAt":"` + imported.Format(time.RFC3339) + `"}` + "\n"
	if err := os.WriteFile(lines, []byte(line), 0o600); err != nil {
		t.Fatal(err)
	}
	var said strings.Builder
	if code := imports.Command(t.Context(), "weir import", []string{"--config", p.directory, lines}, nil, &said, &said); code != 0 {
		t.Fatalf("weir import ends with %d: %s", code, &said)
	}

	type answer struct {
		Data struct {
			KPIs         struct{ Events int } `json:"kpis"`
			CompleteFrom string               `json:"complete_from"`
		}
	}
	ask := func() (found answer) {
		t.Helper()
		p.read("analytics/summary?from="+imported.Add(-time.Hour).Format(time.RFC3339), &found)
		return found
	}
	if got := ask(); got.Data.KPIs.Events != 2 || got.Data.CompleteFrom != "" {
		t.Errorf("with the history there are %d events, complete from %q; want 2, and all of them", got.Data.KPIs.Events, got.Data.CompleteFrom)
	}
	redis, err := stream.Dial(p.text(config.RedisURLFile), stream.DialOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer redis.Close()
	p.await("the archive has seen the import", func() bool {
		beyond, err := redis.Stream("default", "reader").Beyond(t.Context())
		return err == nil && beyond != 0
	})

	p.switchHistory(false)
	p.await("the view takes over", func() bool { return strings.Contains(p.log.String(), "from=view") })
	want := imported.Add(time.Millisecond).Format("2006-01-02T15:04:05.000Z")
	if got := ask(); got.Data.KPIs.Events != 1 || got.Data.CompleteFrom != want {
		t.Errorf("without it there are %d events, complete from %q; want 1, and %q", got.Data.KPIs.Events, got.Data.CompleteFrom, want)
	}
}
