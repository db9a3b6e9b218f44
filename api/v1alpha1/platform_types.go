package v1alpha1

// Platform is one destination of a Property's events. Exactly the member that type names is set; Log has none.
//
// +kubebuilder:validation:XValidation:rule="(self.type == 'Meta') == has(self.meta)",fieldPath=".meta",message="must be set for a platform of type Meta, and for no other"
// +kubebuilder:validation:XValidation:rule="(self.type == 'Webhook') == has(self.webhook)",fieldPath=".webhook",message="must be set for a platform of type Webhook, and for no other"
// +kubebuilder:validation:XValidation:rule="self.type != 'Meta' || has(self.credentialsSecretRef)",fieldPath=".credentialsSecretRef",message="must name the Secret whose key accessToken is the token of Meta's Conversions API",reason=FieldValueRequired
// +kubebuilder:validation:XValidation:rule="self.type != 'Webhook' || has(self.credentialsSecretRef)",fieldPath=".credentialsSecretRef",message="must name the Secret whose key signingSecret signs the webhook's requests",reason=FieldValueRequired
// +kubebuilder:validation:XValidation:rule="self.type != 'Log' || !has(self.credentialsSecretRef)",fieldPath=".credentialsSecretRef",message="must be absent: a platform of type Log needs no credentials",reason=FieldValueForbidden
type Platform struct {
	// The platform in delivery records. An event accepted while the platform was there keeps a record under this
	// name for ever.
	// +required
	// +kubebuilder:validation:MaxLength=40
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="must be lower-case letters, digits and '-', with no '-' at either end, such as meta"
	Name string `json:"name"`

	// What is spoken to, and so which member holds its settings. Meta: Meta's Conversions API. Webhook: an HTTP
	// receiver of the owner's. Log: a line in the deliverer's log. Immutable: give another type another name.
	// +required
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="is immutable, because delivery records go by the platform's name; add a platform of another name instead"
	Type PlatformType `json:"type"`

	// The settings of type Meta.
	// +optional
	Meta *MetaPlatform `json:"meta,omitempty"`

	// The settings of type Webhook.
	// +optional
	Webhook *WebhookPlatform `json:"webhook,omitempty"`

	// The Secret that holds the platform's credentials. Meta needs the key accessToken: a token of the Conversions
	// API. Webhook needs the key signingSecret: whsec_ followed by 24 to 64 bytes in base64; several with spaces
	// between them while receivers are moved from one to the next. Log takes none.
	// +optional
	CredentialsSecretRef *SecretReference `json:"credentialsSecretRef,omitempty"`

	// The names of the events to deliver, after aliases. Default: every event that the platform has a mapping for.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=100
	Events []EventName `json:"events,omitempty"`

	// Stops deliveries; events wait for as long as they are retained.
	// +optional
	Suspend bool `json:"suspend,omitempty"`
}

// PlatformType discriminates a [Platform].
//
// +kubebuilder:validation:Enum=Meta;Webhook;Log
type PlatformType string

// The platform types.
const (
	PlatformMeta    PlatformType = "Meta"
	PlatformWebhook PlatformType = "Webhook"
	PlatformLog     PlatformType = "Log"
)

// MetaPlatform configures Meta's Conversions API.
type MetaPlatform struct {
	// The id of the pixel or dataset. Quote it: it is text.
	// +required
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9]+$')",message="must be the digits of a pixel's or dataset's id, in quotes"
	PixelID string `json:"pixelID"`

	// Makes the events test events, shown in Meta's Events Manager under this code.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9_-]+$')",message="must be a code of Meta's Events Manager, such as TEST12345"
	TestEventCode string `json:"testEventCode,omitempty"`
}

// WebhookPlatform configures an HTTP receiver of the owner's, spoken to as Standard Webhooks has it.
type WebhookPlatform struct {
	// Where each event is posted to. Addresses inside the cluster are reached only where the operator allows it.
	// +required
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:XValidation:rule="isURL(self) && url(self).getScheme() in ['http', 'https'] && url(self).getHostname() != ''",message="must be an http or https URL with a host, such as https://crm.example.com/hook"
	// +kubebuilder:validation:XValidation:rule="!self.matches('^[^/]*//[^/?#]*@')",message="must hold no user name or password: requests are signed with signingSecret instead"
	URL string `json:"url"`
}
