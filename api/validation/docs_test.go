package validation_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

const docsFile = "../../docs/reference/property.md"

func readDocs(t *testing.T) string {
	t.Helper()
	docs, err := os.ReadFile(docsFile)
	if err != nil {
		t.Fatal(err)
	}
	return string(docs)
}

func TestTheExamplesInTheDocsAreValid(t *testing.T) {
	blocks := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(readDocs(t), -1)
	if len(blocks) != 2 {
		t.Fatalf("found %d examples, want 2", len(blocks))
	}
	validator := sharedValidator(t)
	for _, block := range blocks {
		object := parse(t, block[1])
		object["metadata"].(map[string]any)["namespace"] = "default"
		if _, errs := validator.Create(t.Context(), object); len(errs) > 0 {
			t.Errorf("%v in\n%s", describe(errs), block[1])
		}
	}
}

// podOptions are documented once for all workloads.
var podOptions = regexp.MustCompile(`^spec\.(collector|deliverer|query|archive)\.(resources|nodeSelector|tolerations|affinity|topologySpreadConstraints|podAnnotations|imagePullSecrets)\b`)

// Every field has a row in the docs, and every row a field.
func TestTheDocsNameEveryField(t *testing.T) {
	var crd apiextensionsv1.CustomResourceDefinition
	if err := yaml.UnmarshalStrict(readDefinition(t), &crd); err != nil {
		t.Fatal(err)
	}
	fields := map[string]bool{}
	schema := crd.Spec.Versions[0].Schema.OpenAPIV3Schema
	for _, root := range []string{"spec", "status"} {
		property := schema.Properties[root]
		collectFields(root, &property, fields)
	}
	documented := map[string]bool{}
	for _, row := range regexp.MustCompile("(?m)^\\| `((?:spec|status)\\.[^`]+)` \\|").FindAllStringSubmatch(readDocs(t), -1) {
		documented[row[1]] = true
	}
	for field := range fields {
		if option := podOptions.FindStringSubmatch(field); option != nil {
			if !strings.Contains(readDocs(t), "\n| `"+option[2]+"` |") {
				t.Errorf("the pod option %s has no row in %s", option[2], docsFile)
			}
			continue
		}
		if !documented[field] && !isWorkload(field) {
			t.Errorf("%s has no row in %s", field, docsFile)
		}
	}
	for field := range documented {
		if !fields[field] {
			t.Errorf("%s has a row for %s, which is no field", docsFile, field)
		}
	}
}

func isWorkload(field string) bool {
	return slices.Contains([]string{"spec.collector", "spec.deliverer", "spec.query", "spec.archive"}, field)
}

// collectFields notes the paths of all fields below a schema, but those of a list in the status.
func collectFields(path string, schema *apiextensionsv1.JSONSchemaProps, into map[string]bool) {
	if schema.Items != nil && strings.HasPrefix(path, "spec.") {
		path, schema = path+"[]", schema.Items.Schema
	}
	for name, property := range schema.Properties {
		field := path + "." + name
		into[field] = true
		if field != "status.credentialsSecretRef" {
			collectFields(field, &property, into)
		}
	}
}
