package server

import (
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// RemoteAddress returns whom a request comes from: the [Network] of the peer's address. What headers say of it anybody can
// write.
func RemoteAddress(r *http.Request) netip.Addr { return Network(peerOf(r.RemoteAddr)) }

// ClientAddress returns the address of a request's client; the zero address where it is not known. It is the peer's, unless
// that is a trusted proxy: then it is what the proxy says in X-Forwarded-For, where each adds at the end whom it was asked
// by. So the list is read from its end, for as long as trusted proxies have written it: what stands before that anybody
// can write.
func ClientAddress(r *http.Request, trusted []netip.Prefix) netip.Addr {
	client := peerOf(r.RemoteAddr)
	written := r.Header.Values("X-Forwarded-For")
	isProxy := func(address netip.Addr) bool {
		return slices.ContainsFunc(trusted, func(prefix netip.Prefix) bool { return prefix.Contains(address) })
	}
	for _, line := range slices.Backward(written) {
		for line != "" && isProxy(client) {
			entry := line
			if at := strings.LastIndexByte(line, ','); at >= 0 {
				entry, line = line[at+1:], line[:at]
			} else {
				line = ""
			}
			if client = addressOf(strings.Trim(entry, " \t")); !client.IsValid() {
				return client // who comes before a proxy's proxy is anybody's guess
			}
		}
	}
	return client
}

// Network returns what one household or one server is given: an IPv4 address, of IPv6 the network.
func Network(address netip.Addr) netip.Addr {
	if !address.Is6() {
		return address
	}
	return netip.PrefixFrom(address, 64).Masked().Addr()
}

// peerOf reads an address with a port; the zero address where it is none.
func peerOf(text string) netip.Addr {
	peer, err := netip.ParseAddrPort(text)
	if err != nil {
		return netip.Addr{}
	}
	return peer.Addr().Unmap().WithZone("")
}

// addressOf reads an address as proxies write it, some with a port; the zero address where it is none.
func addressOf(text string) netip.Addr {
	if address, err := netip.ParseAddr(strings.Trim(text, "[]")); err == nil {
		return address.Unmap().WithZone("")
	}
	return peerOf(text)
}
