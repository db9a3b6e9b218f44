package platforms

// TypeOpenAI is OpenAI's Conversions API for ads.
const TypeOpenAI Type = "OpenAI"

// OpenAI configures OpenAI's Conversions API for ads.
type OpenAI struct {
	// The id of the pixel.
	// +required
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9_-]+$')",message="must be the id of a pixel"
	PixelID string `json:"pixelID"`
}

var openaiTraits = Traits{
	Credentials: []string{"apiKey"},
	Limits:      Limits{Events: 1000},
	Consent:     advertising,
	HasEndpoint: true,
	Texts: []Text{
		{
			Name: "pixelID", MaxLength: 64, Pattern: testCode, Rule: "must be the id of a pixel",
			of: func(s *Settings) string { return s.OpenAI.PixelID },
		},
	},
	isSet: func(s *Settings) bool { return s.OpenAI != nil },
}
