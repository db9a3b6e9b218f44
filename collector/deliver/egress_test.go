package deliver

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"
	"time"

	"github.com/weir-dev/weir/collector/config"
	"github.com/weir-dev/weir/collector/deliver/platform"
)

func TestEgressGuard(t *testing.T) {
	for name, test := range map[string]struct {
		allowed []string
		address string
		want    bool
	}{
		"a public IPv4 address": {nil, "93.184.216.34", true},
		"a public IPv6 address": {nil, "2606:4700::1111", true},
		"this network":          {nil, "0.0.0.0", false},
		"loopback":              {nil, "127.0.0.1", false},
		"loopback, another one": {nil, "127.8.9.10", false},
		"private, ten":          {nil, "10.1.2.3", false},
		"private, 172.16":       {nil, "172.31.255.255", false},
		"just beside private":   {nil, "172.32.0.1", true},
		"private, 192.168":      {nil, "192.168.0.1", false},
		"carrier-grade NAT":     {nil, "100.64.0.1", false},
		"link-local":            {nil, "169.254.0.1", false},
		"a cloud's metadata":    {nil, "169.254.169.254", false},
		"a cloud's metadata within carrier-grade NAT": {nil, "100.100.100.200", false},
		"a cloud's metadata among protocol addresses": {nil, "192.0.0.192", false},
		"a cloud's node agent at a public address":    {nil, "168.63.129.16", false},
		"multicast":                          {nil, "224.0.0.1", false},
		"broadcast":                          {nil, "255.255.255.255", false},
		"reserved":                           {nil, "240.0.0.1", false},
		"documentation":                      {nil, "203.0.113.7", false},
		"benchmarking":                       {nil, "198.19.0.1", false},
		"unspecified IPv6":                   {nil, "::", false},
		"loopback IPv6":                      {nil, "::1", false},
		"link-local IPv6":                    {nil, "fe80::1", false},
		"link-local IPv6 with a zone":        {nil, "fe80::1%eth0", false},
		"unique local IPv6":                  {nil, "fd00:ec2::254", false},
		"site-local IPv6":                    {nil, "fec0::1", false},
		"multicast IPv6":                     {nil, "ff02::1", false},
		"IPv4-mapped loopback":               {nil, "::ffff:127.0.0.1", false},
		"IPv4-mapped metadata":               {nil, "::ffff:169.254.169.254", false},
		"IPv4-compatible loopback":           {nil, "::127.0.0.1", false},
		"NAT64 to loopback":                  {nil, "64:ff9b::7f00:1", false},
		"NAT64 to metadata":                  {nil, "64:ff9b::a9fe:a9fe", false},
		"NAT64 to a public address":          {nil, "64:ff9b::5db8:d822", true},
		"local-use NAT64":                    {nil, "64:ff9b:1::1", false},
		"6to4":                               {nil, "2002:7f00:1::1", false},
		"Teredo":                             {nil, "2001:0:4136:e378::1", false},
		"documentation IPv6":                 {nil, "2001:db8::1", false},
		"an allowed private address":         {[]string{"10.0.0.0/8"}, "10.1.2.3", true},
		"an address beside the allowed ones": {[]string{"10.1.0.0/16"}, "10.2.0.1", false},
		"an IPv4-mapped form of an allowed address":     {[]string{"127.0.0.0/8"}, "::ffff:127.0.0.1", true},
		"an allowed IPv6 address":                       {[]string{"fd00::/8"}, "fd12::1", true},
		"one that the allowed IPv4 range has no say on": {[]string{"0.0.0.0/0"}, "::1", false},
	} {
		t.Run(name, func(t *testing.T) {
			guard := egressGuard{}
			for _, text := range test.allowed {
				guard.allowed = append(guard.allowed, netip.MustParsePrefix(text))
			}
			if got := guard.permits(netip.MustParseAddr(test.address)); got != test.want {
				t.Errorf("permits(%s) = %t, want %t", test.address, got, test.want)
			}
		})
	}
}

var loopback = config.Egress{AllowCIDRs: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}}

// exchange makes a request with a client of its own.
func exchange(t *testing.T, egress config.Egress, url string) (platform.Response, *platform.Verdict) {
	t.Helper()
	c := newClient(egress, 2*time.Second, time.Now)
	t.Cleanup(c.close)
	return c.exchange(context.Background(), platform.Request{Method: http.MethodPost, URL: url, Body: []byte("{}")})
}

func TestClientNamesWhyThereWasNoAnswer(t *testing.T) {
	secure := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(secure.Close)
	plain := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(plain.Close)
	hangs := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // only then does the server notice that the client has gone
		<-r.Context().Done()
	}))
	t.Cleanup(hangs.Close)
	resets := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }))
	t.Cleanup(resets.Close)
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()

	for name, test := range map[string]struct {
		egress config.Egress
		url    string
		want   platform.Verdict
	}{
		"an address that is not allowed":         {config.Egress{}, plain.URL, platform.Verdict{Class: platform.Retry, Reason: "egress_denied"}},
		"a name that resolves to one":            {config.Egress{}, "http://localhost:1/", platform.Verdict{Class: platform.Retry, Reason: "egress_denied"}},
		"a certificate of an unknown authority":  {loopback, secure.URL, platform.Verdict{Class: platform.Retry, Reason: "tls_failed"}},
		"a server that does not answer in time":  {loopback, hangs.URL, platform.Verdict{Class: platform.Retry, Reason: "timeout"}},
		"a server that closes without an answer": {loopback, resets.URL, platform.Verdict{Class: platform.Retry, Reason: "connection_reset"}},
		"a port at which nobody listens":         {loopback, gone.URL, platform.Verdict{Class: platform.Retry, Reason: "connection_refused"}},
		"a name that does not exist":             {loopback, "http://weir.invalid/", platform.Verdict{Class: platform.Retry, Reason: "name_not_resolved"}},
		"a URL that no request can be made for":  {loopback, "http://[::1/", platform.Verdict{Class: platform.Config, Reason: "url_invalid"}},
	} {
		t.Run(name, func(t *testing.T) {
			response, got := exchange(t, test.egress, test.url)
			if got == nil {
				t.Fatalf("got an answer: %+v", response)
			}
			if *got != test.want {
				t.Errorf("got %+v, want %+v", *got, test.want)
			}
		})
	}
}

func TestClientFollowsNoRedirect(t *testing.T) {
	target := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the redirect was followed") }))
	t.Cleanup(target.Close)
	source := httptest.NewServer(http.RedirectHandler(target.URL, http.StatusTemporaryRedirect))
	t.Cleanup(source.Close)
	response, failure := exchange(t, loopback, source.URL)
	if failure != nil || response.Status != http.StatusTemporaryRedirect {
		t.Errorf("got %+v, %+v", response, failure)
	}
}

func TestClientBoundsTheAnswer(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		chunk := make([]byte, 1<<16)
		for range 100 {
			if _, err := w.Write(chunk); err != nil {
				return
			}
		}
	}))
	t.Cleanup(server.Close)
	response, failure := exchange(t, loopback, server.URL)
	if failure != nil || len(response.Body) != maxAnswer {
		t.Errorf("got %d bytes, %+v; want %d", len(response.Body), failure, maxAnswer)
	}
}

func TestClientJudgesAnAnswerWhoseBodyBreaksOff(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		connection, err := listener.Accept()
		if err != nil {
			return
		}
		defer connection.Close()
		_, _ = connection.Read(make([]byte, 4096))
		_, _ = connection.Write([]byte("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{\"events"))
	}()
	response, failure := exchange(t, loopback, "http://"+listener.Addr().String())
	if failure != nil || response.Status != http.StatusOK || string(response.Body) != `{"events` {
		t.Errorf("got %+v, %+v", response, failure)
	}
}

func TestClientUsesNoProxyOfTheEnvironment(t *testing.T) {
	t.Setenv("HTTP_PROXY", "http://127.0.0.1:1")
	t.Setenv("HTTPS_PROXY", "http://127.0.0.1:1")
	transport, ok := newClient(loopback, time.Second, time.Now).http.Transport.(*http.Transport)
	if !ok || transport.Proxy != nil {
		t.Error("the transport asks for a proxy")
	}
}
