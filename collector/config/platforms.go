package config

import (
	"maps"
	"slices"

	"github.com/weir-dev/weir/collector/event"
)

// PlatformType discriminates a [Platform].
type PlatformType string

// The platform types.
const (
	TypeMeta      PlatformType = "Meta"
	TypeGA4       PlatformType = "GA4"
	TypeTikTok    PlatformType = "TikTok"
	TypePinterest PlatformType = "Pinterest"
	TypeMixpanel  PlatformType = "Mixpanel"
	TypeWebhook   PlatformType = "Webhook"
	TypeLog       PlatformType = "Log"
)

// Meta configures Meta's Conversions API. Credential: accessToken.
type Meta struct {
	PixelID       string `json:"pixelID"`
	TestEventCode string `json:"testEventCode,omitempty"`
}

// GA4 configures Google Analytics 4, spoken to by the Measurement Protocol. Credential: apiSecret.
type GA4 struct {
	// MeasurementID is the web data stream's, such as G-ABC123DEF4.
	MeasurementID string `json:"measurementID"`
	// Region is RegionEU where the events are to be collected in the EU, else "".
	Region Region `json:"region,omitempty"`
}

// TikTok configures TikTok's Events API 2.0. Credential: accessToken.
type TikTok struct {
	// EventSourceID is the pixel's code.
	EventSourceID string `json:"eventSourceID"`
	TestEventCode string `json:"testEventCode,omitempty"`
}

// Pinterest configures Pinterest's API for Conversions, v5. Credential: conversionToken.
type Pinterest struct {
	AdAccountID string `json:"adAccountID"`
	// Test makes the events test events: checked, shown in the Events Manager and not counted.
	Test bool `json:"test,omitempty"`
}

// Mixpanel configures Mixpanel's import of events. Credentials: serviceAccountUsername, serviceAccountSecret.
type Mixpanel struct {
	ProjectID string `json:"projectID"`
	// Region is where the project's data resides: "" for the US, RegionEU or RegionIN.
	Region Region `json:"region,omitempty"`
}

// Webhook configures an HTTP receiver of the customer's. Credential: signingSecret.
type Webhook struct {
	URL string `json:"url"`
}

// Log configures a platform that writes each event to the deliverer's log. It needs no credential.
type Log struct{}

// Region is where a platform keeps what it gets; "" is the platform's default.
type Region string

// The regions.
const (
	RegionUS Region = "US"
	RegionEU Region = "EU"
	RegionIN Region = "IN"
)

// PlatformTraits is what the other roles and the operator have to know of a platform type; how it is spoken
// to is known to the deliverer alone.
type PlatformTraits struct {
	// Credentials are the keys that the referred Secret must hold.
	Credentials []string
	// Variants are the hashes that the platform matches by.
	Variants event.VariantSet
	// HasEndpoint says that the platform has a base URL of its own, which [Platform.Endpoint] may replace.
	HasEndpoint bool
}

// platformTraits has a row for every type.
var platformTraits = map[PlatformType]PlatformTraits{
	TypeMeta: {
		Credentials: []string{"accessToken"},
		Variants:    event.Variants(event.EmailLower, event.PhoneDigits, event.FirstNameMeta),
		HasEndpoint: true,
	},
	TypeGA4: {
		// Google takes the hashes of a person with a user_id alone, which an envelope does not have.
		Credentials: []string{"apiSecret"},
		HasEndpoint: true,
	},
	TypeTikTok: {
		Credentials: []string{"accessToken"},
		Variants:    event.Variants(event.EmailLower, event.PhoneE164, event.FirstNameLower),
		HasEndpoint: true,
	},
	TypePinterest: {
		Credentials: []string{"conversionToken"},
		Variants:    event.Variants(event.EmailLower, event.PhoneDigits, event.FirstNameLower),
		HasEndpoint: true,
	},
	TypeMixpanel: {
		Credentials: []string{"serviceAccountUsername", "serviceAccountSecret"},
		HasEndpoint: true,
	},
	TypeWebhook: {
		Credentials: []string{"signingSecret"},
		Variants:    event.Variants(event.EmailLower, event.PhoneE164, event.FirstNameLower),
	},
	TypeLog: {},
}

// Traits returns the type's traits and whether the type is known.
func (t PlatformType) Traits() (PlatformTraits, bool) {
	traits, ok := platformTraits[t]
	return traits, ok
}

// PlatformTypes returns all types, sorted.
func PlatformTypes() []PlatformType { return slices.Sorted(maps.Keys(platformTraits)) }
