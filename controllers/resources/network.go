package resources

import (
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	applycore "k8s.io/client-go/applyconfigurations/core/v1"
	applymeta "k8s.io/client-go/applyconfigurations/meta/v1"
	applynetworking "k8s.io/client-go/applyconfigurations/networking/v1"

	"github.com/weir-dev/weir/api/v1alpha1"
)

// service leads to the pods of a role that is asked over HTTP.
func service(property *v1alpha1.Property, role Role) Object {
	name := ObjectName(property, role)
	return Object{kindService, property.Namespace, name, applycore.Service(name, property.Namespace).
		WithLabels(roleLabels(property, role)).
		WithOwnerReferences(ownedBy(property)).
		WithSpec(applycore.ServiceSpec().
			WithType(corev1.ServiceTypeClusterIP).
			WithSelector(selector(property, role)).
			WithPorts(applycore.ServicePort().WithName("http").WithPort(80).WithProtocol(corev1.ProtocolTCP).WithTargetPort(intstr.FromString("http"))))}
}

// NetworkRules are what the operator's owner knows of the cluster's network. An empty list is anybody.
type NetworkRules struct {
	// Disabled leaves the NetworkPolicies out, for clusters that bound their pods in other ways.
	Disabled bool
	// IngressFrom may ask collectors and the read API: the ingress controller, and who asks from inside.
	IngressFrom []networkingv1.NetworkPolicyPeer
	// MetricsFrom may ask for metrics. The kubelet, whose probes use the same port, always may.
	MetricsFrom []networkingv1.NetworkPolicyPeer
	// DNSTo is where names are resolved.
	DNSTo []networkingv1.NetworkPolicyPeer
	// RedisFrom may reach the Redis that is made for a Property, beside the Property's pods: the operator.
	RedisFrom []networkingv1.NetworkPolicyPeer
	// EgressTo are whom every pod may reach beyond what it is there for, as a mesh's control plane. Here an empty list is nobody.
	EgressTo []networkingv1.NetworkPolicyPeer
}

// networkPolicy closes a role's pods but for what they are there for. Where ClickHouse is, and a Redis that is not made for
// the Property, cannot be told from here, so they are bounded by port.
func networkPolicy(property *v1alpha1.Property, role Role, in Input) Object {
	name, rules := ObjectName(property, role), in.Options.Network
	allowed := []*applynetworking.NetworkPolicyIngressRuleApplyConfiguration{
		applynetworking.NetworkPolicyIngressRule().WithFrom(peers(rules.MetricsFrom)...).WithPorts(tcp(MetricsPort)),
	}
	if role.traits().takesRequests {
		allowed = append(allowed, applynetworking.NetworkPolicyIngressRule().WithFrom(peers(rules.IngressFrom)...).WithPorts(tcp(HTTPPort)))
	}
	redis := applynetworking.NetworkPolicyEgressRule()
	if in.RedisPort != 0 {
		redis.WithPorts(tcp(in.RedisPort))
	}
	if property.Spec.DedicatedRedis() != nil {
		redis.WithTo(applynetworking.NetworkPolicyPeer().WithPodSelector(applymeta.LabelSelector().WithMatchLabels(redisSelector(property))))
	}
	out := []*applynetworking.NetworkPolicyEgressRuleApplyConfiguration{
		applynetworking.NetworkPolicyEgressRule().WithTo(peers(rules.DNSTo)...).WithPorts(dnsPorts()...),
		redis,
	}
	if in.HistoryURLs[role.HistoryRole()] != "" {
		out = append(out, applynetworking.NetworkPolicyEgressRule().WithPorts(tcp(in.HistoryPort)))
	}
	out = append(out, in.Options.Tracing.egress()...)
	if len(rules.EgressTo) > 0 {
		out = append(out, applynetworking.NetworkPolicyEgressRule().WithTo(peers(rules.EgressTo)...))
	}
	if role.traits().delivers {
		out = append(out, deliveryEgress(&in.Options)...)
	}
	return Object{kindNetworkPolicy, property.Namespace, name, applynetworking.NetworkPolicy(name, property.Namespace).
		WithLabels(roleLabels(property, role)).
		WithOwnerReferences(ownedBy(property)).
		WithSpec(applynetworking.NetworkPolicySpec().
			WithPodSelector(applymeta.LabelSelector().WithMatchLabels(selector(property, role))).
			WithPolicyTypes(networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress).
			WithIngress(allowed...).
			WithEgress(out...))}
}

func tcp(port int32) *applynetworking.NetworkPolicyPortApplyConfiguration {
	return applynetworking.NetworkPolicyPort().WithProtocol(corev1.ProtocolTCP).WithPort(intstr.FromInt32(port))
}

// dnsPorts are where pods that resolve names listen, for a policy sees their ports and not the Service's: CoreDNS on 53,
// OpenShift's on 5353.
func dnsPorts() []*applynetworking.NetworkPolicyPortApplyConfiguration {
	var ports []*applynetworking.NetworkPolicyPortApplyConfiguration
	for _, port := range []int32{53, 5353} {
		ports = append(ports, tcp(port), tcp(port).WithProtocol(corev1.ProtocolUDP))
	}
	return ports
}

// peers are made for every policy, because applying one writes into it.
func peers(list []networkingv1.NetworkPolicyPeer) []*applynetworking.NetworkPolicyPeerApplyConfiguration {
	made := make([]*applynetworking.NetworkPolicyPeerApplyConfiguration, len(list))
	for i := range list {
		made[i] = asConfiguration[applynetworking.NetworkPolicyPeerApplyConfiguration](&list[i])
	}
	return made
}

// publicRanges are public addresses. The deliverer's own guard, which sees the addresses that names resolve to, is stricter; this
// holds where a pod has been taken over.
func publicRanges() []*applynetworking.NetworkPolicyPeerApplyConfiguration {
	return []*applynetworking.NetworkPolicyPeerApplyConfiguration{
		block(applynetworking.IPBlock().WithCIDR("0.0.0.0/0").WithExcept(
			"10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.168.0.0/16")),
		block(applynetworking.IPBlock().WithCIDR("::/0").WithExcept("::1/128", "fc00::/7", "fe80::/10")),
	}
}

// deliveryRanges are what the operator allows beyond them.
func deliveryRanges(allowed []netip.Prefix) []*applynetworking.NetworkPolicyPeerApplyConfiguration {
	var peers []*applynetworking.NetworkPolicyPeerApplyConfiguration
	for _, prefix := range allowed {
		peers = append(peers, block(applynetworking.IPBlock().WithCIDR(prefix.String())))
	}
	return peers
}

func block(ips *applynetworking.IPBlockApplyConfiguration) *applynetworking.NetworkPolicyPeerApplyConfiguration {
	return applynetworking.NetworkPolicyPeer().WithIPBlock(ips)
}
