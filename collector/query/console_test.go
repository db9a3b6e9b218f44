package query

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/weir-dev/weir/collector/audit"
	"github.com/weir-dev/weir/collector/auth"
)

// serveToConsole serves the fixture, of which berlin and kolkata take what the console's key signs.
func serveToConsole(t *testing.T, key auth.SigningKey) (*Handler, http.Handler) {
	t.Helper()
	handler, api := serve(t)
	served := slices.Clone(*handler.tenants.Load())
	for _, property := range []string{"berlin", "kolkata"} {
		served[indexOf(t, handler, property)].Console = auth.Verifier{Audience: "uid-of-" + property, Keys: []auth.PublicKey{key.Public()}}
	}
	handler.Serve(served)
	return handler, api
}

func TestThePropertyTakesWhatTheConsoleSigns(t *testing.T) {
	key := auth.NewSigningKey(fixtureNow)
	_, api := serveToConsole(t, key)
	sign := func(audience string, scope auth.Scope, at time.Time) string {
		token, err := key.Sign("oidc:alice", audience, scope, at)
		if err != nil {
			t.Fatal(err)
		}
		return "Bearer " + token
	}
	for name, c := range map[string]struct {
		method, authorization, call string
		want                        int
	}{
		"a reader reads":                            {http.MethodGet, sign("uid-of-berlin", auth.ScopeRead, fixtureNow), "berlin/events", 200},
		"a reader does not replay":                  {http.MethodPost, sign("uid-of-berlin", auth.ScopeRead, fixtureNow), "berlin/deliveries/replay", 403},
		"a writer may replay, and is told the body": {http.MethodPost, sign("uid-of-berlin", auth.ScopeWrite, fixtureNow), "berlin/deliveries/replay", 415},
		"a writer does not erase":                   {http.MethodPost, sign("uid-of-berlin", auth.ScopeWrite, fixtureNow), "berlin/erasures", 403},
		"an admin may erase, and is told the body":  {http.MethodPost, sign("uid-of-berlin", auth.ScopeAdmin, fixtureNow), "berlin/erasures", 415},
		"another property's is refused":             {http.MethodGet, sign("uid-of-kolkata", auth.ScopeAdmin, fixtureNow), "berlin/events", 401},
		"a property that trusts nobody refuses":     {http.MethodGet, sign("uid-of-berlin", auth.ScopeAdmin, fixtureNow), "saopaulo/events", 401},
		"no property there":                         {http.MethodGet, sign("uid-of-berlin", auth.ScopeAdmin, fixtureNow), "nowhere/events", 401},
		"one that has ended is refused":             {http.MethodGet, sign("uid-of-berlin", auth.ScopeRead, fixtureNow.Add(-auth.SignedFor)), "berlin/events", 401},
		"as a basic password it is nothing":         {http.MethodGet, strings.Replace(sign("uid-of-berlin", auth.ScopeRead, fixtureNow), "Bearer", "Basic", 1), "berlin/events", 401},
	} {
		t.Run(name, func(t *testing.T) {
			answer := ask(api, c.method, c.authorization, "/api/v1/properties/"+c.call)
			if answer.Code != c.want {
				t.Errorf("got %d %s, want %d", answer.Code, answer.Body, c.want)
			}
		})
	}
	if answer := ask(api, http.MethodGet, sign("uid-of-berlin", auth.ScopeRead, fixtureNow), "/api/v1/properties"); answer.Code != 401 {
		t.Errorf("the list of properties: got %d, want 401: the console knows them itself", answer.Code)
	}
}

// TestALongAnswerGoesOnAfterItsSignedTokenEnds since the token is for one request, and ends when the console's key is trusted no more.
func TestALongAnswerGoesOnAfterItsSignedTokenEnds(t *testing.T) {
	key := auth.NewSigningKey(fixtureNow)
	handler, _ := serveToConsole(t, key)
	now := fixtureNow
	handler.now = func() time.Time { return now }
	token, err := key.Sign("oidc:alice", "uid-of-berlin", auth.ScopeRead, fixtureNow)
	if err != nil {
		t.Fatal(err)
	}
	var holds func() bool
	seen := handler.authorised(entrance{handler.byToken, handler.refuse}, auth.ScopeRead, func(_ http.ResponseWriter, _ *http.Request, t *Tenant) { holds = t.holds })
	router := chi.NewRouter()
	router.Get("/{"+propertyParameter+"}", seen)
	if answer := ask(router, http.MethodGet, "Bearer "+token, "/berlin"); holds == nil {
		t.Fatalf("got %d %s", answer.Code, answer.Body)
	}
	now = now.Add(time.Hour)
	if !holds() {
		t.Error("the answer ends with the token")
	}
	handler.Serve(nil)
	if holds() {
		t.Error("the answer goes on although the key is trusted no more")
	}
}

func TestTheAuditLogNamesWhoAsksThroughTheConsole(t *testing.T) {
	key := auth.NewSigningKey(fixtureNow)
	handler, api := serveToConsole(t, key)
	var lines bytes.Buffer
	handler.audit = audit.New(&lines, slog.New(slog.DiscardHandler), func() time.Time { return fixtureNow })
	token, err := key.Sign("oidc:alice", "uid-of-berlin", auth.ScopeWrite, fixtureNow)
	if err != nil {
		t.Fatal(err)
	}
	answer := askWith(api, http.MethodGet, "/api/v1/properties/berlin/events", map[string]string{"Authorization": "Bearer " + token, "Accept": "text/csv"})
	if answer.Code != 200 {
		t.Fatalf("got %d %s", answer.Code, answer.Body)
	}
	var line struct {
		Act   string `json:"act"`
		Actor struct {
			Kind  string `json:"kind"`
			Name  string `json:"name"`
			Scope string `json:"scope"`
		} `json:"actor"`
	}
	if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
		t.Fatal(err)
	}
	if line.Act != "events.exported" || line.Actor.Kind != "user" || line.Actor.Name != "oidc:alice" || line.Actor.Scope != "write" {
		t.Errorf("got %+v", line)
	}
}
