package charts_test

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	sigsyaml "sigs.k8s.io/yaml"
)

// TestTheValuesOfTheGitOpsGuide renders the chart with the values that its objects for Argo CD and Flux give.
func TestTheValuesOfTheGitOpsGuide(t *testing.T) {
	text, err := os.ReadFile("../docs/guides/gitops.md")
	if err != nil {
		t.Fatal(err)
	}
	fields := map[string][]string{
		"Application": {"spec", "source", "helm", "valuesObject"},
		"HelmRelease": {"spec", "values"},
	}
	for _, block := range regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(string(text), -1) {
		decoder := yaml.NewYAMLOrJSONDecoder(strings.NewReader(block[1]), 4096)
		for {
			var object unstructured.Unstructured
			if err := decoder.Decode(&object.Object); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatalf("%v in\n%s", err, block[1])
			}
			path, ok := fields[object.GetKind()]
			if !ok {
				continue
			}
			delete(fields, object.GetKind())
			values, found, err := unstructured.NestedMap(object.Object, path...)
			if err != nil || !found {
				t.Fatalf("%s has no values: %v", object.GetKind(), err)
			}
			content, err := sigsyaml.Marshal(values)
			if err != nil {
				t.Fatal(err)
			}
			file := filepath.Join(t.TempDir(), "values.yaml")
			if err := os.WriteFile(file, content, 0o600); err != nil {
				t.Fatal(err)
			}
			if rendered := render(t, "--values", file); !strings.Contains(rendered, "namespace: shops") {
				t.Errorf("%s: nothing is made in the namespace that is watched", object.GetKind())
			}
		}
	}
	for kind := range fields {
		t.Errorf("the guide has no %s", kind)
	}
}
