package main

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// devFile writes a Property with these API keys and access tokens.
func devFile(t *testing.T, apiKeys, accessTokens string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "shop.yaml")
	text := `{"apiVersion": "weir.dev/v1alpha1", "kind": "Property", "metadata": {"name": "shop"}, ` +
		`"spec": {"currency": "EUR", "apiKeys": ` + apiKeys + `, "accessTokens": ` + accessTokens + `}}`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestDevKeepsAnAuditLog(t *testing.T) {
	state := filepath.Join(t.TempDir(), "state")
	acts := func() (found []string) {
		text, err := os.ReadFile(filepath.Join(state, "audit.jsonl"))
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			var act struct {
				Log, Act, Property string
				Actor, Object      struct{ Kind, Name string }
			}
			if err := json.Unmarshal([]byte(line), &act); err != nil || act.Log != "audit" || act.Property != "default/shop" {
				t.Fatalf("%s: %v", line, err)
			}
			found = append(found, strings.TrimSpace(strings.Join([]string{act.Actor.Kind, act.Act, act.Object.Kind, act.Object.Name}, " ")))
		}
		return found
	}
	first := startWeirDev(t, state, "-f", devFile(t, `[{"name": "server"}]`, `[{"name": "bi"}, {"name": "old"}]`))
	first.collect(`{"event": "lead", "user": {"email": "jane@example.com"}}`)
	await(t, "the view has replayed", func() bool { return first.read("/events").status == http.StatusOK })
	if code := first.stop(); code != 0 {
		t.Fatalf("it ended with %d", code)
	}
	second := startWeirDev(t, state, "-f", devFile(t, `[{"name": "server"}, {"name": "next"}]`, `[{"name": "bi"}]`))
	second.collect(`{"event": "lead"}`)
	if code := second.stop(); code != 0 {
		t.Fatalf("it ended with %d", code)
	}
	got := acts()
	slices.Sort(got)
	if diff := cmp.Diff([]string{
		"access_token credential.first_used access_token bi", "api_key credential.first_used api_key server",
		"weir_dev credential.added access_token bi", "weir_dev credential.added access_token old", "weir_dev credential.added api_key next",
		"weir_dev credential.added api_key server", "weir_dev credential.revoked access_token old",
	}, got); diff != "" {
		t.Errorf("the audit log (-want +got):\n%s", diff)
	}
	if info, err := os.Stat(filepath.Join(state, "audit.jsonl")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("its mode is %v, %v; want that of its owner alone", info.Mode(), err)
	}
}
