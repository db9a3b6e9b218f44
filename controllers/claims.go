package controllers

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/controllers/resources"
)

// Indexes of the Property cache: by what only one Property may have.
const (
	indexName        = "weir.dev/name"
	indexCollectHost = "weir.dev/collect-host"
	indexAPIHost     = "weir.dev/api-host"
)

func namesOf(object client.Object) []string { return []string{object.GetName()} }

func (e ExposureRules) collectHostOf(object client.Object) []string {
	return given(e.complete(object.(*v1alpha1.Property)).CollectHost)
}

func apiHostOf(object client.Object) []string {
	return given(object.(*v1alpha1.Property).Spec.Exposure.APIHost)
}

func given(host string) []string {
	if host == "" {
		return nil
	}
	return []string{host}
}

// hostsOf are the hosts of a Property, the one that the template gives it among them.
func (e ExposureRules) hostsOf(object client.Object) []string {
	property := object.(*v1alpha1.Property)
	exposure := e.complete(property)
	hosts := slices.DeleteFunc([]string{exposure.CollectHost, exposure.APIHost}, func(host string) bool { return host == "" })
	slices.Sort(hosts)
	return slices.Compact(hosts)
}

// rivals returns the other Properties that have the name, or a host that no two may have. Those that share an API
// host are none: they may be many.
func (r *Reconciler) rivals(ctx context.Context, property *v1alpha1.Property) ([]v1alpha1.Property, error) {
	found := map[string]v1alpha1.Property{}
	look := func(index, value string) error {
		var list v1alpha1.PropertyList
		if err := r.Client.List(ctx, &list, client.MatchingFields{index: value}); err != nil {
			return err
		}
		for _, other := range list.Items {
			if other.UID != property.UID {
				found[other.Namespace+"/"+other.Name] = other
			}
		}
		return nil
	}
	if err := look(indexName, property.Name); err != nil {
		return nil, err
	}
	exposure := r.Options.Exposure.complete(property)
	for _, claim := range []struct{ index, host string }{
		{indexCollectHost, exposure.CollectHost}, {indexAPIHost, exposure.CollectHost}, {indexCollectHost, exposure.APIHost},
	} {
		if claim.host == "" {
			continue
		}
		if err := look(claim.index, claim.host); err != nil {
			return nil, err
		}
	}
	others := make([]v1alpha1.Property, 0, len(found))
	for _, name := range slices.Sorted(maps.Keys(found)) {
		others = append(others, found[name])
	}
	return others, nil
}

// claims sees to what only one Property of a cluster may have: the older keeps it, the younger is not exposed.
func (r *Reconciler) claims(ctx context.Context, s *scope) error {
	others, err := r.rivals(ctx, s.property)
	if err != nil {
		return err
	}
	for i := range others {
		others[i].Spec.Exposure = s.options.Exposure.complete(&others[i])
		if s.options.Exposure.refusedHost(&others[i]) != "" {
			// What it may not have it does not keep from others. Its name, which all may choose, it does.
			others[i].Spec.Exposure = v1alpha1.Exposure{}
		}
		if s.exposureFault = conflict(s.property, &others[i]); s.exposureFault != nil {
			return nil
		}
	}
	s.exposureFault, s.exposureKept = s.options.Exposure.check(s.property)
	if s.exposureFault == nil && s.property.Spec.Exposure.Type == v1alpha1.ExposureGateway && !gatewayAvailable(s) {
		s.exposureFault = newFault(v1alpha1.ReasonGatewayMissing,
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

// conflict says what of mine the older of two Properties has, nil where there is nothing or mine is the older.
func conflict(mine, other *v1alpha1.Property) *fault {
	if !older(other, mine) {
		return nil
	}
	whose := fmt.Sprintf("the older Property %s in namespace %s", other.Name, other.Namespace)
	ours, theirs := mine.Spec.Exposure, other.Spec.Exposure
	switch {
	case mine.Name == other.Name:
		return newFault(v1alpha1.ReasonHostConflict, "metadata.name: is the property id of %s; give this one another name", whose)
	case ours.CollectHost != "" && (ours.CollectHost == theirs.CollectHost || ours.CollectHost == theirs.APIHost):
		return newFault(v1alpha1.ReasonHostConflict, "spec.exposure.collectHost: %s is a host of %s; choose another", ours.CollectHost, whose)
	case ours.APIHost != "" && ours.APIHost == theirs.CollectHost:
		return newFault(v1alpha1.ReasonHostConflict, "spec.exposure.apiHost: %s is the collectHost of %s; choose another", ours.APIHost, whose)
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
