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
			needed := false // some have a member with nothing to set
			platform.CheckSettings(&platforms.Settings{}, func(string, string) { needed = true })
			if has != needed {
				t.Fatalf("the definition has the member %s: %t, want %t", platform.Member(), has, needed)
			}
			if rule := fmt.Sprintf("(self.type == '%s') == has(self.%s)", platform, platform.Member()); has && rules[rule] == "" {
				t.Errorf("there is no rule %s", rule)
			}
			described := settings.Description
			if !has { // what there is no member for is said where all types' Secret is
				described = schema.Properties["credentialsSecretRef"].Description
			}
			checkCredentials(t, platform, traits.Credentials, rules, described)
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

// A version may be chosen of the types of which the table says so, each in its platform's form; the pods say the same.
func TestTheDefinitionTakesVersionsOfTheTablesTypes(t *testing.T) {
	schema := platformSchema(t)
	want := map[string]string{}
	var quoted []string
	for _, platform := range platforms.VersionedTypes() {
		quoted = append(quoted, "'"+string(platform)+"'")
		traits, _ := platform.Traits()
		rule := fmt.Sprintf("self.type != '%s' || !has(self.apiVersion) || self.apiVersion.matches(r'%s')", platform, traits.APIVersionPattern)
		want[rule] = platform.VersionRule()
	}
	want["!has(self.apiVersion) || self.type in ["+strings.Join(quoted, ", ")+"]"] = platforms.TypeLog.VersionRule()
	got := rulesOf(schema)
	maps.DeleteFunc(got, func(rule, _ string) bool { return !strings.Contains(rule, "self.apiVersion") })
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("rules about apiVersion and what they say (-table +definition):\n%s", diff)
	}
	names := "where the platform lets one choose: " + strings.ReplaceAll(strings.Trim(strings.Join(quoted, ", "), "'"), "'", "") + "."
	if got := described(schema.Properties["apiVersion"]); !strings.Contains(got, names) {
		t.Errorf("the description of apiVersion is %q, which lacks %q", got, names)
	}
}

// `kubectl explain property.spec.platforms.type` says which types nobody has seen with a live account.
func TestTheDefinitionSaysWhichTypesAreBeta(t *testing.T) {
	var beta []string
	for _, platform := range platforms.Types() {
		if traits, _ := platform.Traits(); traits.Proof.Beta() {
			beta = append(beta, string(platform))
		}
	}
	want := "Beta, which nobody has seen with a live account yet: " + strings.Join(beta, ", ") + "."
	if got := described(platformSchema(t).Properties["type"]); !strings.HasSuffix(got, want) {
		t.Errorf("the description is %q, want %q at its end", got, want)
	}
}

// described is a description as one line.
func described(schema apiextensionsv1.JSONSchemaProps) string {
	return strings.Join(strings.Fields(schema.Description), " ")
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
			t.Errorf("neither the description of the member %s nor that of credentialsSecretRef names the key %s", platform.Member(), key)
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
