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
	"github.com/weir-dev/weir/collector/deliver/adapter"
)

var loopback = config.Egress{AllowCIDRs: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}}

// exchange makes a request with a client of its own.
func exchange(t *testing.T, egress config.Egress, url string) (adapter.Response, *adapter.Verdict) {
	t.Helper()
	c := newClient(egress, 2*time.Second, time.Now)
	t.Cleanup(c.close)
	return c.exchange(context.Background(), adapter.Request{Method: http.MethodPost, URL: url, Body: []byte("{}")})
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
		want   adapter.Verdict
	}{
		"an address that is not allowed":         {config.Egress{}, plain.URL, adapter.Verdict{Class: adapter.Retry, Reason: "egress_denied"}},
		"a name that resolves to one":            {config.Egress{}, "http://localhost:1/", adapter.Verdict{Class: adapter.Retry, Reason: "egress_denied"}},
		"a certificate of an unknown authority":  {loopback, secure.URL, adapter.Verdict{Class: adapter.Retry, Reason: "tls_failed"}},
		"a server that does not answer in time":  {loopback, hangs.URL, adapter.Verdict{Class: adapter.Retry, Reason: "timeout"}},
		"a server that closes without an answer": {loopback, resets.URL, adapter.Verdict{Class: adapter.Retry, Reason: "connection_reset"}},
		"a port at which nobody listens":         {loopback, gone.URL, adapter.Verdict{Class: adapter.Retry, Reason: "connection_refused"}},
		"a name that does not exist":             {loopback, "http://weir.invalid/", adapter.Verdict{Class: adapter.Retry, Reason: "name_not_resolved"}},
		"a URL that no request can be made for":  {loopback, "http://[::1/", adapter.Verdict{Class: adapter.Config, Reason: "url_invalid"}},
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
