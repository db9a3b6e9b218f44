package platforms

// TypeAmplitude is Amplitude's HTTP API.
const TypeAmplitude Type = "Amplitude"

// Amplitude configures Amplitude's HTTP API.
type Amplitude struct {
}

var amplitudeTraits = Traits{
	Credentials: []string{"apiKey"},
	Limits:      Limits{Events: 1000},
	Consent:     advertising,
	HasEndpoint: true,
	isSet:       func(s *Settings) bool { return s.Amplitude != nil },
}
