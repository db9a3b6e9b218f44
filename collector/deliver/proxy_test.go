package deliver

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-dev/weir/collector/config"
	"github.com/weir-dev/weir/collector/egress"
)

const proxyPassword = "hunter2"

// forwardProxy is an HTTP proxy that takes CONNECT of one user. All public addresses and names lead to one server.
type forwardProxy struct {
	*httptest.Server
	// to is where it connects, "" for nowhere.
	to string
	// deny answers targets with a status in place of connecting.
	deny map[string]int

	mu    sync.Mutex
	asked []string
}

func newForwardProxy(t *testing.T, secure bool, to string) *forwardProxy {
	t.Helper()
	p := &forwardProxy{to: to}
	p.Server = httptest.NewUnstartedServer(p)
	p.Config.ErrorLog = log.New(io.Discard, "", 0)
	if secure {
		p.StartTLS()
	} else {
		p.Start()
	}
	t.Cleanup(p.Close)
	return p
}

func (p *forwardProxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	p.asked = append(p.asked, r.Method+" "+r.Host)
	p.mu.Unlock()
	if r.Header.Get("Proxy-Authorization") != "Basic "+base64.StdEncoding.EncodeToString([]byte("weir:"+proxyPassword)) {
		http.Error(w, "who are you, "+proxyPassword, http.StatusProxyAuthRequired)
		return
	}
	if status := p.deny[r.Host]; status != 0 {
		http.Error(w, "not there", status)
		return
	}
	there, err := (&net.Dialer{}).DialContext(r.Context(), "tcp", p.to)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	defer there.Close()
	here, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer here.Close()
	if _, err := io.WriteString(here, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		return
	}
	go func() { _, _ = io.Copy(there, buffered) }()
	_, _ = io.Copy(here, there)
}

// seen returns what it was asked for since it was last looked.
func (p *forwardProxy) seen() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	seen := p.asked
	p.asked = nil
	return seen
}

// as returns the proxy as whoever has this password names it.
func (p *forwardProxy) as(t *testing.T, password, ca string) *egress.Proxy {
	t.Helper()
	proxy, err := egress.ParseProxy(strings.Replace(p.URL, "://", "://weir:"+password+"@", 1)+"\n", ca)
	if err != nil {
		t.Fatal(err)
	}
	return &proxy
}

func (p *forwardProxy) ca() string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: p.Certificate().Raw}))
}

// TestTheGuardHoldsBehindAProxy: what a name resolves to is judged before the proxy is asked for anything.
func TestTheGuardHoldsBehindAProxy(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Connection", "close") }))
	t.Cleanup(server.Close)
	plain, secure := newForwardProxy(t, false, server.Listener.Addr().String()), newForwardProxy(t, true, server.Listener.Addr().String())
	_, port, err := net.SplitHostPort(server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	public, another, private, metadata, here := netip.MustParseAddr("93.184.216.34"), netip.MustParseAddr("93.184.216.35"),
		netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("169.254.169.254"), netip.MustParseAddr("127.0.0.1")
	dead := netip.MustParseAddr("127.0.0.2") // where nobody listens
	plain.deny = map[string]int{"93.184.216.35:443": http.StatusBadGateway, "refused.example.com:443": http.StatusForbidden}
	inside := []netip.Prefix{netip.PrefixFrom(here, 32)}
	type outcome struct {
		Status int
		Reason string
		Asked  []string
	}
	direct, denied := outcome{200, "", nil}, outcome{0, "egress_denied", nil}
	for name, test := range map[string]struct {
		proxy   *egress.Proxy
		byName  bool
		allowed []netip.Prefix
		host    string // example.com where empty
		answers [][]netip.Addr
		want    []outcome
	}{
		"a public host is asked for by its address": {answers: [][]netip.Addr{{public}}, want: []outcome{{200, "", []string{"CONNECT 93.184.216.34:443"}}}},
		"or by its name":                                       {byName: true, answers: [][]netip.Addr{{public}}, want: []outcome{{200, "", []string{"CONNECT example.com:443"}}}},
		"by way of a proxy with TLS":                           {proxy: secure.as(t, proxyPassword, secure.ca()), answers: [][]netip.Addr{{public}}, want: []outcome{{200, "", []string{"CONNECT 93.184.216.34:443"}}}},
		"a proxy whose certificate is not trusted":             {proxy: secure.as(t, proxyPassword, ""), answers: [][]netip.Addr{{public}}, want: []outcome{{0, "proxy_unreachable", nil}}},
		"the address behind one that the proxy does not reach": {answers: [][]netip.Addr{{another, public}}, want: []outcome{{200, "", []string{"CONNECT 93.184.216.35:443", "CONNECT 93.184.216.34:443"}}}},
		"a host that the proxy does not allow":                 {byName: true, host: "refused.example.com", answers: [][]netip.Addr{{public}}, want: []outcome{{0, "proxy_403", []string{"CONNECT refused.example.com:443"}}}},
		"a wrong password":                                     {proxy: plain.as(t, "wrong", ""), answers: [][]netip.Addr{{public}}, want: []outcome{{0, "proxy_407", []string{"CONNECT 93.184.216.34:443"}}}},
		"a private address":                                    {answers: [][]netip.Addr{{private}}, want: []outcome{denied}},
		"a private address, by name":                           {byName: true, answers: [][]netip.Addr{{private}}, want: []outcome{denied}},
		"a cloud's metadata":                                   {byName: true, answers: [][]netip.Addr{{metadata}}, want: []outcome{denied}},
		"a public address and a private one, of which the proxy could take the other": {byName: true, answers: [][]netip.Addr{{public, private}}, want: []outcome{denied}},
		"a name that moves inside":                                  {answers: [][]netip.Addr{{public}, {private}}, want: []outcome{{200, "", []string{"CONNECT 93.184.216.34:443"}}, denied}},
		"a private address in the URL":                              {host: "10.0.0.1", want: []outcome{denied}},
		"an address of the machine's in the URL":                    {host: "[::ffff:169.254.169.254]", byName: true, want: []outcome{denied}},
		"an inside address that is allowed, without it":             {host: "127.0.0.1:" + port, allowed: inside, want: []outcome{direct}},
		"a name of such an address, without it":                     {host: "example.com:" + port, allowed: inside, answers: [][]netip.Addr{{here}}, want: []outcome{direct}},
		"a name that is half inside, although both may be":          {host: "example.com:" + port, allowed: inside, answers: [][]netip.Addr{{here, public}}, want: []outcome{denied}},
		"the address behind one of the inside that does not answer": {host: "example.com:" + port, allowed: append(inside, netip.PrefixFrom(dead, 32)), answers: [][]netip.Addr{{dead, here}}, want: []outcome{direct}},
		"a name that moves from an allowed range elsewhere":         {host: "example.com:" + port, allowed: inside, answers: [][]netip.Addr{{here}, {private}}, want: []outcome{direct, denied}},
		"a name that moves from an allowed range to a public address": {
			host: "example.com:" + port, allowed: inside, answers: [][]netip.Addr{{here}, {public}}, want: []outcome{direct, {200, "", []string{"CONNECT 93.184.216.34:" + port}}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			proxy := test.proxy
			if proxy == nil {
				proxy = plain.as(t, proxyPassword, "")
			}
			proxy.ByName = test.byName
			if test.answers == nil {
				test.answers = [][]netip.Addr{{private}}
			}
			c := clientAsking(t, config.Egress{AllowCIDRs: test.allowed, Proxy: proxy}, newNameServer(t, test.answers...))
			transportOf(t, c).TLSClientConfig = server.Client().Transport.(*http.Transport).TLSClientConfig.Clone()
			host := test.host
			if host == "" {
				host = "example.com"
			}
			var got []outcome
			for range test.want {
				status, reason := post(t, c, "https://"+host+"/")
				got = append(got, outcome{status, reason, slices.Concat(plain.seen(), secure.seen())})
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A proxy that hangs, ends or talks nonsense holds up no longer than any host, and what goes wrong names neither it nor its password.
func TestAProxyThatMisbehaves(t *testing.T) {
	for name, test := range map[string]struct {
		serve func(net.Conn)
		want  string
	}{
		"it speaks of a body in place of the host": {func(c net.Conn) {
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nx")
			_, _ = io.Copy(io.Discard, c)
		}, ""},
		"it is silent":             {func(c net.Conn) { _, _ = io.Copy(io.Discard, c) }, "proxy_timeout"},
		"it closes at once":        {func(net.Conn) {}, "proxy_unreachable"},
		"it speaks another tongue": {func(c net.Conn) { _, _ = io.WriteString(c, "SSH-2.0-"+proxyPassword+"\r\n") }, "proxy_unreachable"},
		"it never ends its answer": {func(c net.Conn) {
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nX: ")
			_, _ = io.Copy(c, neverEnding('x'))
		}, "proxy_unreachable"},
		"it refuses in its own words": {func(c net.Conn) {
			_, _ = io.WriteString(c, "HTTP/1.1 403 "+proxyPassword+"\r\nContent-Length: 7\r\n\r\n"+proxyPassword)
		}, "proxy_403"},
		"it refuses at length": {func(c net.Conn) {
			_, _ = io.WriteString(c, "HTTP/1.1 407 No\r\nContent-Length: 100000\r\n\r\n")
			_, _ = io.Copy(c, io.LimitReader(neverEnding('x'), 100000))
		}, "proxy_407"},
		"it refuses and does not say what it is about to": {func(c net.Conn) {
			_, _ = io.WriteString(c, "HTTP/1.1 403 No\r\nContent-Length: 7\r\n\r\n")
			_, _ = io.Copy(io.Discard, c)
		}, "proxy_403"},
		"it sends it elsewhere": {func(c net.Conn) {
			_, _ = io.WriteString(c, "HTTP/1.1 302 Found\r\nLocation: http://10.0.0.1/\r\nContent-Length: 0\r\n\r\n")
		}, "proxy_302"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = listener.Close() })
			go func() {
				for {
					connection, err := listener.Accept()
					if err != nil {
						return
					}
					go func() {
						defer connection.Close()
						_, _ = connection.Read(make([]byte, 4096))
						test.serve(connection)
					}()
				}
			}()
			proxy, err := egress.ParseProxy("http://weir:"+proxyPassword+"@"+listener.Addr().String(), "")
			if err != nil {
				t.Fatal(err)
			}
			dialer := newDialer(config.Egress{Proxy: &proxy})
			dialer.Timeout = time.Second
			connection, err := dialer.DialContext(t.Context(), "tcp", "93.184.216.34:443")
			if test.want == "" {
				read := make([]byte, 2)
				if err != nil {
					t.Fatal(err)
				}
				if n, err := connection.Read(read); n != 1 || read[0] != 'x' || connection.Close() != nil {
					t.Errorf("what follows the answer is %q, %v", read[:n], err)
				}
				return
			}
			if got := failureReason(t.Context(), err); got != test.want {
				t.Errorf("got %s (%v), want %s", got, err, test.want)
			}
			if err == nil || strings.Contains(err.Error(), proxyPassword) || strings.Contains(err.Error(), listener.Addr().String()) {
				t.Errorf("the error is %v", err)
			}
		})
	}
}

// neverEnding reads as one letter for ever.
type neverEnding byte

func (n neverEnding) Read(into []byte) (int, error) {
	copy(into, bytes.Repeat([]byte{byte(n)}, len(into)))
	return len(into), nil
}

// TestAnAddressThatDoesNotAnswerLeavesTimeToTheNext has a proxy that waits for a dead address for longer than a connection may take.
func TestAnAddressThatDoesNotAnswerLeavesTimeToTheNext(t *testing.T) {
	t.Parallel()
	dead, alive := netip.MustParseAddr("93.184.216.35"), netip.MustParseAddr("93.184.216.34")
	ended := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Host == dead.String()+":443" {
			<-ended
		}
		w.WriteHeader(http.StatusOK)
	}))
	t.Cleanup(server.Close)
	t.Cleanup(func() { close(ended) })
	proxy, err := egress.ParseProxy(server.URL, "")
	if err != nil {
		t.Fatal(err)
	}
	names := newNameServer(t, []netip.Addr{dead, alive})
	dialer := newDialer(config.Egress{Proxy: &proxy})
	dialer.Timeout = 5 * time.Second
	dialer.Resolver = &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "udp", names.LocalAddr().String())
	}}
	connection, err := dialer.DialContext(t.Context(), "tcp", "example.com:443")
	if err != nil {
		t.Fatal(err)
	}
	if err := connection.Close(); err != nil {
		t.Error(err)
	}
}

func TestAProxyThatIsWaitedForIsLeftWhenDeliveriesEnd(t *testing.T) {
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	proxy, err := egress.ParseProxy("http://"+listener.Addr().String(), "")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		if _, err := listener.Accept(); err == nil {
			cancel()
		}
	}()
	began := time.Now()
	_, err = newDialer(config.Egress{Proxy: &proxy}).DialContext(ctx, "tcp", "93.184.216.34:443")
	if err == nil || time.Since(began) > dialTimeout/2 {
		t.Errorf("after %s: %v", time.Since(began), err)
	}
	if errors.Is(err, egress.ErrDenied) {
		t.Error("it is said to be denied")
	}
}
