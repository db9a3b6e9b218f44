package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weir-dev/weir/collector/config"
	"github.com/weir-dev/weir/collector/platforms"
	"github.com/weir-dev/weir/collector/redisserver"
	"github.com/weir-dev/weir/collector/redisserver/redistest"
)

// figures are the KPIs that the tests look at.
type figures struct {
	Pageviews int         `json:"pageviews"`
	Purchases int         `json:"purchases"`
	Revenue   json.Number `json:"revenue"`
}

// figuresOfMonth waits for the view and returns the KPIs of the last 30 days.
func (w *weirDev) figuresOfMonth() figures {
	w.t.Helper()
	var reply answer
	await(w.t, "the view has replayed", func() bool {
		reply = w.read("/analytics/summary?period=30d")
		return reply.status == http.StatusOK
	})
	var body struct {
		Data struct {
			KPIs figures `json:"kpis"`
		} `json:"data"`
	}
	if err := json.Unmarshal([]byte(reply.body), &body); err != nil {
		w.t.Fatal(err)
	}
	return body.Data.KPIs
}

// TestDevMakesUpAPast begins with a past, adds an event and starts again: the past is there once, nothing of it
// is delivered, and what comes after it is.
func TestDevMakesUpAPast(t *testing.T) {
	receiver := newWebhookReceiver(t)
	state := filepath.Join(t.TempDir(), "state")
	args := []string{"-f", shopFile(t, receiver.URL), "--egress-allow-cidr", "127.0.0.0/8", "--demo-events", "3000", "--demo-days", "29", "--demo-seed", "5"}

	weir := startWeirDev(t, state, args...)
	if want := "shop has a past now: 3000 events of 29 days, seed 5"; !strings.Contains(weir.stdout.String(), want) {
		t.Errorf("got %q, want %q in it", weir.stdout.String(), want)
	}
	first := weir.figuresOfMonth()
	if first.Pageviews < 1000 || first.Purchases == 0 || first.Revenue == "0" {
		t.Errorf("the past has the figures %+v", first)
	}
	rows := do(t, http.MethodGet, weir.BaseURL+"/properties/shop/events?period=30d", "", map[string]string{
		"Authorization": "Bearer " + weir.AccessTokens[0].Token, "Accept": "application/x-ndjson",
	})
	if got := strings.Count(rows.body, "\n"); got != 3000 {
		t.Errorf("the export has %d rows, want 3000", got)
	}
	for _, path := range []string{"/docs", "/docs/docs.js", "/api/v1/openapi.json"} {
		if got := do(t, http.MethodGet, weir.CollectURL+path, "", nil); got.status != http.StatusOK || got.header.Get("Content-Security-Policy") == "" {
			t.Errorf("%s: got %d with the policy %q", path, got.status, got.header.Get("Content-Security-Policy"))
		}
	}
	if got := weir.collect(`{"event": "purchase", "event_id": "now", "data": {"value": 1, "currency": "EUR"}}`); got.status != http.StatusAccepted {
		t.Fatalf("%d %s", got.status, got.body)
	}
	await(t, "the new event is delivered", func() bool { return len(receiver.received()) > 0 })
	if code := weir.stop(); code != 0 {
		t.Errorf("exit code %d:\n%s", code, weir.stderr.String())
	}

	again := startWeirDev(t, state, args...)
	if want := "shop has events already: --demo-events leaves it as it is"; !strings.Contains(again.stdout.String(), want) {
		t.Errorf("got %q, want %q in it", again.stdout.String(), want)
	}
	if second := again.figuresOfMonth(); second.Purchases != first.Purchases+1 || second.Pageviews != first.Pageviews {
		t.Errorf("after another start the figures are %+v, before they were %+v and one purchase", second, first)
	}
	again.stop()
	if got := receiver.received(); len(got) != 1 {
		t.Errorf("%d events were delivered, want the new one alone", len(got))
	}
}

func TestDevDemoErrors(t *testing.T) {
	file := filepath.Join(t.TempDir(), "shop.yaml")
	text := "apiVersion: weir.dev/v1alpha1\nkind: Property\nmetadata: {name: shop}\nspec: {currency: EUR, retention: {days: 10, maxEvents: 1000}}\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		args []string
		code int
		want []string
	}{
		"days without events":       {[]string{"--demo-days", "3"}, 2, []string{"--demo-days: nothing is made up without --demo-events"}},
		"a seed without events":     {[]string{"--demo-seed", "3"}, 2, []string{"--demo-seed: nothing is made up"}},
		"no events":                 {[]string{"--demo-events", "0"}, 2, []string{"--demo-events: must be 1 to 100000000, not 0"}},
		"days that are none":        {[]string{"--demo-events", "-1", "--demo-days", "400"}, 2, []string{"--demo-events: must be", "--demo-days: must be 1 to 366, not 400"}},
		"no number":                 {[]string{"--demo-events", "many"}, 2, []string{"demo-events"}},
		"longer than the retention": {[]string{"--demo-events", "10", "--demo-days", "11"}, 1, []string{"--demo-days: 11 are more than the 10 that shop keeps (spec.retention.days)"}},
		"more than the retention":   {[]string{"--demo-events", "1001", "--demo-days", "1"}, 1, []string{"--demo-events: 1001 are more than the 1000 that shop keeps (spec.retention.maxEvents)"}},
	} {
		t.Run(name, func(t *testing.T) {
			var stdout, stderr bytes.Buffer
			args := append([]string{"dev", "-f", file, "--listen", "127.0.0.1:0", "--state-dir", filepath.Join(t.TempDir(), "state")}, test.args...)
			if code := run(t.Context(), args, &stdout, &stderr); code != test.code {
				t.Errorf("exit code %d, want %d", code, test.code)
			}
			for _, want := range test.want {
				if !strings.Contains(stderr.String(), want) {
					t.Errorf("got %q, want %q in it", stderr.String(), want)
				}
			}
		})
	}
}

// BenchmarkDemo fills a Redis that is on the disk before it answers, as that of weir dev is.
func BenchmarkDemo(b *testing.B) {
	const events = 200_000
	property := &config.Property{
		Namespace: "default", Currency: "EUR", TimeZone: "Europe/Berlin", Retention: config.Retention{Days: 30, MaxEvents: events},
		Platforms: []platforms.Platform{{Name: "console", Type: platforms.TypeLog}, {Name: "crm", Type: platforms.TypeWebhook}},
	}
	server := redistest.Start(b, redisserver.Options{Persist: true, Fsync: redisserver.FsyncAlways})
	o, runs := demoOptions{events: events, days: 30, seed: 1}, 0
	for b.Loop() {
		runs++
		property.Name = fmt.Sprint("shop-", runs)
		if err := o.fillOne(b.Context(), property, config.Redis{URL: server.URL()}, time.Now()); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(runs*events)/b.Elapsed().Seconds(), "events/s")
}
