package validation_test

import (
	"os"
	"sync"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	crdvalidation "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	"sigs.k8s.io/yaml"

	"github.com/weir-dev/weir/api/validation"
)

const definitionFile = "../../config/crd/bases/weir.dev_properties.yaml"

func readDefinition(t *testing.T) []byte {
	t.Helper()
	definition, err := os.ReadFile(definitionFile)
	if err != nil {
		t.Fatal(err)
	}
	return definition
}

// compiled compiles the rules once for all tests.
var compiled = sync.OnceValues(func() (*validation.Validator, error) {
	definition, err := os.ReadFile(definitionFile)
	if err != nil {
		return nil, err
	}
	return validation.New(definition)
})

func sharedValidator(t *testing.T) *validation.Validator {
	t.Helper()
	validator, err := compiled()
	if err != nil {
		t.Fatal(err)
	}
	return validator
}

// The API server refuses a definition whose rules do not compile, might cost too much, or whose defaults are
// not valid themselves.
func TestAPIServerAcceptsTheDefinition(t *testing.T) {
	var crd apiextensionsv1.CustomResourceDefinition
	if err := yaml.UnmarshalStrict(readDefinition(t), &crd); err != nil {
		t.Fatal(err)
	}
	apiextensionsv1.SetDefaults_CustomResourceDefinition(&crd)
	apiextensionsv1.SetDefaults_CustomResourceDefinitionSpec(&crd.Spec)
	var internal apiextensions.CustomResourceDefinition
	if err := apiextensionsv1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(&crd, &internal, nil); err != nil {
		t.Fatal(err)
	}
	internal.Status.StoredVersions = []string{"v1alpha1"} // as the API server's strategy sets it before validating
	for _, err := range crdvalidation.ValidateCustomResourceDefinition(t.Context(), &internal) {
		t.Error(err)
	}
}

func TestNewRefusesWhatIsNoDefinitionOfProperties(t *testing.T) {
	for sentence, definition := range map[string]string{
		"text that is no YAML":                "\t",
		"an unknown member":                   "kind: CustomResourceDefinition\ncolour: green",
		"a definition without our version":    "kind: CustomResourceDefinition\nspec: {versions: [{name: v1}]}",
		"a version without a schema":          "kind: CustomResourceDefinition\nspec: {versions: [{name: v1alpha1}]}",
		"a list in the place of a definition": "[]",
	} {
		t.Run(sentence, func(t *testing.T) {
			if _, err := validation.New([]byte(definition)); err == nil {
				t.Error("got no error")
			}
		})
	}
}
