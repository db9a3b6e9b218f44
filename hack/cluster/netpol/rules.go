// Package netpol enforces NetworkPolicies on the one node that it runs on, by an nftables table of its own: pod and
// namespace selectors, address blocks with exceptions, ports by number, range or name, both directions. Traffic between
// the node itself and its pods is what the field leaves open: the node reaches every pod, as the kubelet's probes must.
package netpol

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// State is everything that the rules follow from.
type State struct {
	Pods       []corev1.Pod
	Namespaces []corev1.Namespace
	Policies   []networkingv1.NetworkPolicy
}

// Ruleset is the state's nftables script: it replaces the table as a whole, in one transaction. Equal states give equal scripts. An
// error names the policy that cannot be understood.
func Ruleset(state State) (string, error) {
	c := compiler{namespaces: map[string]labels.Set{}}
	for _, namespace := range state.Namespaces {
		c.namespaces[namespace.Name] = namespace.Labels
	}
	for _, pod := range state.Pods {
		if connected(&pod) {
			c.pods = append(c.pods, pod)
		}
	}
	slices.SortFunc(c.pods, func(a, b corev1.Pod) int { return strings.Compare(a.Namespace+"/"+a.Name, b.Namespace+"/"+b.Name) })
	policies := slices.Clone(state.Policies)
	slices.SortFunc(policies, func(a, b networkingv1.NetworkPolicy) int {
		return strings.Compare(a.Namespace+"/"+a.Name, b.Namespace+"/"+b.Name)
	})

	var chains strings.Builder
	var into, outOf []string // elements of the maps from a pod's address to its chain
	for i := range c.pods {
		pod := &c.pods[i]
		ingress, egress, err := c.isolation(pod, policies)
		if err != nil {
			return "", err
		}
		name := strings.ReplaceAll(pod.Status.PodIP, ".", "_")
		if ingress.isolated {
			into = append(into, fmt.Sprintf("%s : jump into_%s", pod.Status.PodIP, name))
			writeChain(&chains, "into_"+name, "to "+pod.Namespace+"/"+pod.Name, ingress.matches)
		}
		if egress.isolated {
			outOf = append(outOf, fmt.Sprintf("%s : jump out_of_%s", pod.Status.PodIP, name))
			writeChain(&chains, "out_of_"+name, "from "+pod.Namespace+"/"+pod.Name, egress.matches)
		}
	}

	var script strings.Builder
	// Adding it first makes deleting it succeed in any case.
	script.WriteString("add table ip weir-netpol\ndelete table ip weir-netpol\ntable ip weir-netpol {\n")
	script.WriteString(chains.String())
	// A connection that was allowed stays so. Between pods, and from outside to pods, packets are forwarded; those from a pod
	// to the node itself come in as input.
	for _, hook := range []string{"forward", "input"} {
		fmt.Fprintf(&script, "  chain %s {\n    type filter hook %s priority filter; policy accept;\n", hook, hook)
		script.WriteString("    ct state established,related accept\n")
		if len(outOf) > 0 {
			fmt.Fprintf(&script, "    ip saddr vmap { %s }\n", strings.Join(outOf, ", "))
		}
		if hook == "forward" && len(into) > 0 {
			fmt.Fprintf(&script, "    ip daddr vmap { %s }\n", strings.Join(into, ", "))
		}
		script.WriteString("  }\n")
	}
	script.WriteString("}\n")
	return script.String(), nil
}

// connected says whether a pod has an address of its own in use.
func connected(pod *corev1.Pod) bool {
	return pod.Status.PodIP != "" && !pod.Spec.HostNetwork && pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed
}

// writeChain writes what a pod's traffic in one direction has to match. What matches none is refused rather than dropped, so
// that whoever is not allowed learns it at once.
func writeChain(out *strings.Builder, name, comment string, matches []string) {
	fmt.Fprintf(out, "  chain %s {\n    comment %q\n", name, comment)
	for _, match := range matches {
		fmt.Fprintf(out, "    %s return\n", match)
	}
	out.WriteString("    counter reject with icmp type admin-prohibited\n  }\n")
}

// compiler knows the cluster that selectors are applied to.
type compiler struct {
	pods       []corev1.Pod // sorted
	namespaces map[string]labels.Set
}

// direction is what a pod's policies say about its traffic in one direction.
type direction struct {
	isolated bool     // whether any policy selects the pod
	matches  []string // what is allowed, as nftables matches; "" allows all
}

// isolation returns what is allowed to and from a pod.
func (c *compiler) isolation(pod *corev1.Pod, policies []networkingv1.NetworkPolicy) (ingress, egress direction, err error) {
	for i := range policies {
		policy := &policies[i]
		if policy.Namespace != pod.Namespace {
			continue
		}
		selected, err := matches(&policy.Spec.PodSelector, pod.Labels)
		if err != nil {
			return ingress, egress, named(policy, err)
		}
		if !selected {
			continue
		}
		if slices.Contains(policy.Spec.PolicyTypes, networkingv1.PolicyTypeIngress) {
			ingress.isolated = true
			for _, rule := range policy.Spec.Ingress {
				allowed, err := c.allowed("saddr", policy.Namespace, rule.From, rule.Ports, pod)
				if err != nil {
					return ingress, egress, named(policy, err)
				}
				ingress.matches = append(ingress.matches, allowed...)
			}
		}
		if slices.Contains(policy.Spec.PolicyTypes, networkingv1.PolicyTypeEgress) {
			egress.isolated = true
			for _, rule := range policy.Spec.Egress {
				allowed, err := c.allowed("daddr", policy.Namespace, rule.To, rule.Ports, nil)
				if err != nil {
					return ingress, egress, named(policy, err)
				}
				egress.matches = append(egress.matches, allowed...)
			}
		}
	}
	return ingress, egress, nil
}

func named(policy *networkingv1.NetworkPolicy, err error) error {
	return fmt.Errorf("NetworkPolicy %s/%s: %w", policy.Namespace, policy.Name, err)
}

func matches(selector *metav1.LabelSelector, set labels.Set) (bool, error) {
	parsed, err := metav1.LabelSelectorAsSelector(selector)
	return err == nil && parsed.Matches(set), err
}

// allowed are the matches of one rule. side is saddr or daddr: which address the peers have. target is the pod whose
// ports are meant; nil where they are those of the peers.
func (c *compiler) allowed(side, namespace string, peers []networkingv1.NetworkPolicyPeer, ports []networkingv1.NetworkPolicyPort,
	target *corev1.Pod,
) ([]string, error) {
	var found []string
	blocks, pods, err := c.peers(side, namespace, peers)
	if err != nil {
		return nil, err
	}
	addresses := blocks
	if len(pods) > 0 {
		addresses = append(addresses, "ip "+side+" { "+strings.Join(podAddresses(pods), ", ")+" }")
	}
	if len(peers) == 0 {
		addresses, pods = []string{""}, c.pods
	}
	if len(ports) == 0 {
		return addresses, nil
	}
	for _, port := range ports {
		if port.Port != nil && port.Port.Type == intstr.String && target == nil {
			found = append(found, peersPort(pods, protocol(port), port.Port.StrVal)...)
			continue
		}
		match := portMatch(port, target)
		if match == "" {
			continue // the pod has no port of that name
		}
		for _, address := range addresses {
			found = append(found, strings.TrimSpace(address+" "+match))
		}
	}
	return found, nil
}

// peers returns the matches of address blocks, and the pods that selectors choose.
func (c *compiler) peers(side, namespace string, peers []networkingv1.NetworkPolicyPeer) (blocks []string, pods []corev1.Pod, err error) {
	for _, peer := range peers {
		if peer.IPBlock != nil {
			block, err := blockMatch(side, peer.IPBlock)
			if err != nil {
				return nil, nil, err
			}
			if block != "" {
				blocks = append(blocks, block)
			}
		}
	}
	for _, pod := range c.pods {
		for _, peer := range peers {
			chosen, err := c.chosen(namespace, peer, &pod)
			if err != nil {
				return nil, nil, err
			}
			if chosen {
				pods = append(pods, pod)
				break
			}
		}
	}
	return blocks, pods, nil
}

// chosen says whether a peer's selectors choose a pod: those of the policy's own namespace where there is no other selector.
func (c *compiler) chosen(namespace string, peer networkingv1.NetworkPolicyPeer, pod *corev1.Pod) (bool, error) {
	if peer.IPBlock != nil {
		return false, nil
	}
	there := pod.Namespace == namespace
	if peer.NamespaceSelector != nil {
		var err error
		if there, err = matches(peer.NamespaceSelector, c.namespaces[pod.Namespace]); err != nil {
			return false, err
		}
	}
	if !there || peer.PodSelector == nil {
		return there, nil
	}
	return matches(peer.PodSelector, pod.Labels)
}

// blockMatch is the match of an address block; "" for one of IPv6, which no pod here has.
func blockMatch(side string, block *networkingv1.IPBlock) (string, error) {
	prefix, err := netip.ParsePrefix(block.CIDR)
	if err != nil {
		return "", fmt.Errorf("ipBlock: %w", err)
	}
	if !prefix.Addr().Is4() {
		return "", nil
	}
	match := "ip " + side + " " + prefix.Masked().String()
	if len(block.Except) > 0 {
		match += " ip " + side + " != { " + strings.Join(block.Except, ", ") + " }"
	}
	return match, nil
}

func podAddresses(pods []corev1.Pod) []string {
	var addresses []string
	for _, pod := range pods {
		addresses = append(addresses, pod.Status.PodIP)
	}
	return addresses
}

func protocol(port networkingv1.NetworkPolicyPort) string {
	if port.Protocol == nil {
		return "tcp"
	}
	return strings.ToLower(string(*port.Protocol))
}

// portMatch is the match of a port; a name is looked up in target, and gives "" where it has no such port.
func portMatch(port networkingv1.NetworkPolicyPort, target *corev1.Pod) string {
	switch {
	case port.Port == nil:
		return "meta l4proto " + protocol(port)
	case port.EndPort != nil:
		return fmt.Sprintf("%s dport %d-%d", protocol(port), port.Port.IntVal, *port.EndPort)
	case port.Port.Type == intstr.Int:
		return fmt.Sprintf("%s dport %d", protocol(port), port.Port.IntVal)
	}
	if number := namedPort(target, protocol(port), port.Port.StrVal); number != 0 {
		return fmt.Sprintf("%s dport %d", protocol(port), number)
	}
	return ""
}

// peersPort are the matches of a named port of peers, each of which may have it at another number.
func peersPort(pods []corev1.Pod, protocol, name string) []string {
	var elements []string
	for i := range pods {
		if number := namedPort(&pods[i], protocol, name); number != 0 {
			elements = append(elements, fmt.Sprintf("%s . %d", pods[i].Status.PodIP, number))
		}
	}
	if len(elements) == 0 {
		return nil
	}
	return []string{fmt.Sprintf("ip daddr . %s dport { %s }", protocol, strings.Join(elements, ", "))}
}

// namedPort is the number of a pod's port of that name, 0 where it has none.
func namedPort(pod *corev1.Pod, protocol, name string) int32 {
	for _, container := range pod.Spec.Containers {
		for _, port := range container.Ports {
			if port.Name == name && strings.EqualFold(string(port.Protocol), protocol) {
				return port.ContainerPort
			}
		}
	}
	return 0
}
