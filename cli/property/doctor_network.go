package property

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/cli/cluster"
	"github.com/weir-dev/weir/collector/connect"
	"github.com/weir-dev/weir/controllers/resources"
)

const (
	// dialWithin is how long a host may take to be looked up or to answer.
	dialWithin = 10 * time.Second
	// expiresSoon is when a certificate should have been renewed.
	expiresSoon = 14 * 24 * time.Hour
)

func inNamespace(e *examination) client.InNamespace { return client.InNamespace(e.property.Namespace) }

func one() client.Limit { return client.Limit(1) }

// services looks whether Services lead to pods that take requests.
func (e *examination) services(ctx context.Context) {
	for _, role := range []resources.Role{resources.Collector, resources.Query} {
		name := resources.ObjectName(e.property, role)
		what := "Service " + name
		service := &corev1.Service{}
		if err := e.reached.Get(ctx, client.ObjectKey{Namespace: e.property.Namespace, Name: name}, service); err != nil {
			e.missing(what, err, "The operator makes it: its conditions say why it has not.")
			continue
		}
		var slicesOf discoveryv1.EndpointSliceList
		if err := e.reached.List(ctx, &slicesOf, inNamespace(e), client.MatchingLabels{discoveryv1.LabelServiceName: name}); err != nil {
			e.cannot(what, cluster.Explain("list its EndpointSlices", err))
			continue
		}
		ready := 0
		for _, slice := range slicesOf.Items {
			for _, endpoint := range slice.Endpoints {
				if ptr.Deref(endpoint.Conditions.Ready, true) {
					ready++
				}
			}
		}
		e.judge(what, ready > 0, failed, "No pod of it is ready: see the pods above.", "%d endpoints are ready", ready)
	}
}

// missing adds that an object is not there, or may not be looked at.
func (e *examination) missing(what string, err error, advice string) {
	if apierrors.IsNotFound(err) {
		e.add(what, failed, advice, "is not there")
		return
	}
	e.cannot(what, cluster.Explain("read it", err))
}

// exposure looks at the Ingress or the HTTPRoutes, and at the hosts as this machine sees them.
func (e *examination) exposure(ctx context.Context) {
	switch e.property.Spec.Exposure.Type {
	case v1alpha1.ExposureIngress:
		e.ingress(ctx)
	case v1alpha1.ExposureGateway:
		e.routes(ctx)
	default:
		e.add("exposure", fine, "", "none: events come from inside the cluster")
		return
	}
	seen := map[string]bool{}
	for _, address := range []string{e.property.Status.CollectURL, e.property.Status.APIURL} {
		if address != "" && !seen[address] {
			seen[address] = true
			e.host(ctx, address)
		}
	}
}

func (e *examination) ingress(ctx context.Context) {
	name := resources.ObjectName(e.property, resources.Collector)
	what := "Ingress " + name
	ingress := &networkingv1.Ingress{}
	if err := e.reached.Get(ctx, client.ObjectKey{Namespace: e.property.Namespace, Name: name}, ingress); err != nil {
		e.missing(what, err, "The operator makes it: the condition Exposed says why it has not.")
		return
	}
	var addresses []string
	for _, point := range ingress.Status.LoadBalancer.Ingress {
		addresses = append(addresses, point.IP+point.Hostname)
	}
	class := ptr.Deref(ingress.Spec.IngressClassName, "the default one")
	e.judge(what, len(addresses) > 0, warning, "No controller has given it an address: look whether one serves this class. Some never say.",
		"class %s, address %s", class, cmp.Or(strings.Join(addresses, ", "), "-"))
}

func (e *examination) routes(ctx context.Context) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(schema.GroupVersionKind{Group: "gateway.networking.k8s.io", Version: "v1", Kind: "HTTPRouteList"})
	if err := e.reached.List(ctx, list, inNamespace(e), labelled(e.property)); err != nil {
		e.cannot("HTTPRoutes", cluster.Explain("list them", err))
		return
	}
	if len(list.Items) == 0 {
		e.add("HTTPRoutes", failed, "The operator makes them: the condition Exposed says why it has not.", "there are none")
	}
	for i := range list.Items {
		bad := unaccepted(&list.Items[i])
		e.judge("HTTPRoute "+list.Items[i].GetName(), bad == "", failed, "Look at the Gateway: whether it is there, and lets routes of this namespace in.", "%s", cmp.Or(bad, "accepted"))
	}
}

// unaccepted says what a Gateway's controller has against a route, "" for nothing.
func unaccepted(route *unstructured.Unstructured) string {
	parents, _, _ := unstructured.NestedSlice(route.Object, "status", "parents")
	if len(parents) == 0 {
		return "no Gateway has said anything of it"
	}
	for _, parent := range parents {
		members, _ := parent.(map[string]any)
		conditions, _, _ := unstructured.NestedSlice(members, "conditions")
		for _, raw := range conditions {
			c, _ := raw.(map[string]any)
			kind, _ := c["type"].(string)
			if (kind == "Accepted" || kind == "ResolvedRefs") && c["status"] != "True" {
				return fmt.Sprintf("%s is %v (%v): %v", kind, c["status"], c["reason"], c["message"])
			}
		}
	}
	return ""
}

// host looks a host up, shakes hands and asks, from this machine, as senders outside do.
func (e *examination) host(ctx context.Context, address string) {
	u, err := url.Parse(address)
	if err != nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, 3*dialWithin)
	defer cancel()
	found, err := net.DefaultResolver.LookupHost(ctx, u.Hostname())
	if err != nil {
		e.add("DNS of "+u.Hostname(), failed, "Make a record that leads to the ingress or Gateway. Where names differ inside and outside, look from where senders are.", "this machine does not find it: %v", err)
		return
	}
	slices.Sort(found)
	e.add("DNS of "+u.Hostname(), fine, "", "%s", strings.Join(found, ", "))
	if u.Scheme == "https" && !e.certificate(ctx, u) {
		return
	}
	e.answer(ctx, u)
}

// certificate says whether the host's is one that senders trust.
func (e *examination) certificate(ctx context.Context, u *url.URL) bool {
	what := "certificate of " + u.Hostname()
	port := strconv.Itoa(int(connect.Port(u)))
	dialer := &tls.Dialer{NetDialer: &net.Dialer{Timeout: dialWithin}, Config: &tls.Config{ServerName: u.Hostname(), MinVersion: tls.VersionTLS12}}
	connection, err := dialer.DialContext(ctx, "tcp", net.JoinHostPort(u.Hostname(), port))
	if err != nil {
		e.add(what, failed, "Give the host a certificate for its name (exposure.ingress.tlsSecretName, cert-manager, or the Gateway's listener), and let this port in.", "%v", err)
		return false
	}
	defer connection.Close()
	end := connection.(*tls.Conn).ConnectionState().PeerCertificates[0].NotAfter
	left := end.Sub(e.Now())
	e.judge(what, left > expiresSoon, warning, "Renew it: nothing of Weir's does.", "valid until %s", end.UTC().Format(time.DateOnly))
	return true
}

// answer asks for a page that there is not: Weir's pods say so themselves, an ingress without pods answers 502 or 503.
func (e *examination) answer(ctx context.Context, u *url.URL) {
	what := "answer of " + u.Hostname()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimRight(u.String(), "/")+"/collect/", http.NoBody)
	if err != nil {
		return
	}
	asker := &http.Client{Timeout: dialWithin, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	response, err := asker.Do(request)
	if err != nil {
		e.add(what, failed, "Look at the way there: firewall, load balancer, ingress controller.", "%v", err)
		return
	}
	defer response.Body.Close()
	e.judge(what, response.StatusCode < 500, failed, "The ingress reaches no pod: networkPolicy.ingressFrom must let its controller in, and the Service must have endpoints.",
		"status %d", response.StatusCode)
}

// policies says what NetworkPolicies let in. Policies add up, so that others' take nothing from Weir's own; what keeps pods from Redis is
// on Redis's side, which [examination.insidePods] sees.
func (e *examination) policies(ctx context.Context) {
	var list networkingv1.NetworkPolicyList
	if err := e.reached.List(ctx, &list, inNamespace(e), labelled(e.property)); err != nil {
		e.cannot("NetworkPolicies", cluster.Explain("list them", err))
		return
	}
	if len(list.Items) == 0 {
		e.add("NetworkPolicies", fine, "", "none of Weir's: the operator was told to make none")
		return
	}
	for i := range list.Items {
		policy := &list.Items[i]
		if policy.Labels[resources.LabelComponent] != string(resources.Collector) {
			continue
		}
		var from []string
		for _, rule := range policy.Spec.Ingress {
			for _, peer := range rule.From {
				from = append(from, peerWords(peer))
			}
		}
		e.add("NetworkPolicy "+policy.Name, fine, "", "lets in %s", cmp.Or(strings.Join(slices.Compact(slices.Sorted(slices.Values(from))), ", "), "anybody"))
	}
}

func peerWords(peer networkingv1.NetworkPolicyPeer) string {
	var words []string
	if peer.NamespaceSelector != nil {
		words = append(words, "namespaces with "+selectorWords(peer.NamespaceSelector.MatchLabels))
	}
	if peer.PodSelector != nil {
		words = append(words, "pods with "+selectorWords(peer.PodSelector.MatchLabels))
	}
	if peer.IPBlock != nil {
		words = append(words, peer.IPBlock.CIDR)
	}
	return strings.Join(words, " and ")
}

func selectorWords(labels map[string]string) string {
	if len(labels) == 0 {
		return "any label"
	}
	var words []string
	for name, value := range labels {
		words = append(words, name+"="+value)
	}
	slices.Sort(words)
	return strings.Join(words, ",")
}
