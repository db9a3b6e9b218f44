package query

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-dev/weir/collector/auth"
	"github.com/weir-dev/weir/collector/session"
)

func TestASessionEndsWithItsTokenItsTimeAndItsKey(t *testing.T) {
	handler, api := servePages(t, nil)
	now := fixtureNow
	handler.now = func() time.Time { return now }
	at := indexOf(t, handler, "berlin")
	change := func(edit func(*Tenant)) func() {
		return func() {
			served := slices.Clone(*handler.tenants.Load())
			edit(&served[at])
			handler.Serve(served)
		}
	}
	oldKeys := (*handler.tenants.Load())[at].SessionKeys
	newKeys := sessionKeys(t, session.NewKey())
	list := tokensOf("berlin")
	for name, c := range map[string]struct {
		change func()
		want   int
	}{
		"it goes on where nothing changes": {func() {}, 200},
		"a token that is removed ends it":  {change(func(tenant *Tenant) { tenant.Tokens = list[1:] }), 401},
		"a token that is made anew ends it": {change(func(tenant *Tenant) {
			tenant.Tokens = append([]auth.Credential{{Name: "default", Hash: auth.HashOf("wt_new"), Scope: auth.ScopeRead}}, list[1:]...)
		}), 401},
		"a token that expires ends it": {change(func(tenant *Tenant) {
			tenant.Tokens = []auth.Credential{{Name: "default", Hash: list[0].Hash, Scope: auth.ScopeRead, ExpirationTime: new(fixtureNow)}}
		}), 401},
		"a token that loses its scope loses it here": {change(func(tenant *Tenant) {
			tenant.Tokens = []auth.Credential{{Name: "default", Hash: list[0].Hash}}
		}), 403},
		"twelve hours end it":               {func() { now = fixtureNow.Add(12 * time.Hour) }, 401},
		"a second less does not":            {func() { now = fixtureNow.Add(12*time.Hour - time.Second - time.Millisecond) }, 200},
		"another key ends it":               {change(func(tenant *Tenant) { tenant.SessionKeys = newKeys }), 401},
		"no key ends it":                    {change(func(tenant *Tenant) { tenant.SessionKeys = nil }), 401},
		"a key that is rotated in does not": {change(func(tenant *Tenant) { tenant.SessionKeys = slices.Concat(newKeys, oldKeys) }), 200},
		"a property that is gone ends it":   {func() { handler.Serve(nil) }, 401},
	} {
		t.Run(name, func(t *testing.T) {
			before := *handler.tenants.Load()
			defer func() { handler.Serve(before); now = fixtureNow }()
			cookies := []*http.Cookie{signedIn(t, api, "berlin", tokens["berlin"])}
			c.change()
			if got := (call{method: "GET", target: "/properties/berlin/api/events", cookies: cookies}).ask(api); got.Code != c.want {
				t.Errorf("got %d %s, want %d", got.Code, got.Body, c.want)
			}
			want := c.want
			if want == 403 {
				want = 200 // who is signed in is told so
			}
			if got := (call{method: "GET", target: "/properties/berlin/session", cookies: cookies}).ask(api); got.Code != want {
				t.Errorf("the session: got %d %s, want %d", got.Code, got.Body, want)
			}
		})
	}
}

func TestSigningInTakesATokenOfThePropertyAndSaysWhatIsWrong(t *testing.T) {
	handler, api := servePages(t, nil)
	for name, c := range map[string]struct {
		property, body string
		header         map[string]string
		want           int
		says           string
	}{
		"a token":                            {"berlin", `{"token":"wt_berlin"}`, nil, 204, ""},
		"a token that expires soon":          {"berlin", `{"token":"wt_expires_next"}`, nil, 204, ""},
		"a token in the page's own request":  {"berlin", `{"token":"wt_berlin"}`, map[string]string{"Origin": "https://example.com", "Sec-Fetch-Site": "same-origin"}, 204, ""},
		"a token that nobody has":            {"berlin", `{"token":"wt_nobody"}`, nil, 401, "Unauthenticated."},
		"a token that has expired":           {"berlin", `{"token":"wt_expired"}`, nil, 401, "Unauthenticated."},
		"another property's token":           {"kolkata", `{"token":"wt_berlin"}`, nil, 404, "Property not found."},
		"a property that there is not":       {"nowhere", `{"token":"wt_nobody"}`, nil, 401, "Unauthenticated."},
		"a token that is no text":            {"berlin", `{"token":1}`, nil, 422, "The token field must be an access token"},
		"a token that is empty":              {"berlin", `{"token":""}`, nil, 422, "The token field must be an access token"},
		"nothing":                            {"berlin", `{}`, nil, 422, "Either the token field is required, or the loopback field."},
		"both":                               {"berlin", `{"token":"wt_berlin","loopback":true}`, nil, 422, "Either the token field is required"},
		"another member":                     {"berlin", `{"token":"wt_berlin","remember":true}`, nil, 422, "The remember field is unknown; known are loopback, token."},
		"no JSON":                            {"berlin", `token=wt_berlin`, nil, 400, "The body must be a JSON object."},
		"a list":                             {"berlin", `["wt_berlin"]`, nil, 400, "The body must be a JSON object."},
		"too long a body":                    {"berlin", `{"token":"` + strings.Repeat("a", 5000) + `"}`, nil, 413, "must not be larger than 4096 bytes"},
		"a form":                             {"berlin", `token=wt_berlin`, map[string]string{"Content-Type": "application/x-www-form-urlencoded"}, 415, "must be application/json"},
		"JSON that claims to be text":        {"berlin", `{"token":"wt_berlin"}`, map[string]string{"Content-Type": "text/plain"}, 415, "must be application/json"},
		"without a type":                     {"berlin", `{"token":"wt_berlin"}`, map[string]string{"Content-Type": ""}, 415, "must be application/json"},
		"another site's page":                {"berlin", `{"token":"wt_berlin"}`, map[string]string{"Sec-Fetch-Site": "cross-site"}, 403, "Only the property's own page"},
		"another host's page":                {"berlin", `{"token":"wt_berlin"}`, map[string]string{"Sec-Fetch-Site": "same-site"}, 403, "Only the property's own page"},
		"another page of an older browser's": {"berlin", `{"token":"wt_berlin"}`, map[string]string{"Origin": "https://evil.example"}, 403, "Only the property's own page"},
		"a page without an origin":           {"berlin", `{"token":"wt_berlin"}`, map[string]string{"Origin": "null"}, 403, "Only the property's own page"},
		"over http":                          {"berlin", `{"token":"wt_berlin"}`, map[string]string{"Origin": "http://example.com"}, 422, "Signing in needs https"},
		"without a token, in a pod":          {"berlin", `{"loopback":true}`, nil, 422, "The loopback field is for a browser on the machine of weir dev"},
		"without a token, and not so":        {"berlin", `{"loopback":false}`, nil, 422, "The loopback field must be true, or absent."},
	} {
		t.Run(name, func(t *testing.T) {
			handler.failures = newFailures()
			answer := call{method: "POST", target: "/properties/" + c.property + "/session", body: c.body, header: c.header}.ask(api)
			if answer.Code != c.want || !strings.Contains(answer.Body.String(), c.says) {
				t.Errorf("got %d %s, want %d %s", answer.Code, answer.Body, c.want, c.says)
			}
			if got := len(answer.Result().Cookies()); got > 0 != (c.want == 204) {
				t.Errorf("%d cookies", got)
			}
			if strings.Contains(answer.Body.String(), "wt_berlin") {
				t.Errorf("the answer repeats the token: %s", answer.Body)
			}
		})
	}
}

func TestSigningInCannotBeGuessedFast(t *testing.T) {
	handler, api := servePages(t, nil)
	handler.now = func() time.Time { return fixtureNow }
	wrong := call{method: "POST", target: "/properties/berlin/session", body: `{"token":"wt_nobody"}`}
	for range failureBurst {
		if got := wrong.ask(api).Code; got != 401 && got != 429 {
			t.Fatalf("got %d", got)
		}
	}
	if got := wrong.ask(api); got.Code != 429 || got.Header().Get("Retry-After") == "" {
		t.Errorf("got %d, want 429 and when to come back", got.Code)
	}
	if got := ask(api, "GET", "Bearer wt_nobody", "/api/v1/properties/berlin/events").Code; got != 429 {
		t.Errorf("the API counts apart: got %d", got)
	}
	cookie := signedIn(t, api, "berlin", tokens["berlin"]) // a right token is always let in
	for range 2 * failureBurst {
		stale := call{method: "GET", target: "/properties/berlin/api/events", cookies: []*http.Cookie{{Name: cookie.Name, Value: "stale"}}}
		if got := stale.ask(api).Code; got != 401 {
			t.Fatalf("a page whose session has ended: got %d, want 401", got)
		}
	}
	if got := (call{method: "GET", target: "/properties/berlin/api/events", cookies: []*http.Cookie{cookie}}).ask(api).Code; got != 200 {
		t.Errorf("got %d, want 200", got)
	}
}

func TestSigningInAnewReplacesTheSessionAndSigningOutEndsIt(t *testing.T) {
	_, api := servePages(t, nil)
	planted := signedIn(t, api, "berlin", tokens["berlin"])
	answer := call{method: "POST", target: "/properties/berlin/session", body: `{"token":"wt_berlin"}`, cookies: []*http.Cookie{planted}}.ask(api)
	if cookies := kept(answer); len(cookies) != 1 || cookies[0].Value == planted.Value {
		t.Errorf("whoever has planted a cookie knows the session: %v", cookies)
	}
	for name, header := range map[string]map[string]string{
		"another site's page": {"Sec-Fetch-Site": "cross-site"}, "another page of an older browser's": {"Origin": "https://evil.example"},
	} {
		if got := (call{method: "DELETE", target: "/properties/berlin/session", header: header}).ask(api); got.Code != 403 || len(got.Result().Cookies()) > 0 {
			t.Errorf("%s signs somebody out: %d", name, got.Code)
		}
	}
	out := call{method: "DELETE", target: "/properties/berlin/session", cookies: []*http.Cookie{planted}}.ask(api)
	cookies := out.Result().Cookies()
	if out.Code != 204 || len(kept(out)) > 0 || len(cookies) == 0 || cookies[0].Value != "" || cookies[0].MaxAge >= 0 || cookies[0].Path != planted.Path || !cookies[0].Secure || !cookies[0].HttpOnly {
		t.Errorf("got %d %v", out.Code, cookies)
	}
}
