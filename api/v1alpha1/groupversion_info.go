// Package v1alpha1 is the Property resource: a tracked website with its own API keys, access tokens, platforms
// and pods; and the AccessToken and the APIKey that people make for a Property beside it. The types carry their own law: what the API server refuses stands beside the fields as markers.
//
// +kubebuilder:object:generate=true
// +groupName=weir.dev
package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the API group and version of this package's types.
var GroupVersion = schema.GroupVersion{Group: "weir.dev", Version: "v1alpha1"}

// Kind is the kind of a [Property].
const Kind = "Property"

// AddToScheme makes the types known to a scheme. It never fails; the error is there for
// [runtime.NewSchemeBuilder] and its like.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion, &Property{}, &PropertyList{}, &AccessToken{}, &AccessTokenList{}, &APIKey{}, &APIKeyList{})
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}
