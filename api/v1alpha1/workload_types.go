package v1alpha1

import corev1 "k8s.io/api/core/v1"

// Collector is how the pods that accept events are run.
//
// +kubebuilder:validation:XValidation:rule="!(has(self.replicas) && has(self.autoscaling))",fieldPath=".replicas",message="must be absent where autoscaling is set: the autoscaler decides how many there are",reason=FieldValueForbidden
type Collector struct {
	// How many pods run. Default: 2, unless autoscaling is set.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000
	Replicas *int32 `json:"replicas,omitempty"`

	// Lets the number of pods follow the load, or leaves it to somebody else, in place of replicas.
	// +optional
	Autoscaling *Autoscaling `json:"autoscaling,omitempty"`

	PodOptions `json:",inline"`
}

// Autoscaling is who decides how many collectors run, and within which bounds.
//
// +kubebuilder:validation:XValidation:rule="self.type == 'External' || has(self.maxReplicas)",fieldPath=".maxReplicas",message="must be set unless type is External",reason=FieldValueRequired
// +kubebuilder:validation:XValidation:rule="self.type != 'External' || (!has(self.minReplicas) && !has(self.maxReplicas))",message="must have neither minReplicas nor maxReplicas where type is External: whoever scales the Deployment has bounds of their own",reason=FieldValueForbidden
// +kubebuilder:validation:XValidation:rule="!has(self.maxReplicas) || (has(self.minReplicas) ? self.minReplicas : 2) <= self.maxReplicas",fieldPath=".maxReplicas",message="must be at least minReplicas"
type Autoscaling struct {
	// CPU: Weir makes an autoscaler that follows the processor time. External: somebody else scales the Deployment, such as KEDA or
	// an autoscaler of your own, and Weir leaves its number of pods alone.
	// +optional
	// +kubebuilder:default=CPU
	Type AutoscalingType `json:"type,omitempty"`

	// The fewest pods. There is no 0: who is not there answers no sender, and so nobody would be woken. Default: 2.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	MinReplicas int32 `json:"minReplicas,omitempty"`

	// The most pods. Required where type is CPU.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	MaxReplicas int32 `json:"maxReplicas,omitempty"`
}

// DefaultMinReplicas is the fewest collectors of an autoscaler that names no other number.
const DefaultMinReplicas = 2

// AutoscalingType is who decides how many pods run.
//
// +kubebuilder:validation:Enum=CPU;External
type AutoscalingType string

// The types of autoscaling. One that names none is by CPU.
const (
	AutoscalingCPU      AutoscalingType = "CPU"
	AutoscalingExternal AutoscalingType = "External"
)

// ExternalAutoscaling leaves the number of a role's pods to somebody else.
type ExternalAutoscaling struct {
	// External: somebody else scales the Deployment, such as KEDA or an autoscaler of your own, and Weir leaves its number of pods
	// alone.
	// +required
	Type ExternalAutoscalingType `json:"type"`
}

// ExternalAutoscalingType is the one way in which the pods of these roles are scaled.
//
// +kubebuilder:validation:Enum=External
type ExternalAutoscalingType string

// Workload is how the pods of one role are run.
//
// +kubebuilder:validation:XValidation:rule="!(has(self.replicas) && has(self.autoscaling))",fieldPath=".replicas",message="must be absent where autoscaling is set: whoever scales the Deployment decides how many there are",reason=FieldValueForbidden
type Workload struct {
	// How many pods run. Default: 1, unless autoscaling is set.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000
	Replicas *int32 `json:"replicas,omitempty"`

	// Leaves the number of pods to somebody else, in place of replicas.
	// +optional
	Autoscaling *ExternalAutoscaling `json:"autoscaling,omitempty"`

	PodOptions `json:",inline"`
}

// Query is how the pods are run that answer the read API, and who may ask it from web pages.
type Query struct {
	Workload `json:",inline"`

	// The origins of the web pages whose scripts may read the read API with an access token, as browsers send them:
	// scheme and host, and the port where it is not the scheme's own. https://*.example.com stands for every host below
	// example.com. Default: none. The property's own page is not among them, and needs no entry.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=50
	AllowedOrigins []Origin `json:"allowedOrigins,omitempty"`
}

// Archive is how the pod is run that copies events to the history. There is one: two would wait for each other.
type Archive struct {
	PodOptions `json:",inline"`
}

// PodOptions is all that a Property may say of its pods. The list is closed, so that editing a Property never
// becomes creating arbitrary pods.
type PodOptions struct {
	// What the container asks for and is held to. Default: the operator's.
	// +optional
	Resources *Resources `json:"resources,omitempty"`

	// Labels of the nodes that the pods may run on.
	// +optional
	// +kubebuilder:validation:MaxProperties=32
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`

	// Taints that the pods bear.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`

	// Where the pods are drawn to and kept from.
	// +optional
	Affinity *corev1.Affinity `json:"affinity,omitempty"`

	// How the pods are spread over nodes and zones. A constraint without labelSelector means the pods of the same
	// role of the same Property.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	TopologySpreadConstraints []corev1.TopologySpreadConstraint `json:"topologySpreadConstraints,omitempty"`

	// Annotations of the pods.
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	PodAnnotations map[string]string `json:"podAnnotations,omitempty"`

	// Secrets with which the image is pulled.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=8
	ImagePullSecrets []SecretReference `json:"imagePullSecrets,omitempty"`
}

// Resources are what a container asks for and is held to.
type Resources struct {
	// What is set aside for the container, such as {cpu: 100m, memory: 64Mi}.
	// +optional
	// +kubebuilder:validation:MaxProperties=8
	// +kubebuilder:validation:XValidation:rule="self.all(name, isQuantity(string(self[name])))",message="must be quantities, such as 100m or 64Mi"
	Requests corev1.ResourceList `json:"requests,omitempty"`

	// What the container may use at most.
	// +optional
	// +kubebuilder:validation:MaxProperties=8
	// +kubebuilder:validation:XValidation:rule="self.all(name, isQuantity(string(self[name])))",message="must be quantities, such as 100m or 64Mi"
	Limits corev1.ResourceList `json:"limits,omitempty"`
}
