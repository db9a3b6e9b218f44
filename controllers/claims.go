package controllers

import (
	"context"
	"fmt"
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

// claim is what of hosts a Property asks for.
type claim struct{ collectHost, apiHost, name string }

// claimOf returns what a Property claims: nothing where it is not exposed, or may not have what it asks for anyway.
func (e ExposureRules) claimOf(property *v1alpha1.Property) claim {
	exposure := e.complete(property)
	if exposure.Type == v1alpha1.ExposureNone || strings.HasPrefix(property.Namespace, clusterOwned) || e.refusedHost(property) != "" {
		return claim{}
	}
	return claim{exposure.CollectHost, exposure.APIHost, property.Name}
}

// hostsOf are the hosts that a Property asks for, the one that the template gives it among them.
func (e ExposureRules) hostsOf(property *v1alpha1.Property) []string {
	exposure := e.complete(property)
	hosts := slices.DeleteFunc([]string{exposure.CollectHost, exposure.APIHost}, func(host string) bool { return host == "" })
	slices.Sort(hosts)
	return slices.Compact(hosts)
}

// apiPath is where the read API of the Property is; "" where it is not exposed.
func (c claim) apiPath() string {
	if c.apiHost == "" {
		return ""
	}
	return c.apiHost + "/" + c.name
}

// indexed returns an indexer by a part of the claim.
func (e ExposureRules) indexed(part func(claim) string) client.IndexerFunc {
	return func(object client.Object) []string {
		if value := part(e.claimOf(object.(*v1alpha1.Property))); value != "" {
			return []string{value}
		}
		return nil
	}
}

// indexers are those of the indexes by what Properties claim.
func (e ExposureRules) indexers() map[string]client.IndexerFunc {
	return map[string]client.IndexerFunc{
		indexCollectHost: e.indexed(func(c claim) string { return c.collectHost }),
		indexAPIHost:     e.indexed(func(c claim) string { return c.apiHost }),
		indexAPIPath:     e.indexed(claim.apiPath),
	}
}

// rivals returns the other Properties on whose claims the Property's may depend: those that claim what it claims, those
// that claim what these claim, and so on.
func (r *Reconciler) rivals(ctx context.Context, property *v1alpha1.Property) ([]v1alpha1.Property, error) {
	seen := map[types.UID]bool{property.UID: true}
	var others []v1alpha1.Property
	for open := []v1alpha1.Property{*property}; len(open) > 0; open = open[1:] {
		c := r.Options.Exposure.claimOf(&open[0])
		for _, same := range []struct{ index, value string }{
			{indexCollectHost, c.collectHost}, {indexAPIHost, c.collectHost}, {indexCollectHost, c.apiHost}, {indexAPIPath, c.apiPath()},
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

// claims sees to what only one Property may have.
func (r *Reconciler) claims(ctx context.Context, s *scope) error {
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

// lost says what of the Property's claim another has, nil where it has all. Hosts go by age: each in turn gets all that
// it claims, unless one who got theirs has some of it. So whoever is refused keeps nothing from others.
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
	var holders []*v1alpha1.Property
	conflict := func(mine *v1alpha1.Property) *conditionReason {
		for _, holder := range holders {
			if taken := e.claimOf(mine).conflict(e.claimOf(holder), holder); taken != nil {
				return taken
			}
		}
		return nil
	}
	for _, other := range byAge {
		if conflict(other) == nil {
			holders = append(holders, other)
		}
	}
	return conflict(property)
}

// conflict says what of my claim is part of the holder's, nil where nothing is. An API host may be shared by Properties
// of different names: the paths tell them apart.
func (c claim) conflict(theirs claim, holder *v1alpha1.Property) *conditionReason {
	whose := fmt.Sprintf("the older Property %s in namespace %s", holder.Name, holder.Namespace)
	switch {
	case c.collectHost != "" && (c.collectHost == theirs.collectHost || c.collectHost == theirs.apiHost):
		return reasonf(v1alpha1.ReasonHostConflict, "spec.exposure.collectHost: %s is a host of %s; choose another", c.collectHost, whose)
	case c.apiHost != "" && c.apiHost == theirs.collectHost:
		return reasonf(v1alpha1.ReasonHostConflict, "spec.exposure.apiHost: %s is the collectHost of %s; choose another", c.apiHost, whose)
	case c.apiPath() != "" && c.apiPath() == theirs.apiPath():
		return reasonf(v1alpha1.ReasonHostConflict,
			"spec.exposure.apiHost: on %s the name %s is that of %s; choose another host, or name this Property otherwise", c.apiHost, c.name, whose)
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
