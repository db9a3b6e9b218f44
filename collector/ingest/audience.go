package ingest

import (
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/weir-dev/weir/collector/config"
	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/event/envelope"
)

// audience tells who the events of one property count for.
type audience struct {
	networks []netip.Prefix
	hosts    map[string]bool
	// domains begin with a dot: every host that ends like one is excluded.
	domains []string
	clients map[string]bool
	// bots is nil where bots count.
	bots Bots
}

func newAudience(exclude config.Exclude, bots Bots) audience {
	a := audience{networks: exclude.CIDRs, hosts: map[string]bool{}, clients: setOf(exclude.ClientIDs)}
	for _, host := range exclude.Hosts {
		if domain, below := strings.CutPrefix(host, "*"); below {
			a.domains = append(a.domains, domain)
			continue
		}
		a.hosts[host] = true
	}
	if !exclude.KeepBots {
		a.bots = bots
	}
	return a
}

func setOf(texts []string) map[string]bool {
	set := make(map[string]bool, len(texts))
	for _, text := range texts {
		set[text] = true
	}
	return set
}

// classOf returns the first class that an event belongs to: what its sender says of it goes before what the owner says of
// whose it is, and both before what its user agent says. Where nothing tells, as of an event that a server made, it is a
// human's.
func (a *audience) classOf(t envelope.Traits) event.Class {
	switch {
	case t.Test:
		return event.Test
	case a.clients[t.ClientID], a.hasNetworkOf(t.IP), a.hasHostOf(t.PageURL):
		return event.Internal
	case a.bots != nil && a.bots.IsBot(t.UserAgent):
		return event.Bot
	default:
		return event.Human
	}
}

func (a *audience) hasNetworkOf(ip string) bool {
	if len(a.networks) == 0 || ip == "" {
		return false
	}
	address, err := netip.ParseAddr(ip)
	return err == nil && slices.ContainsFunc(a.networks, func(network netip.Prefix) bool { return network.Contains(address) })
}

func (a *audience) hasHostOf(page string) bool {
	if (len(a.hosts) == 0 && len(a.domains) == 0) || page == "" {
		return false
	}
	u, err := url.Parse(page)
	if err != nil {
		return false
	}
	host := strings.TrimSuffix(strings.ToLower(u.Hostname()), ".")
	return a.hosts[host] || slices.ContainsFunc(a.domains, func(domain string) bool { return strings.HasSuffix(host, domain) })
}
