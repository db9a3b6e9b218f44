package v1alpha1

import (
	"cmp"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Kinds of the credentials that people make for themselves.
const (
	AccessTokenKind = "AccessToken"
	APIKeyKind      = "APIKey"
)

// MaxCredentials is how many [AccessToken] objects, and as many [APIKey] objects, of a Property are in force: the oldest of
// those that have not expired.
const MaxCredentials = 256

// PropertyReference names the Property that a key or token is for, in the same namespace.
type PropertyReference struct {
	// The Property's name.
	// +required
	// +kubebuilder:validation:MaxLength=40
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",message="must be the name of a Property, such as shop"
	Name string `json:"name"`
}

// AccessToken is a personal bearer token of one Property's read API. Whoever makes the token keeps it; what stands here is its
// hash. Deleting the object revokes the token.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:shortName=wtoken,categories=weir
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Property",type=string,JSONPath=`.spec.propertyRef.name`
// +kubebuilder:printcolumn:name="Scope",type=string,JSONPath=`.spec.scope`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Expires",type=string,JSONPath=`.spec.expirationTime`
// +kubebuilder:printcolumn:name="Created by",type=string,JSONPath=`.spec.createdBy`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="self.metadata.name.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$') && size(self.metadata.name) <= 63",message="metadata.name must be at most 63 lower-case letters, digits and '-', with no '-' at either end, such as bi"
type AccessToken struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// +required
	Spec AccessTokenSpec `json:"spec"`
	// +optional
	// +kubebuilder:default={"observedGeneration":-1}
	Status CredentialStatus `json:"status,omitzero"`
}

// AccessTokenSpec is what a token may do, and by what it is recognised. It never changes: another right takes another token.
//
// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="is immutable; delete the object and make another, with another token"
type AccessTokenSpec struct {
	// The Property whose read API takes the token.
	// +required
	PropertyRef PropertyReference `json:"propertyRef"`

	// The SHA-256 of the token, as 64 lower-case hexadecimal digits. The token itself is "wt_", 27 random letters and digits,
	// and a checksum of 6, as `weir token create` and the console make it: nothing else is accepted.
	// +required
	// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9a-f]{64}$') && !self.matches('^0*$')",message="must be the SHA-256 of the token, as 64 lower-case hexadecimal digits, and never the token itself"
	// +kubebuilder:validation:MaxLength=64
	SHA256 string `json:"sha256"`

	// What the token may do; each scope includes the ones before it. read: every query. write: also replay deliveries. admin:
	// everything. Default: read.
	// +optional
	// +kubebuilder:default=read
	Scope AccessTokenScope `json:"scope,omitempty"`

	// When the token stops working. Default: never.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^[0-9]{4}-[0-9]{2}-[0-9]{2}T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]([.][0-9]+)?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$`
	ExpirationTime *metav1.Time `json:"expirationTime,omitempty"`

	// The name of the user who has made the token, as the API server knows it. From Kubernetes 1.30 on it is the caller's own
	// name, unless the caller has the verb attribute on accesstokens.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	CreatedBy string `json:"createdBy,omitempty"`
}

// GrantedScope is the token's scope, also where it names none.
func (t *AccessToken) GrantedScope() AccessTokenScope {
	return cmp.Or(t.Spec.Scope, AccessTokenScopeRead)
}

// AccessTokenList is a list of access tokens.
//
// +kubebuilder:object:root=true
type AccessTokenList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`
	Items           []AccessToken `json:"items"`
}

// APIKey is a secret key with which one Property's events are sent. Whoever makes the key keeps it; what stands here is its
// hash. Deleting the object revokes the key. Publishable keys stand in the Property, for they are part of its web pages.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:shortName=wkey,categories=weir
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Property",type=string,JSONPath=`.spec.propertyRef.name`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Expires",type=string,JSONPath=`.spec.expirationTime`
// +kubebuilder:printcolumn:name="Created by",type=string,JSONPath=`.spec.createdBy`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="self.metadata.name.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$') && size(self.metadata.name) <= 63",message="metadata.name must be at most 63 lower-case letters, digits and '-', with no '-' at either end, such as server"
type APIKey struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// +required
	Spec APIKeySpec `json:"spec"`
	// +optional
	// +kubebuilder:default={"observedGeneration":-1}
	Status CredentialStatus `json:"status,omitzero"`
}

// APIKeySpec is by what a key is recognised. It never changes.
//
// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="is immutable; delete the object and make another, with another key"
type APIKeySpec struct {
	// The Property whose collectors take the key.
	// +required
	PropertyRef PropertyReference `json:"propertyRef"`

	// The SHA-256 of the key, as 64 lower-case hexadecimal digits. The key itself is "wk_", 27 random letters and digits, and a
	// checksum of 6, as `weir key create` and the console make it: nothing else is accepted.
	// +required
	// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9a-f]{64}$') && !self.matches('^0*$')",message="must be the SHA-256 of the key, as 64 lower-case hexadecimal digits, and never the key itself"
	// +kubebuilder:validation:MaxLength=64
	SHA256 string `json:"sha256"`

	// When the key stops working. Default: never.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^[0-9]{4}-[0-9]{2}-[0-9]{2}T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]([.][0-9]+)?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$`
	ExpirationTime *metav1.Time `json:"expirationTime,omitempty"`

	// The name of the user who has made the key, as the API server knows it. From Kubernetes 1.30 on it is the caller's own
	// name, unless the caller has the verb attribute on apikeys.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	CreatedBy string `json:"createdBy,omitempty"`
}

// APIKeyList is a list of API keys.
//
// +kubebuilder:object:root=true
type APIKeyList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`
	Items           []APIKey `json:"items"`
}

// CredentialStatus says whether a key or token is in force.
type CredentialStatus struct {
	// The generation that the operator saw last; -1 until it has seen the object, so that nobody takes one without
	// conditions for one that works.
	// +optional
	// +kubebuilder:validation:Minimum=-1
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// The UID of the Property that the key or token is for, once that has been seen. Another Property of the name, which comes
	// later, does not accept it, whoever changes the object's owners.
	// +optional
	PropertyUID types.UID `json:"propertyUID,omitempty"`

	// Ready says whether the Property's pods accept the key or token, and why not.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}
