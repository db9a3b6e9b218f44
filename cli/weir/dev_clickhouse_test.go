package main

import (
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
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

// killClickHouse kills the ClickHouse that weir dev runs below its state directory, as a crash would. Its configuration tells it from
// all other processes.
func killClickHouse(t *testing.T, stateDir string) {
	t.Helper()
	config := "--config-file=" + filepath.Join(stateDir, "clickhouse", "config.xml")
	commands, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, command := range commands {
		line, err := os.ReadFile(command)
		if err != nil || !slices.Contains(strings.Split(string(line), "\x00"), config) {
			continue // it has ended meanwhile, or is another
		}
		id, err := strconv.Atoi(filepath.Base(filepath.Dir(command)))
		if err != nil {
			t.Fatal(err)
		}
		if err := syscall.Kill(id, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		return
	}
	t.Fatal("there is no ClickHouse")
}

func TestDevHasAClickHouseOfItsOwn(t *testing.T) {
	clickhousetest.Start(t) // so that there is a program
	stateDir := filepath.Join(t.TempDir(), "state")
	file := filepath.Join(t.TempDir(), "shop.yaml")
	if err := os.WriteFile(file, []byte(historyShop), 0o600); err != nil {
		t.Fatal(err)
	}
	const again = "has ended of itself and is started again"
	w := startWeirDev(t, stateDir, "-f", file, "--clickhouse", "own")
	w.collect(`{"event":"lead"}`)
	await(t, "the event is counted", func() bool { return w.events() == 1 })
	if _, err := os.Stat(filepath.Join(stateDir, "clickhouse", "data")); err != nil {
		t.Error(err)
	}

	t.Run("which is started again where it ends of itself", func(t *testing.T) {
		killClickHouse(t, stateDir)
		await(t, "it is said", func() bool { return strings.Contains(w.stderr.String(), again) })
		if got := w.collect(`{"event":"lead"}`); got.status != http.StatusAccepted {
			t.Errorf("an event meanwhile: %d %s", got.status, got.body)
		}
		await(t, "both events are counted", func() bool { return w.events() == 2 })
	})
	t.Run("and ends with it", func(t *testing.T) {
		if code := w.stop(); code != 0 {
			t.Errorf("it ended with %d:\n%s", code, w.stderr.String())
		}
	})
	t.Run("and is given up where it ends again and again", func(t *testing.T) {
		w = startWeirDev(t, stateDir, "-f", file, "--clickhouse", "own")
		for n := range mostRestarts {
			await(t, "it answers", func() bool { return w.events() == 2 })
			killClickHouse(t, stateDir)
			await(t, "it is said", func() bool { return strings.Count(w.stderr.String(), again) == n+1 })
		}
		await(t, "it answers", func() bool { return w.events() == 2 })
		killClickHouse(t, stateDir)
		if code := w.wait(); code != 1 || !strings.Contains(w.stderr.String(), "ends of itself again and again") {
			t.Errorf("it ended with %d:\n%s", code, w.stderr.String())
		}
	})
}

func TestDevIsToldOfAClickHouseByTheEnvironment(t *testing.T) {
	server := clickhousetest.Start(t)
	t.Setenv(clickHouseVariable, server.URL(""))
	stateDir := filepath.Join(t.TempDir(), "state")
	file := filepath.Join(t.TempDir(), "shop.yaml")
	if err := os.WriteFile(file, []byte(historyShop), 0o600); err != nil {
		t.Fatal(err)
	}
	w := startWeirDev(t, stateDir, "-f", file)
	w.collect(`{"event":"lead"}`)
	await(t, "the event is counted", func() bool { return w.events() == 1 })
	if got := clickhousetest.Exec(t, server.URL("weir_default_shop"), "SELECT count() FROM events"); got != "1" {
		t.Errorf("ClickHouse has %s events", got)
	}
	t.Run("of which help tells nothing", func(t *testing.T) {
		var help strings.Builder
		if code := run(t.Context(), []string{"dev", "-h"}, &help, &help); code != 0 {
			t.Fatalf("it ended with %d:\n%s", code, &help)
		}
		if strings.Contains(help.String(), "127.0.0.1:"+port(t, server.URL(""))) || !strings.Contains(help.String(), clickHouseVariable) {
			t.Errorf("help says:\n%s", &help)
		}
	})
	t.Run("and an error names the environment", func(t *testing.T) {
		t.Setenv(clickHouseVariable, "clickhouse://u:secret@h")
		var said strings.Builder
		code := run(t.Context(), []string{"dev", "-f", file, "--state-dir", t.TempDir()}, io.Discard, &said)
		if code != 2 || !strings.Contains(said.String(), clickHouseVariable+": the ClickHouse URL must look like") || strings.Contains(said.String(), "secret") {
			t.Errorf("it ended with %d:\n%s", code, &said)
		}
	})
}

// port is that of a URL.
func port(t *testing.T, address string) string {
	t.Helper()
	parsed, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	return parsed.Port()
}
