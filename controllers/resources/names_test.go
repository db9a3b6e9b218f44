package resources_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/collector/config"
	"github.com/weir-dev/weir/collector/history/access"
	"github.com/weir-dev/weir/controllers/resources"
)

// TestNoTwoPropertiesMakeTheSameNameOfAnything builds everything for Properties whose names end like the names of
// others' objects, side by side in one namespace, and in namespaces whose names run into theirs.
func TestNoTwoPropertiesMakeTheSameNameOfAnything(t *testing.T) {
	paths, err := filepath.Glob("testdata/objects/*.in.yaml")
	if err != nil || len(paths) == 0 {
		t.Fatalf("found %d inputs, error %v", len(paths), err)
	}
	var inputs []resources.Input
	var settings []*v1alpha1.Property
	for _, path := range paths {
		in, p := readObjectsInput(t, path)
		inputs, settings = append(inputs, in), append(settings, p)
	}
	owners := map[string]string{}
	for _, property := range runTogether() {
		// What is made differs by the Property's settings: here the names of all that any of them makes.
		mine := map[string]bool{}
		for i, in := range inputs {
			p := settings[i].DeepCopy()
			p.Namespace, p.Name = property.namespace, property.name
			objects, _, err := resources.Build(p, in)
			if err != nil {
				t.Fatal(err)
			}
			for _, object := range objects {
				mine[fmt.Sprintf("%s %s/%s", object.Kind, object.Namespace, object.Name)] = true
			}
			secrets := []string{resources.CredentialsSecretName(p), resources.SessionsSecretName(p), resources.RedisAdminSecretName(p), resources.RedisTLSSecretName(p)}
			for _, role := range resources.Roles() {
				secrets = append(secrets, resources.RedisSecretName(p, role))
			}
			for _, role := range access.Roles() {
				secrets = append(secrets, resources.HistorySecretName(p, role))
			}
			for part := range config.MaxLedgerParts {
				secrets = append(secrets, resources.ErasuresSecretName(p, part))
			}
			for _, name := range secrets {
				mine[fmt.Sprintf("Secret %s/%s", p.Namespace, name)] = true
			}
		}
		if len(mine) < 20 {
			t.Fatalf("only %d names of %v", len(mine), property)
		}
		for name := range mine {
			if owner := owners[name]; owner != "" {
				t.Errorf("%s is made for %s/%s and for %s", name, property.namespace, property.name, owner)
			}
			owners[name] = property.namespace + "/" + property.name
		}
	}
}

type namespacedName struct{ namespace, name string }

// runTogether are Properties whose names are others' with what objects' names end in, or parts of it.
func runTogether() []namespacedName {
	parts := []string{"collector", "deliverer", "query", "config", "credentials", "api", "keys", "api-keys", "access", "access-tokens", "redis", "redis-collector", "admin", "tls", "0", "history", "archive", "pods", "erasures", "1", "b"}
	names := []string{"a"}
	for _, part := range parts {
		names = append(names, "a-"+part)
		for _, further := range parts {
			names = append(names, "a-"+part+"-"+further)
		}
	}
	slices.Sort(names)
	var all []namespacedName
	for _, name := range slices.Compact(names) {
		all = append(all, namespacedName{"c", name})
	}
	return append(all, namespacedName{"b-c", "a"}, namespacedName{"a", "b-c"}, namespacedName{"a-b", "c"})
}
