package console

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/collector/auth"
)

// pod is a server in place of a Property's query pods. It lets in what the console signs for the Property, with a scope where one is
// named, and returns its address.
func (c *running) pod(t testing.TB, p *v1alpha1.Property, scope auth.Scope, handle http.HandlerFunc) string {
	t.Helper()
	verifier := auth.Verifier{Audience: string(p.UID), Keys: []auth.PublicKey{c.key.Public()}}
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		found, ok := verifier.Verify(token, c.clock.now())
		if !ok || scope != "" && found.Scope != scope {
			t.Errorf("the pod is shown %+v", found)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		handle(w, r)
	}))
	t.Cleanup(web.CloseClientConnections)
	t.Cleanup(web.Close)
	return strings.TrimPrefix(web.URL, "http://")
}

// podRequest is what a pod has been asked.
type podRequest struct {
	Method, Path, Query, Body string
	Header                    http.Header
}

// reader is a Property with somebody who is signed in and may do something with it.
func (c *running) reader(t testing.TB, rights ...string) (p *v1alpha1.Property, b *browser, base string) {
	t.Helper()
	namespace := newNamespace(t)
	p = newProperty(t, namespace, "shop")
	grant(t, "User", "ada-"+namespace, namespace, rights...)
	return p, c.as("ada-" + namespace), "/namespaces/" + namespace + "/properties/shop/"
}

// TestWhatIsAskedOfPodsIsWhatTheReadAPIHas goes through each call, and says what of a request reaches a pod.
func TestWhatIsAskedOfPodsIsWhatTheReadAPIHas(t *testing.T) {
	t.Parallel()
	c := start(t)
	p, b, base := c.reader(t, chief...)
	var last atomic.Pointer[podRequest]
	c.serve(p, c.pod(t, p, auth.ScopeAdmin, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		last.Store(&podRequest{Method: r.Method, Path: r.URL.EscapedPath(), Query: r.URL.RawQuery, Body: string(body), Header: r.Header})
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{}`))
	}))
	tests := map[string]struct {
		method, path, body string
		header             []string
		// status is the answer's; want is what the pod is asked, nil for nothing.
		status int
		want   *podRequest
	}{
		"a listing":                 {method: "GET", path: "api/events?period=7d&filter=a%26b&x=%2e%2e", status: 200, want: &podRequest{Method: "GET", Path: "/events", Query: "period=7d&filter=a%26b&x=%2e%2e"}},
		"a look without its body":   {method: "HEAD", path: "api/analytics/summary", status: 200, want: &podRequest{Method: "HEAD", Path: "/analytics/summary"}},
		"one event":                 {method: "GET", path: "api/events/1795512476434-0", status: 200, want: &podRequest{Method: "GET", Path: "/events/1795512476434-0"}},
		"a platform's test":         {method: "POST", path: "api/platforms/meta/test", body: `{"a":1}`, status: 200, want: &podRequest{Method: "POST", Path: "/platforms/meta/test", Body: `{"a":1}`}},
		"an erasure":                {method: "POST", path: "api/erasures", body: `{"b":2}`, status: 200, want: &podRequest{Method: "POST", Path: "/erasures", Body: `{"b":2}`}},
		"a replay":                  {method: "POST", path: "api/deliveries/replay", body: `{}`, status: 200, want: &podRequest{Method: "POST", Path: "/deliveries/replay", Body: `{}`}},
		"a slash in an id stays":    {method: "GET", path: "api/events/a%2Fb", status: 200, want: &podRequest{Method: "GET", Path: "/events/a%2Fb"}},
		"a question mark as well":   {method: "GET", path: "api/events/a%3Fb", status: 200, want: &podRequest{Method: "GET", Path: "/events/a%3Fb"}},
		"an escape is escaped":      {method: "GET", path: "api/events/%252e%252e", status: 200, want: &podRequest{Method: "GET", Path: "/events/%252e%252e"}},
		"a semicolon is a letter":   {method: "GET", path: "api/events/a;b=c", status: 200, want: &podRequest{Method: "GET", Path: "/events/a%3Bb=c"}},
		"dots that lead up":         {method: "GET", path: "api/events/%2e%2e", status: 404},
		"one dot":                   {method: "GET", path: "api/events/%2E", status: 404},
		"a newline":                 {method: "GET", path: "api/events/a%0d%0ab", status: 404},
		"dots that are not escaped": {method: "GET", path: "api/events/../settings", status: 404},
		"what no call is":           {method: "GET", path: "api/secrets", status: 404},
		"the API's root":            {method: "GET", path: "api/", status: 404},
		"above the Property":        {method: "GET", path: "api/..%2f..%2fother/events", status: 404},
		"another method":            {method: "PUT", path: "api/events", body: `{}`, status: 405},
		"deleting":                  {method: "DELETE", path: "api/events", status: 405},
		"a POST of a listing":       {method: "POST", path: "api/events", body: `{}`, status: 405},
		"a GET of an erasure's":     {method: "GET", path: "api/erasures", status: 405},
		"a body that is no JSON":    {method: "POST", path: "api/erasures", body: `a=b`, header: []string{"Content-Type: application/x-www-form-urlencoded"}, status: 415},
		"a body of a form's":        {method: "POST", path: "api/erasures", body: `{}`, header: []string{"Content-Type: text/plain"}, status: 415},
		"a body that is too long":   {method: "POST", path: "api/erasures", body: `"` + strings.Repeat("a", maxForwardedBytes) + `"`, status: 413},
		"a page of another site":    {method: "GET", path: "api/events", header: []string{"Sec-Fetch-Site: cross-site"}, status: 403},
		"a page of a sister host":   {method: "GET", path: "api/events", header: []string{"Sec-Fetch-Site: same-site"}, status: 403},
		"a form of another origin":  {method: "POST", path: "api/erasures", body: `{}`, header: []string{"Origin: https://evil.example"}, status: 403},
		"a body that is not needed": {method: "GET", path: "api/events", body: `{"a":1}`, status: 200, want: &podRequest{Method: "GET", Path: "/events"}},
	}
	for name, test := range tests {
		last.Store(nil)
		header := append([]string{"Authorization: Bearer mine", "Cookie: other=1", "X-Forwarded-For: 192.0.2.1", "X-Remote-User: admin", "Accept: text/csv",
			"If-None-Match: W/\"a\"", "Accept-Encoding: br, gzip", "Connection: X-Remote-User", "Te: trailers"}, test.header...)
		got := b.do(test.method, base+test.path, test.body, header...)
		asked := last.Load()
		if got.status != test.status || (asked != nil) != (test.want != nil) {
			t.Errorf("%s: got %d %s, want %d; the pod was asked %+v", name, got.status, got.body, test.status, asked)
			continue
		}
		if asked == nil {
			continue
		}
		if asked.Method != test.want.Method || asked.Path != "/api/v1/properties/shop"+test.want.Path || asked.Query != test.want.Query || asked.Body != test.want.Body {
			t.Errorf("%s: the pod was asked %+v, want %+v", name, asked, test.want)
		}
		for field := range asked.Header {
			if !slices.Contains([]string{"Accept", "Accept-Encoding", "Authorization", "Connection", "Content-Length", "Content-Type", "If-None-Match", "User-Agent"}, field) {
				t.Errorf("%s: the pod was sent %s: %v", name, field, asked.Header[field])
			}
		}
		if asked.Header.Get("Accept") != "text/csv" || asked.Header.Get("If-None-Match") != `W/"a"` || asked.Header.Get("Accept-Encoding") != "gzip" ||
			strings.Contains(asked.Header.Get("Authorization"), "mine") {
			t.Errorf("%s: the pod was sent %v", name, asked.Header)
		}
	}
}

// TestEveryCallOfTheReadAPIIsHandedOn compares the calls with those that collector/query describes for others.
func TestEveryCallOfTheReadAPIIsHandedOn(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../collector/query/openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	var description struct {
		Paths map[string]map[string]any `json:"paths"`
	}
	if err := json.Unmarshal(text, &description); err != nil {
		t.Fatal(err)
	}
	described, parameter := map[string]bool{}, regexp.MustCompile(`\{[a-z_]+\}`)
	for path, methods := range description.Paths {
		_, below, found := strings.Cut(path, "{property}")
		for method := range methods {
			if verb := strings.ToUpper(method); found && (verb == http.MethodGet || verb == http.MethodPost) {
				described[verb+" "+parameter.ReplaceAllString(below, "{}")] = true
			}
		}
	}
	handed := map[string]bool{}
	for _, one := range calls {
		handed[one.method+" "+parameter.ReplaceAllString(one.pattern, "{}")] = true
	}
	for one := range described {
		if !handed[one] {
			t.Errorf("%s is not handed on", one)
		}
	}
	for one := range handed {
		if !described[one] {
			t.Errorf("%s is handed on, and is none of the read API's", one)
		}
	}
}

// TestNothingOfAHostilePodReachesTheConsolesOrigin has whoever controls a Property's Service answer what it likes.
func TestNothingOfAHostilePodReachesTheConsolesOrigin(t *testing.T) {
	t.Parallel()
	json := func(more ...string) string {
		return "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n" + strings.Join(append(more, ""), "\r\n") + "Content-Length: 2\r\n\r\n{}"
	}
	typed := func(kind string) string { return "HTTP/1.1 200 OK\r\n" + kind + "Content-Length: 8\r\n\r\n<script>" }
	tests := map[string]struct {
		// raw is what the pod writes, before it hangs up.
		raw    string
		status int
		// want are headers of the answer, "" for none; body is "" where it does not matter.
		want map[string]string
		body string
	}{
		"a good answer": {json(`ETag: W/"a"`, "Retry-After: 7", "Weir-As-Of: 2026-11-24T12:00:00.000Z"), 200,
			map[string]string{"Etag": `W/"a"`, "Retry-After": "7", "Weir-As-Of": "2026-11-24T12:00:00.000Z", "Content-Type": "application/json", "Cache-Control": "no-store"}, "{}"},
		"the next page": {json(`Link: </api/v1/properties/shop/events?cursor=a%2Fb&limit=2>; rel="next"`), 200,
			map[string]string{"Link": `</namespaces/NAMESPACE/properties/shop/api/events?cursor=a%2Fb&limit=2>; rel="next"`}, "{}"},
		"a next page of another Property":   {json(`Link: </api/v1/properties/other/events?cursor=a>; rel="next"`), 200, map[string]string{"Link": ""}, "{}"},
		"a next page elsewhere":             {json(`Link: <https://evil.example/>; rel="next"`), 200, map[string]string{"Link": ""}, "{}"},
		"a style sheet in a header":         {json(`Link: </x.css>; rel="stylesheet"`), 200, map[string]string{"Link": ""}, "{}"},
		"HTML":                              {typed("Content-Type: text/html\r\n"), 502, map[string]string{"Content-Type": "application/json"}, ""},
		"a script":                          {typed("Content-Type: text/javascript\r\n"), 502, nil, ""},
		"a drawing":                         {typed("Content-Type: image/svg+xml\r\n"), 502, nil, ""},
		"XML":                               {typed("Content-Type: application/xhtml+xml\r\n"), 502, nil, ""},
		"no type":                           {typed(""), 502, nil, ""},
		"an empty type":                     {typed("Content-Type:\r\n"), 502, nil, ""},
		"two types":                         {typed("Content-Type: application/json\r\nContent-Type: text/html\r\n"), 502, nil, ""},
		"a type in a list":                  {typed("Content-Type: application/json, text/html\r\n"), 502, nil, ""},
		"a header of its own":               {json("X: y"), 200, map[string]string{"Content-Type": "application/json", "X": ""}, "{}"},
		"CSV in UTF-7":                      {typed("Content-Type: text/csv; charset=utf-7\r\n"), 200, map[string]string{"Content-Type": "text/csv; charset=utf-8", "X-Content-Type-Options": "nosniff"}, "<script>"},
		"a cookie":                          {json("Set-Cookie: __Host-weir-console=evil; Path=/", "Set-Cookie: weir-console=evil"), 200, map[string]string{"Set-Cookie": ""}, "{}"},
		"a policy of its own":               {json("Content-Security-Policy: script-src *", "Access-Control-Allow-Origin: *", "Clear-Site-Data: \"*\"", "Refresh: 0;url=//evil.example", "Service-Worker-Allowed: /"), 200, map[string]string{"Content-Security-Policy": "default-src 'none'", "Access-Control-Allow-Origin": "", "Clear-Site-Data": "", "Refresh": "", "Service-Worker-Allowed": ""}, "{}"},
		"that it is to be kept":             {json("Cache-Control: public, max-age=99999", "Age: 3", "Expires: Tue, 01 Jan 2099 00:00:00 GMT"), 200, map[string]string{"Cache-Control": "no-store", "Expires": "", "Age": ""}, "{}"},
		"a redirect":                        {"HTTP/1.1 302 Found\r\nLocation: https://evil.example/\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}", 502, map[string]string{"Location": ""}, ""},
		"a redirect inside":                 {"HTTP/1.1 307 Temporary Redirect\r\nLocation: /api/v1/properties/other/events\r\nContent-Length: 0\r\n\r\n", 502, map[string]string{"Location": ""}, ""},
		"other choices":                     {"HTTP/1.1 300 Multiple Choices\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}", 502, nil, ""},
		"that somebody is to sign in there": {"HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Basic realm=\"your password\"\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}", 503, map[string]string{"Www-Authenticate": "", "Retry-After": "5"}, ""},
		"an error of the API's":             {"HTTP/1.1 422 Unprocessable Entity\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}", 422, nil, "{}"},
		"an error that is a page":           {"HTTP/1.1 500 Oops\r\nContent-Type: text/html\r\nContent-Length: 8\r\n\r\n<script>", 502, nil, ""},
		"nothing changed":                   {"HTTP/1.1 304 Not Modified\r\nETag: W/\"a\"\r\nContent-Type: text/html\r\n\r\n", 304, map[string]string{"Etag": `W/"a"`, "Content-Type": ""}, ""},
		"a status of nobody's":              {"HTTP/1.1 999 Fine\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}", 502, nil, ""},
		"early hints":                       {"HTTP/1.1 103 Early Hints\r\nLink: </x.js>; rel=preload\r\n\r\n" + json(), 200, map[string]string{"Link": ""}, "{}"},
		"early hints without an end":        {strings.Repeat("HTTP/1.1 103 Early Hints\r\nLink: </"+strings.Repeat("x", 4000)+">; rel=preload\r\n\r\n", 100), 503, nil, ""},
		"another protocol":                  {"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n", 502, nil, ""},
		"a file":                            {json(`Content-Disposition: attachment; filename="shop-events.csv"`), 200, map[string]string{"Content-Disposition": `attachment; filename="shop-events.csv"`}, "{}"},
		"a file that is a program":          {json(`Content-Disposition: attachment; filename="a.html"`), 200, map[string]string{"Content-Disposition": ""}, "{}"},
		"a file with a path":                {json(`Content-Disposition: attachment; filename="../a.csv"`), 200, map[string]string{"Content-Disposition": ""}, "{}"},
		"a tag with a header in it":         {json("ETag: \"a\x0bb\""), 503, nil, ""},
		"another encoding":                  {json("Content-Encoding: br"), 502, nil, ""},
		"an encoding twice":                 {json("Content-Encoding: gzip", "Content-Encoding: gzip"), 502, nil, ""},
		"a header without an end":           {"HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 2*maxPodHeader), 503, nil, ""},
		"two lengths":                       {"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}", 503, nil, ""},
		"a length and pieces":               {"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n", 200, nil, "{}"},
		"pieces that are none":              {"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n{}", 0, nil, "<cut>"},
		"a body that ends too early":        {"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{}", 200, nil, "{}<cut>"},
		"a cookie in a trailer":             {"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTrailer: Set-Cookie\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\nSet-Cookie: weir-console=evil\r\n\r\n", 200, map[string]string{"Set-Cookie": "", "Trailer": ""}, "{}"},
		"nothing":                           {"", 503, nil, ""},
		"what is no HTTP":                   {"SSH-2.0-OpenSSH_9.9\r\n", 503, nil, ""},
		"an older protocol":                 {"HTTP/0.9 200 OK\r\nContent-Type: application/json\r\n\r\n{}", 200, nil, "{}"},
		"a header that is folded":           {"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nWeir-As-Of: a\r\n Set-Cookie: b=c\r\nContent-Length: 2\r\n\r\n{}", 200, map[string]string{"Weir-As-Of": "", "Set-Cookie": ""}, "{}"},
	}
	c := start(t)
	p, b, base := c.reader(t, editor...)
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer listener.Close()
			go func() {
				for {
					connection, err := listener.Accept()
					if err != nil {
						return
					}
					if _, err := http.ReadRequest(bufio.NewReader(connection)); err == nil {
						_, _ = connection.Write([]byte(test.raw))
					}
					_ = connection.Close()
				}
			}()
			c.serve(p, listener.Addr().String())
			got := b.get(base + "api/events")
			if got.status != test.status || test.body != "" && got.body != test.body {
				t.Errorf("got %d %q, want %d %q", got.status, got.body, test.status, test.body)
			}
			if test.status == 0 {
				return
			}
			for name, want := range test.want {
				if value := got.header.Get(name); want == "" && value != "" || !strings.HasPrefix(value, strings.ReplaceAll(want, "NAMESPACE", p.Namespace)) {
					t.Errorf("%s: got %q, want %q", name, value, want)
				}
			}
			if got.header.Get("X-Content-Type-Options") != "nosniff" || !strings.HasPrefix(got.header.Get("Content-Security-Policy"), "default-src 'none'") {
				t.Errorf("the headers are %v", got.header)
			}
			if strings.Contains(got.header.Get("Content-Type"), "html") || strings.Contains(c.log.String(), "evil") {
				t.Errorf("got %v, and the log has %s", got.header, c.log)
			}
		})
	}
}

// TestAnAnswerIsStreamedAndCutWithItsRight reads an export that does not end: what is there is there at once, and the rest is cut where
// the person has signed out, or has lost the right.
func TestAnAnswerIsStreamedAndCutWithItsRight(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*running, *v1alpha1.Property, *browser){
		"signing out":            func(c *running, _ *v1alpha1.Property, b *browser) { b.do(http.MethodDelete, "/session", "") },
		"the end of the session": func(c *running, _ *v1alpha1.Property, _ *browser) { c.clock.forward(2 * time.Hour) },
		"the loss of the right":  func(c *running, p *v1alpha1.Property, _ *browser) { revoke(t, p.Namespace) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := start(t)
			p, b, base := c.reader(t, editor...)
			more := make(chan struct{})
			gone := make(chan struct{})
			c.serve(p, c.pod(t, p, "", func(w http.ResponseWriter, r *http.Request) {
				defer close(gone)
				w.Header().Set("Content-Type", "application/x-ndjson")
				for range more {
					if _, err := fmt.Fprintln(w, "{}"); err != nil || http.NewResponseController(w).Flush() != nil || r.Context().Err() != nil {
						return
					}
				}
			}))
			request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, c.url+base+"api/events", http.NoBody)
			if err != nil {
				t.Fatal(err)
			}
			go func() { more <- struct{}{} }()
			answer, err := b.Do(request)
			if err != nil {
				t.Fatal(err)
			}
			defer answer.Body.Close()
			lines := bufio.NewReader(answer.Body)
			if line, err := lines.ReadString('\n'); line != "{}\n" || err != nil || answer.StatusCode != http.StatusOK {
				t.Fatalf("got %q, %v", line, err)
			}
			c.clock.forward(decisionAge)
			more <- struct{}{}
			if line, err := lines.ReadString('\n'); line != "{}\n" || err != nil {
				t.Fatalf("while the right holds: got %q, %v", line, err)
			}
			end(c, p, b)
			done := make(chan error, 1)
			go func() {
				_, err := io.Copy(io.Discard, lines)
				done <- err
			}()
			deadline := time.After(30 * time.Second)
			for cut := false; !cut; {
				c.clock.forward(decisionAge)
				select {
				case more <- struct{}{}:
				case err := <-done:
					if cut = true; err == nil {
						t.Error("the answer ends as if it were whole")
					}
				case <-gone:
					if err := <-done; err == nil {
						t.Error("the answer ends as if it were whole")
					}
					cut = true
				case <-deadline:
					t.Fatal("the answer goes on")
				}
			}
			close(more)
		})
	}
}

// TestTheKeyThatSignsIsOneThatPodsKnow holds that a new key is not used before all pods can have it, and a lost one not after.
func TestTheKeyThatSignsIsOneThatPodsKnow(t *testing.T) {
	t.Parallel()
	c := start(t)
	now := time.Now()
	old, recent := auth.NewSigningKey(now.Add(-time.Hour)), auth.NewSigningKey(now.Add(-time.Minute))
	older := auth.NewSigningKey(now.Add(-48 * time.Hour))
	for name, test := range map[string]struct {
		keys []auth.SigningKey
		want auth.SigningKey
	}{
		"the newest":                       {[]auth.SigningKey{old, older}, old},
		"not one of a minute ago":          {[]auth.SigningKey{recent, old}, old},
		"one of a minute ago where alone":  {[]auth.SigningKey{recent}, recent},
		"the older of two of a minute ago": {[]auth.SigningKey{auth.NewSigningKey(now), recent}, recent},
	} {
		s := &signer{file: c.keysFile, now: c.clock.now, logger: c.logger}
		c.writeKeys(test.keys...)
		token, err := s.sign(newUser("ada", nil), "uid", auth.ScopeRead)
		verifier := auth.Verifier{Audience: "uid", Keys: []auth.PublicKey{test.want.Public()}}
		if found, ok := verifier.Verify(token, c.clock.now()); err != nil || !ok || found.Name != "ada" {
			t.Errorf("%s: got %v, %v", name, found, err)
		}
	}
}

// TestAConsoleWithoutKeysSaysSo starts before the operator has made any, and goes on with those that it had.
func TestAConsoleWithoutKeysSaysSo(t *testing.T) {
	t.Parallel()
	c := start(t)
	p, b, base := c.reader(t, editor...)
	c.serve(p, c.pod(t, p, "", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{}`))
	}))
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(c.keysFile, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		c.clock.forward(keysInterval)
	}
	write(``)
	if err := c.Check(t.Context()); err == nil {
		t.Error("it is ready without keys")
	}
	if got := b.get(base + "api/events"); got.status != http.StatusServiceUnavailable || got.header.Get("Retry-After") == "" {
		t.Errorf("got %d %s", got.status, got.body)
	}
	if list := b.get("/api/properties"); list.status != http.StatusOK || !strings.Contains(list.body, errNotYet.Error()) {
		t.Errorf("the list: got %d %s", list.status, list.body)
	}
	c.writeKeys(c.key)
	c.clock.forward(keysInterval)
	if err := c.Check(t.Context()); err != nil {
		t.Error(err)
	}
	if got := b.get(base + "api/events"); got.status != http.StatusOK {
		t.Errorf("with keys: got %d %s", got.status, got.body)
	}
	write(`[{"kid":"a","seed":"c2VjcmV0"}]`)
	if got := b.get(base + "api/events"); got.status != http.StatusOK {
		t.Errorf("with nonsense in their place: got %d %s", got.status, got.body)
	}
	if strings.Contains(c.log.String(), "c2VjcmV0") {
		t.Errorf("the log has %s", c.log)
	}
}

// TestAPropertyThatComesAfterAnotherHasPodsOfItsOwn makes one anew under a name: what is signed is for the one that is there.
func TestAPropertyThatComesAfterAnotherHasPodsOfItsOwn(t *testing.T) {
	t.Parallel()
	c := start(t)
	p, b, base := c.reader(t, editor...)
	handle := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{}`))
	}
	c.serve(p, c.pod(t, p, "", handle))
	if got := b.get(base + "api/events"); got.status != http.StatusOK {
		t.Fatalf("got %d %s", got.status, got.body)
	}
	if err := cluster.admin.Delete(t.Context(), p.DeepCopy()); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the console knows that it is gone", func() bool { return b.get(base+"session").status == http.StatusNotFound })
	again := newProperty(t, p.Namespace, p.Name)
	eventually(t, "the console knows the new one", func() bool {
		known := &v1alpha1.Property{}
		return cluster.cached.Get(t.Context(), client.ObjectKeyFromObject(again), known) == nil && known.UID == again.UID
	})
	c.serve(again, c.pod(t, again, "", handle))
	if got := b.get(base + "api/events"); got.status != http.StatusOK {
		t.Errorf("the new one's pods: got %d %s", got.status, got.body)
	}
}

// TestAddressesThatAreNoPodsAreNotAsked holds that a Service cannot lead to the console's own pod, or to what a cloud tells a machine.
func TestAddressesThatAreNoPodsAreNotAsked(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]bool{
		"10.1.2.3:8080": true, "192.168.1.1:80": true, "[fd00::1]:80": true, "203.0.113.1:80": true,
		"127.0.0.1:8080": false, "[::1]:80": false, "169.254.169.254:80": false, "[fe80::1%eth0]:80": false, "0.0.0.0:80": false, "[::]:80": false,
		"224.0.0.1:80": false, "[::ffff:127.0.0.1]:80": false, "nonsense": false,
	} {
		if got := neverLocal(t.Context(), "tcp", address, nil) == nil; got != want {
			t.Errorf("%s: asked %v, want %v", address, got, want)
		}
	}
}

// TestPathsThatNameNoPropertyAreNotFound tries names that could lead elsewhere.
func TestPathsThatNameNoPropertyAreNotFound(t *testing.T) {
	t.Parallel()
	c := start(t)
	b := c.as("ada")
	for _, base := range []string{
		"/namespaces/../properties/shop/", "/namespaces/%2e%2e/properties/shop/", "/namespaces/a%2Fb/properties/shop/", "/namespaces/a;b/properties/shop/",
		"/namespaces/A/properties/shop/", "/namespaces/a.b/properties/shop/", "/namespaces/a/properties/%2e%2e/", "/namespaces/a/properties/shop%00/",
		"/namespaces/a/properties/shop%2F..%2Fother/", "/namespaces/a/properties/Shop/", "/namespaces/-a/properties/shop/", "/namespaces/a/properties/shop%0d%0a/",
		"/namespaces//properties/shop/", "/namespaces/" + strings.Repeat("a", 64) + "/properties/shop/", "/namespaces/a/properties/evil.example%23/",
	} {
		for _, path := range []string{"", "session", "api/events", "access"} {
			if got := b.get(base + path); got.status != http.StatusNotFound {
				t.Errorf("%s: got %d %s", base+path, got.status, got.body)
			}
		}
	}
	if got := b.get("/namespaces/a/properties/shop?b=c"); got.status != http.StatusFound || got.header.Get("Location") != "shop/?b=c" {
		t.Errorf("without the slash: got %d %v", got.status, got.header)
	}
	if got := b.get("/namespaces/a/properties/shop/"); got.status != http.StatusOK || !strings.HasPrefix(got.header.Get("Content-Type"), "text/html") || got.header.Get("Content-Security-Policy") == "" {
		t.Errorf("the page: got %d %v", got.status, got.header)
	}
	for _, path := range []string{"/static/app.js", "/namespaces/a/properties/shop/static/views/login.js", "/namespaces/a/properties/shop/static/views/events/list.js"} {
		if got := c.browser().get(path); got.status != http.StatusOK || !strings.HasPrefix(got.header.Get("Content-Type"), "text/javascript") {
			t.Errorf("%s: got %d %v", path, got.status, got.header)
		}
	}
	for _, path := range []string{"/static/..%2fdashboard.go", "/static/../dashboard.go", "/static/console.html", "/other", "/healthz"} {
		if got := b.get(path); got.status != http.StatusNotFound || got.header.Get("Content-Security-Policy") == "" {
			t.Errorf("%s: got %d %v", path, got.status, got.header)
		}
	}
	if got := b.do(http.MethodPost, "/login", "{}"); got.status != http.StatusMethodNotAllowed || got.header.Get("Allow") == "" {
		t.Errorf("POST /login: got %d %v", got.status, got.header)
	}
}

// TestAPodThatIsSlowIsCut has one hang before its answer, and in the middle of it; what is slow and goes on is let through.
func TestAPodThatIsSlowIsCut(t *testing.T) {
	t.Parallel()
	c := start(t)
	p, b, base := c.reader(t, editor...)
	c.Console.pods.stall, c.Console.pods.transport.ResponseHeaderTimeout = 500*time.Millisecond, 500*time.Millisecond
	wait := func(r *http.Request, d time.Duration) {
		select {
		case <-r.Context().Done():
		case <-time.After(d):
		}
	}
	for name, test := range map[string]struct {
		parts  int
		pause  time.Duration
		status int
		want   string
	}{
		"nothing at all":                  {0, time.Hour, http.StatusServiceUnavailable, `{"message":"The Property's query pods do not answer."}`},
		"a part, and then nothing":        {1, time.Hour, http.StatusOK, "{}<cut>"},
		"a part now and then, to the end": {8, 100 * time.Millisecond, http.StatusOK, strings.Repeat("{}", 8)},
	} {
		c.serve(p, c.pod(t, p, "", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/x-ndjson")
			for range test.parts {
				_, _ = io.WriteString(w, "{}")
				_ = http.NewResponseController(w).Flush()
				wait(r, test.pause)
			}
			if test.parts < 2 {
				wait(r, test.pause)
			}
		}))
		if got := b.get(base + "api/events"); got.status != test.status || got.body != test.want {
			t.Errorf("%s: got %d %q, want %d %q", name, got.status, got.body, test.status, test.want)
		}
	}
}
