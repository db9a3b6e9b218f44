package v1alpha1_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/weir-dev/weir/api/v1alpha1"
)

func TestASchemeLearnsTheKinds(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{v1alpha1.Kind, v1alpha1.Kind + "List"} {
		if _, err := scheme.New(v1alpha1.GroupVersion.WithKind(kind)); err != nil {
			t.Errorf("%s: %v", kind, err)
		}
	}
}
