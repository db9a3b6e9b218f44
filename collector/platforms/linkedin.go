package platforms

// TypeLinkedIn is LinkedIn's Conversions API.
const TypeLinkedIn Type = "LinkedIn"

// LinkedIn configures LinkedIn's Conversions API.
type LinkedIn struct {
}

var linkedinTraits = Traits{
	Credentials: []string{"accessToken"},
	Limits:      Limits{Events: 5000},
	Consent:     advertising,
	HasEndpoint: true,
	isSet:       func(s *Settings) bool { return s.LinkedIn != nil },
}
