package controllers_test

import (
	"slices"
	"testing"

	"k8s.io/client-go/discovery"

	"github.com/weir-dev/weir/api/v1alpha1"
)

// TestNamesForKubectl asks the API server by which names kubectl finds the kinds.
func TestNamesForKubectl(t *testing.T) {
	t.Parallel()
	asked, err := discovery.NewDiscoveryClientForConfig(server.config)
	if err != nil {
		t.Fatal(err)
	}
	kinds, err := asked.ServerResourcesForGroupVersion(v1alpha1.GroupVersion.String())
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"properties": "wprop", "accesstokens": "wtoken", "apikeys": "wkey"}
	for _, kind := range kinds.APIResources {
		short, listed := want[kind.Name]
		if !listed {
			continue // a subresource
		}
		delete(want, kind.Name)
		if !slices.Equal(kind.ShortNames, []string{short}) {
			t.Errorf("%s: short names %v, want %s alone", kind.Name, kind.ShortNames, short)
		}
		if !slices.Equal(kind.Categories, []string{"weir"}) {
			t.Errorf("%s: categories %v, want weir alone: kubectl get all is for what runs, and whoever deletes all must not delete Properties", kind.Name, kind.Categories)
		}
	}
	if len(want) > 0 {
		t.Errorf("not found: %v", want)
	}
}
