package platforms

// TypeReddit is Reddit's Conversions API.
const TypeReddit Type = "Reddit"

// Reddit configures Reddit's Conversions API.
type Reddit struct {
	// The id of the pixel.
	// +required
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9_-]+$')",message="must be the id of a Reddit pixel"
	PixelID string `json:"pixelID"`
}

var redditTraits = Traits{
	Credentials: []string{"accessToken"},
	Limits:      Limits{Events: 1000},
	Consent:     advertising,
	HasEndpoint: true,
	Texts: []Text{
		{
			Name: "pixelID", MaxLength: 64, Pattern: testCode, Rule: "must be the id of a Reddit pixel",
			of: func(s *Settings) string { return s.Reddit.PixelID },
		},
	},
	isSet: func(s *Settings) bool { return s.Reddit != nil },
}
