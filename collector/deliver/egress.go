package deliver

import (
	"fmt"
	"net/netip"
	"slices"
	"syscall"
)

// egressGuard refuses connections to addresses that a tenant has no business with: the cluster's own, the
// node's, the cloud's metadata. It is asked for the address that is about to be connected to, after the name
// has been resolved, so neither DNS nor a redirect leads around it.
type egressGuard struct {
	allowed []netip.Prefix
}

// egressError says that the guard has refused. It names no address: what an internal name resolves to is none
// of the tenant's business either.
type egressError struct{}

func (egressError) Error() string { return "the address is not one that deliveries may go to" }

// control is a [net.Dialer]'s Control function.
func (g *egressGuard) control(_, address string, _ syscall.RawConn) error {
	target, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("deliver: %w", err)
	}
	if !g.permits(target.Addr()) {
		return egressError{}
	}
	return nil
}

// permits says whether deliveries may go to the address: it is public, or the operator allows it.
func (g *egressGuard) permits(address netip.Addr) bool {
	address = address.WithZone("").Unmap()
	if contains(g.allowed, address) {
		return true
	}
	if address.Is4() {
		return !contains(reserved4, address)
	}
	if nat64.Contains(address) {
		// What a NAT64 gateway connects to is the IPv4 address in the last 32 bits.
		bytes := address.As16()
		return g.permits(netip.AddrFrom4([4]byte(bytes[12:])))
	}
	return globalUnicast.Contains(address) && !contains(reserved6, address)
}

func contains(prefixes []netip.Prefix, address netip.Addr) bool {
	return slices.ContainsFunc(prefixes, func(p netip.Prefix) bool { return p.Contains(address) })
}

var (
	// reserved4 is what IANA's IPv4 special-purpose registry does not list as globally reachable, and multicast.
	reserved4 = prefixes(
		"0.0.0.0/8",        // this network
		"10.0.0.0/8",       // private
		"100.64.0.0/10",    // carrier-grade NAT; a cloud's metadata at 100.100.100.200
		"127.0.0.0/8",      // loopback
		"168.63.129.16/32", // a cloud's node agent, on every network of its own
		"169.254.0.0/16",   // link-local; the clouds' metadata
		"172.16.0.0/12",    // private
		"192.0.0.0/24",     // protocol assignments
		"192.0.2.0/24",     // documentation
		"192.88.99.0/24",   // 6to4 relays
		"192.168.0.0/16",   // private
		"198.18.0.0/15",    // benchmarking
		"198.51.100.0/24",  // documentation
		"203.0.113.0/24",   // documentation
		"224.0.0.0/4",      // multicast
		"240.0.0.0/4",      // reserved, and broadcast
	)
	// globalUnicast is all of IPv6 that is in use on the internet; loopback, link-local, unique local and
	// multicast addresses are outside of it.
	globalUnicast = netip.MustParsePrefix("2000::/3")
	reserved6     = prefixes(
		"2001::/23",     // protocol assignments, among them Teredo's embedded IPv4
		"2001:db8::/32", // documentation
		"2002::/16",     // 6to4's embedded IPv4
		"3fff::/20",     // documentation
	)
	nat64 = netip.MustParsePrefix("64:ff9b::/96")
)

func prefixes(texts ...string) []netip.Prefix {
	list := make([]netip.Prefix, len(texts))
	for i, text := range texts {
		list[i] = netip.MustParsePrefix(text)
	}
	return list
}
