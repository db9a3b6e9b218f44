// Package guides_test tries what the guides say of other tools with those tools' own code. It is a module of its own, so
// that none of them is a dependency of Weir.
package guides_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	helmv2 "github.com/fluxcd/helm-controller/api/v2"
	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	lua "github.com/yuin/gopher-lua"
	"sigs.k8s.io/yaml"
)

// gitops are the YAML documents of the guide.
func gitops(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile("../../docs/guides/gitops.md")
	if err != nil {
		t.Fatal(err)
	}
	var documents []string
	for _, block := range regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(string(text), -1) {
		documents = append(documents, strings.Split(block[1], "\n---\n")...)
	}
	return documents
}

// TestFluxKnowsTheFields reads the guide's objects with Flux's types, which take no field that Flux does not have.
func TestFluxKnowsTheFields(t *testing.T) {
	types := map[string]any{
		sourcev1.GroupVersion.String() + " GitRepository":    &sourcev1.GitRepository{},
		helmv2.GroupVersion.String() + " HelmRelease":        &helmv2.HelmRelease{},
		kustomizev1.GroupVersion.String() + " Kustomization": &kustomizev1.Kustomization{},
	}
	for _, document := range gitops(t) {
		var object struct{ APIVersion, Kind string }
		if err := yaml.Unmarshal([]byte(document), &object); err != nil {
			t.Fatal(err)
		}
		name := object.APIVersion + " " + object.Kind
		if into, ok := types[name]; ok {
			delete(types, name)
			if err := yaml.UnmarshalStrict([]byte(document), into); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	for name := range types {
		t.Errorf("the guide has no %s", name)
	}
}

// health is the guide's script, as Argo CD runs it: the Property is the global obj, the answer a table.
func health(t *testing.T, script string, property map[string]any) (status, message string) {
	t.Helper()
	state := lua.NewState()
	defer state.Close()
	state.SetGlobal("obj", value(state, property))
	if err := state.DoString(script); err != nil {
		t.Fatal(err)
	}
	answer, ok := state.Get(-1).(*lua.LTable)
	if !ok {
		t.Fatalf("the script answers %s, want a table", state.Get(-1).Type())
	}
	return answer.RawGetString("status").String(), answer.RawGetString("message").String()
}

// value is a part of an object in Lua.
func value(state *lua.LState, from any) lua.LValue {
	switch from := from.(type) {
	case map[string]any:
		table := state.NewTable()
		for key, member := range from {
			table.RawSetString(key, value(state, member))
		}
		return table
	case []any:
		table := state.NewTable()
		for _, member := range from {
			table.Append(value(state, member))
		}
		return table
	case float64:
		return lua.LNumber(from)
	case string:
		return lua.LString(from)
	}
	return lua.LNil
}

// TestArgoCDTellsAPropertysHealth runs the guide's script.
func TestArgoCDTellsAPropertysHealth(t *testing.T) {
	var settings struct{ Data map[string]string }
	for _, document := range gitops(t) {
		if strings.HasPrefix(document, "data:") {
			if err := yaml.UnmarshalStrict([]byte(document), &settings); err != nil {
				t.Fatal(err)
			}
		}
	}
	script, ok := settings.Data["resource.customizations.health.weir.dev_Property"]
	if !ok {
		t.Fatal("the guide has no script for the health of a Property")
	}
	for _, kind := range []string{"AccessToken", "APIKey"} {
		if settings.Data["resource.customizations.health.weir.dev_"+kind] != script {
			t.Errorf("the guide has another script for the health of an %s, or none", kind)
		}
	}
	tests := map[string]struct {
		property        string
		status, message string
	}{
		"one that is new progresses": {
			`{metadata: {generation: 1}}`, "Progressing", "not seen by the operator yet",
		},
		"one without conditions progresses": {
			`{metadata: {generation: 1}, status: {}}`, "Progressing", "not seen by the operator yet",
		},
		"one that is Ready is healthy": {
			`{metadata: {generation: 2}, status: {conditions: [
			  {type: PlatformsReady, status: "False", reason: CredentialsRejected, observedGeneration: 2, message: "crm"},
			  {type: Ready, status: "True", reason: Ready, observedGeneration: 2, message: "it serves"}]}}`,
			"Healthy", "it serves",
		},
		"one whose pods start progresses": {
			`{metadata: {generation: 2}, status: {conditions: [
			  {type: Ready, status: "False", reason: Progressing, observedGeneration: 2, message: "1 of 2 pods"}]}}`,
			"Progressing", "1 of 2 pods",
		},
		"one that cannot serve is degraded": {
			`{metadata: {generation: 2}, status: {conditions: [
			  {type: Ready, status: "False", reason: RedisUnreachable, observedGeneration: 2, message: "no route"}]}}`,
			"Degraded", "no route",
		},
		"a token whose Property is yet to come progresses": {
			`{metadata: {generation: 1}, status: {observedGeneration: 1, conditions: [
			  {type: Ready, status: "False", reason: PropertyMissing, observedGeneration: 1, message: "make it"}]}}`,
			"Progressing", "make it",
		},
		"one that pods cannot be told yet progresses": {
			`{metadata: {generation: 1}, status: {observedGeneration: 1, conditions: [
			  {type: Ready, status: "False", reason: Pending, observedGeneration: 1, message: "soon"}]}}`,
			"Progressing", "soon",
		},
		"one that has expired is degraded": {
			`{metadata: {generation: 1}, status: {observedGeneration: 1, conditions: [
			  {type: Ready, status: "False", reason: Expired, observedGeneration: 1, message: "make another"}]}}`,
			"Degraded", "make another",
		},
		"one that is paused and serves is healthy": {
			`{metadata: {generation: 2}, status: {conditions: [
			  {type: Ready, status: "True", reason: Ready, observedGeneration: 2, message: "it serves"},
			  {type: Paused, status: "True", reason: Paused, observedGeneration: 2, message: "left alone"}]}}`,
			"Healthy", "it serves",
		},
		"a change that waits for the end of a pause is suspended": {
			`{metadata: {generation: 3}, status: {conditions: [
			  {type: Paused, status: "True", reason: Paused, observedGeneration: 3, message: "left alone"},
			  {type: Ready, status: "True", reason: Ready, observedGeneration: 2, message: "it serves"}]}}`,
			"Suspended", "left alone",
		},
		"a mistake in the annotation is no pause": {
			`{metadata: {generation: 3}, status: {conditions: [
			  {type: Paused, status: "False", reason: PauseInvalid, observedGeneration: 3, message: "neither"},
			  {type: Ready, status: "True", reason: Ready, observedGeneration: 2, message: "it serves"}]}}`,
			"Progressing", "not seen by the operator yet",
		},
		"what was true before a change says nothing": {
			`{metadata: {generation: 3}, status: {conditions: [
			  {type: Ready, status: "True", reason: Ready, observedGeneration: 2, message: "it serves"}]}}`,
			"Progressing", "not seen by the operator yet",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var property map[string]any
			if err := yaml.Unmarshal([]byte(test.property), &property); err != nil {
				t.Fatal(err)
			}
			status, message := health(t, script, property)
			if status != test.status || message != test.message {
				t.Errorf("got %s, %q, want %s, %q", status, message, test.status, test.message)
			}
		})
	}
}
