// Package platforms says, once for the Property, the operator and the pods, what a platform type is: its settings with
// their rules, the credentials and the hashes it needs, and what bounds a request to it. How a platform is spoken to is
// the business of its adapter.
//
// The markers are read by controller-gen: the settings are the Property's own. What the pods check again is the traits',
// and a test holds the two against each other.
package platforms

import (
	"maps"
	"slices"
	"strings"
	"time"
)

// Type discriminates platforms.
//
// +kubebuilder:validation:Enum=Amplitude;GA4;Google;Klaviyo;LinkedIn;Log;Meta;Microsoft;Mixpanel;OpenAI;Pinterest;PostHog;Reddit;S3;Segment;Snapchat;TikTok;Webhook
type Type string

// table has a row for every type; a file for each has the rest.
var table = map[Type]Traits{
	TypeMeta:      metaTraits,
	TypeGA4:       ga4Traits,
	TypeTikTok:    tiktokTraits,
	TypePinterest: pinterestTraits,
	TypeMixpanel:  mixpanelTraits,
	TypeWebhook:   webhookTraits,
	TypeLog:       logTraits,
	TypeGoogle:    googleTraits,
	TypeMicrosoft: microsoftTraits,
	TypeLinkedIn:  linkedinTraits,
	TypeSnapchat:  snapchatTraits,
	TypeReddit:    redditTraits,
	TypeKlaviyo:   klaviyoTraits,
	TypeAmplitude: amplitudeTraits,
	TypePostHog:   posthogTraits,
	TypeSegment:   segmentTraits,
	TypeOpenAI:    openaiTraits,
	TypeS3:        s3Traits,
}

// Settings are what a platform's type needs to know: the member that the type names is set, and no other. Log and LinkedIn have none.
// Here the rules of the Property's definition also say what Secret the type demands.
//
// +kubebuilder:object:generate=true
// +kubebuilder:validation:XValidation:rule="(self.type == 'Meta') == has(self.meta)",fieldPath=".meta",message="must be set for a platform of type Meta, and for no other"
// +kubebuilder:validation:XValidation:rule="self.type != 'Meta' || has(self.credentialsSecretRef) || (has(self.mode) && self.mode == 'Shadow')",fieldPath=".credentialsSecretRef",message="must name the Secret whose key accessToken is the token of Meta's Conversions API",reason=FieldValueRequired
// +kubebuilder:validation:XValidation:rule="(self.type == 'GA4') == has(self.ga4)",fieldPath=".ga4",message="must be set for a platform of type GA4, and for no other"
// +kubebuilder:validation:XValidation:rule="self.type != 'GA4' || has(self.credentialsSecretRef) || (has(self.mode) && self.mode == 'Shadow')",fieldPath=".credentialsSecretRef",message="must name the Secret whose key apiSecret is a Measurement Protocol API secret of the data stream",reason=FieldValueRequired
// +kubebuilder:validation:XValidation:rule="(self.type == 'TikTok') == has(self.tiktok)",fieldPath=".tiktok",message="must be set for a platform of type TikTok, and for no other"
// +kubebuilder:validation:XValidation:rule="self.type != 'TikTok' || has(self.credentialsSecretRef) || (has(self.mode) && self.mode == 'Shadow')",fieldPath=".credentialsSecretRef",message="must name the Secret whose key accessToken is the token of TikTok's Events API",reason=FieldValueRequired
// +kubebuilder:validation:XValidation:rule="(self.type == 'Pinterest') == has(self.pinterest)",fieldPath=".pinterest",message="must be set for a platform of type Pinterest, and for no other"
// +kubebuilder:validation:XValidation:rule="self.type != 'Pinterest' || has(self.credentialsSecretRef) || (has(self.mode) && self.mode == 'Shadow')",fieldPath=".credentialsSecretRef",message="must name the Secret whose key conversionToken is a conversion access token of the ad account",reason=FieldValueRequired
// +kubebuilder:validation:XValidation:rule="(self.type == 'Mixpanel') == has(self.mixpanel)",fieldPath=".mixpanel",message="must be set for a platform of type Mixpanel, and for no other"
// +kubebuilder:validation:XValidation:rule="self.type != 'Mixpanel' || has(self.credentialsSecretRef) || (has(self.mode) && self.mode == 'Shadow')",fieldPath=".credentialsSecretRef",message="must name the Secret whose keys serviceAccountUsername and serviceAccountSecret are a service account of the project",reason=FieldValueRequired
// +kubebuilder:validation:XValidation:rule="(self.type == 'Webhook') == has(self.webhook)",fieldPath=".webhook",message="must be set for a platform of type Webhook, and for no other"
// +kubebuilder:validation:XValidation:rule="self.type != 'Webhook' || has(self.credentialsSecretRef) || (has(self.mode) && self.mode == 'Shadow')",fieldPath=".credentialsSecretRef",message="must name the Secret whose key signingSecret signs the webhook's requests",reason=FieldValueRequired
// +kubebuilder:validation:XValidation:rule="(self.type == 'Google') == has(self.google)",fieldPath=".google",message="must be set for a platform of type Google, and for no other"
// +kubebuilder:validation:XValidation:rule="self.type != 'Google' || has(self.credentialsSecretRef) || (has(self.mode) && self.mode == 'Shadow')",fieldPath=".credentialsSecretRef",message="must name the Secret whose key serviceAccountKey is the JSON key of a service account that may use Google's Data Manager API",reason=FieldValueRequired
// +kubebuilder:validation:XValidation:rule="(self.type == 'Microsoft') == has(self.microsoft)",fieldPath=".microsoft",message="must be set for a platform of type Microsoft, and for no other"
// +kubebuilder:validation:XValidation:rule="self.type != 'Microsoft' || has(self.credentialsSecretRef) || (has(self.mode) && self.mode == 'Shadow')",fieldPath=".credentialsSecretRef",message="must name the Secret whose key accessToken is the token of the UET tag's Conversions API",reason=FieldValueRequired
// +kubebuilder:validation:XValidation:rule="self.type != 'LinkedIn' || has(self.eventNames)",fieldPath=".eventNames",message="must give each event that LinkedIn is to get the id of its conversion rule",reason=FieldValueRequired
// +kubebuilder:validation:XValidation:rule="self.type != 'LinkedIn' || has(self.credentialsSecretRef) || (has(self.mode) && self.mode == 'Shadow')",fieldPath=".credentialsSecretRef",message="must name the Secret whose key accessToken is a token of LinkedIn's Conversions API",reason=FieldValueRequired
// +kubebuilder:validation:XValidation:rule="(self.type == 'Snapchat') == has(self.snapchat)",fieldPath=".snapchat",message="must be set for a platform of type Snapchat, and for no other"
// +kubebuilder:validation:XValidation:rule="self.type != 'Snapchat' || has(self.credentialsSecretRef) || (has(self.mode) && self.mode == 'Shadow')",fieldPath=".credentialsSecretRef",message="must name the Secret whose key accessToken is the token of Snapchat's Conversions API",reason=FieldValueRequired
// +kubebuilder:validation:XValidation:rule="(self.type == 'Reddit') == has(self.reddit)",fieldPath=".reddit",message="must be set for a platform of type Reddit, and for no other"
// +kubebuilder:validation:XValidation:rule="self.type != 'Reddit' || has(self.credentialsSecretRef) || (has(self.mode) && self.mode == 'Shadow')",fieldPath=".credentialsSecretRef",message="must name the Secret whose key accessToken is the token of Reddit's Conversions API",reason=FieldValueRequired
// +kubebuilder:validation:XValidation:rule="(self.type == 'Klaviyo') == has(self.klaviyo)",fieldPath=".klaviyo",message="must be set for a platform of type Klaviyo, and for no other"
// +kubebuilder:validation:XValidation:rule="self.type != 'Klaviyo' || has(self.credentialsSecretRef) || (has(self.mode) && self.mode == 'Shadow')",fieldPath=".credentialsSecretRef",message="must name the Secret whose key apiKey is a private API key of the account",reason=FieldValueRequired
// +kubebuilder:validation:XValidation:rule="(self.type == 'Amplitude') == has(self.amplitude)",fieldPath=".amplitude",message="must be set for a platform of type Amplitude, and for no other"
// +kubebuilder:validation:XValidation:rule="self.type != 'Amplitude' || has(self.credentialsSecretRef) || (has(self.mode) && self.mode == 'Shadow')",fieldPath=".credentialsSecretRef",message="must name the Secret whose key apiKey is the API key of the project",reason=FieldValueRequired
// +kubebuilder:validation:XValidation:rule="(self.type == 'PostHog') == has(self.posthog)",fieldPath=".posthog",message="must be set for a platform of type PostHog, and for no other"
// +kubebuilder:validation:XValidation:rule="self.type != 'PostHog' || has(self.credentialsSecretRef) || (has(self.mode) && self.mode == 'Shadow')",fieldPath=".credentialsSecretRef",message="must name the Secret whose key projectToken is the token of the project",reason=FieldValueRequired
// +kubebuilder:validation:XValidation:rule="(self.type == 'Segment') == has(self.segment)",fieldPath=".segment",message="must be set for a platform of type Segment, and for no other"
// +kubebuilder:validation:XValidation:rule="self.type != 'Segment' || has(self.credentialsSecretRef) || (has(self.mode) && self.mode == 'Shadow')",fieldPath=".credentialsSecretRef",message="must name the Secret whose key writeKey is the write key of the source",reason=FieldValueRequired
// +kubebuilder:validation:XValidation:rule="(self.type == 'OpenAI') == has(self.openai)",fieldPath=".openai",message="must be set for a platform of type OpenAI, and for no other"
// +kubebuilder:validation:XValidation:rule="self.type != 'OpenAI' || has(self.credentialsSecretRef) || (has(self.mode) && self.mode == 'Shadow')",fieldPath=".credentialsSecretRef",message="must name the Secret whose key apiKey is the key of the pixel's Conversions API",reason=FieldValueRequired
// +kubebuilder:validation:XValidation:rule="(self.type == 'S3') == has(self.s3)",fieldPath=".s3",message="must be set for a platform of type S3, and for no other"
// +kubebuilder:validation:XValidation:rule="self.type != 'S3' || has(self.credentialsSecretRef) || (has(self.mode) && self.mode == 'Shadow')",fieldPath=".credentialsSecretRef",message="must name the Secret whose keys accessKeyID and secretAccessKey may write to the bucket",reason=FieldValueRequired
// +kubebuilder:validation:XValidation:rule="self.type != 'Log' || !has(self.credentialsSecretRef)",fieldPath=".credentialsSecretRef",message="must be absent: a platform of type Log needs no credentials",reason=FieldValueForbidden
type Settings struct {
	// Meta's Conversions API: the settings of type Meta. Its Secret has the key accessToken, the token of Meta's
	// Conversions API.
	// +optional
	Meta *Meta `json:"meta,omitempty"`

	// Google Analytics 4 by its Measurement Protocol: the settings of type GA4. Its Secret has the key apiSecret, a
	// Measurement Protocol API secret of the data stream.
	// +optional
	GA4 *GA4 `json:"ga4,omitempty"`

	// TikTok's Events API 2.0: the settings of type TikTok. Its Secret has the key accessToken, the token of TikTok's
	// Events API.
	// +optional
	TikTok *TikTok `json:"tiktok,omitempty"`

	// Pinterest's API for Conversions: the settings of type Pinterest. Its Secret has the key conversionToken, a
	// conversion access token of the ad account.
	// +optional
	Pinterest *Pinterest `json:"pinterest,omitempty"`

	// Mixpanel's import of events: the settings of type Mixpanel. Its Secret has the keys serviceAccountUsername and
	// serviceAccountSecret, a service account of the project.
	// +optional
	Mixpanel *Mixpanel `json:"mixpanel,omitempty"`

	// An HTTP receiver of the owner's: the settings of type Webhook. Its Secret has the key signingSecret: whsec_
	// followed by 24 to 64 bytes in base64, or several of these with spaces between them while receivers are moved from
	// one to the next.
	// +optional
	Webhook *Webhook `json:"webhook,omitempty"`

	// Google's Data Manager API: the settings of type Google. Its Secret has the key serviceAccountKey, the JSON key of a
	// service account that may use Google's Data Manager API.
	// +optional
	Google *Google `json:"google,omitempty"`

	// Microsoft Advertising's UET Conversions API: the settings of type Microsoft. Its Secret has the key accessToken, the
	// token of the UET tag's Conversions API.
	// +optional
	Microsoft *Microsoft `json:"microsoft,omitempty"`

	// Snapchat's Conversions API: the settings of type Snapchat. Its Secret has the key accessToken, the token of Snapchat's
	// Conversions API.
	// +optional
	Snapchat *Snapchat `json:"snapchat,omitempty"`

	// Reddit's Conversions API: the settings of type Reddit. Its Secret has the key accessToken, the token of Reddit's
	// Conversions API.
	// +optional
	Reddit *Reddit `json:"reddit,omitempty"`

	// Klaviyo's Events API: the settings of type Klaviyo. Its Secret has the key apiKey, a private API key of the account.
	// +optional
	Klaviyo *Klaviyo `json:"klaviyo,omitempty"`

	// Amplitude's HTTP API: the settings of type Amplitude. Its Secret has the key apiKey, the API key of the project.
	// +optional
	Amplitude *Amplitude `json:"amplitude,omitempty"`

	// PostHog's capture API: the settings of type PostHog. Its Secret has the key projectToken, the token of the project.
	// +optional
	PostHog *PostHog `json:"posthog,omitempty"`

	// A source of Segment's, or of what speaks Segment's HTTP Tracking API: the settings of type Segment. Its Secret has the key writeKey, the write key of the source.
	// +optional
	Segment *Segment `json:"segment,omitempty"`

	// OpenAI's Conversions API for ads: the settings of type OpenAI. Its Secret has the key apiKey, the key of the pixel's Conversions API.
	// +optional
	OpenAI *OpenAI `json:"openai,omitempty"`

	// A bucket of the owner's, in Parquet files: the settings of type S3. Its Secret has the keys accessKeyID and secretAccessKey, which may write to the bucket.
	// +optional
	S3 *S3 `json:"s3,omitempty"`
}

// Platform is one destination of a Property's events, as the pods know it. It holds no credential.
type Platform struct {
	// Name is the platform in delivery records.
	Name string `json:"name"`
	Type Type   `json:"type"`
	// Events are the names to deliver; empty means all that the platform has a mapping for.
	Events []string `json:"events,omitempty"`
	// EventNames are the platform's own names for events, by the events' names after aliases: in place of what the type maps them to.
	EventNames map[string]string `json:"eventNames,omitempty"`
	// APIVersion replaces the one of [Traits.APIVersion]; "" for that.
	APIVersion string `json:"apiVersion,omitempty"`
	// Mode is whether events are sent; "" is Deliver.
	Mode Mode `json:"mode,omitempty"`
	// Suspend stops deliveries; events wait.
	Suspend bool `json:"suspend,omitempty"`
	// ForwardErasure hands erasures of persons on to the platform, whose type's [Erasure] says that it takes them.
	ForwardErasure bool `json:"forwardErasure,omitempty"`
	// Endpoint replaces the platform's own base URL; "" in production.
	Endpoint string `json:"endpoint,omitempty"`

	Settings `json:",inline"`
}

// Traits is what is known of a type without speaking to it.
type Traits struct {
	// Credentials are the keys that the platform's Secret must hold.
	Credentials []string
	// Hashes are what of a person the platform matches by.
	Hashes []Hash
	// AccountHashes are what it matches by where the event has a user_id, beside Hashes.
	AccountHashes []Hash
	// APIVersion is the version of the platform's interface that is spoken, as its documentation writes it; "" where it has none.
	APIVersion string
	// APIVersionEnds is the day on which the platform stops taking that version, as it has announced; zero where it has not.
	APIVersionEnds time.Time
	// OtherVersionsEnd are the days on which it stops taking other versions that an owner may have chosen, as far as announced.
	OtherVersionsEnd map[string]time.Time
	// APIVersionPattern is what [Platform.APIVersion] takes; "" where the platform lets nobody choose.
	APIVersionPattern string
	// Proof is what the adapter was judged by.
	Proof Proof
	// Limits bound one request.
	Limits Limits
	// MaxAge is how long after an event's own time the platform takes it; 0 where it does not care.
	MaxAge time.Duration
	// Consent is what it makes of visitors' decisions.
	Consent Consent
	// HasEndpoint says that the platform has a base URL of its own, which [Platform.Endpoint] may replace.
	HasEndpoint bool
	// TestMode is how a made-up event is sent there.
	TestMode TestMode
	// Erasure is what the owner has to do there when a person is erased here.
	Erasure Erasure
	// Texts are the settings that are texts.
	Texts []Text

	// consentOf returns what is made of decisions with some settings, nil where that is Consent; nil where it always is.
	consentOf func(*Settings) *Consent
	// isSet says whether there are settings of this type; nil for a type without settings.
	isSet func(*Settings) bool
}

// Proof is what a type's adapter was judged by, and since when. A type that was not seen live is beta.
type Proof struct {
	// Judges are what judged the requests: at least the fake, which stands for the platform's documents.
	Judges []Judge
	// Live is when an account of the platform's showed the events; zero where that has not been seen.
	Live time.Time
}

// Judge is something that judged what is sent to a platform.
type Judge struct {
	// Kind is what sort of a judge it is.
	Kind JudgeKind
	// What names it, with its version; Since is the day of its first verdict, as YYYY-MM-DD.
	What, Since string
}

// JudgeKind is a sort of judge, from the weakest to the strongest.
type JudgeKind string

// The sorts of judges.
const (
	// ByFake: a server of ours that checks by the rules of the platform's documents.
	ByFake JudgeKind = "fake"
	// BySchema: the platform's own description of its interface, such as OpenAPI or protocol buffers.
	BySchema JudgeKind = "schema"
	// ByLibrary: the platform's own library, or one of others who send there.
	ByLibrary JudgeKind = "library"
	// ByServer: the platform's own server, or the program that it runs.
	ByServer JudgeKind = "server"
)

// Beta says that the type was never seen live.
func (p Proof) Beta() bool { return p.Live.IsZero() }

// Erasure says how a person is erased at a platform. What was sent there is the platform's, and only the owner may ask for that.
type Erasure struct {
	// Instruction is a text of whole sentences that names the place or the interface, and by what the platform knows the person.
	Instruction string
	// URL is where the platform documents it; "" where nobody does.
	URL string
	// Forwarded says that the platform has an interface for it, by which [Platform.ForwardErasure] has it asked.
	Forwarded bool
	// Credentials are the keys that the platform's Secret must hold for that, beside those of [Traits.Credentials].
	Credentials []string
}

// SecretKeys are the keys of a platform's Secret that the deliverer reads: those that the type needs, and where erasures are
// handed on to it those that this needs.
func (t Type) SecretKeys(forwardErasure bool) []string {
	traits := table[t]
	if !forwardErasure {
		return traits.Credentials
	}
	return slices.Concat(traits.Credentials, traits.Erasure.Credentials)
}

// ErasureTypes returns the types that have an interface for erasures, sorted.
func ErasureTypes() []Type {
	return slices.DeleteFunc(Types(), func(t Type) bool { return !table[t].Erasure.Forwarded })
}

// Limits bound one request to a platform.
type Limits struct {
	// Events is how many a request may carry.
	Events int
	// Bytes bounds the sum of a request's payloads, 0 for no bound; one payload alone may be above it.
	Bytes int
}

// Hash names a normalisation of a person's datum of which a platform takes the SHA-256. The domain has their definitions, and
// some more.
type Hash string

// The hashes that platforms take.
const (
	EmailLower     Hash = "EmailLower"
	EmailGoogle    Hash = "EmailGoogle"
	EmailMicrosoft Hash = "EmailMicrosoft"
	EmailAlnum     Hash = "EmailAlnum"
	PhoneDigits    Hash = "PhoneDigits"
	PhoneE164      Hash = "PhoneE164"
	FirstNameMeta  Hash = "FirstNameMeta"
	FirstNameLower Hash = "FirstNameLower"
	LastNameMeta   Hash = "LastNameMeta"
	LastNameLower  Hash = "LastNameLower"
	Street         Hash = "Street"
	City           Hash = "City"
	State          Hash = "State"
	Zip            Hash = "Zip"
	DateOfBirth    Hash = "DateOfBirth"
	Gender         Hash = "Gender"
)

// Traits returns the type's traits and whether the type is known.
func (t Type) Traits() (Traits, bool) {
	traits, ok := table[t]
	return traits, ok
}

// ConsentOf returns what a platform of the type makes of visitors' decisions with its settings.
func (t Traits) ConsentOf(settings *Settings) Consent {
	if t.consentOf != nil {
		if own := t.consentOf(settings); own != nil {
			return *own
		}
	}
	return t.Consent
}

// Member is the name of the member of [Settings] that holds the type's.
func (t Type) Member() string { return strings.ToLower(string(t)) }

// Types returns all types, sorted.
func Types() []Type { return slices.Sorted(maps.Keys(table)) }

// Mode is what becomes of a platform's events.
//
// +kubebuilder:validation:Enum=Deliver;Shadow
type Mode string

// The modes.
const (
	// Deliver sends them.
	Deliver Mode = "Deliver"
	// Shadow keeps what would be sent for its owner to look at, and sends nothing.
	Shadow Mode = "Shadow"
)

// Region is where a platform keeps what it gets; "" is the platform's default.
type Region string

// The regions.
const (
	RegionUS Region = "US"
	RegionEU Region = "EU"
	RegionIN Region = "IN"
)
