package query

import (
	"encoding/json"
	"log/slog"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-dev/weir/collector/auth"
	"github.com/weir-dev/weir/collector/config"
)

func TestSettingsTellNamesAndNoSecrets(t *testing.T) {
	keys := map[string]map[string]string{"default/berlin": {"server": "wk_the_key", "web": "wp_the_key"}}
	handler, api := servePages(t, &Local{APIKeys: keys})
	served := slices.Clone(*handler.tenants.Load())
	berlin := &served[indexOf(t, handler, "berlin")]
	berlin.Settings = config.Settings{CollectURL: "https://collect.example", APIKeys: []config.NamedKey{
		{Name: "server"}, {Name: "web", Publishable: true, AllowedOrigins: []string{"https://www.example"}},
	}}
	berlin.Property.Retention.Days = 400
	berlin.Tokens = append(slices.Clone(berlin.Tokens), auth.Credential{Name: "accesstoken/ada", Hash: auth.HashOf("wt_ada"), Scope: auth.ScopeRead, Prefix: auth.AccessTokenPrefix})
	handler.Serve(served)
	const tokensText = `"access_tokens":[{"name":"default","scope":"read","expires_at":null},{"name":"ops","scope":"write","expires_at":null},` +
		`{"name":"dpo","scope":"admin","expires_at":null},{"name":"old","scope":"admin","expires_at":"2026-10-26T10:00:01.000Z"},` +
		`{"name":"ageing","scope":"read","expires_at":"2026-10-26T10:00:01.001Z"},{"name":"none","scope":"","expires_at":null}]`
	text := func(server, web string) string {
		return `{"data":{"property":"berlin","namespace":"default","collect_url":"https://collect.example","api_url":null,"currency":"EUR",` +
			`"time_zone":"Europe/Berlin","retention_days":400,"api_keys":[{"name":"server","type":"Secret","allowed_origins":null,"key":` + server + `},` +
			`{"name":"web","type":"Publishable","allowed_origins":["https://www.example"],"key":` + web + `}],` + tokensText + `,"platforms":[],"sources":[]}}`
	}
	click := kept(call{method: "POST", target: "/properties/berlin/session", body: `{"loopback":true}`, peer: machine, host: localhost}.ask(api))
	shown := kept(call{method: "POST", target: "/properties/berlin/session", body: `{"token":"wt_berlin"}`, peer: machine, host: localhost}.ask(api))
	for name, c := range map[string]struct {
		call
		want string
	}{
		"to who has a token": {
			call{method: "GET", target: "/api/v1/properties/berlin/settings", header: map[string]string{"Authorization": berlinBearer}}, text("null", "null"),
		},
		"to who has shown one at the machine": {
			call{method: "GET", target: "/properties/berlin/api/settings", peer: machine, host: localhost, cookies: shown}, text("null", "null"),
		},
		"the keys to who sits at the machine alone": {
			call{method: "GET", target: "/properties/berlin/api/settings", peer: machine, host: localhost, cookies: click}, text(`"wk_the_key"`, `"wp_the_key"`),
		},
	} {
		t.Run(name, func(t *testing.T) {
			answer := c.ask(api)
			if diff := cmp.Diff(c.want, answer.Body.String()); diff != "" || answer.Code != 200 {
				t.Errorf("%d (-want +got):\n%s", answer.Code, diff)
			}
		})
	}
	if answer := get(api, tokens["berlin"], "berlin/settings?all=1"); answer.Code != 422 {
		t.Errorf("an unknown parameter: got %d", answer.Code)
	}
}

func TestSettingsNamePlatformsAndSources(t *testing.T) {
	property := config.Property{Namespace: "default", Name: "berlin"}
	if err := json.Unmarshal([]byte(`{"platforms":[{"name":"meta","type":"Meta","mode":"Shadow"},{"name":"crm","type":"Webhook","suspend":true}],
		"sources":[{"name":"shop","type":"Shopify"}]}`), &property); err != nil {
		t.Fatal(err)
	}
	handler := New(Options{Logger: slog.New(slog.DiscardHandler), Now: func() time.Time { return fixtureNow }})
	handler.Serve([]Tenant{{Property: property, Tokens: tokensOf("kolkata")}})
	answer := get(routes(handler), tokens["kolkata"], "berlin/settings")
	var got struct{ Data map[string]any }
	if err := json.Unmarshal(answer.Body.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"platforms": []any{
			map[string]any{"platform": "meta", "type": "Meta", "mode": "Shadow", "suspended": false},
			map[string]any{"platform": "crm", "type": "Webhook", "mode": "Live", "suspended": true},
		},
		"sources": []any{map[string]any{"name": "shop", "type": "Shopify"}},
	}
	maps.DeleteFunc(got.Data, func(name string, _ any) bool { return want[name] == nil })
	if diff := cmp.Diff(want, got.Data); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
