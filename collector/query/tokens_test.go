package query

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-dev/weir/collector/auth"
	"github.com/weir-dev/weir/collector/config"
)

// calls are all of the read API's, below a property.
var calls = []string{
	"events", "events/stats", "analytics/summary", "analytics/daily", "analytics/series", "analytics/breakdown?by=page",
	"analytics/realtime", "analytics/funnel?steps=pageview&steps=purchase", "analytics/attribution", "deliveries", "deliveries?interval=day",
}

func TestATokenReadsItsOwnPropertyAlone(t *testing.T) {
	_, api := serve(t)
	properties := []string{"berlin", "kolkata", "saopaulo", "trimmed", "empty"}
	for _, owner := range properties {
		for _, property := range properties {
			for _, call := range calls {
				for _, accept := range []string{"application/json", "text/csv", "application/x-ndjson"} {
					for _, method := range []string{http.MethodGet, http.MethodHead} {
						request := httptest.NewRequest(method, "/api/v1/properties/"+property+"/"+call, nil)
						request.Header.Set("Authorization", "Bearer "+tokens[owner])
						request.Header.Set("Accept", accept)
						answer := httptest.NewRecorder()
						api.ServeHTTP(answer, request)
						if owner != property && (answer.Code != 404 || answer.Body.String() != message("Property not found.")) {
							t.Errorf("%s's token: %s %s/%s as %s: got %d %s, want 404", owner, method, property, call, accept, answer.Code, answer.Body)
						}
						if owner == property && answer.Code != 200 && answer.Code != 406 {
							t.Errorf("%s %s/%s as %s: got %d %s", method, property, call, accept, answer.Code, answer.Body)
						}
					}
				}
			}
		}
	}
}

func TestATokenEndsWithItsTimeAndWithItsRemoval(t *testing.T) {
	handler, api := serve(t)
	now := fixtureNow
	handler.now = func() time.Time { return now }
	got := func(token string) int { return get(api, tokens[token], "berlin/analytics/summary").Code }

	if got("expires next") != 200 {
		t.Error("a token is refused before its time")
	}
	now = now.Add(time.Millisecond)
	if got("expires next") != 401 {
		t.Error("a token is accepted at its expiration time")
	}
	served := *handler.tenants.Load()
	without := make([]Tenant, len(served))
	copy(without, served)
	i := indexOf(t, handler, "berlin")
	without[i].Tokens = []auth.Credential{}
	for _, credential := range served[i].Tokens {
		if credential.Name != "ops" {
			without[i].Tokens = append(without[i].Tokens, credential)
		}
	}
	if got("write") != 200 {
		t.Error("a token is refused before its removal")
	}
	handler.Serve(without)
	if got("write") != 401 || got("berlin") != 200 {
		t.Errorf("after the removal of one token: it gets %d, another %d", got("write"), got("berlin"))
	}
}

func TestEveryWrongTokenGetsTheSameAnswer(t *testing.T) {
	_, api := serve(t)
	want := ask(api, http.MethodGet, "", "/api/v1/properties/berlin/events")
	nearly := tokens["berlin"][:len(tokens["berlin"])-1]
	for _, token := range []string{"x", nearly, tokens["berlin"] + "x", tokens["expired"], "wt_000000000000000000000000000000000000"} {
		for _, property := range []string{"berlin", "nowhere"} {
			answer := ask(api, http.MethodGet, "Bearer "+token, "/api/v1/properties/"+property+"/events")
			if answer.Code != 401 || answer.Body.String() != want.Body.String() {
				t.Errorf("%s: got %d %s", property, answer.Code, answer.Body)
			}
			if diff := cmp.Diff(want.Header(), answer.Header()); diff != "" {
				t.Errorf("%s: headers (-no token +wrong token):\n%s", property, diff)
			}
		}
	}
}

// BenchmarkFindGrant shows that it takes the same time whichever token is found, and where none is.
func BenchmarkFindGrant(b *testing.B) {
	var tenants []Tenant
	for i := range 20 {
		name := string(rune('a' + i))
		tenants = append(tenants, Tenant{Property: config.Property{Name: name}, Tokens: []auth.Credential{
			{Name: "one", Hash: auth.HashOf("wt_1" + name), Scope: auth.ScopeRead}, {Name: "two", Hash: auth.HashOf("wt_2" + name), Scope: auth.ScopeRead},
		}})
	}
	for _, test := range []struct{ name, token string }{{"first", "wt_1a"}, {"last", "wt_2t"}, {"none", "wt_3z"}} {
		b.Run(test.name, func(b *testing.B) {
			for b.Loop() {
				findGrant(tenants, test.token, "a", fixtureNow)
			}
		})
	}
}
