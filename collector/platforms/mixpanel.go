package platforms

// TypeMixpanel is Mixpanel's import of events.
const TypeMixpanel Type = "Mixpanel"

// Mixpanel configures Mixpanel's import of events.
type Mixpanel struct {
	// The id of the project. Quote it: it is text.
	// +required
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9]+$')",message="must be the digits of a project's id, in quotes"
	ProjectID string `json:"projectID"`

	// Where the project's data resides. Default: US.
	// +optional
	// +kubebuilder:validation:Enum=US;EU;IN
	Region Region `json:"region,omitempty"`
}

var mixpanelTraits = Traits{
	Credentials: []string{"serviceAccountUsername", "serviceAccountSecret"},
	// Each event is judged for itself, so the batch is bounded by what the answer has to say.
	Limits:      Limits{Events: 200, Bytes: 2 << 20},
	HasEndpoint: true,
	Proof: Proof{Judges: []Judge{
		{ByFake, "a server that checks by the rules of Mixpanel's documents", "2026-11-20"},
		{ByLibrary, "Segment's destination, 3.497: the fields and values", "2026-11-24"},
	}},
	// It is the customer's own statistics, only elsewhere.
	Consent:  Consent{Requires: []Purpose{AnalyticsStorage}, Identifiers: Identifiers{ClientID: true, UserID: true, SessionID: true}},
	TestMode: without("Mixpanel"),
	Erasure: Erasure{
		Instruction: "Create a deletion with the person's distinct_id, which is the client_id or user_id, in Mixpanel's " +
			"organization settings under Data & Privacy, or by POST " +
			"https://mixpanel.com/api/app/data-deletions/v3.0 (of projects in Europe and India on the hosts " +
			"there). An owner or admin of the organization has to do it.",
		URL:         "https://docs.mixpanel.com/docs/privacy/end-user-data-management",
		Forwarded:   true,
		Credentials: []string{"projectToken", "gdprToken"},
	},
	Texts: []Text{
		{
			Name: "projectID", MaxLength: 32, Pattern: digits, Rule: "must be the digits of a project's id, in quotes",
			of: func(s *Settings) string { return s.Mixpanel.ProjectID },
		},
		{Name: "region", Values: []string{"US", "EU", "IN"}, Optional: true, of: func(s *Settings) string { return string(s.Mixpanel.Region) }},
	},
	isSet: func(s *Settings) bool { return s.Mixpanel != nil },
}
