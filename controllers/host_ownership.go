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
		if value := part(e.wantedBy(object.(*v1alpha1.Property))); value != "" {
			return []string{value}
		}
		return nil
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
		wanted := r.Options.Exposure.wantedBy(&open[0])
		for _, same := range []struct{ index, value string }{
			{indexCollectHost, wanted.collectHost}, {indexAPIHost, wanted.collectHost}, {indexCollectHost, wanted.apiHost}, {indexAPIPath, wanted.apiPath()},
		} {
			if same.value == "" {
				continue
			}
			var list v1alpha1.PropertyList
			if err := r.Client.List(ctx, &list, client.MatchingFields{same.index: same.value}); err != nil {
				return nil, err
			}
			for _, other := range list.Items {
				if !seen[other.UID] {
					seen[other.UID] = true
					others, open = append(others, other), append(open, other)
				}
			}
		}
	}
	return others, nil
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

// lost says which of the Property's hosts another owns, nil where it owns all. Hosts go by age: each in turn gets all that
// it asks for, unless an owner has some of it. So whoever is refused keeps nothing from others.
func (e ExposureRules) lost(property *v1alpha1.Property, rivals []v1alpha1.Property) *conditionReason {
	byAge := make([]*v1alpha1.Property, len(rivals))
	for i := range rivals {
		byAge[i] = &rivals[i]
	}
	byAge = slices.DeleteFunc(byAge, func(other *v1alpha1.Property) bool { return !older(other, property) })
	slices.SortFunc(byAge, func(a, b *v1alpha1.Property) int {
		if older(a, b) {
			return -1
		}
		return 1
	})
	var owners []*v1alpha1.Property
	conflict := func(mine *v1alpha1.Property) *conditionReason {
		for _, owner := range owners {
			if taken := e.wantedBy(mine).conflict(e.wantedBy(owner), owner); taken != nil {
				return taken
			}
		}
		return nil
	}
	for _, other := range byAge {
		if conflict(other) == nil {
			owners = append(owners, other)
		}
	}
	return conflict(property)
}

// conflict says which of my hosts the owner has, nil where it has none. An API host may be shared by Properties
// of different names: the paths tell them apart.
func (w wantedHosts) conflict(theirs wantedHosts, owner *v1alpha1.Property) *conditionReason {
	whose := fmt.Sprintf("the older Property %s in namespace %s", owner.Name, owner.Namespace)
	switch {
	case w.collectHost != "" && (w.collectHost == theirs.collectHost || w.collectHost == theirs.apiHost):
		return reasonf(v1alpha1.ReasonHostConflict, "spec.exposure.collectHost: %s is a host of %s; choose another", w.collectHost, whose)
	case w.apiHost != "" && w.apiHost == theirs.collectHost:
		return reasonf(v1alpha1.ReasonHostConflict, "spec.exposure.apiHost: %s is the collectHost of %s; choose another", w.apiHost, whose)
	case w.apiPath() != "" && w.apiPath() == theirs.apiPath():
		return reasonf(v1alpha1.ReasonHostConflict,
			"spec.exposure.apiHost: on %s the name %s is that of %s; choose another host, or name this Property otherwise", w.apiHost, w.name, whose)
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
