package platforms

import "time"

// TypeTikTok is TikTok's Events API 2.0.
const TypeTikTok Type = "TikTok"

// TikTok configures TikTok's Events API 2.0.
type TikTok struct {
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

var tiktokTraits = Traits{
	Credentials: []string{"accessToken"},
	Hashes:      []Hash{EmailLower, PhoneE164, FirstNameLower, LastNameLower, Zip},
	APIVersion:  "v1.3",
	// A request that TikTok refuses for one event's sake is refused for all, so batches are a tenth of what is allowed.
	Limits:      Limits{Events: 100, Bytes: 1 << 20},
	MaxAge:      7 * 24 * time.Hour,
	Consent:     advertising,
	HasEndpoint: true,
	Proof: Proof{Judges: []Judge{
		{ByFake, "a server that checks by the rules of TikTok's documents", "2026-11-20"},
		{ByLibrary, "Segment's destination, 3.497: the fields and values", "2026-11-24"},
	}},
	TestMode: TestMode{
		Sends: true, Code: "TikTok's Events Manager → the pixel → Test events",
		Text:  "The event is sent with test_event_code. TikTok shows it in the Events Manager → the pixel → Test events.",
		code:  func(s *Settings) string { return s.TikTok.TestEventCode },
		enter: func(s *Settings, code string) { s.TikTok.TestEventCode = code },
	},
	Erasure: Erasure{
		Instruction: "TikTok documents no interface that deletes the events of one person. Remove the person from the " +
			"customer files in Audience Manager of the TikTok Ads Manager, and ask TikTok's support for " +
			"businesses to erase what was sent to the pixel under the SHA-256 of the e-mail address or phone " +
			"number.",
		URL: "https://ads.tiktok.com/help/",
	},
	Texts: []Text{
		{
			Name: "eventSourceID", MaxLength: 64, Pattern: "^[A-Za-z0-9]+$", Rule: "must be a pixel's code: letters and digits, such as C4A1B2C3D4E5F6G7H8I9",
			of: func(s *Settings) string { return s.TikTok.EventSourceID },
		},
		{
			Name: "testEventCode", MaxLength: 64, Pattern: testCode, Optional: true, Rule: "must be a code of TikTok's Events Manager, such as TEST12345",
			of: func(s *Settings) string { return s.TikTok.TestEventCode },
		},
	},
	isSet: func(s *Settings) bool { return s.TikTok != nil },
}
