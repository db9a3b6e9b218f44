package platforms

import "time"

// TypeOpenAI is OpenAI's Conversions API for ads.
const TypeOpenAI Type = "OpenAI"

// OpenAI configures OpenAI's Conversions API for ads.
type OpenAI struct {
	// The id of the pixel.
	// +required
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9_-]+$')",message="must be the id of a pixel"
	PixelID string `json:"pixelID"`

	// Has OpenAI check the events, and keep none of them.
	// +optional
	ValidateOnly bool `json:"validateOnly,omitempty"`
}

var openaiTraits = Traits{
	Credentials: []string{"apiKey"},
	Hashes:      []Hash{EmailLower, PhoneDigits, FirstNameMeta, LastNameMeta},
	APIVersion:  "v1",
	// OpenAI takes 1000 events a request, but refuses all of them where one is bad.
	Limits:      Limits{Events: 100, Bytes: 2 << 20},
	MaxAge:      7 * 24 * time.Hour,
	Consent:     advertising,
	HasEndpoint: true,
	TestMode: TestMode{
		Sends: true,
		Text:  "The event is sent with validate_only. OpenAI checks it and the key, and keeps nothing, so that it shows nowhere.",
		enter: func(s *Settings, _ string) { s.OpenAI.ValidateOnly = true },
	},
	Erasure: Erasure{
		Instruction: "Ask OpenAI at privacy.openai.com, or whoever attends to your ad account: there is no interface for it. OpenAI " +
			"knows the person by the SHA-256 of their e-mail addresses, phone numbers, user_id and client_id, and by the oppref of " +
			"the click.",
		URL: "https://openai.com/policies/ad-tools-dpa/",
	},
	Proof: Proof{Judges: []Judge{
		{Kind: ByFake, What: "a server that checks by the rules of OpenAI's documents", Since: "2026-11-24"},
	}},
	Texts: []Text{
		{
			Name: "pixelID", MaxLength: 64, Pattern: testCode, Rule: "must be the id of a pixel",
			of: func(s *Settings) string { return s.OpenAI.PixelID },
		},
	},
	isSet: func(s *Settings) bool { return s.OpenAI != nil },
}
