package server_test

import (
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"github.com/weir-dev/weir/collector/server"
)

// cluster is where the proxies of these tests are.
var cluster = []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("fd00::/8"), netip.MustParsePrefix("198.51.100.7/32")}

// from makes a request of a peer; forwarded are the lines of X-Forwarded-For.
func from(peer string, forwarded ...string) *http.Request {
	r := httptest.NewRequest(http.MethodPost, "/collect/key", nil)
	r.RemoteAddr = peer
	r.Header["X-Forwarded-For"] = forwarded
	return r
}

func TestTheClientIsWhoTheLastTrustedProxyWasAskedBy(t *testing.T) {
	for name, c := range map[string]struct {
		request *http.Request
		want    string
	}{
		"without a proxy it is the peer":                      {from("203.0.113.9:4711"), "203.0.113.9"},
		"a peer that is no proxy is not believed":             {from("203.0.113.9:4711", "192.0.2.1"), "203.0.113.9"},
		"a proxy is believed":                                 {from("10.1.2.3:80", "192.0.2.1"), "192.0.2.1"},
		"what stands before a proxy's entry is not believed":  {from("10.1.2.3:80", "8.8.8.8, 10.0.0.9, 192.0.2.1"), "192.0.2.1"},
		"a chain of proxies is followed":                      {from("10.1.2.3:80", "8.8.8.8, 192.0.2.1, 198.51.100.7, 10.9.9.9"), "192.0.2.1"},
		"also over several lines":                             {from("10.1.2.3:80", "8.8.8.8,192.0.2.1", "198.51.100.7", "10.9.9.9"), "192.0.2.1"},
		"a proxy that says nothing is the client":             {from("10.1.2.3:80"), "10.1.2.3"},
		"a client within the proxies' range":                  {from("10.1.2.3:80", "10.4.4.4"), "10.4.4.4"},
		"a proxy that says nothing readable":                  {from("10.1.2.3:80", "192.0.2.1, unknown"), ""},
		"what is unreadable before the client does no harm":   {from("10.1.2.3:80", "<script>, 192.0.2.1"), "192.0.2.1"},
		"an empty entry":                                      {from("10.1.2.3:80", "192.0.2.1,"), ""},
		"an entry with a port":                                {from("10.1.2.3:80", "192.0.2.1:5555"), "192.0.2.1"},
		"an IPv6 entry":                                       {from("[fd00::1]:80", "2001:db8::7"), "2001:db8::7"},
		"an IPv6 entry in brackets":                           {from("[fd00::1]:80", "[2001:db8::7]"), "2001:db8::7"},
		"an IPv6 entry with a port":                           {from("[fd00::1]:80", "[2001:db8::7]:443"), "2001:db8::7"},
		"IPv4 written as IPv6, of the peer and the client":    {from("[::ffff:10.1.2.3]:80", "::ffff:192.0.2.1"), "192.0.2.1"},
		"a zone is no part of it":                             {from("[fe80::1%eth0]:80"), "fe80::1"},
		"a peer that is none":                                 {from("@", "192.0.2.1"), ""},
		"an untrusted proxy behind a trusted one is the last": {from("10.1.2.3:80", "192.0.2.1, 203.0.113.50"), "203.0.113.50"},
	} {
		t.Run(name, func(t *testing.T) {
			got := server.ClientAddress(c.request, cluster)
			if (c.want == "") != !got.IsValid() || (c.want != "" && got.String() != c.want) {
				t.Errorf("got %v, want %q", got, c.want)
			}
		})
	}
	if got := server.ClientAddress(from("10.1.2.3:80", "192.0.2.1"), nil); got.String() != "10.1.2.3" {
		t.Errorf("without trusted proxies: got %v, want the peer", got)
	}
}

func TestANetworkIsWhatOneHouseholdIsGiven(t *testing.T) {
	for address, want := range map[string]string{"192.0.2.1": "192.0.2.1", "2001:db8:1:2:3:4:5:6": "2001:db8:1:2::", "::1": "::"} {
		if got := server.Network(netip.MustParseAddr(address)); got.String() != want {
			t.Errorf("Network(%s) = %s, want %s", address, got, want)
		}
	}
}

// FuzzClientAddress holds that nobody who is no trusted proxy's client chooses an address: whatever is sent in the header,
// what the proxy adds counts.
func FuzzClientAddress(f *testing.F) {
	f.Add("8.8.8.8")
	f.Add("8.8.8.8, 10.0.0.1,")
	f.Add("[::1]:80,,\t , unknown")
	f.Fuzz(func(t *testing.T, sent string) {
		const client = "192.0.2.1"
		if got := server.ClientAddress(from(client+":1", sent), cluster); got.String() != client {
			t.Errorf("%q sent directly: got %v", sent, got)
		}
		for _, lines := range [][]string{{sent + ", " + client}, {sent, client}, {sent, client + ",10.0.0.1"}} {
			if got := server.ClientAddress(from("10.1.2.3:80", lines...), cluster); got.String() != client {
				t.Errorf("%q: got %v", strings.Join(lines, "|"), got)
			}
		}
	})
}
