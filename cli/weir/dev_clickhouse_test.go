package main

import (
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weir-dev/weir/collector/clickhouse/clickhousetest"
)

const historyShop = "apiVersion: weir.dev/v1alpha1\nkind: Property\nmetadata: {name: shop}\nspec: {currency: EUR}\n"

// events is how many events the summary has; -1 where it does not answer.
func (w *weirDev) events() int {
	w.t.Helper()
	answer := w.read("/analytics/summary")
	if answer.status != http.StatusOK {
		return -1
	}
	kpis := answer.object(w.t)["data"].(map[string]any)["kpis"].(map[string]any)
	return int(kpis["events"].(float64))
}

func TestDevKeepsEventsInAClickHouse(t *testing.T) {
	server := clickhousetest.Start(t)
	stateDir := filepath.Join(t.TempDir(), "state")
	file := filepath.Join(t.TempDir(), "shop.yaml")
	if err := os.WriteFile(file, []byte(historyShop), 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{"-f", file, "--clickhouse", server.URL("")}
	w := startWeirDev(t, stateDir, args...)
	if got := w.collect(`{"event":"lead"}`); got.status != http.StatusAccepted {
		t.Fatalf("not accepted: %d %s", got.status, got.body)
	}
	await(t, "the event is counted", func() bool { return w.events() == 1 })
	if got := clickhousetest.Exec(t, server.URL("weir_default_shop"), "SELECT count() FROM events"); got != "1" {
		t.Errorf("ClickHouse has %s events", got)
	}
	t.Run("whose passwords are nowhere but in files of its own", func(t *testing.T) {
		address, err := url.Parse(server.URL(""))
		if err != nil {
			t.Fatal(err)
		}
		password, _ := address.User.Password()
		for name, text := range map[string]string{"stdout": w.stdout.String(), "stderr": w.stderr.String()} {
			if strings.Contains(text, password) {
				t.Errorf("%s has the administrator's password", name)
			}
		}
		configured, err := os.ReadFile(filepath.Join(stateDir, "pods", "default", "shop", "history", "url"))
		if err != nil || strings.Contains(string(configured), password) || !strings.Contains(string(configured), "weir_default_shop_archive") {
			t.Errorf("the property's roles are not given a user of their own: %v", err)
		}
		if info, err := os.Stat(filepath.Join(stateDir, "history")); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("the passwords' secret: %v, %v", info.Mode(), err)
		}
	})
	t.Run("and without it answers from what Redis has", func(t *testing.T) {
		if code := w.stop(); code != 0 {
			t.Fatalf("it ended with %d:\n%s", code, w.stderr.String())
		}
		w = startWeirDev(t, stateDir, "-f", file)
		if got := w.events(); got != 1 {
			t.Errorf("%d events, want 1", got)
		}
		w.collect(`{"event":"lead"}`)
		if code := w.stop(); code != 0 {
			t.Fatalf("it ended with %d:\n%s", code, w.stderr.String())
		}
	})
	t.Run("and with it again from all", func(t *testing.T) {
		w = startWeirDev(t, stateDir, args...)
		await(t, "both events are counted", func() bool { return w.events() == 2 })
	})
}

func TestDevKeepsEventsWhereAPropertySaysSo(t *testing.T) {
	server := clickhousetest.Start(t)
	file := filepath.Join(t.TempDir(), "shop.yaml")
	text := strings.Replace(historyShop, "spec: {currency: EUR}", "spec:\n  currency: EUR\n  history:\n    type: ClickHouse\n    clickHouse: {retentionDays: 400, urlSecretKeyRef: {name: own, key: url}}", 1) +
		"---\napiVersion: v1\nkind: Secret\nmetadata: {name: own}\nstringData: {url: " + server.URL("") + "}\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	stateDir := filepath.Join(t.TempDir(), "state")
	w := startWeirDev(t, stateDir, "-f", file)
	w.collect(`{"event":"lead"}`)
	await(t, "the event is counted", func() bool { return w.events() == 1 })
	if got := clickhousetest.Exec(t, server.URL("weir_default_shop"), "SELECT count() FROM events"); got != "1" {
		t.Errorf("ClickHouse has %s events", got)
	}
	property, err := os.ReadFile(filepath.Join(stateDir, "pods", "default", "shop", "property", "property.json"))
	if err != nil || !strings.Contains(string(property), `"retentionDays": 400`) {
		t.Errorf("its retention is not what the Property says: %v\n%s", err, property)
	}
}

func TestDevHasAClickHouseOfItsOwn(t *testing.T) {
	clickhousetest.Start(t) // so that there is a program
	stateDir := filepath.Join(t.TempDir(), "state")
	file := filepath.Join(t.TempDir(), "shop.yaml")
	if err := os.WriteFile(file, []byte(historyShop), 0o600); err != nil {
		t.Fatal(err)
	}
	w := startWeirDev(t, stateDir, "-f", file, "--clickhouse", "own")
	w.collect(`{"event":"lead"}`)
	await(t, "the event is counted", func() bool { return w.events() == 1 })
	if code := w.stop(); code != 0 {
		t.Errorf("it ended with %d:\n%s", code, w.stderr.String())
	}
	if _, err := os.Stat(filepath.Join(stateDir, "clickhouse", "data")); err != nil {
		t.Error(err)
	}
}
