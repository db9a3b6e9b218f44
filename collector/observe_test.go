package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/weir-dev/weir/collector/config"
	"github.com/weir-dev/weir/collector/platforms"
	"github.com/weir-dev/weir/collector/redisserver"
)

// traceReceiver is where collectors under test send their spans.
type traceReceiver struct {
	*httptest.Server
	mu     sync.Mutex
	bodies bytes.Buffer
	names  map[string]int
}

func newTraceReceiver(t *testing.T) *traceReceiver {
	t.Helper()
	r := &traceReceiver{names: map[string]int{}}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		body, err := io.ReadAll(request.Body)
		var data tracepb.TracesData
		if err != nil || proto.Unmarshal(body, &data) != nil {
			w.WriteHeader(http.StatusBadRequest)
			t.Error("the spans cannot be read")
			return
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		r.bodies.Write(body)
		for _, group := range data.GetResourceSpans() {
			for _, scope := range group.GetScopeSpans() {
				for _, span := range scope.GetSpans() {
					r.names[span.GetName()]++
				}
			}
		}
	}))
	t.Cleanup(r.Close)
	return r
}

// hostile sends requests in which a key, a person's data and the text stand wherever a caller can put them, and
// returns the answers.
func hostile(t *testing.T, c *collector, text string) string {
	t.Helper()
	person := fmt.Sprintf(`"user": {"email": "jane.%s@example.com", "phone": "+4915112345678", "first_name": "Jacqueline"}`, text)
	id := "id-" + text
	var answers strings.Builder
	for _, r := range []struct{ method, path, body string }{
		{"POST", "/collect/" + shopKey, `{"event": "` + text + `", "event_id": "` + id + `", ` + person + `}`},
		{"POST", "/collect/" + shopKey, `{"event": "purchase", "` + text + `": 1, ` + person + `}`},
		{"POST", "/collect/" + shopKey, `{"event": "x", "context": {"click_ids": {"` + text + `": 1, "gclid": 1}}, "data": {"contents": [{"id": []}, 7]}}`},
		{"POST", "/collect/" + shopKey, `{"event": "x", "event_id": 1, "user": {"email": "jane.` + text + `", "phone": "x+4915112345678", "first_name": ["Jacqueline"]}}`},
		{"POST", "/collect/" + shopKey, `{"event": "` + text + `", ` + person},
		{"POST", "/collect/" + shopKey + "/batch", `{"events": [{"event": "` + text + `", ` + person + `}, {"` + text + `": 1}, 7]}`},
		{"POST", "/collect/" + shopKey + "/batch", `{"` + text + `": 1}`},
		{"POST", "/collect/" + shopKey + "/" + text, person},
		{"POST", "/collect/" + shopKey + "x", person},
		{"POST", "/collect/" + strings.ToLower(shopKey), person},
		{"POST", "//collect/" + shopKey, person},
		{"POST", "/collect/%77" + shopKey[1:], `{"event": "x", "event_id": "` + id + `"}`},
		{"POST", "/collect/" + shopKey + "%2f..%2f" + text, person},
		{"POST", "/collect/" + shopKey + "%00%ff", person},
		{"POST", "/collect/" + shopKey + "?" + text + "=" + shopKey + ";%zz", person},
		{"GET", "/collect/" + shopKey, ""},
		{"DELETE", "/collect/" + shopKey + "/batch", ""},
		{text, "/collect/" + shopKey, ""},
		{"GET", "/" + text + "/" + shopKey, ""},
		{"GET", "/api/v1/properties/" + text + "/events?period=" + shopKey, ""},
		{"GET", "/api/v1/properties/shop/events?" + text + "=1&period=" + text, ""},
	} {
		request, err := http.NewRequestWithContext(t.Context(), r.method, "http://"+c.address+"/", strings.NewReader(r.body))
		if err != nil {
			t.Fatal(err)
		}
		request.URL.Opaque = "//" + c.address + r.path
		request.Header = http.Header{
			"Content-Type": {"application/json"}, "User-Agent": {shopKey}, "Referer": {"https://example.com/" + shopKey},
			"Traceparent": {"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}, "Tracestate": {"v=" + shopKey},
			"Baggage": {"v=" + shopKey}, "X-Request-Id": {text}, "Authorization": {"Bearer " + shopKey},
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(response.Body)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		fmt.Fprintln(&answers, response.StatusCode, response.Header, strings.ReplaceAll(string(body), id, "")) // the caller's own id is answered
	}
	for _, raw := range []string{"POST /collect/" + shopKey, "POST /collect/" + shopKey + " HTTP/9.9\r\n\r\n", shopKey + ": " + text + "\r\n\r\n"} {
		connection := c.connect()
		if _, err := io.WriteString(connection, raw+"\r\nHost: "+shopKey+"\x00\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		answer, err := io.ReadAll(connection)
		if err != nil {
			t.Fatal(err)
		}
		answers.Write(answer)
	}
	return answers.String()
}

// TestNothingSecretOrPersonalIsObservable looks for what callers sent in all that a collector tells.
func TestNothingSecretOrPersonalIsObservable(t *testing.T) {
	t.Parallel()
	receiver := newTraceReceiver(t)
	s := newSite(t, redisserver.Options{})
	c := s.start("collect,query", "OTEL_EXPORTER_OTLP_ENDPOINT="+receiver.URL, "OTEL_BSP_SCHEDULE_DELAY=50")
	eventually(t, "the view is ready", func() bool {
		response, err := http.Get("http://" + c.metrics + "/readyz")
		if err != nil {
			return false
		}
		response.Body.Close()
		return response.StatusCode == http.StatusOK
	})
	const marker = "zq9marker"
	answers := hostile(t, c, marker)
	families := c.scrape()
	c.stop() // and the last spans are sent

	var stored bytes.Buffer
	entries, err := s.stream.ReadEvents(t.Context(), 0, 100, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		stored.Write(entry.Data)
	}
	for place, text := range map[string]string{
		"the log": c.log.String(), "the audit log": c.acts.String(), "the metrics": families, "the spans": receiver.bodies.String(), "the answers": answers, "the stream": stored.String(),
	} {
		if text == "" {
			t.Errorf("%s: nothing is there to be looked through", place)
		}
		for _, secret := range []string{shopKey, shopKey[3:20], strings.ToLower(shopKey), "jane", "5112345678", "acqueline"} {
			if strings.Contains(text, secret) {
				t.Errorf("%q stands in %s:\n%s", secret, place, text)
			}
		}
		// An event's name and its id are the customer's own and are stored; nobody else is told.
		if place != "the stream" && strings.Contains(text, marker) {
			t.Errorf("what the caller chose stands in %s:\n%s", place, text)
		}
	}
	for _, name := range []string{
		"POST /collect/{api_key}", "POST /collect/{api_key}/batch", "append", "POST unmatched", "other unmatched",
		"GET /api/v1/properties/{property}/events",
	} {
		if receiver.names[name] == 0 {
			t.Errorf("no span is called %q: %v", name, receiver.names)
		}
	}
}

func TestDeliveriesAreTraced(t *testing.T) {
	t.Parallel()
	receiver := newTraceReceiver(t)
	s := newSite(t, redisserver.Options{})
	property := shop()
	property.Platforms = []platforms.Platform{{Name: "console", Type: platforms.TypeLog}}
	s.write(config.PropertyFile, property)
	c := s.start("collect,deliver", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT="+receiver.URL+"/traces", "OTEL_BSP_SCHEDULE_DELAY=20")
	if r, err := newClient(t).send(t.Context(), c, "", []byte(`{"event": "lead", "event_id": "zq9marker"}`)); err != nil || r.status != http.StatusAccepted {
		t.Fatalf("got %d %s, %v", r.status, r.body, err)
	}
	eventually(t, "the delivery's span comes", func() bool {
		receiver.mu.Lock()
		defer receiver.mu.Unlock()
		return receiver.names["deliver"] > 0
	})
	c.stop()
	if text := receiver.bodies.String(); strings.Contains(text, "zq9marker") || !strings.Contains(text, "console") {
		t.Errorf("want the platform and not the event's id in the spans: %q", text)
	}
}

// TestMetricsAreBounded proves that a caller cannot add series: what is new in one round of hostile requests is all that
// another round, with other texts, makes.
func TestMetricsAreBounded(t *testing.T) {
	t.Parallel()
	s := newSite(t, redisserver.Options{})
	c := s.start("collect,query")
	series := func() map[string]bool {
		names := map[string]bool{}
		for line := range strings.Lines(c.scrape()) {
			if name, _, found := strings.Cut(line, " "); found && strings.HasPrefix(name, "weir_") {
				names[name] = true
			}
		}
		return names
	}
	hostile(t, c, "first")
	before := series()
	for i := range 20 {
		hostile(t, c, fmt.Sprint("round", i))
	}
	for name := range series() {
		// Whether one of a kind is served or not may change with the time, so statuses may come; nothing else.
		if !before[name] && !strings.HasPrefix(name, "weir_http_request_duration_seconds") {
			t.Errorf("a new series: %s", name)
		}
		if strings.Contains(name, "round") {
			t.Errorf("a caller's text in %s", name)
		}
	}
	if n := len(before); n == 0 || n > 1000 {
		t.Errorf("%d series, want a few hundred", n)
	}
	for _, want := range []string{
		`weir_collect_events_total{endpoint="collect",namespace="default",outcome="accepted",property="shop"}`,
		`weir_collect_field_errors_total{field="data.value",namespace="default",property="shop"}`,
		`weir_collect_field_errors_total{field="data.contents.*",namespace="default",property="shop"}`,
		`weir_append_duration_seconds_count{namespace="default",property="shop"}`,
		`weir_append_batch_events_count{namespace="default",property="shop"}`,
		`weir_http_request_duration_seconds_count{code="422",route="/collect/{api_key}"}`,
	} {
		if !before[want] {
			t.Errorf("the series %s is missing", want)
		}
	}
}

// TestTheLogSaysWhyRequestsAreRefused reads the log as a machine does: ten lines of a reason, then one a second, which says how
// many there were besides.
func TestTheLogSaysWhyRequestsAreRefused(t *testing.T) {
	t.Parallel()
	s := newSite(t, redisserver.Options{})
	c := s.start("collect")
	sender := newClient(t)
	const refused, served = 25, 200
	begin := time.Now()
	for i := range refused + served {
		body := `{"event": "pageview"}`
		if i < refused {
			body = `{"event": "purchase", "user": {"email": 1}}`
		}
		if _, err := sender.send(t.Context(), c, "", []byte(body)); err != nil {
			t.Fatal(err)
		}
	}
	seconds := int(time.Since(begin)/time.Second) + 2
	c.stop()
	var linesRefused, linesServed int
	for line := range strings.Lines(c.log.String()) {
		var entry struct {
			Message   string `json:"msg"`
			Status    int    `json:"status"`
			Namespace string `json:"namespace"`
			Property  string `json:"property"`
			Fields    string `json:"fields"`
			Duplicate *bool  `json:"duplicate"`
		}
		if err := json.Unmarshal([]byte(line), &entry); err != nil {
			t.Fatalf("%q is no JSON: %v", line, err)
		}
		switch entry.Message {
		case "request not served":
			linesRefused++
			if entry.Status != 422 || entry.Namespace != "default" || entry.Property != "shop" || entry.Fields != "user.email data.value data.currency" {
				t.Errorf("got %s", line)
			}
		case "request served":
			linesServed++
			if entry.Status != 202 || entry.Property != "shop" || entry.Duplicate == nil {
				t.Errorf("got %s", line)
			}
		}
	}
	if linesRefused < 10 || linesRefused > 10+seconds {
		t.Errorf("%d lines for %d refused requests in %d seconds, want ten and one a second", linesRefused, refused, seconds)
	}
	if linesServed == 0 || linesServed > seconds {
		t.Errorf("%d lines for served requests in %d seconds, want one a second", linesServed, seconds)
	}
}

// TestEveryMetricIsDocumented compares the names in the code with those in docs/reference/metrics.md.
func TestEveryMetricIsDocumented(t *testing.T) {
	quoted := regexp.MustCompile(`"(weir_[a-z_]+)"`)
	made := map[string]bool{}
	err := fs.WalkDir(os.DirFS(".."), ".", func(path string, entry fs.DirEntry, err error) error {
		const functions = "collector/stream/library.go" // where Redis Functions have their names
		if top, _, below := strings.Cut(path, "/"); below && top != "collector" && top != "controllers" {
			return fs.SkipDir
		}
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || path == functions {
			return err
		}
		text, err := os.ReadFile(filepath.Join("..", path))
		for _, match := range quoted.FindAllSubmatch(text, -1) {
			made[string(match[1])] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("../docs/reference/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	documented := map[string]bool{}
	for _, row := range regexp.MustCompile("(?m)^\\| `(weir_[a-z_]+)`").FindAllSubmatch(page, -1) {
		documented[string(row[1])] = true
	}
	if diff := cmp.Diff(made, documented); diff != "" {
		t.Errorf("metrics (-in the code +documented):\n%s", diff)
	}
}
