package resources

import (
	"maps"
	"net/netip"
	"path"
	"slices"

	applycore "k8s.io/client-go/applyconfigurations/core/v1"
	applynetworking "k8s.io/client-go/applyconfigurations/networking/v1"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/collector/config"
	"github.com/weir-dev/weir/collector/egress"
)

// volumeProxy is the proxy that deliveries go through.
const volumeProxy = "proxy"

// DeliveryProxySecretName is the Secret with the proxy that deliveries go through.
func DeliveryProxySecretName(property *v1alpha1.Property) string {
	return property.Name + "-delivery-proxy"
}

// deliveryProxySecret hands the proxy to the pods that deliver: its URL may hold a password.
func deliveryProxySecret(property *v1alpha1.Property, proxy config.DeliveryProxy) Object {
	name, data := DeliveryProxySecretName(property), map[string][]byte{}
	for file, content := range proxy.Files() {
		data[path.Base(file)] = content
	}
	return Object{kindSecret, property.Namespace, name, applycore.Secret(name, property.Namespace).
		WithLabels(Labels(property)).
		WithOwnerReferences(ownedBy(property)).
		WithData(data)}
}

// deliveryProxyVolume is mounted where the Secret is there alone: a deliverer that lacked it would go around the proxy.
func deliveryProxyVolume(property *v1alpha1.Property) *applycore.VolumeApplyConfiguration {
	var keys []string
	for file := range (config.DeliveryProxy{}).Files() {
		keys = append(keys, path.Base(file))
	}
	slices.Sort(keys)
	return secretVolume(volumeProxy, DeliveryProxySecretName(property), keys...)
}

// deliveryEgress are where deliveries may go: to anything public, or to the proxy's port where there is one, and to what the operator
// allows in either case. A proxy of an address is there and nowhere else; where one of a name is cannot be told from here.
func deliveryEgress(options *Options) []*applynetworking.NetworkPolicyEgressRuleApplyConfiguration {
	allowed := deliveryRanges(options.EgressAllowCIDRs)
	proxy, err := egress.ParseProxy(options.DeliveryProxy.URL, "")
	if err != nil { // there is none: the operator has judged it when it started
		return []*applynetworking.NetworkPolicyEgressRuleApplyConfiguration{applynetworking.NetworkPolicyEgressRule().WithTo(slices.Concat(publicRanges(), allowed)...)}
	}
	there := applynetworking.NetworkPolicyEgressRule().WithPorts(tcp(int32(proxy.Port())))
	if address, err := netip.ParseAddr(proxy.URL.Hostname()); err == nil {
		address = address.WithZone("").Unmap()
		there.WithTo(block(applynetworking.IPBlock().WithCIDR(netip.PrefixFrom(address, address.BitLen()).String())))
	}
	rules := []*applynetworking.NetworkPolicyEgressRuleApplyConfiguration{there}
	if len(allowed) > 0 {
		rules = append(rules, applynetworking.NetworkPolicyEgressRule().WithTo(allowed...))
	}
	return rules
}

// deliveryProxyFiles are those of the files that the pods which deliver have mounted.
func deliveryProxyFiles(files map[string][]byte) map[string][]byte {
	found := config.DeliveryProxy{}.Files()
	maps.DeleteFunc(found, func(file string, _ []byte) bool { return len(files[file]) == 0 })
	for file := range found {
		found[file] = files[file]
	}
	return found
}
