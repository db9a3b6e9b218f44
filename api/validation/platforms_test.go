package validation_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/weir-dev/weir/collector/platforms"
)

// platformSchema returns the definition's schema of one of a Property's platforms.
func platformSchema(t *testing.T) apiextensionsv1.JSONSchemaProps {
	t.Helper()
	var crd apiextensionsv1.CustomResourceDefinition
	if err := yaml.UnmarshalStrict(readDefinition(t), &crd); err != nil {
		t.Fatal(err)
	}
	spec := crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"]
	return *spec.Properties["platforms"].Items.Schema
}

// rulesOf maps the rules of a schema to their messages.
func rulesOf(schema apiextensionsv1.JSONSchemaProps) map[string]string {
	rules := map[string]string{}
	for _, rule := range schema.XValidations {
		rules[rule.Rule] = rule.Message
	}
	return rules
}

// allowed returns the values that a schema lists.
func allowed(schema apiextensionsv1.JSONSchemaProps) []string {
	var values []string
	for _, value := range schema.Enum {
		values = append(values, strings.Trim(string(value.Raw), `"`))
	}
	return values
}

// The table of platforms is the source: whatever the API server took beyond it, a pod would refuse.
func TestTheDefinitionFollowsThePlatformTable(t *testing.T) {
	schema := platformSchema(t)
	rules := rulesOf(schema)
	types := allowed(schema.Properties["type"])
	slices.Sort(types)
	var want []string
	for _, platform := range platforms.Types() {
		want = append(want, string(platform))
	}
	if diff := cmp.Diff(want, types); diff != "" {
		t.Errorf("types (-table +definition):\n%s", diff)
	}
	for _, platform := range platforms.Types() {
		t.Run(string(platform), func(t *testing.T) {
			traits, _ := platform.Traits()
			settings, has := schema.Properties[platform.Member()]
			if has != (len(traits.Texts) > 0) {
				t.Fatalf("the definition has the member %s: %t, want %t", platform.Member(), has, !has)
			}
			if rule := fmt.Sprintf("(self.type == '%s') == has(self.%s)", platform, platform.Member()); has && rules[rule] == "" {
				t.Errorf("there is no rule %s", rule)
			}
			checkCredentials(t, platform, traits.Credentials, rules, settings.Description)
			checkTexts(t, traits.Texts, settings)
		})
	}
}

// Erasures are handed on to the types of which the table says so; the message names each, and the description their keys.
func TestTheDefinitionTakesForwardErasureOfTheTablesTypes(t *testing.T) {
	schema := platformSchema(t)
	var quoted []string
	description := strings.Join(strings.Fields(schema.Properties["forwardErasure"].Description), " ")
	for _, platform := range platforms.ErasureTypes() {
		quoted = append(quoted, "'"+string(platform)+"'")
		traits, _ := platform.Traits()
		for _, key := range append([]string{string(platform)}, traits.Erasure.Credentials...) {
			if !strings.Contains(description, key) {
				t.Errorf("the description does not name %s", key)
			}
		}
	}
	rule := "!has(self.forwardErasure) || !self.forwardErasure || self.type in [" + strings.Join(quoted, ", ") + "]"
	for _, platform := range platforms.ErasureTypes() {
		if message := rulesOf(schema)[rule]; !strings.Contains(message, string(platform)) {
			t.Errorf("the rule %s says %q, which does not name %s", rule, message, platform)
		}
	}
}

// checkCredentials: the Secret is demanded where the type has keys, and both the demand and the member's description name each.
func checkCredentials(t *testing.T, platform platforms.Type, keys []string, rules map[string]string, description string) {
	t.Helper()
	if len(keys) == 0 {
		if rule := fmt.Sprintf("self.type != '%s' || !has(self.credentialsSecretRef)", platform); rules[rule] == "" {
			t.Errorf("there is no rule %s", rule)
		}
		return
	}
	message := rules[fmt.Sprintf("self.type != '%s' || has(self.credentialsSecretRef) || (has(self.mode) && self.mode == 'Shadow')", platform)]
	for _, key := range keys {
		if !strings.Contains(message, key) {
			t.Errorf("the rule about the Secret says %q, which does not name the key %s", message, key)
		}
		if !strings.Contains(description, key) {
			t.Errorf("the description of the member %s does not name the key %s", platform.Member(), key)
		}
	}
}

// checkTexts: the texts of a member are the table's, as long, with its patterns, values and messages, and as optional.
func checkTexts(t *testing.T, table []platforms.Text, schema apiextensionsv1.JSONSchemaProps) {
	t.Helper()
	var want, got []string
	for name := range maps.Keys(schema.Properties) {
		if schema.Properties[name].Type == "string" {
			got = append(got, name)
		}
	}
	for _, text := range table {
		want = append(want, text.Name)
		property := schema.Properties[text.Name]
		if slices.Contains(schema.Required, text.Name) == text.Optional {
			t.Errorf("%s is required: %t, want %t", text.Name, text.Optional, !text.Optional)
		}
		if diff := cmp.Diff(text.Values, allowed(property)); diff != "" {
			t.Errorf("values of %s (-table +definition):\n%s", text.Name, diff)
		}
		if text.Values != nil {
			continue
		}
		rule := fmt.Sprintf("self.matches('%s')", text.Pattern)
		if text.Pattern == "" {
			rule = "isURL(self) && url(self).getScheme() in ['http', 'https'] && url(self).getHostname() != ''"
		}
		if diff := cmp.Diff(text.Rule, rulesOf(property)[rule]); diff != "" {
			t.Errorf("what the rule %s of %s says (-table +definition):\n%s", rule, text.Name, diff)
		}
		if rules := rulesOf(property); text.Pattern == "" && rules["!self.matches('^[^/]*//[^/?#]*@')"] == "" {
			t.Errorf("no rule of %s refuses a user name in the URL", text.Name)
		}
		if got := property.MaxLength; got == nil || *got != int64(text.MaxLength) {
			t.Errorf("%s may have %v characters, want %d", text.Name, got, text.MaxLength)
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("texts (-table +definition):\n%s", diff)
	}
}
