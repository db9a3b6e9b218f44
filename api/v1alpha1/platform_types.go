package v1alpha1

import "github.com/weir-dev/weir/collector/platforms"

// Platform is one destination of a Property's events. Exactly the member that type names is set; Log and LinkedIn have none.
//
// +kubebuilder:validation:XValidation:rule="!has(self.forwardErasure) || !self.forwardErasure || self.type in ['Mixpanel', 'Webhook']",fieldPath=".forwardErasure",message="must be absent or false: the types that have an interface for erasures are Mixpanel and Webhook"
// +kubebuilder:validation:XValidation:rule="!has(self.apiVersion) || self.type in ['Klaviyo', 'LinkedIn', 'Meta']",fieldPath=".apiVersion",message="must be absent: the types that let one choose a version are Klaviyo, LinkedIn, Meta"
// +kubebuilder:validation:XValidation:rule="self.type != 'Klaviyo' || !has(self.apiVersion) || self.apiVersion.matches(r'^[0-9]{4}-[0-9]{2}-[0-9]{2}(\\.pre)?$')",fieldPath=".apiVersion",message="must be a version as Klaviyo writes it, such as 2026-07-15"
// +kubebuilder:validation:XValidation:rule="self.type != 'LinkedIn' || !has(self.apiVersion) || self.apiVersion.matches(r'^20[0-9]{2}(0[1-9]|1[0-2])$')",fieldPath=".apiVersion",message="must be a version as LinkedIn writes it, such as 202609"
// +kubebuilder:validation:XValidation:rule="self.type != 'Meta' || !has(self.apiVersion) || self.apiVersion.matches(r'^v[0-9]+\\.[0-9]+$')",fieldPath=".apiVersion",message="must be a version as Meta writes it, such as v26.0"
// +kubebuilder:validation:XValidation:rule="self.type != 'S3' || !has(self.mode) || self.mode != 'Shadow'",fieldPath=".mode",message="must be absent or Deliver for a platform of type S3: what would be in its files is what the export of events has"
type Platform struct {
	// The platform in delivery records. An event accepted while the platform was there keeps a record under this
	// name for ever.
	// +required
	// +kubebuilder:validation:MaxLength=40
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="must be lower-case letters, digits and '-', with no '-' at either end, such as meta"
	Name string `json:"name"`

	// What is spoken to, and so which member holds its settings; their descriptions say what each is. Log, a line in the
	// deliverer's log, and LinkedIn, its Conversions API, have no settings. Immutable: give another type another name. Beta,
	// which nobody has seen with a live account yet: Amplitude, GA4, Google, Klaviyo, LinkedIn, Meta, Microsoft, Mixpanel, OpenAI, Pinterest, PostHog, Reddit, S3,
	// Segment, Snapchat, TikTok.
	// +required
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="is immutable, because delivery records go by the platform's name; add a platform of another name instead"
	Type platforms.Type `json:"type"`

	platforms.Settings `json:",inline"`

	// The Secret that holds the platform's credentials, under the keys that the description of its type's member names.
	// Log takes none. LinkedIn, which has no settings, takes accessToken, a token of its Conversions API.
	// +optional
	CredentialsSecretRef *SecretReference `json:"credentialsSecretRef,omitempty"`

	// The names of the events to deliver, after aliases. Default: every event that the platform has a mapping for.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:XValidation:rule=`self.all(name, name == '' || name.matches(r'^[^\s\p{Z}\p{Cc}]([^\p{Cc}]{0,98}[^\s\p{Z}\p{Cc}])?$'))`,message="must be event names of 1 to 100 characters without control characters or space around them"
	Events []EventName `json:"events,omitempty"`

	// The platform's own names for events, by the events' names after aliases, in place of what the platform's page maps them
	// to: for LinkedIn and Google Ads, which have none, the ids of the conversions that were set up there. A name that the
	// platform has for purchases or refunds is refused for any other event.
	// +optional
	// +kubebuilder:validation:MaxProperties=100
	// +kubebuilder:validation:XValidation:rule="self.all(name, size(name) <= 100 && size(self[name]) >= 1 && size(self[name]) <= 100)",message="must have names of 1 to 100 characters"
	EventNames map[string]string `json:"eventNames,omitempty"`

	// The version of the platform's interface to speak, as its documentation writes it, where the platform lets one choose:
	// Klaviyo, LinkedIn, Meta. Default: the one on the platform's page.
	// +optional
	// +kubebuilder:validation:MaxLength=20
	APIVersion string `json:"apiVersion,omitempty"`

	// Shadow sends nothing and keeps what would be sent for a look at it. Default: Deliver.
	// +optional
	Mode platforms.Mode `json:"mode,omitempty"`

	// Hands erasures of persons on to the platform, by the interface that it has for them: Mixpanel and Webhook have one.
	// Mixpanel's Secret then has the keys projectToken and gdprToken too.
	// +optional
	ForwardErasure bool `json:"forwardErasure,omitempty"`

	// Stops deliveries; events wait for as long as they are retained.
	// +optional
	Suspend bool `json:"suspend,omitempty"`
}

// SecretName is the Secret that is read for the platform; "" where none is, as in the mode Shadow.
func (p *Platform) SecretName() string {
	if p.CredentialsSecretRef == nil || p.Mode == platforms.Shadow {
		return ""
	}
	return p.CredentialsSecretRef.Name
}
