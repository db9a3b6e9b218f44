package controllers_test

import (
	"os"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// TestArtifactHubsExamplesCanBeApplied applies what artifacthub.io shows beside the chart, with unknown fields refused.
func TestArtifactHubsExamplesCanBeApplied(t *testing.T) {
	text, err := os.ReadFile("../charts/weir/Chart.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var chart struct {
		Annotations struct {
			Examples string `json:"artifacthub.io/crdsExamples"`
		} `json:"annotations"`
	}
	if err := yaml.Unmarshal(text, &chart); err != nil {
		t.Fatal(err)
	}
	var examples []map[string]any
	if err := yaml.Unmarshal([]byte(chart.Annotations.Examples), &examples); err != nil || len(examples) == 0 {
		t.Fatalf("%d examples, error %v", len(examples), err)
	}
	strict, namespace := client.WithFieldValidation(server.client, metav1.FieldValidationStrict), newNamespace(t)
	for _, example := range examples {
		object := &unstructured.Unstructured{Object: example}
		object.SetNamespace(namespace)
		if err := strict.Create(t.Context(), object, client.DryRunAll); err != nil {
			t.Errorf("%s %s: %v", object.GetKind(), object.GetName(), err)
		}
	}
}
