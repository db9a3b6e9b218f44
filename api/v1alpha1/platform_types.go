package v1alpha1

// Platform is one destination of a Property's events. Exactly the member that type names is set; Log has none.
//
// +kubebuilder:validation:XValidation:rule="(self.type == 'Meta') == has(self.meta)",fieldPath=".meta",message="must be set for a platform of type Meta, and for no other"
// +kubebuilder:validation:XValidation:rule="(self.type == 'GA4') == has(self.ga4)",fieldPath=".ga4",message="must be set for a platform of type GA4, and for no other"
// +kubebuilder:validation:XValidation:rule="(self.type == 'TikTok') == has(self.tiktok)",fieldPath=".tiktok",message="must be set for a platform of type TikTok, and for no other"
// +kubebuilder:validation:XValidation:rule="(self.type == 'Pinterest') == has(self.pinterest)",fieldPath=".pinterest",message="must be set for a platform of type Pinterest, and for no other"
// +kubebuilder:validation:XValidation:rule="(self.type == 'Mixpanel') == has(self.mixpanel)",fieldPath=".mixpanel",message="must be set for a platform of type Mixpanel, and for no other"
// +kubebuilder:validation:XValidation:rule="(self.type == 'Webhook') == has(self.webhook)",fieldPath=".webhook",message="must be set for a platform of type Webhook, and for no other"
// +kubebuilder:validation:XValidation:rule="self.type != 'Meta' || has(self.credentialsSecretRef)",fieldPath=".credentialsSecretRef",message="must name the Secret whose key accessToken is the token of Meta's Conversions API",reason=FieldValueRequired
// +kubebuilder:validation:XValidation:rule="self.type != 'GA4' || has(self.credentialsSecretRef)",fieldPath=".credentialsSecretRef",message="must name the Secret whose key apiSecret is a Measurement Protocol API secret of the data stream",reason=FieldValueRequired
// +kubebuilder:validation:XValidation:rule="self.type != 'TikTok' || has(self.credentialsSecretRef)",fieldPath=".credentialsSecretRef",message="must name the Secret whose key accessToken is the token of TikTok's Events API",reason=FieldValueRequired
// +kubebuilder:validation:XValidation:rule="self.type != 'Pinterest' || has(self.credentialsSecretRef)",fieldPath=".credentialsSecretRef",message="must name the Secret whose key conversionToken is a conversion access token of the ad account",reason=FieldValueRequired
// +kubebuilder:validation:XValidation:rule="self.type != 'Mixpanel' || has(self.credentialsSecretRef)",fieldPath=".credentialsSecretRef",message="must name the Secret whose keys serviceAccountUsername and serviceAccountSecret are a service account of the project",reason=FieldValueRequired
// +kubebuilder:validation:XValidation:rule="self.type != 'Webhook' || has(self.credentialsSecretRef)",fieldPath=".credentialsSecretRef",message="must name the Secret whose key signingSecret signs the webhook's requests",reason=FieldValueRequired
// +kubebuilder:validation:XValidation:rule="self.type != 'Log' || !has(self.credentialsSecretRef)",fieldPath=".credentialsSecretRef",message="must be absent: a platform of type Log needs no credentials",reason=FieldValueForbidden
type Platform struct {
	// The platform in delivery records. An event accepted while the platform was there keeps a record under this
	// name for ever.
	// +required
	// +kubebuilder:validation:MaxLength=40
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="must be lower-case letters, digits and '-', with no '-' at either end, such as meta"
	Name string `json:"name"`

	// What is spoken to, and so which member holds its settings. Meta: Meta's Conversions API. GA4: Google Analytics
	// 4 by its Measurement Protocol. TikTok: TikTok's Events API 2.0. Pinterest: Pinterest's API for Conversions.
	// Mixpanel: Mixpanel's import. Webhook: an HTTP receiver of the owner's. Log: a line in the deliverer's log.
	// Immutable: give another type another name.
	// +required
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="is immutable, because delivery records go by the platform's name; add a platform of another name instead"
	Type PlatformType `json:"type"`

	// The settings of type Meta.
	// +optional
	Meta *MetaPlatform `json:"meta,omitempty"`

	// The settings of type GA4.
	// +optional
	GA4 *GA4Platform `json:"ga4,omitempty"`

	// The settings of type TikTok.
	// +optional
	TikTok *TikTokPlatform `json:"tiktok,omitempty"`

	// The settings of type Pinterest.
	// +optional
	Pinterest *PinterestPlatform `json:"pinterest,omitempty"`

	// The settings of type Mixpanel.
	// +optional
	Mixpanel *MixpanelPlatform `json:"mixpanel,omitempty"`

	// The settings of type Webhook.
	// +optional
	Webhook *WebhookPlatform `json:"webhook,omitempty"`

	// The Secret that holds the platform's credentials, under the keys that its type needs. Meta and TikTok:
	// accessToken. GA4: apiSecret. Pinterest: conversionToken. Mixpanel: serviceAccountUsername and
	// serviceAccountSecret. Webhook: signingSecret, which is whsec_ followed by 24 to 64 bytes in base64; several with
	// spaces between them while receivers are moved from one to the next. Log takes none.
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
// +kubebuilder:validation:Enum=Meta;GA4;TikTok;Pinterest;Mixpanel;Webhook;Log
type PlatformType string

// The platform types.
const (
	PlatformMeta      PlatformType = "Meta"
	PlatformGA4       PlatformType = "GA4"
	PlatformTikTok    PlatformType = "TikTok"
	PlatformPinterest PlatformType = "Pinterest"
	PlatformMixpanel  PlatformType = "Mixpanel"
	PlatformWebhook   PlatformType = "Webhook"
	PlatformLog       PlatformType = "Log"
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

// GA4Platform configures Google Analytics 4, spoken to by its Measurement Protocol.
type GA4Platform struct {
	// The id of the web data stream.
	// +required
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^G-[A-Z0-9]+$')",message="must be the id of a web data stream, such as G-ABC123DEF4"
	MeasurementID string `json:"measurementID"`

	// EU collects the events in the EU. Default: at the nearest of Google's servers.
	// +optional
	// +kubebuilder:validation:Enum=EU
	Region PlatformRegion `json:"region,omitempty"`
}

// TikTokPlatform configures TikTok's Events API 2.0.
type TikTokPlatform struct {
	// The pixel's code, as the Events Manager shows it.
	// +required
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9]+$')",message="must be a pixel's code: letters and digits, such as C4A1B2C3D4E5F6G7H8I9"
	EventSourceID string `json:"eventSourceID"`

	// Makes the events test events, shown in TikTok's Events Manager under this code.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9_-]+$')",message="must be a code of TikTok's Events Manager, such as TEST12345"
	TestEventCode string `json:"testEventCode,omitempty"`
}

// PinterestPlatform configures Pinterest's API for Conversions.
type PinterestPlatform struct {
	// The id of the ad account. Quote it: it is text.
	// +required
	// +kubebuilder:validation:MaxLength=18
	// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9]+$')",message="must be the digits of an ad account's id, in quotes"
	AdAccountID string `json:"adAccountID"`

	// Makes the events test events: checked and shown by Pinterest, and not counted.
	// +optional
	Test bool `json:"test,omitempty"`
}

// MixpanelPlatform configures Mixpanel's import of events.
type MixpanelPlatform struct {
	// The id of the project. Quote it: it is text.
	// +required
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9]+$')",message="must be the digits of a project's id, in quotes"
	ProjectID string `json:"projectID"`

	// Where the project's data resides. Default: US.
	// +optional
	// +kubebuilder:validation:Enum=US;EU;IN
	Region PlatformRegion `json:"region,omitempty"`
}

// PlatformRegion is where a platform keeps what it gets.
type PlatformRegion string

// WebhookPlatform configures an HTTP receiver of the owner's, spoken to as Standard Webhooks has it.
type WebhookPlatform struct {
	// Where each event is posted to. Addresses inside the cluster are reached only where the operator allows it.
	// +required
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:XValidation:rule="isURL(self) && url(self).getScheme() in ['http', 'https'] && url(self).getHostname() != ''",message="must be an http or https URL with a host, such as https://crm.example.com/hook"
	// +kubebuilder:validation:XValidation:rule="!self.matches('^[^/]*//[^/?#]*@')",message="must hold no user name or password: requests are signed with signingSecret instead"
	URL string `json:"url"`
}
