package platforms

import "time"

// TypeReddit is Reddit's Conversions API.
const TypeReddit Type = "Reddit"

// Reddit configures Reddit's Conversions API.
type Reddit struct {
	// The id of the pixel.
	// +required
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9_-]+$')",message="must be the id of a Reddit pixel, such as a2_abc123def456"
	PixelID string `json:"pixelID"`

	// Makes the events test events, shown in Event Testing of Reddit's Events Manager under this id.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9_-]+$')",message="must be a test id of Reddit's Events Manager, such as t2_abc123"
	TestID string `json:"testID,omitempty"`
}

var redditTraits = Traits{
	Credentials: []string{"accessToken"},
	Hashes:      []Hash{EmailAlnum, PhoneE164},
	APIVersion:  "v3",
	// A request that Reddit refuses for one event's sake is refused for all, so batches are a tenth of what is allowed.
	Limits:      Limits{Events: 100, Bytes: 1 << 20},
	MaxAge:      7 * 24 * time.Hour,
	Consent:     advertising,
	HasEndpoint: true,
	TestMode: TestMode{
		Sends: true, Code: "Reddit Ads → Events Manager → Event Testing",
		Text: "The event is sent with test_id. Reddit shows it within seconds in Reddit Ads → Events Manager → Event Testing, and it " +
			"is no conversion.",
		code:  func(s *Settings) string { return s.Reddit.TestID },
		enter: func(s *Settings, code string) { s.Reddit.TestID = code },
	},
	Erasure: Erasure{
		Instruction: "Send the person's e-mail address, phone number or external id, or the SHA-256 of it, to POST " +
			"/api/v3/pixels/PIXEL/data_deletion_jobs of Reddit's Ads API. That wants another token than events do: of " +
			"an administrator of the business, with the scope adsdatadeletion.",
		URL: "https://ads-api.reddit.com/docs/v3/",
	},
	Texts: []Text{
		{
			Name: "pixelID", MaxLength: 64, Pattern: testCode, Rule: "must be the id of a Reddit pixel, such as a2_abc123def456",
			of: func(s *Settings) string { return s.Reddit.PixelID },
		},
		{
			Name: "testID", MaxLength: 64, Pattern: testCode, Optional: true, Rule: "must be a test id of Reddit's Events Manager, such as t2_abc123",
			of: func(s *Settings) string { return s.Reddit.TestID },
		},
	},
	isSet: func(s *Settings) bool { return s.Reddit != nil },
	Proof: Proof{Judges: []Judge{
		{Kind: ByFake, What: "a server that checks by the rules of Reddit's documents", Since: "2026-11-24"},
	}},
}
