package query

import (
	"encoding/json"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-dev/weir/collector/auth"
	"github.com/weir-dev/weir/collector/config"
	"github.com/weir-dev/weir/collector/dashboard"
	"github.com/weir-dev/weir/collector/session"
)

// servePages is serve where people can sign in; local is for weir dev.
func servePages(t *testing.T, local *Local) (*Handler, http.Handler) {
	t.Helper()
	handler, _ := serve(t)
	handler.local = local
	served := slices.Clone(*handler.tenants.Load())
	for i := range served {
		served[i].SessionKeys = sessionKeys(t, session.NewKey())
	}
	handler.Serve(served)
	return handler, routes(handler)
}

func sessionKeys(t *testing.T, text string) []session.Key {
	t.Helper()
	keys, err := session.ParseKeys(text)
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

// call is a request of a browser; peer and host have those of a page that is reached by https through an ingress where they are "".
type call struct {
	method, target, body, peer, host string
	header                           map[string]string
	cookies                          []*http.Cookie
}

func (c call) ask(api http.Handler) *httptest.ResponseRecorder {
	request := httptest.NewRequest(c.method, c.target, strings.NewReader(c.body))
	if c.peer != "" {
		request.RemoteAddr = c.peer
	}
	if c.host != "" {
		request.Host = c.host
	}
	if c.method == http.MethodPost {
		request.Header.Set("Content-Type", "application/json")
	}
	for name, value := range c.header {
		request.Header.Set(name, value)
		if value == "" {
			request.Header.Del(name)
		}
	}
	for _, cookie := range c.cookies {
		request.AddCookie(cookie)
	}
	answer := httptest.NewRecorder()
	api.ServeHTTP(answer, request)
	return answer
}

// signedIn returns the cookie of somebody who has shown a token.
func signedIn(t *testing.T, api http.Handler, property, token string) *http.Cookie {
	t.Helper()
	answer := call{method: "POST", target: "/properties/" + property + "/session", body: `{"token":"` + token + `"}`}.ask(api)
	if answer.Code != http.StatusNoContent || len(answer.Result().Cookies()) != 1 {
		t.Fatalf("signing in: got %d %s", answer.Code, answer.Body)
	}
	return answer.Result().Cookies()[0]
}

func TestThePageIsTheSameForEverybodyAndBoundsWhatABrowserDoes(t *testing.T) {
	_, api := servePages(t, nil)
	want := call{method: "GET", target: "/properties/berlin/"}.ask(api)
	if want.Code != 200 || want.Header().Get("Content-Type") != "text/html; charset=utf-8" || want.Body.Len() == 0 {
		t.Fatalf("got %d %v", want.Code, want.Header())
	}
	if want.Header().Get("Content-Security-Policy") != dashboard.Policy || want.Header().Get("Cross-Origin-Opener-Policy") != "same-origin" {
		t.Errorf("got %v", want.Header())
	}
	for name, c := range map[string]call{
		"for who is signed in":             {method: "GET", target: "/properties/berlin/", cookies: []*http.Cookie{signedIn(t, api, "berlin", tokens["berlin"])}},
		"for a property that there is not": {method: "GET", target: "/properties/nowhere/"},
		"for who follows a link":           {method: "GET", target: "/properties/berlin/?view=funnel", header: map[string]string{"Sec-Fetch-Site": "cross-site"}},
		"however the path is escaped":      {method: "GET", target: "/properties/%62erlin/"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := c.ask(api); got.Code != 200 || got.Body.String() != want.Body.String() || len(got.Result().Cookies()) > 0 {
				t.Errorf("got %d %s", got.Code, got.Body)
			}
		})
	}
}

func TestPathsBelowPropertiesLeadToThePageAndNowhereElse(t *testing.T) {
	_, api := servePages(t, nil)
	for name, c := range map[string]struct {
		method, target string
		want           int
		location       string
	}{
		"the base":                            {"GET", "/properties/berlin/", 200, ""},
		"its head":                            {"HEAD", "/properties/berlin/", 200, ""},
		"the base without its slash":          {"GET", "/properties/berlin", 302, "berlin/"},
		"the base without its slash, filters": {"GET", "/properties/berlin?view=a&b=%2F%2Fevil.example", 302, "berlin/?view=a&b=%2F%2Fevil.example"},
		"the session":                         {"GET", "/properties/berlin/session", 401, ""},
		"the head of the session":             {"HEAD", "/properties/berlin/session", 401, ""},
		"data":                                {"GET", "/properties/berlin/api/analytics/summary", 401, ""},
		"no file":                             {"GET", "/properties/berlin/static/none.js", 404, ""},
		"no directory":                        {"GET", "/properties/berlin/static/", 404, ""},
		"the shell has one address":           {"GET", "/properties/berlin/static/index.html", 404, ""},
		"the parent":                          {"GET", "/properties/berlin/../kolkata/", 404, ""},
		"the parent, escaped":                 {"GET", "/properties/%2e%2e/", 404, ""},
		"the parent without its slash":        {"GET", "/properties/%2e%2e", 404, ""},
		"the parent's data":                   {"GET", "/properties/%2e%2e/api/events", 404, ""},
		"a name with a slash":                 {"GET", "/properties/a%2Fb/", 404, ""},
		"another host's name":                 {"GET", "/properties//evil.example", 404, ""},
		"another host's name, escaped":        {"GET", "/properties/%2F%2Fevil.example", 404, ""},
		"another scheme":                      {"GET", "/properties/javascript:alert(1)", 404, ""},
		"a name in capitals":                  {"GET", "/properties/Berlin/", 404, ""},
		"no name":                             {"GET", "/properties/", 404, ""},
		"a line end":                          {"GET", "/properties/a%0d%0aSet-Cookie:b", 404, ""},
		"a preflight":                         {"OPTIONS", "/properties/berlin/api/events", 405, ""},
		"a preflight of the session":          {"OPTIONS", "/properties/berlin/session", 405, ""},
		"the shell is not written to":         {"POST", "/properties/berlin/", 405, ""},
		"data is not deleted":                 {"DELETE", "/properties/berlin/api/events", 405, ""},
		"there is no list in a pod":           {"GET", "/", 404, ""},
	} {
		t.Run(name, func(t *testing.T) {
			request := call{method: c.method, target: c.target, header: map[string]string{"Origin": "https://evil.example", "Sec-Fetch-Site": "same-origin"}}
			answer := request.ask(api)
			if answer.Code != c.want || answer.Header().Get("Location") != c.location {
				t.Errorf("got %d %q, want %d %q", answer.Code, answer.Header().Get("Location"), c.want, c.location)
			}
			for header := range answer.Header() {
				if strings.HasPrefix(header, "Access-Control-") {
					t.Errorf("another origin is let in: %s", header)
				}
			}
		})
	}
}

func TestWhoHasSignedInReadsAsTheTokenWould(t *testing.T) {
	_, api := servePages(t, nil)
	cookie := signedIn(t, api, "berlin", tokens["write"])
	if want := "/properties/berlin/"; cookie.Name != "weir_session" || cookie.Path != want || cookie.Domain != "" || !cookie.HttpOnly || !cookie.Secure ||
		cookie.SameSite != http.SameSiteStrictMode || cookie.MaxAge != 12*60*60 {
		t.Errorf("the cookie is %s", cookie)
	}
	if strings.Contains(cookie.Value, tokens["write"]) {
		t.Error("the cookie holds the token")
	}
	for _, path := range calls {
		byCookie := call{method: "GET", target: "/properties/berlin/api/" + path, cookies: []*http.Cookie{cookie}}.ask(api)
		byToken := get(api, tokens["write"], "berlin/"+path)
		if byCookie.Code != 200 || byCookie.Body.String() != byToken.Body.String() {
			t.Errorf("%s: got %d %s, want %s", path, byCookie.Code, byCookie.Body, byToken.Body)
		}
		tag := map[string]string{"If-None-Match": byCookie.Header().Get("ETag")}
		if again := (call{method: "GET", target: "/properties/berlin/api/" + path, cookies: []*http.Cookie{cookie}, header: tag}).ask(api); again.Code != 304 {
			t.Errorf("%s again: got %d, want 304", path, again.Code)
		}
	}
	var got sessionAnswer
	answer := call{method: "GET", target: "/properties/berlin/session", cookies: []*http.Cookie{cookie}}.ask(api)
	if err := json.Unmarshal(answer.Body.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	want := sessionAnswer{sessionRecord{"berlin", "ops", auth.ScopeWrite, "2026-10-26T22:00:01.000Z", false}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestACookieIsGoodForItsPropertyAndNothingElse(t *testing.T) {
	_, api := servePages(t, nil)
	cookie := signedIn(t, api, "berlin", tokens["berlin"])
	bad := *cookie
	bad.Value = cookie.Value[:len(cookie.Value)-2] + "AA"
	for name, c := range map[string]struct {
		call
		want int
	}{
		"its own property":                       {call{method: "GET", target: "/properties/berlin/api/events", cookies: []*http.Cookie{cookie}}, 200},
		"beside a cookie that somebody has made": {call{method: "GET", target: "/properties/berlin/api/events", cookies: []*http.Cookie{&bad, cookie}}, 200},
		"not another property":                   {call{method: "GET", target: "/properties/kolkata/api/events", cookies: []*http.Cookie{cookie}}, 401},
		"not the API's own path":                 {call{method: "GET", target: "/api/v1/properties/berlin/events", cookies: []*http.Cookie{cookie}}, 401},
		"not where the text has been changed":    {call{method: "GET", target: "/properties/berlin/api/events", cookies: []*http.Cookie{&bad}}, 401},
		"not the token in its place": {
			call{method: "GET", target: "/properties/berlin/api/events", cookies: []*http.Cookie{{Name: "weir_session", Value: tokens["berlin"]}}}, 401,
		},
		"not the token in a header": {
			call{method: "GET", target: "/properties/berlin/api/events", header: map[string]string{"Authorization": berlinBearer}}, 401,
		},
		"not the token in the address":         {call{method: "GET", target: "/properties/berlin/api/events?token=" + tokens["berlin"]}, 401},
		"not more than its token's scope":      {call{method: "POST", target: "/properties/berlin/api/deliveries/replay", body: "{}", cookies: []*http.Cookie{cookie}}, 403},
		"not by head where there is no cookie": {call{method: "HEAD", target: "/properties/berlin/api/events"}, 401},
	} {
		t.Run(name, func(t *testing.T) {
			if got := c.ask(api); got.Code != c.want {
				t.Errorf("got %d %s, want %d", got.Code, got.Body, c.want)
			}
		})
	}
}

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
		stale := call{method: "GET", target: "/properties/berlin/api/events", cookies: []*http.Cookie{{Name: "weir_session", Value: "stale"}}}
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
	if cookies := answer.Result().Cookies(); len(cookies) != 1 || cookies[0].Value == planted.Value {
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
	if out.Code != 204 || len(cookies) != 1 || cookies[0].Value != "" || cookies[0].MaxAge >= 0 || cookies[0].Path != planted.Path || !cookies[0].Secure || !cookies[0].HttpOnly {
		t.Errorf("got %d %v", out.Code, cookies)
	}
}

func TestOnlyThePagesOwnScriptsAskWithACookie(t *testing.T) {
	_, api := servePages(t, nil)
	cookies := []*http.Cookie{signedIn(t, api, "berlin", tokens["admin"])}
	for name, c := range map[string]struct {
		method, path, body string
		header             map[string]string
		want               int
	}{
		"the page reads":                            {"GET", "api/events", "", map[string]string{"Sec-Fetch-Site": "same-origin"}, 200},
		"an address that is typed is read":          {"GET", "api/events", "", map[string]string{"Sec-Fetch-Site": "none"}, 200},
		"another site's page does not read":         {"GET", "api/events", "", map[string]string{"Sec-Fetch-Site": "cross-site"}, 403},
		"another host's page does not read":         {"GET", "api/events", "", map[string]string{"Sec-Fetch-Site": "same-site"}, 403},
		"another site's page does not look at it":   {"GET", "session", "", map[string]string{"Sec-Fetch-Site": "cross-site"}, 403},
		"the page asks":                             {"POST", "api/erasures", "{}", map[string]string{"Sec-Fetch-Site": "same-origin"}, 422},
		"another site's page does not ask":          {"POST", "api/erasures", "{}", map[string]string{"Sec-Fetch-Site": "cross-site"}, 403},
		"nor one of an older browser's":             {"POST", "api/erasures", "{}", map[string]string{"Origin": "https://evil.example"}, 403},
		"nor one with another port":                 {"POST", "api/erasures", "{}", map[string]string{"Origin": "https://example.com:8443"}, 403},
		"a form is not JSON":                        {"POST", "api/erasures", "a=b", map[string]string{"Content-Type": "text/plain"}, 415},
		"a method in a header is not the request's": {"GET", "api/erasures", "", map[string]string{"X-Http-Method-Override": "POST"}, 405},
	} {
		t.Run(name, func(t *testing.T) {
			answer := call{method: c.method, target: "/properties/berlin/" + c.path, body: c.body, header: c.header, cookies: cookies}.ask(api)
			if answer.Code != c.want {
				t.Errorf("got %d %s, want %d", answer.Code, answer.Body, c.want)
			}
			if answer.Header().Get("Access-Control-Allow-Origin") != "" {
				t.Error("another page may read the answer")
			}
		})
	}
}

func TestNobodySignsInWithoutKeys(t *testing.T) {
	_, api := serve(t)
	answer := call{method: "POST", target: "/properties/berlin/session", body: `{"token":"wt_berlin"}`}.ask(api)
	if answer.Code != 503 || !strings.Contains(answer.Body.String(), noSessionKeys) || len(answer.Result().Cookies()) > 0 {
		t.Errorf("got %d %s", answer.Code, answer.Body)
	}
}

const (
	machine   = "127.0.0.1:54321"
	localhost = "localhost:8080"
)

func TestOneClickLetsInWhoSitsAtTheMachineAndNobodyElse(t *testing.T) {
	local := &Local{}
	for name, c := range map[string]struct {
		local      *Local
		peer, host string
		header     map[string]string
		want       bool
	}{
		"a browser at localhost":                {local, machine, localhost, map[string]string{"Sec-Fetch-Site": "same-origin", "Origin": "http://localhost:8080"}, true},
		"a browser at 127.0.0.1":                {local, machine, "127.0.0.1:8080", nil, true},
		"a browser at ::1":                      {local, "[::1]:54321", "[::1]:8080", nil, true},
		"a browser at ::1 without a port":       {local, "[::1]:54321", "[::1]", nil, true},
		"over an IPv4 address in IPv6":          {local, "[::ffff:127.0.0.1]:54321", "LOCALHOST", nil, true},
		"not in a pod":                          {nil, machine, localhost, nil, false},
		"not from another machine":              {local, "192.0.2.1:54321", localhost, nil, false},
		"not from another machine, over IPv6":   {local, "[2001:db8::1]:54321", localhost, nil, false},
		"not by a name that points here":        {local, machine, "evil.example:8080", nil, false},
		"not by a name below localhost":         {local, machine, "evil.localhost:8080", nil, false},
		"not by a name that begins like it":     {local, machine, "localhost.evil.example", nil, false},
		"not by another address of the machine": {local, machine, "192.0.2.7:8080", nil, false},
		"not by an address in another form":     {local, machine, "2130706433:8080", nil, false},
		"not by no name":                        {local, machine, " ", nil, false},
		"not through a proxy":                   {local, machine, localhost, map[string]string{"X-Forwarded-For": "192.0.2.1"}, false},
		"not through one that names hosts":      {local, machine, localhost, map[string]string{"X-Forwarded-Host": "localhost"}, false},
		"not through one that says so shortly":  {local, machine, localhost, map[string]string{"Forwarded": "for=127.0.0.1"}, false},
		"not through one that signs":            {local, machine, localhost, map[string]string{"Via": "1.1 tunnel"}, false},
		"not through one like nginx":            {local, machine, localhost, map[string]string{"X-Real-Ip": "127.0.0.1"}, false},
		"not for another site's page":           {local, machine, localhost, map[string]string{"Sec-Fetch-Site": "cross-site"}, false},
		"not for a page at another port":        {local, machine, localhost, map[string]string{"Sec-Fetch-Site": "same-site"}, false},
		"not for such a page of an old browser": {local, machine, localhost, map[string]string{"Origin": "http://localhost:3000"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			_, api := servePages(t, c.local)
			answer := call{method: "POST", target: "/properties/berlin/session", body: `{"loopback":true}`, peer: c.peer, host: c.host, header: c.header}.ask(api)
			cookies := answer.Result().Cookies()
			if got := answer.Code == 204; got != c.want || len(cookies) > 0 != c.want {
				t.Fatalf("got %d %s, want to be let in: %v", answer.Code, answer.Body, c.want)
			}
			if c.header["Origin"] == "" && c.header["Sec-Fetch-Site"] == "" {
				hint := call{method: "GET", target: "/properties/berlin/session", peer: c.peer, host: c.host, header: c.header}.ask(api)
				if got := strings.Contains(hint.Body.String(), `"loopback":true`); hint.Code != 401 || got != c.want {
					t.Errorf("the hint: got %d %s", hint.Code, hint.Body)
				}
			}
			if !c.want {
				return
			}
			if cookies[0].Secure || !cookies[0].HttpOnly || cookies[0].SameSite != http.SameSiteStrictMode {
				t.Errorf("the cookie is %s", cookies[0])
			}
			seen := call{method: "GET", target: "/properties/berlin/session", peer: c.peer, host: c.host, cookies: cookies}.ask(api)
			if !strings.Contains(seen.Body.String(), `"token":"dpo","scope":"admin"`) || !strings.Contains(seen.Body.String(), `"loopback":true`) {
				t.Errorf("got %s, want the strongest token", seen.Body)
			}
			elsewhere := call{method: "GET", target: "/properties/berlin/api/events", cookies: cookies}.ask(api)
			if elsewhere.Code != 401 {
				t.Errorf("from another machine the cookie is worth %d", elsewhere.Code)
			}
		})
	}
}

func TestOneClickNeedsATokenOfTheProperty(t *testing.T) {
	handler, api := servePages(t, &Local{})
	served := slices.Clone(*handler.tenants.Load())
	served[indexOf(t, handler, "berlin")].Tokens = nil
	handler.Serve(served)
	for _, property := range []string{"berlin", "nowhere"} {
		answer := call{method: "POST", target: "/properties/" + property + "/session", body: `{"loopback":true}`, peer: machine, host: localhost}.ask(api)
		if answer.Code != 422 || !strings.Contains(answer.Body.String(), "spec.accessTokens") {
			t.Errorf("%s: got %d %s", property, answer.Code, answer.Body)
		}
	}
}

func TestTheFrontLeadsToTheOneProperty(t *testing.T) {
	handler, api := servePages(t, &Local{})
	answer := call{method: "GET", target: "/"}.ask(api)
	for _, property := range []string{"berlin", "empty", "kolkata", "replaying", "saopaulo", "trimmed"} {
		if want := `<a href="properties/` + property + `/">`; answer.Code != 200 || !strings.Contains(answer.Body.String(), want) {
			t.Errorf("got %d %s, want %s", answer.Code, answer.Body, want)
		}
	}
	if answer.Header().Get("Content-Security-Policy") != dashboard.Policy {
		t.Errorf("got %v", answer.Header())
	}
	handler.Serve(slices.Clone(*handler.tenants.Load())[:1])
	name := (*handler.tenants.Load())[0].Property.Name
	if answer := (call{method: "GET", target: "/"}).ask(api); answer.Code != 302 || answer.Header().Get("Location") != "properties/"+name+"/" {
		t.Errorf("got %d %q", answer.Code, answer.Header().Get("Location"))
	}
}

func TestSettingsTellNamesAndNoSecrets(t *testing.T) {
	keys := map[string]map[string]string{"default/berlin": {"server": "wk_the_key", "web": "wp_the_key"}}
	handler, api := servePages(t, &Local{APIKeys: keys})
	served := slices.Clone(*handler.tenants.Load())
	berlin := &served[indexOf(t, handler, "berlin")]
	berlin.Settings = config.Settings{CollectURL: "https://collect.example", APIKeys: []config.NamedKey{
		{Name: "server"}, {Name: "web", Publishable: true, AllowedOrigins: []string{"https://www.example"}},
	}}
	berlin.Property.Retention.Days = 400
	handler.Serve(served)
	const tokensText = `"access_tokens":[{"name":"default","scope":"read","expires_at":null},{"name":"ops","scope":"write","expires_at":null},` +
		`{"name":"dpo","scope":"admin","expires_at":null},{"name":"old","scope":"admin","expires_at":"2026-10-26T10:00:01.000Z"},` +
		`{"name":"ageing","scope":"read","expires_at":"2026-10-26T10:00:01.001Z"},{"name":"none","scope":"","expires_at":null}]`
	text := func(server, web string) string {
		return `{"data":{"property":"berlin","namespace":"default","collect_url":"https://collect.example","api_url":null,"currency":"EUR",` +
			`"time_zone":"Europe/Berlin","retention_days":400,"api_keys":[{"name":"server","type":"Secret","allowed_origins":null,"key":` + server + `},` +
			`{"name":"web","type":"Publishable","allowed_origins":["https://www.example"],"key":` + web + `}],` + tokensText + `,"platforms":[],"sources":[]}}`
	}
	click := call{method: "POST", target: "/properties/berlin/session", body: `{"loopback":true}`, peer: machine, host: localhost}.ask(api).Result().Cookies()
	shown := call{method: "POST", target: "/properties/berlin/session", body: `{"token":"wt_berlin"}`, peer: machine, host: localhost}.ask(api).Result().Cookies()
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
