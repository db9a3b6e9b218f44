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

	"github.com/weir-dev/weir/collector/config"
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

// The pods' table of platforms is the source: whatever the API server took beyond it, a pod would refuse.
func TestTheDefinitionFollowsThePlatformTable(t *testing.T) {
	schema := platformSchema(t)
	rules := rulesOf(schema)
	types := allowed(schema.Properties["type"])
	slices.Sort(types)
	var want []string
	for _, platform := range config.PlatformTypes() {
		want = append(want, string(platform))
	}
	if diff := cmp.Diff(want, types); diff != "" {
		t.Errorf("types (-table +definition):\n%s", diff)
	}
	for _, platform := range config.PlatformTypes() {
		t.Run(string(platform), func(t *testing.T) {
			traits, _ := platform.Traits()
			settings, has := schema.Properties[platform.Member()]
			if has != (len(traits.Settings) > 0) {
				t.Fatalf("the definition has the member %s: %t, want %t", platform.Member(), has, !has)
			}
			if rule := fmt.Sprintf("(self.type == '%s') == has(self.%s)", platform, platform.Member()); has && rules[rule] == "" {
				t.Errorf("there is no rule %s", rule)
			}
			checkCredentials(t, platform, traits, rules, schema.Properties["credentialsSecretRef"].Description)
			checkSettings(t, traits.Settings, settings)
		})
	}
}

// checkCredentials: the Secret is demanded where the type has keys, and both the demand and the field's description name each.
func checkCredentials(t *testing.T, platform config.PlatformType, traits config.PlatformTraits, rules map[string]string, description string) {
	t.Helper()
	if len(traits.Credentials) == 0 {
		if rule := fmt.Sprintf("self.type != '%s' || !has(self.credentialsSecretRef)", platform); rules[rule] == "" {
			t.Errorf("there is no rule %s", rule)
		}
		return
	}
	message := rules[fmt.Sprintf("self.type != '%s' || has(self.credentialsSecretRef)", platform)]
	for _, key := range traits.Credentials {
		if !strings.Contains(message, key) {
			t.Errorf("the rule about the Secret says %q, which does not name the key %s", message, key)
		}
		if !strings.Contains(description, key) {
			t.Errorf("the description of credentialsSecretRef does not name the key %s", key)
		}
	}
}

// checkSettings: the texts of a member are the table's, with its patterns and values, and as optional.
func checkSettings(t *testing.T, settings []config.Setting, schema apiextensionsv1.JSONSchemaProps) {
	t.Helper()
	var texts, names []string
	for name := range maps.Keys(schema.Properties) {
		if schema.Properties[name].Type == "string" {
			texts = append(texts, name)
		}
	}
	for _, setting := range settings {
		names = append(names, setting.Name)
		property := schema.Properties[setting.Name]
		if slices.Contains(schema.Required, setting.Name) == setting.Optional {
			t.Errorf("%s is required: %t, want %t", setting.Name, setting.Optional, !setting.Optional)
		}
		if diff := cmp.Diff(setting.Values, allowed(property)); diff != "" {
			t.Errorf("values of %s (-table +definition):\n%s", setting.Name, diff)
		}
		rule := fmt.Sprintf("self.matches('%s')", setting.Pattern)
		if setting.Pattern == "" && setting.Values == nil {
			rule = "isURL(self) && url(self).getScheme() in ['http', 'https'] && url(self).getHostname() != ''"
		}
		if setting.Values == nil && rulesOf(property)[rule] == "" {
			t.Errorf("%s has no rule %s", setting.Name, rule)
		}
	}
	slices.Sort(texts)
	slices.Sort(names)
	if diff := cmp.Diff(names, texts); diff != "" {
		t.Errorf("settings (-table +definition):\n%s", diff)
	}
}
