package platforms

// TypePostHog is PostHog's capture API.
const TypePostHog Type = "PostHog"

// PostHog configures PostHog's capture API.
//
// +kubebuilder:validation:XValidation:rule="!has(self.host) || !has(self.region)",fieldPath=".host",message="must be absent where region is set: a host of your own is in no region of PostHog's"
type PostHog struct {
	// Where the project's data resides. Default: US.
	// +optional
	// +kubebuilder:validation:Enum=US;EU
	Region Region `json:"region,omitempty"`

	// The base URL of a PostHog of your own, or of a proxy before PostHog's, in place of that of a region. Addresses inside
	// the cluster are reached only where the operator allows it.
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:XValidation:rule="isURL(self) && url(self).getScheme() in ['http', 'https'] && url(self).getHostname() != ''",message="must be an http or https URL with a host, such as https://posthog.example.com"
	// +kubebuilder:validation:XValidation:rule="!self.matches('^[^/]*//[^/?#]*@')",message="must hold no user name or password: requests are let in by projectToken instead"
	Host string `json:"host,omitempty"`

	// Of whom PostHog keeps a profile: of those with a user_id, of all, or of nobody. Default: Identified.
	// +optional
	// +kubebuilder:validation:Enum=Identified;Always;Never
	PersonProfiles PersonProfiles `json:"personProfiles,omitempty"`
}

// PersonProfiles is of whom PostHog keeps a profile; "" is Identified.
type PersonProfiles string

// The values of [PersonProfiles].
const (
	// ProfilesIdentified: of those with a user_id.
	ProfilesIdentified PersonProfiles = "Identified"
	// ProfilesAlways: of everybody.
	ProfilesAlways PersonProfiles = "Always"
	// ProfilesNever: of nobody.
	ProfilesNever PersonProfiles = "Never"
)

var posthogTraits = Traits{
	Credentials: []string{"projectToken"},
	// A request is taken or refused as a whole: the fewer events a bad one has with it, the fewer are sent twice.
	Limits:      Limits{Events: 200, Bytes: 2 << 20},
	HasEndpoint: true,
	// It is the customer's own statistics, only elsewhere.
	Consent:  Consent{Requires: []Purpose{AnalyticsStorage}, Identifiers: Identifiers{ClientID: true, UserID: true, SessionID: true}},
	TestMode: without("PostHog"),
	Erasure: Erasure{
		Instruction: "Delete the person with all their events: in PostHog under People, or by POST " +
			"/api/projects/PROJECT/persons/bulk_delete/ of the region's PostHog (us.posthog.com, eu.posthog.com or your own host) " +
			"with a personal API key that may write persons, the distinct_ids, which are the user_id and the client_id, and " +
			"delete_events: true. Where no profile was kept PostHog has the events alone, and finds them by their distinct_id.",
		URL: "https://posthog.com/docs/privacy/data-storage",
	},
	Proof: Proof{Judges: []Judge{
		{Kind: ByFake, What: "a server that checks by the rules of PostHog's documents", Since: "2026-11-24"},
		{Kind: ByLibrary, What: "PostHog's library for Node, `posthog-node` 5.70, sends the same message", Since: "2026-11-24"},
	}},
	Texts: []Text{
		{Name: "region", Values: []string{"US", "EU"}, Optional: true, of: func(s *Settings) string { return string(s.PostHog.Region) }},
		{
			Name: "host", MaxLength: 2048, Optional: true, Rule: "must be an http or https URL with a host, such as https://posthog.example.com",
			of: func(s *Settings) string { return s.PostHog.Host },
		},
		{
			Name: "personProfiles", Values: []string{"Identified", "Always", "Never"}, Optional: true,
			of: func(s *Settings) string { return string(s.PostHog.PersonProfiles) },
		},
	},
	isSet: func(s *Settings) bool { return s.PostHog != nil },
}
