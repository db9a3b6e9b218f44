package platforms

// TypePostHog is PostHog's capture API.
const TypePostHog Type = "PostHog"

// PostHog configures PostHog's capture API.
type PostHog struct {
}

var posthogTraits = Traits{
	Credentials: []string{"projectToken"},
	Limits:      Limits{Events: 1000},
	Consent:     advertising,
	HasEndpoint: true,
	isSet:       func(s *Settings) bool { return s.PostHog != nil },
}
