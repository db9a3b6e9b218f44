package v1alpha1

// Exposure is how the collector and the read API are reached from outside the cluster.
//
// +kubebuilder:validation:XValidation:rule="self.type != 'None' || !has(self.collectHost)",fieldPath=".collectHost",message="must be absent where type is None; set type to Ingress or Gateway to expose the collector",reason=FieldValueForbidden
// +kubebuilder:validation:XValidation:rule="self.type != 'None' || !has(self.apiHost)",fieldPath=".apiHost",message="must be absent where type is None; set type to Ingress or Gateway to expose the read API",reason=FieldValueForbidden
// +kubebuilder:validation:XValidation:rule="self.type == 'Ingress' || !has(self.ingress)",fieldPath=".ingress",message="must be absent unless type is Ingress",reason=FieldValueForbidden
// +kubebuilder:validation:XValidation:rule="(self.type == 'Gateway') == has(self.gateway)",fieldPath=".gateway",message="must be set where type is Gateway, and only there"
type Exposure struct {
	// What is made for the hosts. Ingress: an Ingress. Gateway: HTTPRoutes. None: nothing.
	// +optional
	// +kubebuilder:default=None
	Type ExposureType `json:"type,omitempty"`

	// The host that servers send events to. It belongs to one Property, cluster-wide; the older keeps it.
	// Default: what the operator's host template makes of the Property's name and namespace; without one it is
	// required where type is Ingress or Gateway.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^([a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?[.])+[a-z]([-a-z0-9]{0,61}[a-z0-9])?$')",message="must be a host name in lower case and no address, such as collect.shop.example.com"
	CollectHost string `json:"collectHost,omitempty"`

	// The host of the read API. Properties may share it: each is served below /api/v1/properties/ and its name.
	// Default: the read API is reached only from inside the cluster.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^([a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?[.])+[a-z]([-a-z0-9]{0,61}[a-z0-9])?$')",message="must be a host name in lower case and no address, such as api.example.com"
	APIHost string `json:"apiHost,omitempty"`

	// Settings of type Ingress.
	// +optional
	Ingress *IngressExposure `json:"ingress,omitempty"`

	// Settings of type Gateway.
	// +optional
	Gateway *GatewayExposure `json:"gateway,omitempty"`
}

// ExposureType discriminates an [Exposure].
//
// +kubebuilder:validation:Enum=Ingress;Gateway;None
type ExposureType string

// The exposure types.
const (
	ExposureIngress ExposureType = "Ingress"
	ExposureGateway ExposureType = "Gateway"
	ExposureNone    ExposureType = "None"
)

// IngressExposure is how the Ingress is made.
type IngressExposure struct {
	// The IngressClass. Default: the cluster's default class.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="must be the name of an IngressClass: lower-case letters, digits, '-' and '.', with a letter or digit at either end, such as nginx"
	ClassName string `json:"className,omitempty"`

	// A Secret of type kubernetes.io/tls for the hosts. Default: none; the ingress controller decides about TLS.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="must be the name of a Secret: lower-case letters, digits, '-' and '.', with a letter or digit at either end, such as shop-tls"
	TLSSecretName string `json:"tlsSecretName,omitempty"`

	// Annotations of the Ingress. The operator decides which ones are allowed.
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	Annotations map[string]string `json:"annotations,omitempty"`
}

// GatewayExposure is how the HTTPRoutes are made.
type GatewayExposure struct {
	// The Gateways that the routes attach to.
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=8
	ParentRefs []GatewayReference `json:"parentRefs"`
}

// GatewayReference names a Gateway, or one listener of it.
type GatewayReference struct {
	// The Gateway's name.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="must be the name of a Gateway: lower-case letters, digits, '-' and '.', with a letter or digit at either end, such as edge"
	Name string `json:"name"`

	// The Gateway's namespace. Default: the Property's.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="must be the name of a namespace: lower-case letters, digits and '-', with no '-' at either end, such as edge"
	Namespace string `json:"namespace,omitempty"`

	// The name of one listener. Default: every listener that takes the host.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="must be the name of a listener: lower-case letters, digits, '-' and '.', with a letter or digit at either end, such as https"
	SectionName string `json:"sectionName,omitempty"`

	// The port of the listeners. Default: every port.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	Port *int32 `json:"port,omitempty"`
}
