package platforms

import "time"

// TypeGoogle is Google's Data Manager API.
const TypeGoogle Type = "Google"

// GoogleProduct is one of Google's products that the Data Manager API takes events for.
//
// +kubebuilder:validation:Enum=Ads;Analytics
type GoogleProduct string

// The products.
const (
	// GoogleAds gets conversions, each for a conversion action that the owner has set up.
	GoogleAds GoogleProduct = "Ads"
	// GoogleAnalytics gets events for a web data stream.
	GoogleAnalytics GoogleProduct = "Analytics"
)

// Google configures Google's Data Manager API.
//
// +kubebuilder:validation:XValidation:rule="(has(self.product) && self.product == 'Analytics') == has(self.measurementID)",fieldPath=".measurementID",message="must be set for the product Analytics, and for no other"
// +kubebuilder:validation:XValidation:rule="!has(self.loginAccountID) || !has(self.product) || self.product == 'Ads'",fieldPath=".loginAccountID",message="must be absent for the product Analytics: its service account has a role in the property itself"
type Google struct {
	// What the events are for: Ads, as conversions of the actions that the platform's eventNames name, or Analytics, a
	// property of Google Analytics 4. Default: Ads.
	// +optional
	Product GoogleProduct `json:"product,omitempty"`

	// The id of the Google Ads account, or of the Google Analytics property: digits alone. Quote it: it is text.
	// +required
	// +kubebuilder:validation:MaxLength=20
	// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9]+$')",message="must be the digits of an account's id, in quotes"
	AccountID string `json:"accountID"`

	// The id of the manager account by which the service account reaches the Google Ads account. Default: that account itself.
	// +optional
	// +kubebuilder:validation:MaxLength=20
	// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9]+$')",message="must be the digits of a manager account's id, in quotes"
	LoginAccountID string `json:"loginAccountID,omitempty"`

	// The id of the web data stream, for the product Analytics.
	// +optional
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^G-[A-Z0-9]+$')",message="must be the id of a web data stream, such as G-ABC123DEF4"
	MeasurementID string `json:"measurementID,omitempty"`

	// Has Google check the events and take none of them.
	// +optional
	Test bool `json:"test,omitempty"`
}

// googleTCF is Google's entry of the Global Vendor List.
var googleTCF = TCF{Vendor: 755, LegitimateInterest: []int{7}, Flexible: []int{7}}

var googleTraits = Traits{
	Credentials: []string{"serviceAccountKey"},
	Hashes:      []Hash{EmailGoogle, PhoneE164},
	APIVersion:  "v1",
	// The body of 2,000 events stays far below what Google's front end takes.
	Limits: Limits{Events: 2000, Bytes: 4 << 20},
	// What is older is refused for conversion actions of imported clicks; Analytics has a bound of its own.
	MaxAge: 90 * 24 * time.Hour,
	// Google Ads matches by what devices keep and by personal data, and takes no conversion of who denied ad_user_data. It is
	// told who wants no personal advertisements. Of American opt-outs it cannot be told: the adapter withholds what it would have
	// to be told of.
	Consent: Consent{
		Requires: []Purpose{AdStorage, AdUserData},
		Limits:   []Purpose{AdPersonalization, Sale},
		TCF:      googleTCF,
	},
	consentOf: func(s *Settings) *Consent {
		if s.Google == nil || s.Google.Product != GoogleAnalytics {
			return nil
		}
		// As with the Measurement Protocol: Analytics measures without advertising.
		return &Consent{
			Requires:    []Purpose{AnalyticsStorage},
			Limits:      []Purpose{AdStorage, AdUserData, AdPersonalization, Sale},
			TCF:         googleTCF,
			Identifiers: Identifiers{ClientID: true, UserID: true, SessionID: true},
		}
	},
	HasEndpoint: true,
	Proof: Proof{Judges: []Judge{
		{Kind: ByFake, What: "a server that checks by the rules of Google's documents", Since: "2026-11-24"},
		{Kind: BySchema, What: "the discovery document of the Data Manager API v1, revision 20260924", Since: "2026-11-24"},
		{Kind: ByLibrary, What: "golang.org/x/oauth2 0.37 makes the grants", Since: "2026-11-24"},
	}},
	TestMode: TestMode{
		Sends: true,
		Text: "The event is sent with validateOnly. Google checks it and the service account's rights, and takes nothing, so that " +
			"it shows nowhere.",
		enter: func(s *Settings, _ string) { s.Google.Test = true },
	},
	Erasure: Erasure{
		Instruction: "For Google Ads there is no interface that removes a conversion: ask Google by its form for personal data, " +
			"with the order's id. In Google Analytics submit the person's client_id, and the user_id in a request of its own, to " +
			"submitUserDeletion of the Google Analytics Admin API, or delete the user in the report User explorer.",
		URL: "https://developers.google.com/analytics/devguides/config/admin/v1/rest/v1alpha/properties/submitUserDeletion",
	},
	Texts: []Text{
		{
			Name: "product", Values: []string{string(GoogleAds), string(GoogleAnalytics)}, Optional: true,
			of: func(s *Settings) string { return string(s.Google.Product) },
		},
		{
			Name: "accountID", MaxLength: 20, Pattern: digits, Rule: "must be the digits of an account's id, in quotes",
			of: func(s *Settings) string { return s.Google.AccountID },
		},
		{
			Name: "loginAccountID", MaxLength: 20, Pattern: digits, Optional: true, Rule: "must be the digits of a manager account's id, in quotes",
			of: func(s *Settings) string { return s.Google.LoginAccountID },
		},
		{
			Name: "measurementID", MaxLength: 32, Pattern: "^G-[A-Z0-9]+$", Optional: true, Rule: "must be the id of a web data stream, such as G-ABC123DEF4",
			of: func(s *Settings) string { return s.Google.MeasurementID },
		},
	},
	isSet: func(s *Settings) bool { return s.Google != nil },
}
