package main

import (
	"encoding/json"
	"fmt"
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
		"developer credential.added access_token bi", "developer credential.added access_token old", "developer credential.added api_key next",
		"developer credential.added api_key server", "developer credential.revoked access_token old",
	}, got); diff != "" {
		t.Errorf("the audit log (-want +got):\n%s", diff)
	}
	if info, err := os.Stat(filepath.Join(state, "audit.jsonl")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("its mode is %v, %v; want that of its owner alone", info.Mode(), err)
	}
}

func TestDevWritesDownErasures(t *testing.T) {
	state := filepath.Join(t.TempDir(), "state")
	weir := startWeirDev(t, state, "-f", devFile(t, `[{"name": "server"}]`, `[{"name": "dpo", "scope": "admin"}]`))
	for range 3 {
		weir.collect(`{"event": "lead", "client_id": "jane-client", "user": {"email": "jane@example.com"}}`)
	}
	await(t, "the view has the events", func() bool {
		got := weir.read("/events")
		return got.status == http.StatusOK && strings.Count(got.body, "jane-client") == 3
	})
	asked := do(t, http.MethodPost, weir.BaseURL+"/properties/shop/erasures", `{"email": "jane@example.com"}`, map[string]string{
		"Authorization": "Bearer " + weir.AccessTokens[0].Token, "Content-Type": "application/json",
	})
	if asked.status != http.StatusAccepted {
		t.Fatalf("asked: %d %s", asked.status, asked.body)
	}
	var found []string
	await(t, "the erasure is purged", func() bool {
		text, err := os.ReadFile(filepath.Join(state, "audit.jsonl"))
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), "jane") {
			t.Fatalf("the person stands in the audit log:\n%s", text)
		}
		found = nil
		for line := range strings.Lines(string(text)) {
			var act struct {
				Act           string
				Actor, Object struct{ Kind, Name string }
				Details       struct{ Events int }
			}
			if err := json.Unmarshal([]byte(line), &act); err != nil {
				t.Fatal(err)
			}
			if act.Object.Kind == "erasure" {
				if !strings.Contains(asked.body, act.Object.Name) {
					t.Fatalf("%s is another erasure than %s", line, asked.body)
				}
				found = append(found, fmt.Sprintf("%s %s %d", act.Act, act.Actor.Kind, act.Details.Events))
			}
		}
		return len(found) == 3
	})
	if diff := cmp.Diff([]string{"erasure.requested access_token 0", "erasure.hidden deliverer 3", "erasure.purged operator 0"}, found); diff != "" {
		t.Errorf("the audit log (-want +got):\n%s", diff)
	}
}
