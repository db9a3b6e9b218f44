// Package egress decides which addresses a tenant may have a process of ours connect to.
package egress

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"syscall"
)

// ErrDenied says that a guard has refused. It names no address: what an internal name resolves to is none of the tenant's
// business either.
var ErrDenied = errors.New("the address is not one that may be connected to")

// Guard refuses connections to addresses that a tenant has no business with: the cluster's own, the node's, the
// cloud's metadata. It is asked for the address that is about to be connected to, after the name has been resolved, so
// neither DNS nor a redirect leads around it.
type Guard struct {
	// Allowed are ranges that may be connected to although they are not public. What [machine] lists is allowed by a range
	// of its own alone, and by none around it.
	Allowed []netip.Prefix
}

// Control is a [net.Dialer]'s Control function.
func (g *Guard) Control(_, address string, _ syscall.RawConn) error {
	target, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("egress: %w", err)
	}
	if !g.Permits(target.Addr()) {
		return ErrDenied
	}
	return nil
}

// Permits says whether an address may be connected to: it is public, or allowed.
func (g *Guard) Permits(address netip.Addr) bool {
	address = address.WithZone("").Unmap()
	if g.allows(address) {
		return true
	}
	if address.Is4() {
		return !contains(reserved4, address)
	}
	if nat64.Contains(address) {
		// What a NAT64 gateway connects to is the IPv4 address in the last 32 bits.
		bytes := address.As16()
		return g.Permits(netip.AddrFrom4([4]byte(bytes[12:])))
	}
	return globalUnicast.Contains(address) && !contains(reserved6, address)
}

// IsPublic says whether an address is one of the internet's.
func IsPublic(address netip.Addr) bool { return new(Guard).Permits(address) }

func (g *Guard) allows(address netip.Addr) bool {
	closest := 0 // how narrow a range has to be
	for _, own := range machine {
		if own.Contains(address) {
			closest = max(closest, own.Bits())
		}
	}
	return slices.ContainsFunc(g.Allowed, func(p netip.Prefix) bool { return p.Bits() >= closest && p.Contains(address) })
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
	// machine is what belongs to the machine that the process runs on: itself, its links, and what its cloud tells it.
	machine = prefixes(
		"0.0.0.0/8", "127.0.0.0/8", "169.254.0.0/16", "100.100.100.200/32", "168.63.129.16/32", "192.0.0.192/32",
		"::/128", "::1/128", "fe80::/10", "fd00:ec2::254/128",
	)
)

func prefixes(texts ...string) []netip.Prefix {
	list := make([]netip.Prefix, len(texts))
	for i, text := range texts {
		list[i] = netip.MustParsePrefix(text)
	}
	return list
}
