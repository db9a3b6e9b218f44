package platforms

// TypeAmplitude is Amplitude's HTTP API.
const TypeAmplitude Type = "Amplitude"

// Amplitude configures Amplitude's HTTP API.
type Amplitude struct {
	// Where the project's data resides. Default: US.
	// +optional
	// +kubebuilder:validation:Enum=US;EU
	Region Region `json:"region,omitempty"`
}

var amplitudeTraits = Traits{
	Credentials: []string{"apiKey"},
	APIVersion:  "2",
	Proof: Proof{Judges: []Judge{
		{Kind: ByFake, What: "a server that checks by the rules of Amplitude's documents", Since: "2026-11-24"},
		{Kind: ByLibrary, What: "Segment's destination for Amplitude, 3.497", Since: "2026-11-24"},
	}},
	// Amplitude takes 2000 events, and less than 1 MB. Of several bad ones it names the first alone, and the others are sent
	// again with the good ones.
	Limits:      Limits{Events: 200, Bytes: 900_000},
	HasEndpoint: true,
	// It is the customer's own statistics, only elsewhere.
	Consent:  Consent{Requires: []Purpose{AnalyticsStorage}, Identifiers: Identifiers{ClientID: true, UserID: true, SessionID: true}},
	TestMode: without("Amplitude"),
	Erasure: Erasure{
		Instruction: "Send the person's user_id to POST https://amplitude.com/api/2/deletions/users " +
			"(https://analytics.eu.amplitude.com/api/2/deletions/users for projects in Europe), with the project's API key and " +
			"secret key. Whoever has a client_id alone is found in Amplitude by it as the device id, and erased by the " +
			"Amplitude ID that stands there.",
		URL: "https://amplitude.com/docs/apis/analytics/user-privacy",
	},
	Texts: []Text{
		{Name: "region", Values: []string{"US", "EU"}, Optional: true, of: func(s *Settings) string { return string(s.Amplitude.Region) }},
	},
	isSet: func(s *Settings) bool { return s.Amplitude != nil },
}
