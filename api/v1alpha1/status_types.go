package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// AnnotationPaused on a Property keeps the operator from changing anything that belongs to it while its value is "true".
const AnnotationPaused = "weir.dev/paused"

// PropertyStatus is what the operator found and did last. Rates and lags are metrics, not status.
type PropertyStatus struct {
	// The generation of the spec that the rest of the status speaks of; -1 until the operator has seen the Property, so
	// that nobody takes one without conditions for a finished one.
	// +optional
	// +kubebuilder:validation:Minimum=-1
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Ready, CredentialsReady, RedisReady, WorkloadsAvailable, Exposed, PlatformsReady, VersionsSupported, SourcesReady, ErasuresReady and, where
	// there is a history, HistoryReady. For each, True is good. Paused where the annotation weir.dev/paused is set.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// Where servers send events: the part before /collect/ and the API key.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	CollectURL string `json:"collectURL,omitempty"`

	// The base URL of the read API.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	APIURL string `json:"apiURL,omitempty"`

	// The page on which people look at the Property's numbers, where the read API is exposed.
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	DashboardURL string `json:"dashboardURL,omitempty"`

	// The Secret that shows the API keys and access tokens to the Property's owner.
	// +optional
	CredentialsSecretRef *SecretReference `json:"credentialsSecretRef,omitempty"`

	// The platforms that deliveries are paused for, and why. Written when that changes, not as events are delivered.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=20
	Platforms []PlatformStatus `json:"platforms,omitempty"`
}

// PlatformStatus is why deliveries to a platform are paused.
type PlatformStatus struct {
	// The platform's name in the spec.
	// +required
	// +kubebuilder:validation:MaxLength=40
	Name string `json:"name"`

	// One of the reasons of the condition PlatformsReady.
	// +required
	// +kubebuilder:validation:MaxLength=128
	Reason string `json:"reason"`
}
