package platforms

import "time"

// TypeGA4 is Google Analytics 4.
const TypeGA4 Type = "GA4"

// GA4 configures Google Analytics 4, spoken to by its Measurement Protocol.
type GA4 struct {
	// The id of the web data stream.
	// +required
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^G-[A-Z0-9]+$')",message="must be the id of a web data stream, such as G-ABC123DEF4"
	MeasurementID string `json:"measurementID"`

	// EU collects the events in the EU. Default: at the nearest of Google's servers.
	// +optional
	// +kubebuilder:validation:Enum=EU
	Region Region `json:"region,omitempty"`

	// Shows the events in DebugView; they count all the same.
	// +optional
	DebugMode bool `json:"debugMode,omitempty"`
}

var ga4Traits = Traits{
	Credentials: []string{"apiSecret"},
	// Google takes the hashes of a person with a user_id alone.
	AccountHashes: []Hash{EmailGoogle, PhoneE164},
	// A request speaks of one visitor.
	Limits: Limits{Events: 1},
	// What is older is put at another time by GA4, or refused.
	MaxAge: 72 * time.Hour,
	// Google wants to be told what of advertising was denied, and measures without it.
	Consent: Consent{
		Requires:    []Purpose{AnalyticsStorage},
		Limits:      []Purpose{AdStorage, AdUserData, AdPersonalization, Sale},
		TCF:         TCF{Vendor: 755, LegitimateInterest: []int{7}, Flexible: []int{7}},
		Identifiers: Identifiers{ClientID: true, UserID: true, SessionID: true},
	},
	HasEndpoint: true,
	Proof: Proof{Judges: []Judge{
		{ByFake, "a server that checks by the rules of Google's documents, its Event Builder and its validation of events", "2026-11-20"},
		{ByLibrary, "Segment's destination, 3.497: the fields and values", "2026-11-24"},
	}},
	TestMode: TestMode{
		Sends: true,
		Text: "The event is sent to Google's validation server, which checks its form and keeps nothing, so that it shows nowhere. " +
			"It checks neither the API secret nor the measurement id: set debugMode, and see an event arrive in DebugView.",
	},
	Erasure: Erasure{
		Instruction: "Submit the person's client_id, and the user_id in a request of its own, to submitUserDeletion of the " +
			"Google Analytics Admin API, or delete the user in the report User explorer. What was exported to " +
			"BigQuery has to be deleted there.",
		URL: "https://developers.google.com/analytics/devguides/config/admin/v1/rest/v1alpha/properties/submitUserDeletion",
	},
	Texts: []Text{
		{
			Name: "measurementID", MaxLength: 32, Pattern: "^G-[A-Z0-9]+$", Rule: "must be the id of a web data stream, such as G-ABC123DEF4",
			of: func(s *Settings) string { return s.GA4.MeasurementID },
		},
		{Name: "region", Values: []string{"EU"}, Optional: true, of: func(s *Settings) string { return string(s.GA4.Region) }},
	},
	isSet: func(s *Settings) bool { return s.GA4 != nil },
}
