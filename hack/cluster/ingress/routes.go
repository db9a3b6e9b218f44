// Package ingress is a small Ingress controller: it serves the hosts and paths of one class's Ingresses from the pods
// behind their Services. It is equipment for a test cluster, where rollouts under load have to be seen as a careful proxy
// would show them.
package ingress

import (
	"cmp"
	"crypto/tls"
	"net"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// State is everything that the routes follow from.
type State struct {
	Ingresses []networkingv1.Ingress // those of the class
	Services  []corev1.Service
	Slices    []discoveryv1.EndpointSlice
	Secrets   []corev1.Secret
}

// Table answers where a request goes and with which certificate.
type Table struct {
	routes       []route // the most specific first
	certificates map[string]*tls.Certificate
}

// route is one path of one rule.
type route struct {
	host, path string
	exact      bool
	endpoints  []string // HOST:PORT; none where no pod is ready
}

// NewTable derives the routes. Paths whose Service or port is not there have no endpoints, so that they are
// answered with 503; certificates that cannot be used are left out, and complaints name them.
func NewTable(state State) (table *Table, complaints []string) {
	table = &Table{certificates: map[string]*tls.Certificate{}}
	ingresses := slices.Clone(state.Ingresses)
	// Of two rules for the same, the older Ingress's counts.
	slices.SortStableFunc(ingresses, func(a, b networkingv1.Ingress) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), strings.Compare(a.Namespace+"/"+a.Name, b.Namespace+"/"+b.Name))
	})
	for i := range ingresses {
		one := &ingresses[i]
		for _, rule := range one.Spec.Rules {
			if rule.HTTP == nil {
				continue
			}
			for _, path := range rule.HTTP.Paths {
				table.routes = append(table.routes, route{
					host: strings.ToLower(rule.Host), path: path.Path,
					exact:     path.PathType != nil && *path.PathType == networkingv1.PathTypeExact,
					endpoints: endpoints(state, one.Namespace, path.Backend.Service),
				})
			}
		}
		complaints = append(complaints, table.addCertificates(one, state.Secrets)...)
	}
	slices.SortStableFunc(table.routes, func(a, b route) int {
		return cmp.Or(cmp.Compare(specific(b.host), specific(a.host)), cmp.Compare(len(b.path), len(a.path)), cmp.Compare(asInt(b.exact), asInt(a.exact)))
	})
	return table, complaints
}

// specific ranks hosts: exact ones, then wildcards, then none.
func specific(host string) int {
	switch {
	case host == "":
		return 0
	case strings.HasPrefix(host, "*."):
		return 1
	default:
		return 2
	}
}

func asInt(yes bool) int {
	if yes {
		return 1
	}
	return 0
}

// addCertificates takes the certificates that an Ingress names.
func (t *Table) addCertificates(one *networkingv1.Ingress, secrets []corev1.Secret) (complaints []string) {
	for _, entry := range one.Spec.TLS {
		at := slices.IndexFunc(secrets, func(s corev1.Secret) bool { return s.Namespace == one.Namespace && s.Name == entry.SecretName })
		if at < 0 {
			complaints = append(complaints, "Secret "+one.Namespace+"/"+entry.SecretName+" is not there")
			continue
		}
		pair, err := tls.X509KeyPair(secrets[at].Data[corev1.TLSCertKey], secrets[at].Data[corev1.TLSPrivateKeyKey])
		if err != nil {
			complaints = append(complaints, "Secret "+one.Namespace+"/"+entry.SecretName+" has no usable certificate and key")
			continue
		}
		for _, host := range entry.Hosts {
			if _, taken := t.certificates[strings.ToLower(host)]; !taken {
				t.certificates[strings.ToLower(host)] = &pair
			}
		}
	}
	return complaints
}

// endpoints are the addresses of the ready pods behind a backend; where none is ready, those that end but still serve.
func endpoints(state State, namespace string, backend *networkingv1.IngressServiceBackend) []string {
	if backend == nil {
		return nil
	}
	port := portName(state.Services, namespace, backend)
	if port == nil {
		return nil
	}
	var ready, ending []string
	for i := range state.Slices {
		slice := &state.Slices[i]
		if slice.Namespace != namespace || slice.Labels[discoveryv1.LabelServiceName] != backend.Name || slice.AddressType != discoveryv1.AddressTypeIPv4 {
			continue
		}
		for _, numbered := range slice.Ports {
			if numbered.Name == nil || *numbered.Name != *port || numbered.Port == nil {
				continue
			}
			for _, endpoint := range slice.Endpoints {
				address := net.JoinHostPort(endpoint.Addresses[0], decimal(*numbered.Port))
				switch conditions := endpoint.Conditions; {
				case conditions.Ready == nil || *conditions.Ready:
					ready = append(ready, address)
				case conditions.Serving != nil && *conditions.Serving:
					ending = append(ending, address)
				}
			}
		}
	}
	if len(ready) == 0 {
		ready = ending
	}
	slices.Sort(ready)
	return slices.Compact(ready)
}

// portName is the name of the Service's port that a backend means, "" for an unnamed one; nil where there is none.
func portName(services []corev1.Service, namespace string, backend *networkingv1.IngressServiceBackend) *string {
	for i := range services {
		service := &services[i]
		if client.ObjectKeyFromObject(service) != (client.ObjectKey{Namespace: namespace, Name: backend.Name}) {
			continue
		}
		for _, port := range service.Spec.Ports {
			if backend.Port.Name != "" && port.Name == backend.Port.Name || backend.Port.Name == "" && port.Port == backend.Port.Number {
				return &port.Name
			}
		}
	}
	return nil
}

// find returns the route of a request, nil where there is none.
func (t *Table) find(host, path string) *route {
	if bare, _, err := net.SplitHostPort(host); err == nil {
		host = bare
	}
	host = strings.ToLower(host)
	for i := range t.routes {
		if one := &t.routes[i]; one.serves(host) && one.leads(path) {
			return one
		}
	}
	return nil
}

// serves says whether the route is for a host. A wildcard stands for one label.
func (r *route) serves(host string) bool {
	if domain, wild := strings.CutPrefix(r.host, "*."); wild {
		label, rest, found := strings.Cut(host, ".")
		return found && label != "" && rest == domain
	}
	return r.host == "" || r.host == host
}

// leads says whether the route is for a path. A prefix counts by whole elements.
func (r *route) leads(path string) bool {
	if r.exact {
		return path == r.path
	}
	prefix := strings.TrimSuffix(r.path, "/")
	return path == prefix || strings.HasPrefix(path, prefix+"/")
}

// certificate is that of a host, nil where there is none.
func (t *Table) certificate(host string) *tls.Certificate {
	host = strings.ToLower(host)
	if found := t.certificates[host]; found != nil {
		return found
	}
	_, domain, _ := strings.Cut(host, ".")
	return t.certificates["*."+domain]
}
