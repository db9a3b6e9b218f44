package deliver

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-dev/weir/collector/config"
	"github.com/weir-dev/weir/collector/deliver/adapter"
)

// nameServer answers every question for an IPv4 address with the next of its answers, and the last for ever. It
// has no address for IPv6.
type nameServer struct {
	net.PacketConn
	mu      sync.Mutex
	answers [][]netip.Addr
	asked   int
}

func newNameServer(t *testing.T, answers ...[]netip.Addr) *nameServer {
	t.Helper()
	connection, err := (&net.ListenConfig{}).ListenPacket(t.Context(), "udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	n := &nameServer{PacketConn: connection, answers: answers}
	t.Cleanup(func() { _ = connection.Close() })
	go n.serve()
	return n
}

func (n *nameServer) serve() {
	buffer := make([]byte, 512)
	for {
		length, from, err := n.ReadFrom(buffer)
		if err != nil {
			return
		}
		_, _ = n.WriteTo(n.answer(buffer[:length]), from)
	}
}

// answer makes the response to a question, in DNS's wire format.
func (n *nameServer) answer(question []byte) []byte {
	end := 12
	for question[end] != 0 {
		end += int(question[end]) + 1
	}
	end += 5 // the root, type and class
	var addresses []netip.Addr
	if kind := binary.BigEndian.Uint16(question[end-4:]); kind == 1 {
		n.mu.Lock()
		addresses = n.answers[min(n.asked, len(n.answers)-1)]
		n.asked++
		n.mu.Unlock()
	}
	response := append([]byte{}, question[:end]...)
	response[2], response[3] = 0x81, 0x80
	binary.BigEndian.PutUint16(response[6:], uint16(len(addresses)))
	clear(response[8:12])
	for _, address := range addresses {
		response = append(response, 0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4)
		response = append(response, address.AsSlice()...)
	}
	return response
}

// clientAsking is a client that resolves names with the server.
func clientAsking(t *testing.T, egress config.Egress, names *nameServer) *client {
	t.Helper()
	c := newClient(egress, 30*time.Second, time.Now)
	t.Cleanup(c.close)
	dialer := newDialer(egress)
	dialer.Resolver = &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "udp", names.LocalAddr().String())
	}}
	transportOf(t, c).DialContext = dialer.DialContext
	return c
}

func transportOf(t *testing.T, c *client) *http.Transport {
	t.Helper()
	transport, ok := c.http.Transport.(*http.Transport)
	if !ok {
		t.Fatalf("the transport is a %T", c.http.Transport)
	}
	return transport
}

func post(t *testing.T, c *client, url string) (int, string) {
	t.Helper()
	response, failure := c.exchange(t.Context(), adapter.Request{Method: http.MethodPost, URL: url, Body: []byte("{}")})
	if failure != nil {
		return 0, failure.Reason
	}
	return response.Status, ""
}

// A name that resolves to a permitted address when it is looked at and to another when it is connected to gets
// nowhere: what counts is the address that is connected to, each time.
func TestClientIsNotReboundToAnInternalAddress(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Connection", "close") // so that the next request looks the name up again
	}))
	t.Cleanup(server.Close)
	_, port, err := net.SplitHostPort(server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	here := netip.MustParseAddr("127.0.0.1")
	egress := config.Egress{AllowCIDRs: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}}
	type outcome struct {
		Status int
		Reason string
	}
	for name, test := range map[string]struct {
		answers [][]netip.Addr
		want    []outcome
	}{
		"a name that stays where it is": {
			[][]netip.Addr{{here}}, []outcome{{200, ""}, {200, ""}},
		},
		"a name that moves to loopback": {
			[][]netip.Addr{{here}, {netip.MustParseAddr("127.0.0.2")}}, []outcome{{200, ""}, {0, "egress_denied"}},
		},
		"a name that moves to the cloud's metadata": {
			[][]netip.Addr{{here}, {netip.MustParseAddr("169.254.169.254")}}, []outcome{{200, ""}, {0, "egress_denied"}},
		},
		"a name that comes back": {
			[][]netip.Addr{{netip.MustParseAddr("10.0.0.1")}, {here}}, []outcome{{0, "egress_denied"}, {200, ""}},
		},
		"a name with a forbidden address before the permitted one": {
			[][]netip.Addr{{netip.MustParseAddr("192.168.0.1"), here}}, []outcome{{200, ""}, {200, ""}},
		},
		"a name with forbidden addresses only": {
			[][]netip.Addr{{netip.MustParseAddr("192.168.0.1"), netip.MustParseAddr("172.16.0.1")}}, []outcome{{0, "egress_denied"}, {0, "egress_denied"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := clientAsking(t, egress, newNameServer(t, test.answers...))
			var got []outcome
			for range 2 {
				status, reason := post(t, c, "http://rebinding.example:"+port+"/")
				got = append(got, outcome{status, reason})
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// Spellings of internal addresses that a URL can have, where the name that is checked is not the address that is
// connected to.
func TestClientIsNotLedInsideByASpelling(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the server was reached") }))
	t.Cleanup(server.Close)
	_, port, err := net.SplitHostPort(server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	c := newClient(config.Egress{}, 30*time.Second, time.Now)
	t.Cleanup(c.close)
	for name, host := range map[string]string{
		"loopback":                 "127.0.0.1",
		"localhost":                "localhost",
		"any address":              "0.0.0.0",
		"IPv6 any address":         "[::]",
		"IPv6 loopback":            "[::1]",
		"IPv4-mapped":              "[::ffff:127.0.0.1]",
		"IPv4-mapped, hexadecimal": "[::ffff:7f00:1]",
		"NAT64":                    "[64:ff9b::7f00:1]",
		"link-local with a zone":   "[fe80::1%25lo]",
		"the metadata service":     "169.254.169.254",
	} {
		t.Run(name, func(t *testing.T) {
			if status, reason := post(t, c, "http://"+host+":"+port+"/"); reason != "egress_denied" {
				t.Errorf("got %d, %s", status, reason)
			}
		})
	}
}

func TestClientVerifiesCertificates(t *testing.T) {
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // it would tell of every handshake that the client ends
	server.StartTLS()
	t.Cleanup(server.Close)
	port := server.Listener.Addr().(*net.TCPAddr).Port
	trusting := x509.NewCertPool()
	trusting.AddCert(server.Certificate())
	for name, test := range map[string]struct {
		roots *x509.CertPool
		host  string
		at    time.Time
		want  string
	}{
		"one of a known authority is taken":      {trusting, "127.0.0.1", time.Now(), ""},
		"one of an unknown authority is refused": {x509.NewCertPool(), "127.0.0.1", time.Now(), "tls_failed"},
		"one for another name is refused":        {trusting, "localhost", time.Now(), "tls_failed"},
		"one that has expired is refused":        {trusting, "127.0.0.1", server.Certificate().NotAfter.Add(time.Hour), "tls_failed"},
	} {
		t.Run(name, func(t *testing.T) {
			c := newClient(loopback, 30*time.Second, time.Now)
			t.Cleanup(c.close)
			transport := transportOf(t, c)
			if transport.TLSClientConfig != nil && transport.TLSClientConfig.InsecureSkipVerify {
				t.Fatal("the client does not verify certificates")
			}
			transport.TLSClientConfig = &tls.Config{RootCAs: test.roots, Time: func() time.Time { return test.at }}
			if _, reason := post(t, c, "https://"+net.JoinHostPort(test.host, strconv.Itoa(port))+"/"); reason != test.want {
				t.Errorf("got %q, want %q", reason, test.want)
			}
		})
	}
}

func TestClientBoundsTheAnswerAfterDecompression(t *testing.T) {
	var bomb bytes.Buffer
	compressor := gzip.NewWriter(&bomb)
	if _, err := compressor.Write(make([]byte, 4*maxAnswer)); err != nil {
		t.Fatal(err)
	}
	if err := compressor.Close(); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		_, _ = w.Write(bomb.Bytes()) // the client may have gone
	}))
	t.Cleanup(server.Close)
	c := newClient(loopback, 30*time.Second, time.Now)
	t.Cleanup(c.close)
	response, failure := c.exchange(t.Context(), adapter.Request{Method: http.MethodPost, URL: server.URL, Body: []byte("{}")})
	if failure != nil || len(response.Body) != maxAnswer {
		t.Errorf("got %d bytes, %+v; want %d", len(response.Body), failure, maxAnswer)
	}
}
