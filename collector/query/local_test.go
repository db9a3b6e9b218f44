package query

import (
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-dev/weir/collector/auth"
	"github.com/weir-dev/weir/collector/dashboard"
	"github.com/weir-dev/weir/collector/session"
)

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
		"not through one of long ago":           {local, machine, localhost, map[string]string{"X-Forwarded": "for=127.0.0.1"}, false},
		"not through a CDN":                     {local, machine, localhost, map[string]string{"CDN-Loop": "cloudflare"}, false},
		"not through Cloudflare":                {local, machine, localhost, map[string]string{"CF-Connecting-IP": "192.0.2.1"}, false},
		"not through a tunnel of Cloudflare's":  {local, machine, localhost, map[string]string{"Cf-Ray": "230b030023ae2822-SJC"}, false},
		"not through Akamai":                    {local, machine, localhost, map[string]string{"True-Client-IP": "192.0.2.1"}, false},
		"not through one that names clients":    {local, machine, localhost, map[string]string{"X-Client-IP": "192.0.2.1"}, false},
		"not through one that names a cluster":  {local, machine, localhost, map[string]string{"X-Cluster-Client-IP": "192.0.2.1"}, false},
		"not through one that keeps the path":   {local, machine, localhost, map[string]string{"X-Original-URL": "/"}, false},
		"not through one that keeps the host":   {local, machine, localhost, map[string]string{"X-Original-Host": "weir.example"}, false},
		"not through Fly.io":                    {local, machine, localhost, map[string]string{"Fly-Client-IP": "192.0.2.1"}, false},
		"not for a page of nobody's":            {local, machine, localhost, map[string]string{"Origin": "null"}, false},
		"not for a page that says two things":   {local, machine, localhost, map[string]string{"Origin": "http://localhost:3000", "Sec-Fetch-Site": "same-origin"}, false},
		"not for another site's page":           {local, machine, localhost, map[string]string{"Sec-Fetch-Site": "cross-site"}, false},
		"not for a page at another port":        {local, machine, localhost, map[string]string{"Sec-Fetch-Site": "same-site"}, false},
		"not for such a page of an old browser": {local, machine, localhost, map[string]string{"Origin": "http://localhost:3000"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			_, api := servePages(t, c.local)
			answer := call{method: "POST", target: "/properties/berlin/session", body: `{"loopback":true}`, peer: c.peer, host: c.host, header: c.header}.ask(api)
			cookies := kept(answer)
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
			if !strings.Contains(seen.Body.String(), `"token":"weir dev","scope":"admin"`) || !strings.Contains(seen.Body.String(), `"loopback":true`) {
				t.Errorf("got %s, want all rights", seen.Body)
			}
			elsewhere := call{method: "GET", target: "/properties/berlin/api/events", cookies: cookies}.ask(api)
			if elsewhere.Code != 401 {
				t.Errorf("from another machine the cookie is worth %d", elsewhere.Code)
			}
		})
	}
}

func TestOneClickIsNotForWhatSpeaksHTTP10AsOldProxiesDo(t *testing.T) {
	_, api := servePages(t, &Local{})
	for minor, want := range []int{422, 204} {
		request := httptest.NewRequest(http.MethodPost, "/properties/berlin/session", strings.NewReader(`{"loopback":true}`))
		request.RemoteAddr, request.Host, request.ProtoMinor = machine, localhost, minor
		request.Header.Set("Content-Type", typeJSON)
		answer := httptest.NewRecorder()
		api.ServeHTTP(answer, request)
		if answer.Code != want {
			t.Errorf("HTTP/1.%d: got %d %s, want %d", minor, answer.Code, answer.Body, want)
		}
	}
}

func TestOneClickTakesNoTokenAndNeedsAProperty(t *testing.T) {
	handler, api := servePages(t, &Local{})
	served := slices.Clone(*handler.tenants.Load())
	served[indexOf(t, handler, "berlin")].Tokens = nil
	handler.Serve(served)
	for property, want := range map[string]int{"berlin": 204, "nowhere": 404} {
		answer := call{method: "POST", target: "/properties/" + property + "/session", body: `{"loopback":true}`, peer: machine, host: localhost}.ask(api)
		if answer.Code != want {
			t.Errorf("%s: got %d %s, want %d", property, answer.Code, answer.Body, want)
		}
	}
}

func TestOneClickDoesNotGuessWhichPropertyIsMeant(t *testing.T) {
	handler, api := servePages(t, &Local{})
	served := slices.Clone(*handler.tenants.Load())
	twin := served[indexOf(t, handler, "berlin")]
	twin.Property.Namespace, twin.SessionKeys = "other", sessionKeys(t, session.NewKey())
	twin.Tokens = []auth.Credential{{Name: "twin", Hash: auth.HashOf("wt_twin"), Scope: auth.ScopeRead}}
	handler.Serve(append(served, twin))
	ask := func(method, body string, cookies ...*http.Cookie) *httptest.ResponseRecorder {
		return call{method: method, target: "/properties/berlin/session", body: body, peer: machine, host: localhost, cookies: cookies}.ask(api)
	}
	if answer := ask("GET", ""); !strings.Contains(answer.Body.String(), `"loopback":false`) {
		t.Errorf("the hint is %s", answer.Body)
	}
	if answer := ask("POST", `{"loopback":true}`); answer.Code != 422 || !strings.Contains(answer.Body.String(), "several namespaces have one") {
		t.Errorf("got %d %s, want 422", answer.Code, answer.Body)
	}
	for token, want := range map[string]string{tokens["berlin"]: "default", "wt_twin": "twin"} {
		cookies := ask("POST", `{"token":"`+token+`"}`)
		if answer := ask("GET", "", kept(cookies)...); !strings.Contains(answer.Body.String(), `"token":"`+want+`"`) {
			t.Errorf("by a token of one of them: got %s, want %s", answer.Body, want)
		}
	}
}

func TestEachWeirDevOfAMachineHasSessionsOfItsOwn(t *testing.T) {
	var apis []http.Handler
	var cookies []*http.Cookie
	hosts := []string{"localhost:8080", "localhost:8081", "localhost"}
	for _, host := range hosts {
		_, api := servePages(t, &Local{})
		answer := call{method: "POST", target: "/properties/berlin/session", body: `{"loopback":true}`, peer: machine, host: host}.ask(api)
		apis, cookies = append(apis, api), append(cookies, kept(answer)...)
	}
	// A browser keeps one cookie of a name for all ports, and sends all that it keeps to each.
	jar := map[string]*http.Cookie{}
	for _, cookie := range cookies {
		jar[cookie.Name] = cookie
	}
	for i, host := range hosts {
		answer := call{
			method: "GET", target: "/properties/berlin/api/events", peer: machine, host: host, cookies: slices.Collect(maps.Values(jar)),
		}.ask(apis[i])
		if answer.Code != 200 {
			t.Errorf("at %s: got %d, want to be signed in still", host, answer.Code)
		}
	}
}

func TestASessionThatNamesNoTokenIsTakenOnTheMachineOfWeirDevAlone(t *testing.T) {
	for name, c := range map[string]struct {
		local      *Local
		peer, host string
		want       int
	}{
		"there":                        {&Local{}, machine, localhost, 200},
		"not in a pod":                 {nil, machine, localhost, 401},
		"not there from elsewhere":     {&Local{}, "192.0.2.1:54321", localhost, 401},
		"not there by another's name":  {&Local{}, machine, "evil.example", 401},
		"not in a pod, from elsewhere": {nil, "192.0.2.1:54321", "api.example.com", 401},
	} {
		t.Run(name, func(t *testing.T) {
			handler, api := servePages(t, c.local)
			key := (*handler.tenants.Load())[indexOf(t, handler, "berlin")].SessionKeys[0]
			value := key.Seal("default/berlin", session.Session{Loopback: true, ExpirationTime: fixtureNow.Add(time.Hour)})
			answer := call{
				method: "GET", target: "/properties/berlin/api/events", peer: c.peer, host: c.host, cookies: []*http.Cookie{{Name: sessionCookie(c.host), Value: value}},
			}.ask(api)
			if answer.Code != c.want {
				t.Errorf("got %d %s, want %d", answer.Code, answer.Body, c.want)
			}
		})
	}
}

func TestTheAuditLogNamesWhoIsSignedIn(t *testing.T) {
	handler, api := servePages(t, &Local{})
	lines := audited(handler)
	for body, want := range map[string]string{
		`{"loopback":true}`:     `"actor":{"kind":"developer"}`,
		`{"token":"wt_berlin"}`: `"actor":{"kind":"access_token","name":"default","scope":"read"}`,
	} {
		lines.Reset()
		cookies := kept(call{method: "POST", target: "/properties/berlin/session", body: body, peer: machine, host: localhost}.ask(api))
		export := call{
			method: "GET", target: "/properties/berlin/api/events", peer: machine, host: localhost, cookies: cookies, header: map[string]string{"Accept": "text/csv"},
		}.ask(api)
		if export.Code != 200 || !strings.Contains(lines.String(), want) || !strings.Contains(lines.String(), `"act":"events.exported"`) {
			t.Errorf("%s: got %d, and the log\n%swant %s", body, export.Code, lines, want)
		}
	}
}

func TestTheFrontLeadsToTheOneProperty(t *testing.T) {
	handler, api := servePages(t, &Local{})
	answer := call{method: "GET", target: "/", peer: machine, host: localhost}.ask(api)
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
	if answer := (call{method: "GET", target: "/", peer: machine, host: localhost}).ask(api); answer.Code != 302 || answer.Header().Get("Location") != "properties/"+name+"/" {
		t.Errorf("got %d %q", answer.Code, answer.Header().Get("Location"))
	}
}

func TestTheFrontTellsNamesOnlyToWhoSitsAtTheMachine(t *testing.T) {
	for name, c := range map[string]call{
		"not to another machine":     {method: "GET", target: "/", peer: "192.0.2.1:54321", host: localhost},
		"not by a name of another's": {method: "GET", target: "/", peer: machine, host: "evil.example"},
		"not through a proxy":        {method: "GET", target: "/", peer: machine, host: localhost, header: map[string]string{"X-Forwarded-For": "192.0.2.1"}},
		"not to another site's page": {method: "GET", target: "/", peer: machine, host: localhost, header: map[string]string{"Sec-Fetch-Site": "cross-site"}},
		"not by head either":         {method: "HEAD", target: "/", peer: "192.0.2.1:54321", host: localhost},
	} {
		for _, properties := range []int{1, 6} {
			handler, api := servePages(t, &Local{})
			handler.Serve(slices.Clone(*handler.tenants.Load())[:properties])
			answer := c.ask(api)
			if answer.Code != 404 || !strings.Contains(answer.Body.String(), "Not found.") || answer.Header().Get("Location") != "" {
				t.Errorf("%s, %d properties: got %d %v %s", name, properties, answer.Code, answer.Header(), answer.Body)
			}
		}
	}
}
