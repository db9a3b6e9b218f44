package controllers

import (
	"context"
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-dev/weir/api/v1alpha1"
)

// everySecret is a server that has every Secret, in one version.
type everySecret struct {
	client.Client
	reads int
}

func (s *everySecret) Get(_ context.Context, key client.ObjectKey, object client.Object, _ ...client.GetOption) error {
	s.reads++
	object.SetName(key.Name)
	object.SetResourceVersion("1")
	return nil
}

func TestSecretsThatAPropertyNoLongerNamesAreForgotten(t *testing.T) {
	live := &everySecret{}
	r := &Reconciler{Client: &everySecret{}, Live: live}
	property := &v1alpha1.Property{ObjectMeta: metav1.ObjectMeta{Namespace: "shops", Name: "shop"}}
	reconcile := func(names ...string) {
		t.Helper()
		r.memories.of(property).begin()
		for _, name := range names {
			if _, err := r.readSecret(t.Context(), property, name); err != nil {
				t.Fatal(err)
			}
		}
	}
	for i := range 300 {
		reconcile("shop-credentials", fmt.Sprint("brought-", i))
		reconcile() // one that ends before it reads any
	}
	memory := r.memories.of(property)
	if got := len(memory.secrets) + len(memory.earlier); got > 4 {
		t.Errorf("%d Secrets are remembered, want those of two reconciles", got)
	}
	if want := 301; live.reads != want {
		t.Errorf("Secrets were read %d times, want %d: each once while it is named", live.reads, want)
	}
}
