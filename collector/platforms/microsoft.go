package platforms

import "time"

// TypeMicrosoft is Microsoft Advertising's UET Conversions API.
const TypeMicrosoft Type = "Microsoft"

// Microsoft configures Microsoft Advertising's UET Conversions API.
type Microsoft struct {
	// The id of the UET tag. Quote it: it is text.
	// +required
	// +kubebuilder:validation:MaxLength=20
	// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9]+$')",message="must be the digits of a UET tag's id, in quotes"
	TagID string `json:"tagID"`

	// Sends events named pageview, as page loads. Only for sites without the UET tag on their pages: the tag reports page loads
	// itself, and Microsoft would count each twice.
	// +optional
	PageLoads bool `json:"pageLoads,omitempty"`
}

var microsoftTraits = Traits{
	Credentials: []string{"accessToken"},
	Hashes:      []Hash{EmailMicrosoft, PhoneE164},
	APIVersion:  "v1",
	Proof: Proof{Judges: []Judge{
		{Kind: ByFake, What: "a server that checks by the rules of Microsoft's Conversions API guide", Since: "2026-11-24"},
		{Kind: ByLibrary, What: "Segment's destination `ms-bing-capi`, 3.497", Since: "2026-11-24"},
	}},
	// Microsoft takes 1,000; each event is judged for itself, so the batch is bounded by what the answer has to say.
	Limits: Limits{Events: 200, Bytes: 1 << 20},
	MaxAge: 7 * 24 * time.Hour,
	// Microsoft's one field speaks of ad_storage, and what comes with a denial is not used for advertising. That is less than the
	// events are for, so a denial withholds; where the Property's own rule lets it pass, Microsoft is told. For the opt-outs of
	// American states there is no field.
	Consent: Consent{
		Requires:    []Purpose{AdStorage, AdUserData, AdPersonalization, Sale},
		Limits:      []Purpose{AdStorage},
		TCF:         TCF{Vendor: 1126, Flexible: []int{7}},
		Identifiers: Identifiers{ClientID: true, UserID: true},
	},
	HasEndpoint: true,
	TestMode:    without("Microsoft"),
	Erasure: Erasure{
		Instruction: "Microsoft documents no interface for it. Ask Microsoft Advertising's support, naming the UET tag, the " +
			"SHA-256 of the person's e-mail address and phone number, the SHA-256 of the user_id and the client_id; the person " +
			"may also ask Microsoft directly.",
		URL: "https://www.microsoft.com/en-us/concern/privacy",
	},
	Texts: []Text{
		{
			Name: "tagID", MaxLength: 20, Pattern: digits, Rule: "must be the digits of a UET tag's id, in quotes",
			of: func(s *Settings) string { return s.Microsoft.TagID },
		},
	},
	isSet: func(s *Settings) bool { return s.Microsoft != nil },
}
