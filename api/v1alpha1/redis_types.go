package v1alpha1

import "k8s.io/apimachinery/pkg/api/resource"

// Redis is a Redis of the Property's own: one that there is, or one that the operator makes.
//
// +kubebuilder:validation:XValidation:rule="has(self.dedicated) != has(self.urlSecretKeyRef)",fieldPath=".dedicated",message="must be set where urlSecretKeyRef is not, and only there, such as {storage: 8Gi, memory: 640Mi}"
// +kubebuilder:validation:XValidation:rule="!has(self.dedicated) || !has(self.caSecretRef)",fieldPath=".caSecretRef",message="must be absent where dedicated is set: the operator makes the certificates of that Redis",reason=FieldValueForbidden
// +kubebuilder:validation:XValidation:rule="!has(self.dedicated) || !has(self.clientCertificateSecretRef)",fieldPath=".clientCertificateSecretRef",message="must be absent where dedicated is set: that Redis asks for no certificate",reason=FieldValueForbidden
type Redis struct {
	// The key of a Secret in the Property's namespace that holds the URL: redis:// or rediss://, with user
	// and password where there are any.
	// +optional
	URLSecretKeyRef *SecretKeyReference `json:"urlSecretKeyRef,omitempty"`

	// A Redis that the operator makes for this Property alone, in its namespace.
	// +optional
	Dedicated *DedicatedRedis `json:"dedicated,omitempty"`

	// The certificates of the authorities, in PEM, that Redis's own may come from. Default: the system's. For URLs that
	// begin with rediss://.
	// +optional
	CASecretRef *CASecretReference `json:"caSecretRef,omitempty"`

	// A Secret of type kubernetes.io/tls with the certificate that is shown to Redis: tls.crt and tls.key, in PEM.
	// Default: none. For URLs that begin with rediss://.
	// +optional
	ClientCertificateSecretRef *SecretReference `json:"clientCertificateSecretRef,omitempty"`
}

// DedicatedRedis is a Redis that the operator makes for one Property: one pod with a volume.
//
// +kubebuilder:validation:XValidation:rule="!isQuantity(string(self.storage)) || !isQuantity(string(oldSelf.storage)) || quantity(string(self.storage)).compareTo(quantity(string(oldSelf.storage))) == 0",fieldPath=".storage",message="is immutable, because no StatefulSet's is changed; grow the PersistentVolumeClaim data-NAME-redis-0 itself"
// +kubebuilder:validation:XValidation:rule="(has(self.storageClassName) ? [self.storageClassName] : []) == (has(oldSelf.storageClassName) ? [oldSelf.storageClassName] : [])",fieldPath=".storageClassName",message="is immutable, because a volume stays in its class; back the events up, make a new Property and restore them instead"
type DedicatedRedis struct {
	// How large its volume is, such as 8Gi: at least four times memory.
	// +required
	// +kubebuilder:validation:XValidation:rule="isQuantity(string(self)) && quantity(string(self)).isGreaterThan(quantity('0'))",message="must be a quantity above 0, such as 8Gi"
	Storage resource.Quantity `json:"storage"`

	// What its data may take of memory, such as 640Mi. Beyond it events are refused, never forgotten. Its container may use half as
	// much again and 64Mi. A change takes effect when its pod NAME-redis-0 is deleted.
	// +required
	// +kubebuilder:validation:XValidation:rule="isQuantity(string(self)) && quantity(string(self)).compareTo(quantity('64Mi')) >= 0",message="must be a quantity of at least 64Mi, such as 640Mi"
	Memory resource.Quantity `json:"memory"`

	// The StorageClass of the volume. Default: the cluster's.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="must be the name of a StorageClass: lower-case letters, digits, '-' and '.', with a letter or digit at either end, such as fast"
	StorageClassName *string `json:"storageClassName,omitempty"`
}

// DedicatedRedis is the Redis that the operator makes for the Property, nil for none.
func (s *PropertySpec) DedicatedRedis() *DedicatedRedis {
	if s.Redis == nil {
		return nil
	}
	return s.Redis.Dedicated
}
