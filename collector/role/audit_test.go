package role_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-dev/weir/collector/auth"
	"github.com/weir-dev/weir/collector/config"
	"github.com/weir-dev/weir/collector/platforms"
	"github.com/weir-dev/weir/collector/role"
)

// auditLine is a line of the audit log as its page describes it.
type auditLine struct {
	Log, Act, Property, Outcome string
	Actor, Object               struct{ Kind, Name, Scope string }
	Details                     map[string]any
}

func (l auditLine) String() string {
	words := []string{l.Log, l.Act, l.Property, l.Actor.Kind, l.Actor.Name, l.Actor.Scope, l.Object.Kind, l.Object.Name, l.Object.Scope, l.Outcome}
	for _, name := range []string{"format", "rows", "deliveries", "statuses"} {
		if value, found := l.Details[name]; found {
			words = append(words, fmt.Sprintf("%s=%v", name, value))
		}
	}
	return strings.Join(slices.DeleteFunc(words, func(word string) bool { return word == "" }), " ")
}

// audited are the lines that a pod has written, each as its words, and an error for one that does not follow the page.
func (p *pod) audited() []string {
	p.t.Helper()
	var found []string
	position := regexp.MustCompile(`^[0-9]+-[0-9]+$`)
	for text := range strings.Lines(p.acts.String()) {
		var line auditLine
		if err := json.Unmarshal([]byte(text), &line); err != nil {
			p.t.Fatalf("%s: %v", text, err)
		}
		if line.Object.Kind == "event" {
			line.Object.Name = position.ReplaceAllString(line.Object.Name, "POSITION")
		}
		found = append(found, line.String())
	}
	return found
}

// TestTheAuditLogTellsOfNobody sends personal data, a key and a token wherever a caller can, does all that is written down,
// and looks for them there.
func TestTheAuditLogTellsOfNobody(t *testing.T) {
	property := shop("audited")
	property.Platforms = []platforms.Platform{{Name: "console", Type: platforms.TypeLog}}
	p := startPod(t, property)
	p.write(config.APIKeysFile, []auth.Credential{
		{Name: "server", Hash: auth.HashOf("key-1")}, {Name: "segment", Hash: auth.HashOf("key-3")},
		{Name: "site", Hash: auth.HashOf("key-2"), Publishable: &auth.Publishable{AllowedOrigins: []string{"https://shop.example"}, EventsPerSecond: 10, EventsPerSecondPerAddress: 10}},
	})
	p.write(config.AccessTokensFile, []auth.Credential{
		{Name: "warehouse", Hash: auth.HashOf("token-1"), Scope: auth.ScopeRead}, {Name: "operations", Hash: auth.HashOf("token-2"), Scope: auth.ScopeWrite},
	})
	p.await("ready", func() bool { return p.request(http.MethodGet, p.metrics+"/readyz", "", nil) == http.StatusOK })

	const person = `"event_id": "zq9jane-event", "client_id": "zq9jane-client", "user_id": "zq9jane-user", "user": {"email": "zq9jane@example.com",` +
		`"phone": "+4915112345678", "first_name": "Zq9jane", "street": "Zq9jane street 1"}, "properties": {"zq9jane": "zq9jane"},` +
		`"context": {"ip": "203.0.113.77", "user_agent": "zq9jane browser", "page_url": "https://shop.example/zq9jane?email=zq9jane@example.com"}`
	hostile := http.Header{
		"Content-Type": {"application/json"}, "User-Agent": {"zq9jane"}, "X-Forwarded-For": {"203.0.113.77"}, "Referer": {"https://shop.example/zq9jane"},
	}
	with := func(name, value string) http.Header {
		header := hostile.Clone()
		header.Set(name, value)
		return header
	}
	collect, read := p.collect+"/collect/", p.collect+"/api/v1/properties/audited/"
	p.await("the keys are taken", func() bool { return p.send("key-3", "lead") == http.StatusAccepted })
	p.await("the tokens are taken", func() bool { return p.list("token-2") == http.StatusOK })
	query := "?event=zq9jane&event=purchase&platform=console&" + url.Values{"period": {"24h"}}.Encode()
	for _, r := range []struct {
		method, address, body string
		header                http.Header
		want                  int
	}{
		{http.MethodPost, collect + "key-1", `{"event": "purchase", "data": {"value": 1, "currency": "EUR"}, ` + person + `}`, hostile, 202},
		{http.MethodPost, collect + "key-1", `{"event": "zq9jane", ` + person + `}`, hostile, 202},
		{http.MethodPost, collect + "key-1?zq9jane=1", `{"event": "zq9jane", "zq9jane": `, hostile, 400},
		{http.MethodPost, collect + "zq9jane", `{}`, hostile, 401},
		{http.MethodPost, collect + "key-2", `{"event": "zq9jane", ` + person + `}`, with("Origin", "https://shop.example"), 202},
		{http.MethodPost, p.collect + "/v1/track", `{"writeKey": "key-3", "event": "zq9jane", "userId": "zq9jane", "context": {"traits": {"email": "zq9jane@example.com"}}}`, hostile, 200},
		{http.MethodGet, read + "events" + query, "", with("Authorization", "Bearer zq9jane"), 401},
		{http.MethodGet, read + "events" + query, "", with("Authorization", "Bearer token-1"), 200},
		{http.MethodPost, read + "deliveries/replay", `{"platform": "console", "from": "2026-10-20"}`, with("Authorization", "Bearer token-1"), 403},
		{http.MethodPost, read + "deliveries/replay", `{"platform": "zq9jane", "from": "2026-10-20"}`, with("Authorization", "Bearer token-2"), 422},
	} {
		if got := p.request(r.method, r.address, r.body, r.header); got != r.want {
			t.Errorf("%s %s: got %d, want %d", r.method, r.address, got, r.want)
		}
	}
	exporting := func(accept string) http.Header {
		header := with("Authorization", "Bearer token-1")
		header.Set("Accept", accept)
		return header
	}
	p.await("the export has the purchase", func() bool {
		p.request(http.MethodGet, read+"events"+query, "", exporting("application/x-ndjson"))
		return slices.Contains(p.audited(), "audit events.exported default/audited access_token warehouse read events success format=application/x-ndjson rows=1")
	})
	p.request(http.MethodHead, read+"events"+query, "", exporting("text/csv")) // which is no export
	if got := p.request(http.MethodGet, read+"analytics/daily?period=7d", "", exporting("text/csv")); got != http.StatusOK {
		t.Errorf("days: %d", got)
	}
	for _, call := range []string{"breakdown?by=page&channel=Direct&page=zq9jane&page=(none)", "funnel?steps=zq9jane|purchase&steps=zq9jane@example.com"} {
		if got := p.request(http.MethodGet, read+"analytics/"+call, "", exporting("text/csv")); got != http.StatusOK {
			t.Errorf("%s: %d", call, got)
		}
	}
	if got := p.request(http.MethodGet, read+"events/zq9jane-event", "", with("Authorization", "Bearer token-1")); got != http.StatusOK {
		t.Errorf("an event: %d", got)
	}
	if got := p.request(http.MethodPost, read+"deliveries/replay", `{"platform": "console", "from": "2026-10-20", "status": ["failed"]}`, with("Authorization", "Bearer token-2")); got != http.StatusAccepted {
		t.Errorf("replay: %d", got)
	}
	if err := p.stop(); err != nil {
		t.Errorf("stop: %v", err)
	}

	before := len(p.audited())
	p.run(role.Collect, role.Query) // which has seen no use of any key
	p.await("the key is taken again", func() bool { return p.send("key-1", "lead") == http.StatusAccepted })
	p.await("the token is taken again", func() bool { return p.list("token-1") == http.StatusOK })
	if err := p.stop(); err != nil {
		t.Errorf("stop: %v", err)
	}
	if got := p.audited()[before:]; len(got) != 0 {
		t.Errorf("after a restart, first uses are written again: %q", got)
	}

	want := []string{
		"audit credential.first_used default/audited access_token operations write access_token operations write success",
		"audit credential.first_used default/audited access_token warehouse read access_token warehouse read success",
		"audit credential.first_used default/audited api_key segment api_key segment success",
		"audit credential.first_used default/audited api_key server api_key server success",
		"audit credential.first_used default/audited publishable_key site publishable_key site success",
		"audit days.exported default/audited access_token warehouse read days success format=text/csv rows=8",
		"audit deliveries.replayed default/audited access_token operations write platform console success deliveries=0 statuses=[failed]",
		"audit event.read default/audited access_token warehouse read event POSITION success",
		"audit events.exported default/audited access_token warehouse read events success format=application/x-ndjson rows=1",
		"audit figures.exported default/audited access_token warehouse read figures breakdown success format=text/csv rows=1",
		"audit figures.exported default/audited access_token warehouse read figures funnel success format=text/csv rows=2",
	}
	got := slices.DeleteFunc(slices.Sorted(slices.Values(p.audited())), func(line string) bool { return strings.HasSuffix(line, "rows=0") })
	if diff := cmp.Diff(want, slices.Compact(got)); diff != "" {
		t.Errorf("the audit log (-want +got):\n%s", diff)
	}
	for _, word := range []string{"q9jane", "5112345678", "203.0.113.77", "127.0.0.1", "key-1", "key-2", "key-3", "token-1", "token-2", "example"} {
		if strings.Contains(p.acts.String(), word) {
			t.Errorf("%q stands in the audit log:\n%s", word, p.acts.String())
		}
	}
}
