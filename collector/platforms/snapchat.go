package platforms

// TypeSnapchat is Snapchat's Conversions API.
const TypeSnapchat Type = "Snapchat"

// Snapchat configures Snapchat's Conversions API.
type Snapchat struct {
	// The id of the Snap Pixel.
	// +required
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9_-]+$')",message="must be the id of a Snap Pixel"
	PixelID string `json:"pixelID"`
}

var snapchatTraits = Traits{
	Credentials: []string{"accessToken"},
	Limits:      Limits{Events: 2000},
	Consent:     advertising,
	HasEndpoint: true,
	Texts: []Text{
		{
			Name: "pixelID", MaxLength: 64, Pattern: testCode, Rule: "must be the id of a Snap Pixel",
			of: func(s *Settings) string { return s.Snapchat.PixelID },
		},
	},
	isSet: func(s *Settings) bool { return s.Snapchat != nil },
}
