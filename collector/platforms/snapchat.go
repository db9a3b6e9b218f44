package platforms

import "time"

// TypeSnapchat is Snapchat's Conversions API.
const TypeSnapchat Type = "Snapchat"

// Snapchat configures Snapchat's Conversions API.
type Snapchat struct {
	// The id of the Snap Pixel.
	// +required
	// +kubebuilder:validation:MaxLength=36
	// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$')",message="must be the id of a Snap Pixel, such as 1ec32188-754e-4be2-8e55-c949a984a39f"
	PixelID string `json:"pixelID"`

	// Makes the events test events: checked and shown by Snapchat, and not counted.
	// +optional
	Test bool `json:"test,omitempty"`
}

var snapchatTraits = Traits{
	Credentials: []string{"accessToken"},
	Hashes:      []Hash{EmailLower, PhoneDigits, FirstNameMeta, LastNameMeta, City, State, Zip, Gender},
	APIVersion:  "v3",
	// A request that Snapchat refuses for one event's sake is refused for all, so batches are a tenth of what is allowed.
	Limits:      Limits{Events: 200, Bytes: 1 << 20},
	MaxAge:      37 * 24 * time.Hour,
	Consent:     advertising,
	HasEndpoint: true,
	TestMode: TestMode{
		Sends: true,
		Text: "The event is sent to Snapchat's address for validation. Event Testing in Ads Manager → Events Manager shows it with " +
			"what Snapchat thinks of it, and it does not count.",
		enter: func(s *Settings, _ string) { s.Snapchat.Test = true },
	},
	Erasure: Erasure{
		Instruction: "Snapchat documents no interface that deletes the events of one person. Remove the person from the " +
			"customer lists in Audiences of the Ads Manager, and ask Snapchat's support for businesses to erase what " +
			"was sent to the Snap Pixel under the SHA-256 of the e-mail address or phone number.",
		URL: "https://businesshelp.snapchat.com/",
	},
	Texts: []Text{
		{
			Name: "pixelID", MaxLength: 36, Pattern: "^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$",
			Rule: "must be the id of a Snap Pixel, such as 1ec32188-754e-4be2-8e55-c949a984a39f",
			of:   func(s *Settings) string { return s.Snapchat.PixelID },
		},
	},
	isSet: func(s *Settings) bool { return s.Snapchat != nil },
	Proof: Proof{Judges: []Judge{
		{Kind: ByFake, What: "a server that checks by the rules of Snapchat's documents", Since: "2026-11-24"},
		{Kind: BySchema, What: "the OpenAPI description in Snapchat's Business SDK v3 for Java, 1.2.1", Since: "2026-11-24"},
		{Kind: ByLibrary, What: "Segment's destination for Snapchat, 3.497", Since: "2026-11-24"},
	}},
}
