package console

import (
	"html"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

// TestSomebodySignsInAndOut is the way of a person who has never been here.
func TestSomebodySignsInAndOut(t *testing.T) {
	t.Parallel()
	c := start(t)
	b := c.browser()
	if got := b.get("/session"); got.status != http.StatusUnauthorized || got.body != `{"message":"Unauthenticated.","sign_in":"login"}` {
		t.Fatalf("before: got %d %s", got.status, got.body)
	}
	c.provider.letIn(map[string]any{"sub": "ada"})
	back := b.get(b.back("/login?return=" + url.QueryEscape("/namespaces/a/properties/b/?view=events#x")))
	if back.status != http.StatusSeeOther || back.header.Get("Location") != "/namespaces/a/properties/b/?view=events#x" {
		t.Fatalf("signing in: got %d %s %s", back.status, back.header.Get("Location"), back.body)
	}
	var session http.Cookie
	for _, cookie := range (&http.Response{Header: back.header}).Cookies() {
		if cookie.Name == "weir-console" {
			session = *cookie
		}
	}
	if !session.HttpOnly || session.SameSite != http.SameSiteStrictMode || session.Path != "/" || session.MaxAge < 3590 || session.MaxAge > 3600 || session.Domain != "" || len(session.Value) != 43 {
		t.Errorf("the cookie is %+v", session)
	}
	if got := b.get("/session"); got.status != http.StatusOK || !strings.HasPrefix(got.body, `{"data":{"user":"ada","expires_at":"`) || got.header.Get("Cache-Control") != "no-store" {
		t.Errorf("signed in: got %d %s %v", got.status, got.body, got.header)
	}
	if want := `"log":"audit","act":"user.signed_in","actor":{"kind":"user","name":"ada"},"object":{"kind":"console"},"outcome":"success"}`; !strings.Contains(c.acts.String(), want) {
		t.Errorf("the audit log has %s", c.acts)
	}
	copied := c.browser()
	if got := copied.get("/session", "Cookie: weir-console="+session.Value); got.status != http.StatusOK {
		t.Errorf("a copy of the cookie, before signing out: got %d", got.status)
	}
	for name, header := range map[string]string{"another site": "Sec-Fetch-Site: cross-site", "another origin": "Origin: https://evil.example", "a sister host": "Sec-Fetch-Site: same-site"} {
		if got := b.do(http.MethodDelete, "/session", "", header); got.status != http.StatusForbidden || len(got.header.Values("Set-Cookie")) > 0 || b.get("/session").status != http.StatusOK {
			t.Errorf("signing out by a page of %s: got %d %s", name, got.status, got.body)
		}
	}
	out := b.do(http.MethodDelete, "/session", "", "Sec-Fetch-Site: same-origin")
	want := `{"data":{"end_session_url":"` + c.provider.URL + `/end?client_id=weir&from=weir&post_logout_redirect_uri=` + url.QueryEscape(c.url+"/") + `"}}`
	if got := strings.ReplaceAll(out.body, `\u0026`, "&"); out.status != http.StatusOK || got != want {
		t.Errorf("signing out: got %d %s, want %s", out.status, got, want)
	}
	if got := b.get("/session"); got.status != http.StatusUnauthorized {
		t.Errorf("signed out: got %d", got.status)
	}
	if got := copied.get("/session", "Cookie: weir-console="+session.Value); got.status != http.StatusUnauthorized {
		t.Errorf("a copy of the cookie, after signing out: got %d", got.status)
	}
	if got := testutil.ToFloat64(c.metrics.signIns.WithLabelValues("success")); got != 1 {
		t.Errorf("%v sign-ins are counted", got)
	}
}

// TestWhereSomebodyIsSentBackToIsHere holds that no link to the console leads to another host.
func TestWhereSomebodyIsSentBackToIsHere(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"/":                                    "/",
		"/namespaces/a/properties/b/?c=d#e":    "/namespaces/a/properties/b/?c=d#e",
		"":                                     "/",
		"a":                                    "/",
		"https://evil.example/":                "/",
		"//evil.example/":                      "/",
		"///evil.example/":                     "/",
		`/\evil.example/`:                      "/",
		`\\evil.example/`:                      "/",
		"/\tevil.example":                      "/",
		"/\n/evil.example":                     "/",
		"/\r\nSet-Cookie: a=b":                 "/",
		"javascript:alert(1)":                  "/",
		"/login":                               "/",
		"/callback?code=1":                     "/",
		"/%zz":                                 "/",
		"/%2F/evil.example":                    "/%2F/evil.example",
		"/" + strings.Repeat("a", maxReturn+1): "/",
	} {
		if got := localPath(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

// TestAnswersThatAreNotOfThisSignInAreRefused plays what somebody could send a browser back with.
func TestAnswersThatAreNotOfThisSignInAreRefused(t *testing.T) {
	t.Parallel()
	set := func(name, value string) func(url.Values) { return func(v url.Values) { v.Set(name, value) } }
	tests := map[string]struct {
		answer func(url.Values)
		// other has another browser come back, twice the same one come back again.
		other, twice bool
		late         time.Duration
		want         int
		outcome      outcome
	}{
		"the provider's own answer":                   {want: http.StatusSeeOther, outcome: signedIn},
		"another state":                               {answer: set("state", "0123456789"), want: http.StatusBadRequest, outcome: stale},
		"no state":                                    {answer: func(v url.Values) { v.Del("state") }, want: http.StatusBadRequest, outcome: stale},
		"a state twice":                               {answer: func(v url.Values) { v.Add("state", v.Get("state")) }, want: http.StatusBadRequest, outcome: stale},
		"the same beginning of a state":               {answer: func(v url.Values) { v.Set("state", v.Get("state")[:flowDigits]) }, want: http.StatusBadRequest, outcome: stale},
		"in another browser, as a login CSRF has it":  {other: true, want: http.StatusBadRequest, outcome: stale},
		"a second time":                               {twice: true, want: http.StatusBadRequest, outcome: stale},
		"after ten minutes":                           {late: flowLasts + time.Second, want: http.StatusBadRequest, outcome: stale},
		"another issuer, as a mix-up has it":          {answer: set("iss", "https://evil.example"), want: http.StatusBadGateway, outcome: invalid},
		"two issuers":                                 {answer: func(v url.Values) { v.Add("iss", "https://evil.example") }, want: http.StatusBadGateway, outcome: invalid},
		"no issuer, where the provider names itself":  {answer: func(v url.Values) { v.Del("iss") }, want: http.StatusBadGateway, outcome: invalid},
		"no code":                                     {answer: func(v url.Values) { v.Del("code") }, want: http.StatusBadGateway, outcome: invalid},
		"two codes":                                   {answer: func(v url.Values) { v.Add("code", "b") }, want: http.StatusBadGateway, outcome: invalid},
		"a code of somebody else's":                   {answer: set("code", "b"), want: http.StatusBadRequest, outcome: stale},
		"an error of the provider's":                  {answer: set("error", "access_denied"), want: http.StatusForbidden, outcome: cancelled},
		"an error of nobody's, with HTML in its text": {answer: set("error", "<script>alert(1)</script>"), want: http.StatusForbidden, outcome: cancelled},
		"an error with another issuer":                {answer: func(v url.Values) { v.Set("error", "access_denied"); v.Set("iss", "x") }, want: http.StatusBadGateway, outcome: invalid},
		"a state that is no text of ours":             {answer: set("state", "\x00\xff; Path=/"), want: http.StatusBadRequest, outcome: stale},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := start(t)
			c.provider.misbehave(faults{answer: test.answer})
			b := c.browser()
			back := b.back("/login?return=/here")
			c.clock.forward(test.late)
			if test.other {
				b = c.browser()
				b.get("/login")
			}
			got := b.get(back)
			if test.twice {
				got = b.get(back)
			}
			if got.status != test.want {
				t.Errorf("got %d %s, want %d", got.status, got.body, test.want)
			}
			if strings.Contains(got.body, "<script") || strings.Contains(got.header.Get("Content-Security-Policy"), "unsafe") || got.header.Get("Content-Security-Policy") == "" {
				t.Errorf("the page is %s with %v", got.body, got.header)
			}
			if n := testutil.ToFloat64(c.metrics.signIns.WithLabelValues(string(test.outcome))); n != 1 {
				t.Errorf("%v are counted as %s", n, test.outcome)
			}
			if want := map[bool]int{true: http.StatusOK, false: http.StatusUnauthorized}[test.outcome == signedIn || test.twice]; b.get("/session").status != want {
				t.Errorf("afterwards the session is not %d", want)
			}
		})
	}
}

// TestTokensThatTheProviderDidNotMakeForThisAreRefused forges ID tokens, and has the provider make others' ones.
func TestTokensThatTheProviderDidNotMakeForThisAreRefused(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		// claims replace the provider's; a duration is a time so long ago.
		claims map[string]any
		// sign makes the token in the provider's place.
		sign func(*testProvider, map[string]any) string
		want int
	}{
		"one of the provider's":                        {want: http.StatusSeeOther},
		"one for several, this one among them":         {claims: map[string]any{"aud": []string{"other", clientID}, "azp": clientID}, want: http.StatusSeeOther},
		"the provider's clock is half a minute behind": {claims: map[string]any{"exp": 30 * time.Second}, want: http.StatusSeeOther},
		"the provider's clock is two minutes ahead":    {claims: map[string]any{"iat": -2 * time.Minute, "nbf": -2 * time.Minute}, want: http.StatusSeeOther},
		"one that has expired":                         {claims: map[string]any{"exp": 2 * time.Minute}, want: http.StatusBadGateway},
		"one without an end":                           {claims: map[string]any{"exp": nil}, want: http.StatusBadGateway},
		"one of the future":                            {claims: map[string]any{"iat": -time.Hour}, want: http.StatusBadGateway},
		"one for another client":                       {claims: map[string]any{"aud": "other"}, want: http.StatusBadGateway},
		"one for nobody":                               {claims: map[string]any{"aud": nil}, want: http.StatusBadGateway},
		"one that another client has asked for":        {claims: map[string]any{"azp": "other"}, want: http.StatusBadGateway},
		"one of another issuer":                        {claims: map[string]any{"iss": "https://evil.example"}, want: http.StatusBadGateway},
		"one of another sign-in":                       {claims: map[string]any{"nonce": "b"}, want: http.StatusBadGateway},
		"one without a nonce":                          {claims: map[string]any{"nonce": nil}, want: http.StatusBadGateway},
		"one without a subject":                        {claims: map[string]any{"sub": nil}, want: http.StatusBadGateway},
		"one of the algorithm none":                    {sign: func(_ *testProvider, m map[string]any) string { return unsigned(m) }, want: http.StatusBadGateway},
		"one that is signed with the client's secret (HS256)": {sign: func(_ *testProvider, m map[string]any) string {
			return signedWith(jose.HS256, []byte(strings.Repeat(clientSecret, 2)), m)
		}, want: http.StatusBadGateway},
		"one that is signed with the public key as a secret": {sign: func(p *testProvider, m map[string]any) string {
			return signedWith(jose.HS256, []byte(strings.Repeat(p.kid, 2)), m)
		}, want: http.StatusBadGateway},
		"one that is signed with a key of nobody's": {sign: func(p *testProvider, m map[string]any) string {
			other := newTestProvider(t)
			return signedWith(jose.ES256, jose.JSONWebKey{Key: other.key, KeyID: p.kid}, m)
		}, want: http.StatusBadGateway},
		"none":   {sign: func(*testProvider, map[string]any) string { return "" }, want: http.StatusBadGateway},
		"a text": {sign: func(*testProvider, map[string]any) string { return "a.b.c" }, want: http.StatusBadGateway},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := start(t)
			claims := map[string]any{"sub": "ada"}
			for name, value := range test.claims {
				if before, ok := value.(time.Duration); ok {
					value = time.Now().Add(-before).Unix()
				}
				claims[name] = value
			}
			c.provider.letIn(claims)
			if test.sign != nil {
				c.provider.misbehave(faults{sign: func(m map[string]any) string { return test.sign(c.provider, m) }})
			}
			b := c.browser()
			got := b.get(b.back("/login"))
			if got.status != test.want {
				t.Errorf("got %d %s, want %d; the log has %s", got.status, got.body, test.want, c.log)
			}
			if session := b.get("/session").status; (session == http.StatusOK) != (test.want == http.StatusSeeOther) {
				t.Errorf("afterwards: got %d", session)
			}
			if log := c.log.String(); strings.Contains(log, "eyJ") || strings.Contains(log, "ada") {
				t.Errorf("the log repeats what came: %s", log)
			}
		})
	}
}

// TestAKeyThatTheProviderHasGivenUpSignsNobodyIn holds that no memory of keys outlives the provider's own.
func TestAKeyThatTheProviderHasGivenUpSignsNobodyIn(t *testing.T) {
	t.Parallel()
	c := start(t)
	c.as("ada")
	stolen, kid := c.provider.key, c.provider.kid
	c.provider.rotate(t)
	c.as("ada")
	c.provider.misbehave(faults{sign: func(m map[string]any) string {
		return signedWith(jose.ES256, jose.JSONWebKey{Key: stolen, KeyID: kid}, m)
	}})
	b := c.browser()
	if got := b.get(b.back("/login")); got.status != http.StatusBadGateway {
		t.Errorf("with the key before: got %d %s", got.status, got.body)
	}
}

// TestAProviderThatMisbehavesKeepsPeopleOutAndNothingElse has it be away, hang and answer nonsense.
func TestAProviderThatMisbehavesKeepsPeopleOutAndNothingElse(t *testing.T) {
	t.Parallel()
	at := func(path string, answer http.HandlerFunc) faults {
		return faults{before: func(w http.ResponseWriter, r *http.Request) bool {
			if r.URL.Path == path {
				answer(w, r)
			}
			return r.URL.Path == path
		}}
	}
	write := func(status int, kind, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", kind)
			w.WriteHeader(status)
			_, _ = w.Write([]byte(body))
		}
	}
	endless := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		part := []byte(strings.Repeat(" ", 1<<16))
		for range 1 << 10 {
			if _, err := w.Write(part); err != nil {
				return
			}
		}
	}
	const description = "/.well-known/openid-configuration"
	describe := func(name string, value any) faults {
		return faults{describe: func(m map[string]any) { m[name] = value }}
	}
	tests := map[string]struct {
		faults
		// login and callback are the statuses, callback 0 where there is none.
		login, callback int
		log             string
	}{
		"the description is not there":             {at(description, write(404, "text/html", "<h1>secret</h1>")), 503, 0, "status 404"},
		"the description is HTML":                  {at(description, write(200, "text/html", "<h1>secret</h1>")), 503, 0, "its answer is not what it has to be"},
		"the description is endless":               {at(description, endless), 503, 0, "its answer is not what it has to be"},
		"the description is another issuer's":      {describe("issuer", "https://evil.example"), 503, 0, "https://evil.example"},
		"the description leads elsewhere":          {at(description, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/x", http.StatusFound) }), 503, 0, "status 302"},
		"a browser would be sent to http":          {describe("authorization_endpoint", "http://evil.example/"), 503, 0, "authorization_endpoint"},
		"a browser would be sent to a script":      {describe("authorization_endpoint", "javascript:alert(1)"), 503, 0, "authorization_endpoint"},
		"the secret would be sent by http":         {describe("token_endpoint", "http://evil.example/"), 503, 0, "token_endpoint"},
		"keys would come by http":                  {describe("jwks_uri", "http://evil.example/"), 503, 0, "jwks_uri"},
		"tokens are HTML":                          {at("/token", write(200, "text/html", "<h1>secret</h1>")), 302, 503, "its answer is not what it has to be"},
		"tokens fail":                              {at("/token", write(500, "text/plain", "secret")), 302, 503, "the token endpoint answers 500"},
		"tokens are endless":                       {at("/token", endless), 302, 503, "its answer is not what it has to be"},
		"tokens are elsewhere":                     {at("/token", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/x", http.StatusTemporaryRedirect) }), 302, 503, "307"},
		"the client is refused":                    {at("/token", write(401, "application/json", `{"error":"invalid_client","error_description":"secret"}`)), 302, 503, "401 invalid_client"},
		"keys are not there":                       {at("/keys", write(404, "text/plain", "secret")), 302, 502, "fetching keys"},
		"keys are nonsense":                        {at("/keys", write(200, "application/json", `{"keys":[{"kty":"secret"}]}`)), 302, 502, "the ID token cannot be verified"},
		"keys are endless":                         {at("/keys", endless), 302, 502, "the ID token cannot be verified"},
		"it hangs up":                              {at(description, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }), 503, 0, "EOF"},
		"it has no place for the end of a session": {describe("end_session_endpoint", "javascript:alert(1)"), 302, 303, ""},
		"it knows HS256 alone":                     {describe("id_token_signing_alg_values_supported", []string{"HS256", "none"}), 302, 502, "malformed jwt"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := start(t)
			c.provider.misbehave(test.faults)
			b := c.browser()
			got := b.get("/login")
			if got.status != test.login {
				t.Fatalf("/login: got %d %s, want %d", got.status, got.body, test.login)
			}
			if test.callback != 0 {
				if got = b.get(b.back("/login")); got.status != test.callback {
					t.Errorf("/callback: got %d %s, want %d", got.status, got.body, test.callback)
				}
			}
			if log := c.log.String(); !strings.Contains(log, test.log) || strings.Contains(log+got.body, "secret") {
				t.Errorf("got %s, and the log has %s, want %s", got.body, log, test.log)
			}
			if out := b.do(http.MethodDelete, "/session", ""); out.status != http.StatusOK || strings.Contains(out.body, "script") {
				t.Errorf("signing out: got %d %s", out.status, out.body)
			}
			c.provider.misbehave(faults{})
			if test.login == http.StatusServiceUnavailable { // once it behaves again, without a restart
				c.as("ada")
			}
		})
	}
}

// TestAConsoleWhoseProviderIsAwayStarts holds that it serves, says so, and signs people in once the provider is there.
func TestAConsoleWhoseProviderIsAwayStarts(t *testing.T) {
	t.Parallel()
	c := start(t)
	hang := make(chan struct{})
	c.provider.misbehave(faults{before: func(_ http.ResponseWriter, r *http.Request) bool {
		select {
		case <-hang:
		case <-r.Context().Done():
		}
		return true
	}})
	c.Console.provider.client.Timeout = 100 * time.Millisecond
	go c.Discover(t.Context())
	eventually(t, "the log says that nobody can sign in", func() bool { return strings.Contains(c.log.String(), "nobody can sign in") })
	b := c.browser()
	if got := b.get("/"); got.status != http.StatusOK {
		t.Errorf("the page: got %d", got.status)
	}
	if got := b.get("/login"); got.status != http.StatusServiceUnavailable || !strings.Contains(got.body, `<a href="/login?return=%2F">`) {
		t.Errorf("signing in: got %d %s", got.status, got.body)
	}
	close(hang)
	c.provider.misbehave(faults{})
	c.Console.provider.client.Timeout = providerTimeout
	c.as("ada")
}

// TestSignInsOfABrowserDoNotPileUp opens many at once, as somebody's page could have a browser do.
func TestSignInsOfABrowserDoNotPileUp(t *testing.T) {
	t.Parallel()
	c := start(t)
	b := c.browser()
	first := b.back("/login?return=/first")
	second := b.back("/login?return=/second")
	for _, one := range []struct{ back, want string }{{second, "/second"}, {first, "/first"}} {
		if got := b.get(one.back); got.header.Get("Location") != one.want {
			t.Errorf("of two at a time: got %d %s, want %s", got.status, got.header.Get("Location"), one.want)
		}
	}
	for range 50 {
		b.get("/login")
	}
	here, err := url.Parse(c.url)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(b.Jar.Cookies(here)); n > maxFlows+2 {
		t.Errorf("the browser keeps %d cookies", n)
	}
	if got := b.get(b.back("/login?return=/last")); got.header.Get("Location") != "/last" {
		t.Errorf("the last: got %d %s", got.status, got.body)
	}
	for name, header := range map[string]string{"for a picture": "Sec-Fetch-Dest: image", "for a script's request": "Sec-Fetch-Mode: cors", "in a frame": "Sec-Fetch-Dest: iframe"} {
		if got := b.get("/login", header); got.status != http.StatusForbidden || len(got.header.Values("Set-Cookie")) > 0 {
			t.Errorf("%s: got %d %v", name, got.status, got.header)
		}
	}
}

// TestSigningInMakesANewSession holds that a session's id that somebody else knows is of no use (session fixation).
func TestSigningInMakesANewSession(t *testing.T) {
	t.Parallel()
	c := start(t)
	b := c.as("ada")
	here, err := url.Parse(c.url)
	if err != nil {
		t.Fatal(err)
	}
	cookie := func() string {
		cookies := b.Jar.Cookies(here)
		i := slices.IndexFunc(cookies, func(one *http.Cookie) bool { return one.Name == "weir-console" })
		return cookies[i].Value
	}
	before := cookie()
	c.provider.letIn(map[string]any{"sub": "bob"})
	if got := b.get(b.back("/login")); got.status != http.StatusSeeOther {
		t.Fatalf("got %d %s", got.status, got.body)
	}
	if cookie() == before {
		t.Error("the session has the id of the one before")
	}
	if got := b.get("/session"); !strings.Contains(got.body, `"bob"`) {
		t.Errorf("got %s", got.body)
	}
	if got := c.browser().get("/session", "Cookie: weir-console="+before); got.status != http.StatusUnauthorized {
		t.Errorf("the session before: got %d", got.status)
	}
	planted := c.browser().get("/session", "Cookie: weir-console=AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA")
	if planted.status != http.StatusUnauthorized {
		t.Errorf("an id that nobody has given out: got %d", planted.status)
	}
	two := c.browser().get("/session", "Cookie: weir-console="+cookie()+"; weir-console="+cookie())
	if two.status != http.StatusUnauthorized {
		t.Errorf("two cookies of the name: got %d", two.status)
	}
}

// TestCookiesOfHTTPSAreBoundToTheHost looks at what a browser is told where the console is served over https.
func TestCookiesOfHTTPSAreBoundToTheHost(t *testing.T) {
	t.Parallel()
	c := start(t, func(o *Options) { o.URL = &url.URL{Scheme: "https", Host: "console.example.com", Path: "/"} })
	c.provider.redirect = "https://console.example.com/callback"
	b := c.browser()
	b.Jar = nil // Go's would not send them by http
	login := b.get("/login")
	pair, _, _ := strings.Cut(login.header.Get("Set-Cookie"), ";")
	back, err := url.Parse(b.get(login.header.Get("Location")).header.Get("Location"))
	if err != nil {
		t.Fatal(err)
	}
	done := b.get(back.RequestURI(), "Cookie: "+pair)
	if done.status != http.StatusSeeOther {
		t.Fatalf("got %d %s", done.status, done.body)
	}
	for _, line := range append(login.header.Values("Set-Cookie"), done.header.Values("Set-Cookie")...) {
		if !strings.HasPrefix(line, "__Host-weir-console") || !strings.Contains(line, "; Path=/;") || !strings.Contains(line, "; HttpOnly; Secure; SameSite=") || strings.Contains(line, "Domain") {
			t.Errorf("got %s", line)
		}
	}
}

// TestTheClientShowsItselfAsTheProviderWantsIt signs in by each way that clients have, and with a secret that was replaced meanwhile.
func TestTheClientShowsItselfAsTheProviderWantsIt(t *testing.T) {
	t.Parallel()
	post := func(r *http.Request) bool {
		return r.Header.Get("Authorization") == "" && r.PostFormValue("client_id") == clientID && r.PostFormValue("client_secret") == clientSecret
	}
	public := func(r *http.Request) bool {
		_, secret := r.PostForm["client_secret"]
		return r.Header.Get("Authorization") == "" && r.PostFormValue("client_id") == clientID && !secret
	}
	parsed := func(check func(*http.Request) bool) func(*http.Request) bool {
		return func(r *http.Request) bool { return r.ParseForm() == nil && check(r) }
	}
	methods := func(list ...string) func(map[string]any) {
		return func(m map[string]any) { m["token_endpoint_auth_methods_supported"] = list }
	}
	for name, test := range map[string]struct {
		faults
		secret bool
	}{
		"in the header":                          {faults{describe: methods("client_secret_post", "client_secret_basic"), client: basic}, true},
		"in the header where nothing is said":    {faults{describe: func(m map[string]any) { delete(m, "token_endpoint_auth_methods_supported") }, client: basic}, true},
		"in the body":                            {faults{describe: methods("client_secret_post", "private_key_jwt"), client: parsed(post)}, true},
		"not at all, as a public client does it": {faults{describe: methods("none", "client_secret_basic"), client: parsed(public)}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := start(t, func(o *Options) {
				if !test.secret {
					o.Provider.ClientSecretFile = ""
				}
			})
			c.provider.misbehave(test.faults)
			c.as("ada")
			if !test.secret {
				return
			}
			file := c.Console.provider.ClientSecretFile
			for _, step := range []struct {
				secret string
				want   int
			}{{"another", http.StatusServiceUnavailable}, {clientSecret, http.StatusSeeOther}} {
				if err := os.WriteFile(file, []byte(step.secret), 0o600); err != nil {
					t.Fatal(err)
				}
				b := c.browser()
				if got := b.get(b.back("/login")); got.status != step.want {
					t.Errorf("with %s: got %d %s", step.secret, got.status, got.body)
				}
			}
			if log := c.log.String(); strings.Contains(log, "another") || strings.Contains(log, clientSecret) || !strings.Contains(log, "invalid_client") {
				t.Errorf("the log has %s", log)
			}
		})
	}
}

// TestWhoCannotBeAUserHereIsToldWhy signs in with claims that make nobody.
func TestWhoCannotBeAUserHereIsToldWhy(t *testing.T) {
	t.Parallel()
	c := start(t)
	for name, test := range map[string]struct {
		claims map[string]any
		want   error
	}{
		"a part of the control plane": {map[string]any{"sub": "system:admin"}, errSystem},
		"a cluster's administrator":   {map[string]any{"sub": "ada", "groups": []string{"staff", "system:masters"}}, errSystem},
		"groups that are a number":    {map[string]any{"sub": "ada", "groups": 7}, errGroups},
		"a name of two lines":         {map[string]any{"sub": "ada\nbob"}, errName},
	} {
		c.provider.letIn(test.claims)
		b := c.browser()
		got := b.get(b.back("/login"))
		if got.status != http.StatusForbidden || !strings.Contains(got.body, html.EscapeString(test.want.Error())) || strings.Contains(got.body+c.log.String(), "ada") {
			t.Errorf("%s: got %d %s", name, got.status, got.body)
		}
		if session := b.get("/session"); session.status != http.StatusUnauthorized {
			t.Errorf("%s: the session: got %d", name, session.status)
		}
	}
}
