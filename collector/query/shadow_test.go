package query

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/weir-dev/weir/collector/platforms"
)

func TestOnlyAdministratorsSeeWhatAPlatformWouldBeSentAndThatIsWrittenDown(t *testing.T) {
	for sentence, row := range map[string]struct {
		token, path string
		status      int
		has, audit  string
	}{
		"with the scope admin":           {"admin", "crm/shadow?limit=2", http.StatusOK, `"headers":{"Webhook-Signature":"…"},"body":{"type":"purchase"},"body_encoding":"json"`, `"details":{"events":2}`},
		"why an event would not be sent": {"admin", "crm/shadow", http.StatusOK, `"verdict":"skip","reason":"no_identifier","request":null`, `"act":"shadow.read"`},
		"not with the scope write":       {"write", "crm/shadow", http.StatusForbidden, "unauthorized", ""},
		"not with the scope read":        {"berlin", "crm/shadow", http.StatusForbidden, "unauthorized", ""},
		"of no other platform":           {"admin", "other/shadow", http.StatusUnprocessableEntity, "The selected platform is invalid.", ""},
		"not while Redis is away":        {"admin", "broken/shadow", http.StatusServiceUnavailable, "cannot be read", `"outcome":"failure"`},
	} {
		t.Run(sentence, func(t *testing.T) {
			handler, api := serve(t)
			served := slices.Clone(*handler.tenants.Load())
			served[indexOf(t, handler, "berlin")].Property.Platforms = []platforms.Platform{{Name: "crm"}, {Name: "broken"}}
			handler.Serve(served)
			lines := audited(handler)
			answer := get(api, tokens[row.token], "berlin/platforms/"+row.path)
			if answer.Code != row.status || !strings.Contains(answer.Body.String(), row.has) {
				t.Errorf("got %d %s, want %d with %s", answer.Code, answer.Body, row.status, row.has)
			}
			if got := lines.String(); (got == "") != (row.audit == "") || !strings.Contains(got, row.audit) {
				t.Errorf("the audit log has %q, want %q", got, row.audit)
			}
		})
	}
}
