package validation_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/weir-dev/weir/collector/sources"
)

// The table of sources is the source: whatever the API server took beyond it, a pod would refuse.
func TestTheDefinitionFollowsTheSourceTable(t *testing.T) {
	var crd apiextensionsv1.CustomResourceDefinition
	if err := yaml.UnmarshalStrict(readDefinition(t), &crd); err != nil {
		t.Fatal(err)
	}
	spec := crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"]
	schema := spec.Properties["sources"].Items.Schema
	var want []string
	for _, kind := range sources.Types() {
		want = append(want, string(kind))
		traits, _ := kind.Traits()
		if len(traits.APICredentials) == 0 || traits.HasURL == (traits.APIURL != "") {
			t.Errorf("%s: orders are read with %v at %q", kind, traits.APICredentials, traits.APIURL)
		}
		for _, key := range traits.APICredentials {
			if !strings.Contains(schema.Properties["apiSecretRef"].Description, key) {
				t.Errorf("the description of apiSecretRef does not name the key %s", key)
			}
		}
	}
	types := allowed(schema.Properties["type"])
	slices.Sort(types)
	if diff := cmp.Diff(want, types); diff != "" {
		t.Errorf("types (-table +definition):\n%s", diff)
	}
	if !strings.Contains(schema.Properties["secretRef"].Description, sources.SigningSecret) {
		t.Errorf("the description of secretRef does not name the key %s", sources.SigningSecret)
	}
}

func TestWhatReportsOrders(t *testing.T) {
	const (
		shopify = "{name: shop, type: Shopify, secretRef: {name: a}"
		badURL  = "spec.sources[0].url: must be an https URL with a host, such as https://shop.example.com"
	)
	testRules(t, map[string]rule{
		"a source of each type is accepted": {spec: `sources:
- {name: shopify, type: Shopify, secretRef: {name: a}, url: "https://example.myshopify.com", apiSecretRef: {name: b}}
- {name: woo, type: WooCommerce, secretRef: {name: a}, url: "https://shop.example.com/store", apiSecretRef: {name: a}}
- {name: stripe, type: Stripe, secretRef: {name: a}, apiSecretRef: {name: b}, stripe: {purchases: PaymentIntents}}
- {name: another, type: Stripe, secretRef: {name: a}, stripe: {}}`},
		"a shop whose orders are read needs its URL": {spec: "sources: [" + shopify + ", apiSecretRef: {name: b}}]", want: []string{"spec.sources[0].url: must be set beside apiSecretRef, such as https://example.myshopify.com or https://shop.example.com"}},
		"Stripe has one URL for all":                 {spec: "sources: [{name: s, type: Stripe, secretRef: {name: a}, url: 'https://api.stripe.com'}]", want: []string{"spec.sources[0].url: must be absent for a source of type Stripe"}},
		"Stripe's settings are for Stripe":           {spec: "sources: [" + shopify + ", stripe: {purchases: PaymentIntents}}]", want: []string{"spec.sources[0].stripe: must be absent unless type is Stripe"}},
		"a credential does not go over plain HTTP":   {spec: "sources: [" + shopify + ", url: 'http://shop.example.com'}]", want: []string{badURL}},
		"a URL without a host is refused":            {spec: "sources: [" + shopify + ", url: 'https:///x'}]", want: []string{badURL}},
		"a URL with a password is refused":           {spec: "sources: [" + shopify + ", url: 'https://a:b@shop.example.com'}]", want: []string{"spec.sources[0].url: must hold no user name or password: they belong in the Secret that apiSecretRef names"}},
		"a name is part of a path":                   {spec: "sources: [{name: 'a/b', type: Stripe, secretRef: {name: a}}]", want: []string{"spec.sources[0].name: must be lower-case letters, digits and '-', with no '-' at either end, such as shop"}},
		"a source without a Secret is refused":       {spec: "sources: [{name: s, type: Stripe}]", want: []string{"spec.sources[0].secretRef: is required"}},
	})
}
