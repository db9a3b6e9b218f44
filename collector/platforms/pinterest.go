package platforms

import "time"

// TypePinterest is Pinterest's API for Conversions.
const TypePinterest Type = "Pinterest"

// Pinterest configures Pinterest's API for Conversions.
type Pinterest struct {
	// The id of the ad account. Quote it: it is text.
	// +required
	// +kubebuilder:validation:MaxLength=18
	// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9]+$')",message="must be the digits of an ad account's id, in quotes"
	AdAccountID string `json:"adAccountID"`

	// Makes the events test events: checked and shown by Pinterest, and not counted.
	// +optional
	Test bool `json:"test,omitempty"`
}

var pinterestTraits = Traits{
	Credentials: []string{"conversionToken"},
	Hashes:      []Hash{EmailLower, PhoneDigits, FirstNameLower, LastNameLower, City, State, Zip, DateOfBirth, Gender},
	APIVersion:  "v5",
	// Each event is judged for itself, so the batch is bounded by what the answer has to say.
	Limits:      Limits{Events: 200, Bytes: 2 << 20},
	MaxAge:      7 * 24 * time.Hour,
	Consent:     advertising,
	HasEndpoint: true,
	Proof: Proof{Judges: []Judge{
		{ByFake, "a server that checks by the rules of Pinterest's documents and of its OpenAPI description, 5.23", "2026-11-20"},
		{ByLibrary, "Segment's destination, 3.497: the fields and values", "2026-11-24"},
	}},
	TestMode: TestMode{
		Sends: true,
		Text:  "The event is sent with test=true. Pinterest checks it, shows it as a test event of the ad account and does not count it.",
		enter: func(s *Settings, _ string) { s.Pinterest.Test = true },
	},
	Erasure: Erasure{
		Instruction: "Send the person's e-mail address, in plain text, or epik to POST " +
			"/v5/ad_accounts/AD_ACCOUNT/conversion_deletion_requests of Pinterest's API with the scopes ads:read " +
			"and ads:write. Pinterest has that interface in a closed beta: where your account may not use it, ask " +
			"Pinterest's support for businesses.",
		URL: "https://developer.pinterest.com/docs/track-conversions/remove-users-from-events/",
	},
	Texts: []Text{
		{
			Name: "adAccountID", MaxLength: 18, Pattern: digits, Rule: "must be the digits of an ad account's id, in quotes",
			of: func(s *Settings) string { return s.Pinterest.AdAccountID },
		},
	},
	isSet: func(s *Settings) bool { return s.Pinterest != nil },
}
