package ingest_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-dev/weir/collector/auth"
	"github.com/weir-dev/weir/collector/config"
	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/ingest"
	"github.com/weir-dev/weir/collector/server"
	"github.com/weir-dev/weir/collector/stream"
)

const (
	// webKey is the publishable key of every test's property, shopPage the origin that may use it.
	webKey   = "wp_0123456789ABCDEFGHIJKLMNOPQxxxxxx"
	shopPage = "https://www.shop.example"
	// A visitor's address and browser, and the proxy that stands before the collector.
	visitorAddress = "8.8.4.4"
	visitorBrowser = "Mozilla/5.0 (X11; Linux x86_64) Firefox/140.0"
	proxyAddress   = "10.1.2.3"
)

// webCredentials are a secret key and a publishable one.
func webCredentials() []auth.Credential {
	return append(keysOf(shopKey), auth.Credential{Name: "web", Hash: auth.HashOf(webKey), Publishable: &auth.Publishable{
		AllowedOrigins: []string{shopPage, "https://*.shop.example"}, EventsPerSecond: 1000, EventsPerSecondPerAddress: 10,
	}})
}

// generous is a limiter that allows everything and notes the rates that it was asked for.
type generous struct{ asked []stream.Rate }

func (g *generous) Allow(_ context.Context, rate stream.Rate, _ int) (stream.Allowance, error) {
	g.asked = append(g.asked, rate)
	return stream.Allowance{OK: true, Limit: rate.EventsPerSecond, Remaining: rate.EventsPerSecond}, nil
}

// page is a collector as a shop's pages reach it: by a trusted proxy.
type page struct {
	handler http.Handler
	tenant  ingest.Tenant
	kept    *memory
	refused *refusals
	limiter *generous
	// peer is whom the requests come from.
	peer string
}

func newPage(options ingest.Options) *page {
	p := &page{refused: new(refusals), limiter: new(generous), peer: proxyAddress}
	p.tenant, p.kept = inMemory()
	p.tenant.Keys, p.tenant.Rejections, p.tenant.Limiter = webCredentials(), p.refused, p.limiter
	p.tenant.Property.Proxies = config.Proxies{TrustedCIDRs: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}}
	p.tenant.Property.EventAliases["order_done"] = "purchase"
	options.Registerer = prometheus.NewRegistry()
	if options.Now == nil {
		options.Now = func() time.Time { return noon }
	}
	var ids counter
	options.NewID = ids.next
	handler := ingest.New(options)
	handler.Serve([]ingest.Tenant{p.tenant})
	router := server.NewRouter(server.NewObserver(slog.New(slog.DiscardHandler), options.Registerer))
	handler.Routes(router)
	p.handler = router
	return p
}

// send sends a body with a publishable key, as a browser does that is at the shop; header changes what it sends.
func (p *page) send(method, path, body string, header map[string]string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	r.RemoteAddr = net.JoinHostPort(p.peer, "4711")
	r.Header.Set("Content-Type", "text/plain;charset=UTF-8")
	r.Header.Set("Origin", shopPage)
	r.Header.Set("User-Agent", visitorBrowser)
	r.Header.Set("X-Forwarded-For", visitorAddress)
	for name, value := range header {
		r.Header.Del(name)
		if value != "" {
			r.Header.Set(name, value)
		}
	}
	w := httptest.NewRecorder()
	p.handler.ServeHTTP(w, r)
	return w
}

const (
	notAllowedOrigin = `{"message":"The page's origin is not among the API key's allowed origins."}`
	noPurchase       = `{"message":"The event field must be another than purchase: with a publishable API key anybody could send it. Send it from a server.",` +
		`"errors":{"event":["The event field must be another than purchase: with a publishable API key anybody could send it. Send it from a server."]}}`
)

func TestAPublishableKeyMayAppendAndNothingElse(t *testing.T) {
	for name, c := range map[string]struct {
		suffix, body string
		header       map[string]string
		status       int
		want         string
	}{
		"a pageview, without a preflight":   {"", `{"event": "pageview", "event_id": "e-1"}`, nil, 202, accepted("e-1")},
		"as JSON":                           {"", `{"event": "pageview", "event_id": "e-1"}`, map[string]string{"Content-Type": "application/json"}, 202, accepted("e-1")},
		"from a host below the shop's":      {"", `{"event": "pageview", "event_id": "e-1"}`, map[string]string{"Origin": "https://de.shop.example"}, 202, accepted("e-1")},
		"from an app, which has no origin":  {"", `{"event": "pageview", "event_id": "e-1"}`, map[string]string{"Origin": ""}, 202, accepted("e-1")},
		"a batch":                           {"/batch", `{"events": [{"event": "lead", "event_id": "e-1"}]}`, nil, 202, `{"ok":true,"accepted":1,"duplicates":0,"rejected":0,"results":[` + accepted("e-1") + `]}`},
		"no purchase":                       {"", purchase, nil, 422, noPurchase},
		"no purchase by an alias":           {"", strings.Replace(purchase, "purchase", "order_done", 1), nil, 422, noPurchase},
		"no refund":                         {"", strings.Replace(purchase, "purchase", "refund", 1), nil, 422, strings.ReplaceAll(noPurchase, "than purchase", "than refund")},
		"no purchase, with blanks around":   {"", strings.Replace(purchase, "purchase", `\u200bpurchase\u3000`, 1), nil, 422, noPurchase},
		"a lookalike, which is no purchase": {"", `{"event": "Purchase", "event_id": "e-1"}`, nil, 202, accepted("e-1")},
		"no purchase in a batch":            {"/batch", `{"events": [` + purchase + `]}`, nil, 202, `{"ok":true,"accepted":0,"duplicates":0,"rejected":1,"results":[{"ok":false,` + noPurchase[1:] + `]}`},
		"not from another's page":           {"", `{"event": "pageview"}`, map[string]string{"Origin": "https://shop.evil.example"}, 403, notAllowedOrigin},
		"not from a page without an origin": {"", `{"event": "pageview"}`, map[string]string{"Origin": "null"}, 403, notAllowedOrigin},
		"not from a page over HTTP":         {"", `{"event": "pageview"}`, map[string]string{"Origin": "http://www.shop.example"}, 403, notAllowedOrigin},
		"not in another form":               {"", `event=pageview`, map[string]string{"Content-Type": "application/x-www-form-urlencoded"}, 415, `{"message":"The Content-Type must be application/json or text/plain in UTF-8."}`},
		"no text that is no JSON":           {"", `pageview`, nil, 400, `{"message":"The request body must be valid JSON (at byte 0)."}`},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPage(ingest.Options{})
			got := p.send(http.MethodPost, "/collect/"+webKey+c.suffix, c.body, c.header)
			if got.Code != c.status || got.Body.String() != c.want {
				t.Errorf("got %d %s, want %d %s", got.Code, got.Body, c.status, c.want)
			}
			origin := shopPage
			if other, changed := c.header["Origin"]; changed {
				origin = other
			}
			if c.status == http.StatusForbidden {
				origin = ""
			}
			if shared := got.Header().Get("Access-Control-Allow-Origin"); shared != origin || got.Header().Get("Vary") != "Origin" {
				t.Errorf("the answer may be read by %q, Vary %q; want %q, Origin", shared, got.Header().Get("Vary"), origin)
			}
			if got.Header().Get("Access-Control-Allow-Credentials") != "" {
				t.Error("the answer may be read by pages that send cookies")
			}
			refused := strings.Contains(c.want, "message")
			if refused != (len(p.refused.list) == 1) || len(p.kept.additions) != 1 != refused {
				t.Fatalf("%d rejections and %d events, want one of them", len(p.refused.list), len(p.kept.additions))
			}
			if refused && (p.refused.list[0].APIKey != "web" || p.refused.list[0].Endpoint == "") {
				t.Errorf("the rejection came by %q with the key %q", p.refused.list[0].Endpoint, p.refused.list[0].APIKey)
			}
		})
	}
}

func TestAPageAsksBeforehandWhetherItMaySend(t *testing.T) {
	for name, c := range map[string]struct {
		path, origin, method string
		status               int
		body                 string
	}{
		"an allowed page may":               {"/collect/" + webKey, shopPage, "POST", 204, ""},
		"a batch likewise":                  {"/collect/" + webKey + "/batch", "https://de.shop.example", "POST", 204, ""},
		"another's page may not":            {"/collect/" + webKey, "https://evil.example", "POST", 403, notAllowedOrigin},
		"no page may use a secret key":      {"/collect/" + shopKey, shopPage, "POST", 403, `{"message":"The API key is secret, and no page may use it: take a publishable one."}`},
		"a wrong key is refused as ever":    {"/collect/wp_other", shopPage, "POST", 401, invalidKey},
		"what is no preflight has no route": {"/collect/" + webKey, "", "", 405, notAllowed},
	} {
		t.Run(name, func(t *testing.T) {
			got := newPage(ingest.Options{}).send(http.MethodOptions, c.path, "", map[string]string{"Origin": c.origin, "Access-Control-Request-Method": c.method})
			if got.Code != c.status || got.Body.String() != c.body {
				t.Errorf("got %d %s, want %d %s", got.Code, got.Body, c.status, c.body)
			}
			want := map[string]string{}
			if c.status == http.StatusNoContent {
				want = map[string]string{
					"Access-Control-Allow-Origin": c.origin, "Access-Control-Allow-Methods": "POST",
					"Access-Control-Allow-Headers": "Content-Type, Content-Encoding", "Access-Control-Max-Age": "7200", "Vary": "Origin",
					"Access-Control-Expose-Headers": "Retry-After, X-RateLimit-Limit, X-RateLimit-Remaining",
				}
			}
			for _, name := range []string{"Access-Control-Allow-Origin", "Access-Control-Allow-Methods", "Access-Control-Allow-Headers", "Access-Control-Max-Age", "Access-Control-Expose-Headers"} {
				if value := got.Header().Get(name); value != want[name] {
					t.Errorf("%s is %q, want %q", name, value, want[name])
				}
			}
		})
	}
}

func TestASecretKeyIsForNoPage(t *testing.T) {
	const event = `{"event": "lead", "messageId": "m"`
	for name, c := range map[string]struct {
		path, contentType, body string
		header                  map[string]string
		// sent is what a server is answered that sends the same.
		sent   int
		answer string
	}{
		"an event":                               {"/collect/" + shopKey, "application/json", `{"event": "lead"}`, nil, 202, secretKey},
		"a batch":                                {"/collect/" + shopKey + "/batch", "application/json", `{"events": [{"event": "lead"}]}`, nil, 202, secretKey},
		"a text, of which a browser never asks":  {"/collect/" + shopKey, "text/plain", `{"event": "lead"}`, nil, 415, secretKey},
		"Segment's call, the key in the body":    {"/v1/track", "text/plain", event + `, "writeKey": "` + shopKey + `"}`, nil, 200, segmentSecretKey},
		"Segment's call, the key in the header":  {"/v1/track", "text/plain", event + `}`, writeKey(shopKey), 200, segmentSecretKey},
		"Segment's batch, with keys in the body": {"/v1/b", "text/plain", `{"batch": [` + event + `, "type": "track"}], "writeKey": "` + shopKey + `"}`, nil, 200, segmentSecretKey},
	} {
		t.Run(name, func(t *testing.T) {
			for _, origin := range []string{"", "https://evil.example", shopPage, "null"} {
				tenant, kept := inMemory()
				refused := new(refusals)
				tenant.Rejections = refused
				header := map[string]string{}
				maps.Copy(header, c.header)
				if origin != "" {
					header["Origin"] = origin
				}
				got := newSite(t, tenant).send(t, request{path: c.path, contentType: c.contentType, header: header, body: []byte(c.body)})
				if shared := got.header.Get("Access-Control-Allow-Origin"); shared != "" {
					t.Errorf("%s may read the answer", shared)
				}
				switch {
				case origin == "":
					if got.status != c.sent {
						t.Errorf("a server got %d %s, want %d", got.status, got.body, c.sent)
					}
				case got.status != http.StatusForbidden || got.body != c.answer || len(kept.stored(t)) > 0 || len(refused.list) != 1:
					t.Errorf("a page of %s got %d %s, with %d events and %d rejections; want 403 %s, and one rejection", origin,
						got.status, got.body, len(kept.stored(t)), len(refused.list), c.answer)
				}
			}
		})
	}
}

// What a page is answered that has a secret key.
const (
	secretKey        = `{"message":"The API key is secret, and no page may use it: take a publishable one."}`
	segmentSecretKey = `{"success":false,"code":"forbidden","message":"The API key is secret, and no page may use it: take a publishable one."}`
)

// TestAPageTellsNeitherItsAddressNorItsBrowser holds that both are the connection's, through trusted proxies alone.
func TestAPageTellsNeitherItsAddressNorItsBrowser(t *testing.T) {
	type seen struct{ IP, UserAgent string }
	for name, c := range map[string]struct {
		peer   string
		header map[string]string
		want   seen
	}{
		"a trusted proxy is believed":                       {proxyAddress, nil, seen{visitorAddress, visitorBrowser}},
		"what a visitor adds before it is not":              {proxyAddress, map[string]string{"X-Forwarded-For": "1.1.1.1, " + visitorAddress}, seen{visitorAddress, visitorBrowser}},
		"a peer that is no proxy is not believed":           {"9.9.9.9", map[string]string{"X-Forwarded-For": "1.1.1.1"}, seen{"9.9.9.9", visitorBrowser}},
		"an IPv6 visitor":                                   {proxyAddress, map[string]string{"X-Forwarded-For": "2a00:1450::7"}, seen{"2a00:1450::7", visitorBrowser}},
		"a proxy that nobody trusts is no visitor":          {"172.16.0.9", map[string]string{"X-Forwarded-For": visitorAddress}, seen{"", visitorBrowser}},
		"an address that is not public is no visitor's":     {proxyAddress, map[string]string{"X-Forwarded-For": "192.168.0.7"}, seen{"", visitorBrowser}},
		"a browser that says nothing":                       {proxyAddress, map[string]string{"User-Agent": ""}, seen{visitorAddress, ""}},
		"a browser that says what is none":                  {proxyAddress, map[string]string{"User-Agent": "undefined"}, seen{visitorAddress, ""}},
		"a browser that says too much":                      {proxyAddress, map[string]string{"User-Agent": strings.Repeat("x", 1025)}, seen{visitorAddress, ""}},
		"a browser that says what is no text":               {proxyAddress, map[string]string{"User-Agent": "a\xffb"}, seen{visitorAddress, "ab"}},
		"a browser that says the visitor's own e-mail":      {proxyAddress, map[string]string{"User-Agent": "jane@example.com"}, seen{visitorAddress, ""}},
		"other headers of proxies that anybody could write": {"9.9.9.9", map[string]string{"X-Real-IP": "1.1.1.1", "Forwarded": "for=1.1.1.1", "True-Client-IP": "1.1.1.1"}, seen{"9.9.9.9", visitorBrowser}},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPage(ingest.Options{})
			p.peer = c.peer
			const said = `{"event": "pageview", "user": {"email": "jane@example.com"}, "context": {"ip": "1.2.3.4", "user_agent": "curl", "page_url": "https://www.shop.example/?utm_source=x"}}`
			for suffix, body := range map[string]string{"": said, "/batch": `{"events": [` + said + `]}`} {
				if got := p.send(http.MethodPost, "/collect/"+webKey+suffix, body, c.header); got.Code != http.StatusAccepted {
					t.Fatalf("got %d %s, want 202", got.Code, got.Body)
				}
			}
			for _, e := range p.kept.stored(t) {
				if diff := cmp.Diff(c.want, seen{e.Context.IP, e.Context.UserAgent}); diff != "" {
					t.Error(diff)
				}
				if e.Context.UTMSource != "x" {
					t.Errorf("the page's own context is lost: %+v", e.Context)
				}
			}
		})
	}
}

func TestAServersEventTellsWhoTheVisitorIs(t *testing.T) {
	p := newPage(ingest.Options{})
	body := `{"event": "pageview", "context": {"ip": "1.2.3.4", "user_agent": "Safari"}}`
	if got := p.send(http.MethodPost, "/collect/"+shopKey, body, map[string]string{"Content-Type": "application/json", "Origin": ""}); got.Code != http.StatusAccepted {
		t.Fatalf("got %d %s, want 202", got.Code, got.Body)
	}
	if e := p.kept.stored(t)[0]; e.Context.IP != "1.2.3.4" || e.Context.UserAgent != "Safari" {
		t.Errorf("got %+v, want what the server says", e.Context)
	}
}

func TestIdsOfPagesAreToldApartFromThoseOfServers(t *testing.T) {
	p := newPage(ingest.Options{})
	p.send(http.MethodPost, "/collect/"+webKey, `{"event": "lead", "event_id": "a"}`, nil)
	p.send(http.MethodPost, "/collect/"+shopKey, `{"event": "lead", "event_id": "b"}`, map[string]string{"Content-Type": "application/json", "Origin": ""})
	got := map[string]bool{}
	for _, addition := range p.kept.additions {
		got[addition.EventID] = addition.Public
	}
	if diff := cmp.Diff(map[string]bool{"a": true, "b": false}, got); diff != "" {
		t.Errorf("which ids are public (-want +got):\n%s", diff)
	}
}

func TestAPublishableKeyHasARateOfItsOwn(t *testing.T) {
	p := newPage(ingest.Options{})
	p.send(http.MethodPost, "/collect/"+webKey, `{"event": "lead"}`, nil)
	p.send(http.MethodPost, "/collect/"+shopKey, `{"event": "lead"}`, map[string]string{"Content-Type": "application/json", "Origin": ""})
	if diff := cmp.Diff([]stream.Rate{{Key: 2, EventsPerSecond: 1000}}, p.limiter.asked); diff != "" {
		t.Errorf("rates (-want +got):\n%s", diff)
	}
}

func TestAnAddressHasARateWhateverItSends(t *testing.T) {
	const burst = 100 // ten seconds' events
	for name, c := range map[string]struct {
		body   string
		suffix string
		header map[string]string
		times  int
	}{
		"events":                      {`{"event": "lead"}`, "", nil, burst},
		"batches":                     {`{"events": [{"event": "lead"}, {"event": "lead"}, {"event": "lead"}, {"event": "lead"}]}`, "/batch", nil, burst / 4},
		"what is invalid":             {`{}`, "", nil, burst},
		"what is no JSON":             {`{`, "", nil, burst},
		"what has another type":       {``, "", map[string]string{"Content-Type": "text/html"}, burst},
		"what comes from one IPv6/64": {`{"event": "lead"}`, "", map[string]string{"X-Forwarded-For": "2a00:1450::7"}, burst},
	} {
		t.Run(name, func(t *testing.T) {
			now := noon
			p := newPage(ingest.Options{Now: func() time.Time { return now }})
			for i := range c.times {
				if got := p.send(http.MethodPost, "/collect/"+webKey+c.suffix, c.body, c.header); got.Code == http.StatusTooManyRequests {
					t.Fatalf("request %d: got %d %s", i+1, got.Code, got.Body)
				}
			}
			got := p.send(http.MethodPost, "/collect/"+webKey+c.suffix, c.body, c.header)
			if got.Code != http.StatusTooManyRequests || got.Header().Get("Retry-After") != "1" || got.Header().Get("Access-Control-Allow-Origin") != shopPage {
				t.Errorf("got %d, Retry-After %q, for %q to read; want 429, 1, the shop", got.Code, got.Header().Get("Retry-After"), got.Header().Get("Access-Control-Allow-Origin"))
			}
			for from, header := range map[string]map[string]string{
				"another address": {"X-Forwarded-For": "1.1.1.1"},
				"an address that is not public, which is no visitor's": {"X-Forwarded-For": "192.168.0.1"},
			} {
				if got := p.send(http.MethodPost, "/collect/"+webKey, `{"event": "lead"}`, header); got.Code != http.StatusAccepted {
					t.Errorf("%s: got %d, want 202", from, got.Code)
				}
			}
			now = now.Add(400 * time.Millisecond)
			if got := p.send(http.MethodPost, "/collect/"+webKey+c.suffix, c.body, c.header); got.Code == http.StatusTooManyRequests {
				t.Error("the address is still refused when its time is over")
			}
		})
	}
}

// TestAFloodFromPagesLeavesServersRoom holds that requests of pages, with bodies that never end, take no more than half
// of the memory.
func TestAFloodFromPagesLeavesServersRoom(t *testing.T) {
	const room = 8
	p := newPage(ingest.Options{MaxInFlightBytes: room * (32<<10 + 4*64<<10)})
	s := httptest.NewServer(p.handler)
	t.Cleanup(s.Close)
	browsers := &http.Client{Transport: &http.Transport{ExpectContinueTimeout: time.Minute}}
	t.Cleanup(browsers.CloseIdleConnections)
	var slow []*io.PipeWriter
	start := func() int {
		reader, writer := io.Pipe()
		slow = append(slow, writer)
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL+"/collect/"+webKey, reader)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "text/plain")
		r.Header.Set("Expect", "100-continue")
		answered := make(chan int, 1)
		go func() {
			answer, err := browsers.Do(r)
			if err != nil {
				answered <- 0
				return
			}
			answer.Body.Close()
			answered <- answer.StatusCode
		}()
		written := make(chan struct{})
		go func() {
			if _, err := writer.Write([]byte(`{`)); err == nil {
				close(written)
			}
		}()
		select {
		case <-written: // the collector has asked for the body: it holds memory for it
			return 0
		case status := <-answered:
			return status
		}
	}
	for i := range room / 2 {
		if status := start(); status != 0 {
			t.Fatalf("slow request %d was answered %d", i+1, status)
		}
	}
	if status := start(); status != http.StatusServiceUnavailable {
		t.Errorf("one more of a page: got %d, want 503", status)
	}
	if got := (&site{Server: s}).send(t, request{body: []byte(`{"event": "lead"}`)}); got.status != http.StatusAccepted {
		t.Errorf("a server's: got %d %s, want 202", got.status, got.body)
	}
	for _, writer := range slow {
		_ = writer.CloseWithError(fmt.Errorf("the visitor has gone"))
	}
}

// TestAPublishableKeyProvesNothing holds that a connection by which a publishable key has come makes room for others, and
// one by which a secret key has come does not.
func TestAPublishableKeyProvesNothing(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- server.Run(ctx, server.Options{
			Listener: listener, Handler: newPage(ingest.Options{}).handler, Logger: slog.New(slog.DiscardHandler), MaxConnections: 2, MaxUnauthenticated: 2,
		})
	}()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	const event = `{"event": "lead"}`
	ask := func(conn net.Conn, key string) error {
		if _, err := fmt.Fprintf(conn, "POST /collect/%s HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", key, len(event), event); err != nil {
			return err
		}
		answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			return err
		}
		defer answer.Body.Close()
		if answer.StatusCode != http.StatusAccepted {
			return fmt.Errorf("answered %s", answer.Status)
		}
		return nil
	}
	connect := func(key string) net.Conn {
		conn, err := net.Dial("tcp", listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		if err := ask(conn, key); err != nil {
			t.Fatal(err)
		}
		return conn
	}
	servers, visitors := connect(shopKey), connect(webKey)
	connect(webKey)
	if err := ask(servers, shopKey); err != nil {
		t.Errorf("the server's connection, which is the oldest: %v, want it to be open", err)
	}
	if err := ask(visitors, webKey); err == nil {
		t.Error("the visitor's connection is open, want it to have made room")
	}
}

// maxSnippet is the most that a page is to load, uncompressed.
const maxSnippet = 3 << 10

func TestAPageLoadsTheSnippetByItsKey(t *testing.T) {
	p := newPage(ingest.Options{})
	path := "/collect/" + webKey + "/weir.js"
	plain := p.send(http.MethodGet, path, "", map[string]string{"Origin": ""})
	if plain.Code != http.StatusOK || plain.Body.Len() > maxSnippet || plain.Body.Len() < 1000 {
		t.Fatalf("got %d with %d bytes, want 200 with at most %d", plain.Code, plain.Body.Len(), maxSnippet)
	}
	for name, want := range map[string]string{
		"Content-Type": "text/javascript; charset=utf-8", "Cache-Control": "public, max-age=86400, stale-while-revalidate=604800",
		"X-Content-Type-Options": "nosniff", "Access-Control-Allow-Origin": "*", "Cross-Origin-Resource-Policy": "cross-origin", "Vary": "Accept-Encoding",
	} {
		if got := plain.Header().Get(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	squeezed := p.send(http.MethodGet, path, "", map[string]string{"Accept-Encoding": "gzip, br"})
	unzipped, err := gzip.NewReader(squeezed.Body)
	if err != nil {
		t.Fatalf("%d, %s: %v", squeezed.Code, squeezed.Header().Get("Content-Encoding"), err)
	}
	if text, err := io.ReadAll(unzipped); err != nil || !bytes.Equal(text, plain.Body.Bytes()) {
		t.Errorf("compressed it is something else (%v)", err)
	}
	tag := plain.Header().Get("ETag")
	if tag == "" || squeezed.Header().Get("ETag") != tag {
		t.Errorf("the tags are %q and %q, want the same", tag, squeezed.Header().Get("ETag"))
	}
	for name, c := range map[string]struct {
		method, path string
		header       map[string]string
		status       int
		body         string
	}{
		"a browser that has it already":  {http.MethodGet, path, map[string]string{"If-None-Match": tag}, 304, ""},
		"a browser that has another one": {http.MethodGet, path, map[string]string{"If-None-Match": `W/"other"`}, 200, plain.Body.String()},
		"its header alone":               {http.MethodHead, path, nil, 200, ""},
		"a wrong key":                    {http.MethodGet, "/collect/wp_other/weir.js", nil, 401, invalidKey},
		"a secret key":                   {http.MethodGet, "/collect/" + shopKey + "/weir.js", nil, 403, `{"message":"The API key is secret, and no page may use it: take a publishable one."}`},
		"another method":                 {http.MethodPost, path, nil, 405, notAllowed},
	} {
		if got := p.send(c.method, c.path, "", c.header); got.Code != c.status || got.Body.String() != c.body {
			t.Errorf("%s: got %d %.80s, want %d %.80s", name, got.Code, got.Body, c.status, c.body)
		}
	}
}

// TestWhatAVisitorsBrowserSaysWrongIsNoErrorOfTheEvent holds that nothing is lost for what nobody can put right: long
// addresses, odd languages, what the visitor has typed.
func TestWhatAVisitorsBrowserSaysWrongIsNoErrorOfTheEvent(t *testing.T) {
	for name, c := range map[string]struct {
		members string
		header  map[string]string
		want    event.Context
	}{
		"an address that is too long":        {`"context": {"page_url": "https://www.shop.example/?` + strings.Repeat("x", 3000) + `", "page_title": "a"}`, nil, event.Context{PageTitle: "a"}},
		"a title that is too long":           {`"context": {"page_url": "https://www.shop.example/", "page_title": "` + strings.Repeat("x", 400) + `"}`, nil, event.Context{PageURL: "https://www.shop.example/"}},
		"a campaign that is too long":        {`"context": {"utm_source": "` + strings.Repeat("x", 300) + `", "utm_medium": "cpc"}`, nil, event.Context{UTMMedium: "cpc"}},
		"a click id that is none":            {`"context": {"click_ids": {"gclid": {"a": 1}, "fbp": "fb.1.1.1"}}`, nil, event.Context{ClickIDs: map[string]string{"fbp": "fb.1.1.1"}}},
		"half a language":                    {`"context": {"language": "en-US@posix"}`, nil, event.Context{Language: "en"}},
		"an e-mail address that is none":     {`"user": {"email": "jane@"}`, nil, event.Context{}},
		"a context that is none":             {`"context": {"ip": 7}`, nil, event.Context{}},
		"the language that the browser says": {`"data": {}`, map[string]string{"Accept-Language": "de-CH,de;q=0.9,en;q=0.8"}, event.Context{Language: "de-CH"}},
		"the language that the page says":    {`"context": {"language": "fr"}`, map[string]string{"Accept-Language": "de"}, event.Context{Language: "fr"}},
		"languages that are none":            {`"data": {}`, map[string]string{"Accept-Language": "*"}, event.Context{}},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPage(ingest.Options{})
			got := p.send(http.MethodPost, "/collect/"+webKey, `{"event": "lead", `+c.members+`}`, c.header)
			if got.Code != http.StatusAccepted {
				t.Fatalf("got %d %s", got.Code, got.Body)
			}
			e := p.kept.stored(t)[0]
			c.want.IP, c.want.UserAgent = visitorAddress, visitorBrowser
			if diff := cmp.Diff(c.want, e.Context); diff != "" {
				t.Errorf("context (-want +got):\n%s", diff)
			}
		})
	}
	p := newPage(ingest.Options{})
	for name, body := range map[string]string{
		"a page's own mistake":         `{"event": "lead", "data": {"currency": "EURO"}}`,
		"an e-mail as an event's name": `{"event": "jane@example.com", "user": {"email": "jane@example.com"}}`,
	} {
		if got := p.send(http.MethodPost, "/collect/"+webKey, body, nil); got.Code != http.StatusUnprocessableEntity {
			t.Errorf("%s: got %d, want 422", name, got.Code)
		}
	}
	if got := p.send(http.MethodPost, "/collect/"+shopKey, `{"event": "lead", "user": {"email": "jane@"}}`, map[string]string{"Content-Type": "application/json", "Origin": ""}); got.Code != http.StatusUnprocessableEntity {
		t.Errorf("a server's wrong e-mail address: got %d, want 422", got.Code)
	}
}
