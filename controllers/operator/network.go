package operator

import (
	"flag"

	networkingv1 "k8s.io/api/networking/v1"
	"sigs.k8s.io/yaml"

	"github.com/weir-dev/weir/cli/flags"
	"github.com/weir-dev/weir/controllers/resources"
)

// networkFlags are the flags of the NetworkPolicies of Properties' pods.
type networkFlags struct {
	policies                                             bool
	ingressFrom, metricsFrom, redisFrom, dnsTo, egressTo []string
}

func (n *networkFlags) addFlags(set *flag.FlagSet) {
	set.BoolVar(&n.policies, "network-policies", true, "make a NetworkPolicy for each role of a Property")
	set.Func("ingress-from", "who may ask collectors and the read API, as a NetworkPolicy's `PEER` in JSON; may be repeated; default: anybody", flags.Repeated(&n.ingressFrom))
	set.Func("metrics-from", "who may ask a Property's pods for metrics, as a `PEER` in JSON; may be repeated; default: anybody", flags.Repeated(&n.metricsFrom))
	set.Func("redis-from", "who may reach the Redis that is made for a Property, beside the Property's pods: the operator's, as a `PEER` in JSON; may be repeated; "+
		"default: anybody", flags.Repeated(&n.redisFrom))
	set.Func("dns-to", "where a Property's pods may resolve names, as a `PEER` in JSON; may be repeated; default: anywhere", flags.Repeated(&n.dnsTo))
	set.Func("egress-to", "whom each of a Property's pods may reach beyond what it is there for, such as a mesh's control plane, as a `PEER` in JSON; "+
		"may be repeated; default: nobody", flags.Repeated(&n.egressTo))
}

func (n *networkFlags) read(errs *flags.Errors) resources.NetworkRules {
	return resources.NetworkRules{
		Disabled:    !n.policies,
		IngressFrom: parsePeers("--ingress-from", n.ingressFrom, errs),
		MetricsFrom: parsePeers("--metrics-from", n.metricsFrom, errs),
		RedisFrom:   parsePeers("--redis-from", n.redisFrom, errs),
		DNSTo:       parsePeers("--dns-to", n.dnsTo, errs),
		EgressTo:    parsePeers("--egress-to", n.egressTo, errs),
	}
}

// parsePeers reads the values of a flag that names peers of NetworkPolicies. What else is wrong with one the API
// server says, and with it the Property's condition.
func parsePeers(name string, list []string, errs *flags.Errors) []networkingv1.NetworkPolicyPeer {
	peers := make([]networkingv1.NetworkPolicyPeer, 0, len(list))
	for _, text := range list {
		var peer networkingv1.NetworkPolicyPeer
		if err := yaml.UnmarshalStrict([]byte(text), &peer); err != nil || peer == (networkingv1.NetworkPolicyPeer{}) {
			errs.Add("%s: %q must be a peer of a NetworkPolicy in JSON, as in {\"namespaceSelector\": {\"matchLabels\": {\"kubernetes.io/metadata.name\": \"ingress-nginx\"}}}", name, text)
			continue
		}
		peers = append(peers, peer)
	}
	return peers
}
