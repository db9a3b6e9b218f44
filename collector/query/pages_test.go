package query

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/go-chi/chi/v5"
	"github.com/google/go-cmp/cmp"

	"github.com/weir-dev/weir/collector/auth"
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
	if answer.Code != http.StatusNoContent || len(kept(answer)) != 1 {
		t.Fatalf("signing in: got %d %s", answer.Code, answer.Body)
	}
	return kept(answer)[0]
}

// kept are the cookies that a browser keeps of an answer, without those that it forgets.
func kept(answer *httptest.ResponseRecorder) []*http.Cookie {
	return slices.DeleteFunc(answer.Result().Cookies(), func(cookie *http.Cookie) bool { return cookie.MaxAge < 0 })
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

func TestAllFilesOfThePageAreServedByFewRoutes(t *testing.T) {
	_, api := servePages(t, nil)
	files, err := dashboard.New()
	if err != nil {
		t.Fatal(err)
	}
	for name := range files.Static() {
		if answer := (call{method: "GET", target: "/properties/berlin/static/" + name}).ask(api); answer.Code != 200 || answer.Body.Len() == 0 {
			t.Errorf("%s: got %d", name, answer.Code)
		}
	}
	patterns := 0
	err = chi.Walk(api.(chi.Routes), func(_, pattern string, _ http.Handler, _ ...func(http.Handler) http.Handler) error {
		if strings.Contains(pattern, "/static/") {
			patterns++
		}
		return nil
	})
	if want := 2 * len(dashboard.FilePatterns()); err != nil || patterns != want { // GET and HEAD
		t.Errorf("%d routes, %v; want %d: each has its time series", patterns, err, want)
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
	if want := "/properties/berlin/"; cookie.Name != "__Secure-weir-session" || cookie.Path != want || cookie.Domain != "" || !cookie.HttpOnly || !cookie.Secure ||
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
		"its own property":                    {call{method: "GET", target: "/properties/berlin/api/events", cookies: []*http.Cookie{cookie}}, 200},
		"not another property":                {call{method: "GET", target: "/properties/kolkata/api/events", cookies: []*http.Cookie{cookie}}, 401},
		"not the API's own path":              {call{method: "GET", target: "/api/v1/properties/berlin/events", cookies: []*http.Cookie{cookie}}, 401},
		"not where the text has been changed": {call{method: "GET", target: "/properties/berlin/api/events", cookies: []*http.Cookie{&bad}}, 401},
		"not the token in its place": {
			call{method: "GET", target: "/properties/berlin/api/events", cookies: []*http.Cookie{{Name: cookie.Name, Value: tokens["berlin"]}}}, 401,
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

func TestACookieThatSomebodyHasPlantedIsNotTakenForThePersons(t *testing.T) {
	handler, api := servePages(t, nil)
	lines := audited(handler)
	own, again := signedIn(t, api, "berlin", tokens["berlin"]), signedIn(t, api, "berlin", tokens["berlin"])
	another := signedIn(t, api, "berlin", tokens["write"])
	foreign := signedIn(t, api, "kolkata", tokens["kolkata"])
	junk := *own
	junk.Value = "junk"
	plain := *another
	plain.Name = "weir-session"
	for name, c := range map[string]struct {
		cookies []*http.Cookie
		want    int
	}{
		"the person's alone":                       {[]*http.Cookie{own}, 200},
		"two of one token":                         {[]*http.Cookie{own, again}, 200},
		"another token's before it":                {[]*http.Cookie{another, own}, 401},
		"another token's behind it":                {[]*http.Cookie{own, another}, 401},
		"another property's before it":             {[]*http.Cookie{foreign, own}, 401},
		"one that says nothing before it":          {[]*http.Cookie{&junk, own}, 401},
		"one that says nothing behind it":          {[]*http.Cookie{own, &junk}, 401},
		"another token's between two of one":       {[]*http.Cookie{own, another, again}, 401},
		"one that plain http may plant, by itself": {[]*http.Cookie{&plain}, 401},
		"one that plain http may plant, before it": {[]*http.Cookie{&plain, own}, 200},
	} {
		t.Run(name, func(t *testing.T) {
			lines.Reset()
			answer := call{
				method: "GET", target: "/properties/berlin/api/events", cookies: c.cookies, header: map[string]string{"Accept": typeCSV},
			}.ask(api)
			if who := (call{method: "GET", target: "/properties/berlin/session", cookies: c.cookies}).ask(api); answer.Code != c.want || who.Code != c.want {
				t.Errorf("got %d, and %d for the session; want %d", answer.Code, who.Code, c.want)
			}
			if got := lines.String(); (got != "") != (c.want == 200) || got != "" && !strings.Contains(got, `"name":"default"`) {
				t.Errorf("the audit log has %q", got)
			}
		})
	}
}

func TestSigningInAndOutClearsCookiesOfThePathsBelow(t *testing.T) {
	_, api := servePages(t, nil)
	for name, c := range map[string]call{
		"in":  {method: "POST", target: "/properties/berlin/session", body: `{"token":"wt_berlin"}`},
		"out": {method: "DELETE", target: "/properties/berlin/session"},
	} {
		t.Run(name, func(t *testing.T) {
			cleared := map[string]bool{}
			for _, cookie := range c.ask(api).Result().Cookies() {
				if !cookie.Secure || !cookie.HttpOnly || cookie.Name != "__Secure-weir-session" {
					t.Errorf("a browser does not take %s", cookie)
				}
				cleared[cookie.Path] = cookie.MaxAge < 0 && cookie.Value == ""
			}
			for path, want := range map[string]bool{
				"/properties/berlin/": name == "out", "/properties/berlin": true, "/properties/berlin/api": true, "/properties/berlin/api/": true,
				"/properties/berlin/session": true,
			} {
				if got, set := cleared[path]; !set || got != want {
					t.Errorf("%s: cleared %v, set %v; want it cleared: %v", path, got, set, want)
				}
			}
		})
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
		"a method that there is not comes first":    {"POST", "api/settings", "", map[string]string{"Content-Type": ""}, 405},
		"nor is a form that signs somebody in":      {"POST", "session", "token=wt_berlin", map[string]string{"Content-Type": "text/plain"}, 415},
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
