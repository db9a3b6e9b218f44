package platforms

// TypeSegment is a source of Segment's, or of what speaks Segment's HTTP Tracking API.
const TypeSegment Type = "Segment"

// Segment configures a source of Segment's, or of what speaks Segment's HTTP Tracking API.
type Segment struct {
}

var segmentTraits = Traits{
	Credentials: []string{"writeKey"},
	Limits:      Limits{Events: 500},
	Consent:     advertising,
	HasEndpoint: true,
	isSet:       func(s *Settings) bool { return s.Segment != nil },
}
