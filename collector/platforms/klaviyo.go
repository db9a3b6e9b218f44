package platforms

// TypeKlaviyo is Klaviyo's Events API.
const TypeKlaviyo Type = "Klaviyo"

// Klaviyo configures Klaviyo's Events API.
type Klaviyo struct {
}

var klaviyoTraits = Traits{
	Credentials: []string{"apiKey"},
	Limits:      Limits{Events: 1000},
	Consent:     advertising,
	HasEndpoint: true,
	isSet:       func(s *Settings) bool { return s.Klaviyo != nil },
}
