package resources_test

import (
	"fmt"
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/weir-dev/weir/controllers/resources"
)

// TestWhereADelivererBehindAProxyIsLetOut has the rules of its NetworkPolicy after those of DNS and Redis: to whom, and at which port.
func TestWhereADelivererBehindAProxyIsLetOut(t *testing.T) {
	for sentence, test := range map[string]struct {
		url     string
		allowed []netip.Prefix
		want    []string
	}{
		"a proxy of a name may be anywhere":    {"http://weir:password@proxy.example.com:3128", nil, []string{"[] 3128"}},
		"one of an IPv4 address is there":      {"http://192.0.2.7:3128", nil, []string{"[192.0.2.7/32] 3128"}},
		"one of an IPv6 address is there":      {"https://[2001:db8::7]", nil, []string{"[2001:db8::7/128] 443"}},
		"an IPv4 address, in the form of IPv6": {"http://[::ffff:192.0.2.7]:80", nil, []string{"[192.0.2.7/32] 80"}},
		"what is allowed is reached beside it": {"http://192.0.2.7:3128", []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16")}, []string{"[192.0.2.7/32] 3128", "[10.1.0.0/16]"}},
	} {
		t.Run(sentence, func(t *testing.T) {
			in, property := readObjectsInput(t, "testdata/objects/delivery-proxy.in.yaml")
			in.Options.DeliveryProxy.URL, in.Options.EgressAllowCIDRs = test.url, test.allowed
			objects, _, err := resources.Build(property, in)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, egressOf(t, objects, "shop-deliverer")); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// egressOf has the rules of a NetworkPolicy that follow those of DNS and Redis.
func egressOf(t *testing.T, objects []resources.Object, name string) (rules []string) {
	t.Helper()
	for _, object := range objects {
		if object.Kind != "NetworkPolicy" || object.Name != name {
			continue
		}
		policy := networkingv1.NetworkPolicy{}
		unstructured, err := object.Unstructured()
		if err == nil {
			err = runtime.DefaultUnstructuredConverter.FromUnstructured(unstructured.Object, &policy)
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, rule := range policy.Spec.Egress[2:] {
			to := []string{}
			for _, peer := range rule.To {
				to = append(to, peer.IPBlock.CIDR)
			}
			said := fmt.Sprint(to)
			for _, port := range rule.Ports {
				said += " " + port.Port.String()
			}
			rules = append(rules, said)
		}
	}
	return rules
}
