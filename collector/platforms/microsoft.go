package platforms

// TypeMicrosoft is Microsoft Advertising's UET Conversions API.
const TypeMicrosoft Type = "Microsoft"

// Microsoft configures Microsoft Advertising's UET Conversions API.
type Microsoft struct {
	// The id of the UET tag. Quote it: it is text.
	// +required
	// +kubebuilder:validation:MaxLength=20
	// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9]+$')",message="must be the digits of a UET tag's id, in quotes"
	TagID string `json:"tagID"`
}

var microsoftTraits = Traits{
	Credentials: []string{"accessToken"},
	Limits:      Limits{Events: 1000},
	Consent:     advertising,
	HasEndpoint: true,
	Texts: []Text{
		{
			Name: "tagID", MaxLength: 20, Pattern: digits, Rule: "must be the digits of a UET tag's id, in quotes",
			of: func(s *Settings) string { return s.Microsoft.TagID },
		},
	},
	isSet: func(s *Settings) bool { return s.Microsoft != nil },
}
