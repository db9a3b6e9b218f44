package query

import (
	"net/http"
	"slices"
	"testing"

	"github.com/weir-dev/weir/collector/auth"
)

func TestATokenSeesWhichPropertiesItIsFor(t *testing.T) {
	handler, api := serve(t)
	served := slices.Clone(*handler.tenants.Load())
	for _, name := range []string{"kolkata", "saopaulo"} { // as one token that somebody has brought to several
		i := indexOf(t, handler, name)
		served[i].Tokens = append(slices.Clone(served[i].Tokens), auth.Credential{Name: "all", Hash: auth.HashOf("wt_all"), Scope: auth.ScopeWrite})
	}
	handler.Serve(served)
	const unauthenticated, unauthorized = `{"message":"Unauthenticated."}`, `{"message":"This action is unauthorized."}`
	for name, test := range map[string]struct {
		token, query string
		status       int
		want         string
	}{
		"a token of one": {tokens["berlin"], "", 200, `{"data":[{"property":"berlin","namespace":"default","time_zone":"Europe/Berlin","currency":"EUR","scope":"read"}]}`},
		"another scope":  {tokens["admin"], "", 200, `{"data":[{"property":"berlin","namespace":"default","time_zone":"Europe/Berlin","currency":"EUR","scope":"admin"}]}`},
		"a token of several, by their names": {"wt_all", "", 200, `{"data":[{"property":"kolkata","namespace":"default","time_zone":"Asia/Kolkata","currency":"EUR","scope":"write"},` +
			`{"property":"saopaulo","namespace":"default","time_zone":"America/Sao_Paulo","currency":"EUR","scope":"write"}]}`},
		"a token without a scope": {tokens["no scope"], "", 403, unauthorized},
		"an expired token":        {tokens["expired"], "", 401, unauthenticated},
		"a wrong token":           {"wt_nobody", "", 401, unauthenticated},
		"a parameter": {tokens["berlin"], "?limit=1", 422, `{"message":"The limit parameter is unknown; the call takes none.",` +
			`"errors":{"limit":["The limit parameter is unknown; the call takes none."]}}`},
	} {
		t.Run(name, func(t *testing.T) {
			answer := ask(api, http.MethodGet, "Bearer "+test.token, "/api/v1/properties"+test.query)
			if answer.Code != test.status || answer.Body.String() != test.want {
				t.Errorf("got %d %s, want %d %s", answer.Code, answer.Body, test.status, test.want)
			}
		})
	}
}

func TestWrongTokensThatAskForPropertiesAreLimited(t *testing.T) {
	_, api := serve(t)
	for range failureBurst {
		ask(api, http.MethodGet, "Bearer wt_guess", "/api/v1/properties")
	}
	if answer := ask(api, http.MethodGet, "Bearer wt_guess", "/api/v1/properties"); answer.Code != http.StatusTooManyRequests {
		t.Errorf("got %d", answer.Code)
	}
	if answer := ask(api, http.MethodGet, berlinBearer, "/api/v1/properties"); answer.Code != http.StatusOK {
		t.Errorf("a valid token got %d", answer.Code)
	}
}
