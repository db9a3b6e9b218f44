package resources_test

import (
	"encoding/json"
	"os"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/weir-dev/weir/collector/auth"
	"github.com/weir-dev/weir/collector/platforms"
)

// What a Property may say and what the pods understand are written down in two places that may not import each
// other.
func TestThePodsKnowTheWordsOfTheSchema(t *testing.T) {
	definition, err := os.ReadFile("../../config/crd/bases/weir.dev_properties.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var crd apiextensionsv1.CustomResourceDefinition
	if err := yaml.UnmarshalStrict(definition, &crd); err != nil {
		t.Fatal(err)
	}
	spec := crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"]

	var platformTypes []string
	for _, known := range platforms.Types() {
		platformTypes = append(platformTypes, string(known))
	}
	if diff := cmp.Diff(words(t, spec.Properties["platforms"].Items.Schema.Properties["type"].Enum), platformTypes); diff != "" {
		t.Errorf("platform types (-schema +pods):\n%s", diff)
	}
	consent := spec.Properties["consent"]
	own := consent.Properties["platforms"].Items.Schema
	var purposes []string
	for _, known := range platforms.Purposes() {
		purposes = append(purposes, string(known))
	}
	slices.Sort(purposes)
	if diff := cmp.Diff(words(t, own.Properties["requires"].Items.Schema.Enum), purposes); diff != "" {
		t.Errorf("purposes (-schema +pods):\n%s", diff)
	}
	if diff := cmp.Diff(words(t, own.Properties["whenAbsent"].Enum), []string{string(platforms.Send), string(platforms.Withhold)}); diff != "" {
		t.Errorf("what becomes of what is absent (-schema +pods):\n%s", diff)
	}
	for _, scope := range words(t, spec.Properties["accessTokens"].Items.Schema.Properties["scope"].Enum) {
		if !auth.Scope(scope).Valid() {
			t.Errorf("the pods do not know the scope %s", scope)
		}
	}
}

// words returns an enum's values, sorted.
func words(t *testing.T, enum []apiextensionsv1.JSON) []string {
	t.Helper()
	list := make([]string, len(enum))
	for i, value := range enum {
		if err := json.Unmarshal(value.Raw, &list[i]); err != nil {
			t.Fatal(err)
		}
	}
	slices.Sort(list)
	return list
}
