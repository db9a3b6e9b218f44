package controllers

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/controllers/resources"
)

// Indexes of the Property cache: by what only one Property may have.
const (
	indexCollectHost = "weir.dev/collect-host"
	indexAPIHost     = "weir.dev/api-host"
	indexAPIPath     = "weir.dev/api-path"
)

// wantedHosts are the hosts that a Property asks for, and its name on the second.
type wantedHosts struct{ collectHost, apiHost, name string }

// wantedBy returns what a Property asks for: nothing where it is not exposed, or may not have it anyway. Of one that another
// operator serves it is what that has given it.
func (e ExposureRules) wantedBy(property *v1alpha1.Property) wantedHosts {
	if property.Spec.OperatorClass != e.OperatorClass {
		return given(property)
	}
	exposure := e.complete(property)
	if exposure.Type == v1alpha1.ExposureNone || strings.HasPrefix(property.Namespace, clusterOwned) || e.refusedHost(property) != "" {
		return wantedHosts{}
	}
	return wantedHosts{exposure.CollectHost, exposure.APIHost, property.Name}
}

// given are the hosts that a Property of another class has, as its status says. By which rules its operator gives them is not
// known here, nor whether there is one: if what it asks for counted, whoever names a class that nobody serves could keep any host
// from others.
func given(property *v1alpha1.Property) wantedHosts {
	if property.Spec.Exposure.Type == v1alpha1.ExposureNone {
		return wantedHosts{}
	}
	return inStatus(property)
}

// keptBy are the hosts that a paused Property was given: whatever its spec, its class and the operator's rules say by now, what
// exposes it stands until the pause ends, and whoever got such a host beside it would see its events go elsewhere.
func keptBy(property *v1alpha1.Property) wantedHosts {
	if !isPaused(property) {
		return wantedHosts{}
	}
	return inStatus(property)
}

// claims are all the hosts that a Property keeps from others: those that it asks for, and those that it was given before a pause.
func (e ExposureRules) claims(property *v1alpha1.Property) []wantedHosts {
	return []wantedHosts{e.wantedBy(property), keptBy(property)}
}

// inStatus are the hosts that a Property has, as its status says.
func inStatus(property *v1alpha1.Property) wantedHosts {
	host := func(address string) string {
		parsed, err := url.Parse(address)
		if err != nil {
			return ""
		}
		return parsed.Hostname()
	}
	return wantedHosts{host(property.Status.CollectURL), host(property.Status.APIURL), property.Name}
}

// hostsOf are the hosts that a Property asks for, the one that the template gives it among them.
func (e ExposureRules) hostsOf(property *v1alpha1.Property) []string {
	exposure := e.complete(property)
	hosts := slices.DeleteFunc([]string{exposure.CollectHost, exposure.APIHost}, func(host string) bool { return host == "" })
	slices.Sort(hosts)
	return slices.Compact(hosts)
}

// apiPath is where the read API of the Property is; "" where it is not exposed.
func (w wantedHosts) apiPath() string {
	if w.apiHost == "" {
		return ""
	}
	return w.apiHost + "/" + w.name
}

// indexed returns an indexer by a part of what Properties ask for.
func (e ExposureRules) indexed(part func(wantedHosts) string) client.IndexerFunc {
	return func(object client.Object) []string {
		var values []string
		for _, claim := range e.claims(object.(*v1alpha1.Property)) {
			if value := part(claim); value != "" && !slices.Contains(values, value) {
				values = append(values, value)
			}
		}
		return values
	}
}

// indexers are those of the indexes by what Properties ask for.
func (e ExposureRules) indexers() map[string]client.IndexerFunc {
	return map[string]client.IndexerFunc{
		indexCollectHost: e.indexed(func(w wantedHosts) string { return w.collectHost }),
		indexAPIHost:     e.indexed(func(w wantedHosts) string { return w.apiHost }),
		indexAPIPath:     e.indexed(wantedHosts.apiPath),
	}
}

// rivals returns the other Properties on whose hosts the Property's may depend: those that ask for what it asks for, those
// that ask for what these do, and so on.
func (r *Reconciler) rivals(ctx context.Context, property *v1alpha1.Property) ([]v1alpha1.Property, error) {
	seen := map[types.UID]bool{property.UID: true}
	var others []v1alpha1.Property
	for open := []v1alpha1.Property{*property}; len(open) > 0; open = open[1:] {
		for _, claim := range r.Options.Exposure.claims(&open[0]) {
			same, err := r.claiming(ctx, claim)
			if err != nil {
				return nil, err
			}
			for _, other := range same {
				if !seen[other.UID] {
					seen[other.UID] = true
					others, open = append(others, other), append(open, other)
				}
			}
		}
	}
	return others, nil
}

// claiming returns the Properties with which hosts may conflict, some of them twice.
func (r *Reconciler) claiming(ctx context.Context, hosts wantedHosts) ([]v1alpha1.Property, error) {
	var found []v1alpha1.Property
	for _, same := range []struct{ index, value string }{
		{indexCollectHost, hosts.collectHost}, {indexAPIHost, hosts.collectHost}, {indexCollectHost, hosts.apiHost}, {indexAPIPath, hosts.apiPath()},
	} {
		if same.value == "" {
			continue
		}
		var list v1alpha1.PropertyList
		if err := r.Client.List(ctx, &list, client.MatchingFields{same.index: same.value}); err != nil {
			return nil, err
		}
		found = append(found, list.Items...)
	}
	return found, nil
}

// hostOwnership says whether the Property owns the hosts that it asks for.
func (r *Reconciler) hostOwnership(ctx context.Context, s *scope) error {
	others, err := r.rivals(ctx, s.property)
	if err != nil { // whose the hosts are is not known: what there is stays
		s.exposureProblem, s.exposureKept = new(failureOf(err)), true
		return err
	}
	if s.exposureProblem = s.options.Exposure.lost(s.property, others); s.exposureProblem != nil {
		return nil
	}
	s.exposureProblem, s.exposureKept = s.options.Exposure.check(s.property)
	if s.exposureProblem == nil && s.property.Spec.Exposure.Type == v1alpha1.ExposureGateway && !gatewayAvailable(s) {
		s.exposureProblem = reasonf(v1alpha1.ReasonGatewayMissing,
			"spec.exposure.type: the cluster has no HTTPRoutes; install the Gateway API, or set type to Ingress or None")
	}
	return nil
}

func gatewayAvailable(s *scope) bool {
	for kind, available := range s.available {
		if available && resources.IsGatewayRoute(kind) {
			return true
		}
	}
	return false
}

// claim is what an owner has.
type claim struct {
	hosts wantedHosts
	owner *v1alpha1.Property
	// whose names the owner.
	whose string
}

// lost says which of the Property's hosts another owns, nil where it owns all. What paused ones were given is theirs: it cannot be
// withdrawn. The other hosts go by age: each in turn gets all that it asks for, unless an owner has some of it. So whoever is
// refused keeps nothing from others.
func (e ExposureRules) lost(property *v1alpha1.Property, rivals []v1alpha1.Property) *conditionReason {
	var claims []claim
	var byAge []*v1alpha1.Property
	for i := range rivals {
		other := &rivals[i]
		if kept := keptBy(other); kept != (wantedHosts{}) {
			claims = append(claims, claim{kept, other, fmt.Sprintf("the Property %s in namespace %s, which is paused and keeps it until the pause ends", other.Name, other.Namespace)})
		}
		if older(other, property) {
			byAge = append(byAge, other)
		}
	}
	slices.SortFunc(byAge, func(a, b *v1alpha1.Property) int {
		if older(a, b) {
			return -1
		}
		return 1
	})
	conflict := func(mine *v1alpha1.Property) *conditionReason {
		for _, theirs := range claims {
			if theirs.owner == mine {
				continue
			}
			if taken := e.wantedBy(mine).conflict(theirs); taken != nil {
				return taken
			}
		}
		return nil
	}
	for _, other := range byAge {
		if conflict(other) == nil {
			claims = append(claims, claim{e.wantedBy(other), other, fmt.Sprintf("the older Property %s in namespace %s", other.Name, other.Namespace)})
		}
	}
	return conflict(property)
}

// conflict says which of my hosts the owner has, nil where it has none. An API host may be shared by Properties
// of different names: the paths tell them apart.
func (w wantedHosts) conflict(theirs claim) *conditionReason {
	switch hosts := theirs.hosts; {
	case w.collectHost != "" && (w.collectHost == hosts.collectHost || w.collectHost == hosts.apiHost):
		return reasonf(v1alpha1.ReasonHostConflict, "spec.exposure.collectHost: %s is a host of %s; choose another", w.collectHost, theirs.whose)
	case w.apiHost != "" && w.apiHost == hosts.collectHost:
		return reasonf(v1alpha1.ReasonHostConflict, "spec.exposure.apiHost: %s is the collectHost of %s; choose another", w.apiHost, theirs.whose)
	case w.apiPath() != "" && w.apiPath() == hosts.apiPath():
		return reasonf(v1alpha1.ReasonHostConflict,
			"spec.exposure.apiHost: on %s the name %s is that of %s; choose another host, or name this Property otherwise", w.apiHost, w.name, theirs.whose)
	default:
		return nil
	}
}

// older puts any two Properties in the same order for everybody: by age, and where that is the same by name.
func older(a, b *v1alpha1.Property) bool {
	if !a.CreationTimestamp.Equal(&b.CreationTimestamp) {
		return a.CreationTimestamp.Before(&b.CreationTimestamp)
	}
	return a.Namespace+"/"+a.Name < b.Namespace+"/"+b.Name
}
