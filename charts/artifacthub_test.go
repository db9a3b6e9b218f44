package charts_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// annotation decodes one of Chart.yaml's annotations for artifacthub.io into a value.
func annotation(t *testing.T, name string, into any) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(chart, "Chart.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var read struct {
		Annotations map[string]string `json:"annotations"`
	}
	if err := yaml.Unmarshal(text, &read); err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal([]byte(read.Annotations["artifacthub.io/"+name]), into); err != nil {
		t.Fatalf("artifacthub.io/%s: %v", name, err)
	}
}

// TestArtifactHubNamesEveryImage compares the images that are shown, and scanned, with those that any value set renders.
func TestArtifactHubNamesEveryImage(t *testing.T) {
	var shown []struct{ Name, Image string }
	annotation(t, "images", &shown)
	var got, want []string
	for _, each := range shown {
		got = append(got, each.Image)
	}
	for _, path := range valueSets(t) {
		for _, object := range objects(t, renderSet(t, path)) {
			want = append(want, imagesIn(object.Object)...)
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	if diff := cmp.Diff(slices.Compact(want), got); diff != "" {
		t.Errorf("images (-rendered +shown):\n%s", diff)
	}
}

// imagesIn are the values of all members called image.
func imagesIn(value any) []string {
	var found []string
	switch value := value.(type) {
	case map[string]any:
		for name, inner := range value {
			if image, isText := inner.(string); isText && name == "image" && !strings.Contains(image, "@") { // a digest is an installation's own
				found = append(found, image)
			}
			found = append(found, imagesIn(inner)...)
		}
	case []any:
		for _, inner := range value {
			found = append(found, imagesIn(inner)...)
		}
	}
	return found
}

func TestArtifactHubNamesEveryKind(t *testing.T) {
	var shown []struct{ Kind, Version, Name string }
	annotation(t, "crds", &shown)
	var got, want []string
	for _, each := range shown {
		got = append(got, fmt.Sprint(each.Name, " ", each.Kind, " ", each.Version))
	}
	files, err := filepath.Glob(filepath.Join(chart, "files", "weir.dev_*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var definition apiextensionsv1.CustomResourceDefinition
		if err := yaml.Unmarshal(text, &definition); err != nil {
			t.Fatal(err)
		}
		for _, version := range definition.Spec.Versions {
			want = append(want, fmt.Sprint(definition.Name, " ", definition.Spec.Names.Kind, " ", version.Name))
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("kinds (-defined +shown):\n%s", diff)
	}
}
