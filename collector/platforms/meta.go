package platforms

import "time"

// TypeMeta is Meta's Conversions API.
const TypeMeta Type = "Meta"

// Meta configures Meta's Conversions API.
type Meta struct {
	// The id of the pixel or dataset. Quote it: it is text.
	// +required
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9]+$')",message="must be the digits of a pixel's or dataset's id, in quotes"
	PixelID string `json:"pixelID"`

	// Makes the events test events, shown in Meta's Events Manager under this code.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9_-]+$')",message="must be a code of Meta's Events Manager, such as TEST12345"
	TestEventCode string `json:"testEventCode,omitempty"`
}

var metaTraits = Traits{
	Credentials: []string{"accessToken"},
	Hashes:      []Hash{EmailLower, PhoneDigits, FirstNameMeta, LastNameMeta, City, State, Zip, DateOfBirth, Gender},
	// Of the Conversions API each version is taken for two years at least, as of the Graph API; the end of the newest is not
	// announced.
	APIVersion:        "v26.0",
	APIVersionPattern: `^v[0-9]+\.[0-9]+$`,
	OtherVersionsEnd: map[string]time.Time{
		"v25.0": day(2028, time.July, 29),
		"v24.0": day(2028, time.February, 18),
		"v23.0": day(2027, time.October, 8),
		"v22.0": day(2027, time.May, 20),
		"v21.0": day(2027, time.January, 21),
	},
	Proof: Proof{Judges: []Judge{
		{ByFake, "a server that checks by the rules of Meta's documents", "2026-11-20"},
		{ByLibrary, "Meta's Business SDK for Node 24.0 and its parameter builder 1.3: the hashes", "2026-11-24"},
		{ByLibrary, "Segment's destination, 3.497: the fields and values, and where the token stands", "2026-11-24"},
	}},
	// A request that Meta refuses for one event's sake is refused for all, so batches are a tenth of what is allowed.
	Limits:      Limits{Events: 100, Bytes: 1 << 20},
	MaxAge:      7 * 24 * time.Hour,
	Consent:     advertising,
	HasEndpoint: true,
	TestMode: TestMode{
		Sends: true, Code: "Meta's Events Manager → the dataset → Test events",
		Text: "The event is sent with test_event_code. Meta shows it in the Events Manager → the dataset → Test events, and counts it " +
			"all the same.",
		code:  func(s *Settings) string { return s.Meta.TestEventCode },
		enter: func(s *Settings, code string) { s.Meta.TestEventCode = code },
	},
	Erasure: Erasure{
		Instruction: "Meta documents no interface that deletes the events of one person. Remove the person from the " +
			"customer lists in Audiences of the Ads Manager, and ask Meta's support for businesses to erase what " +
			"was sent to the dataset under the SHA-256 of the e-mail address or phone number.",
		URL: "https://www.facebook.com/business/help",
	},
	Texts: []Text{
		{
			Name: "pixelID", MaxLength: 32, Pattern: digits, Rule: "must be the digits of a pixel's or dataset's id, in quotes",
			of: func(s *Settings) string { return s.Meta.PixelID },
		},
		{
			Name: "testEventCode", MaxLength: 64, Pattern: testCode, Optional: true, Rule: "must be a code of Meta's Events Manager, such as TEST12345",
			of: func(s *Settings) string { return s.Meta.TestEventCode },
		},
	},
	isSet: func(s *Settings) bool { return s.Meta != nil },
}
