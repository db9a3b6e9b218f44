package platforms

// TypeSegment is a source of Segment's, or of what speaks Segment's HTTP Tracking API.
const TypeSegment Type = "Segment"

// Segment configures a source of Segment's, or of what speaks Segment's HTTP Tracking API.
//
// +kubebuilder:validation:XValidation:rule="!has(self.host) || !has(self.region)",fieldPath=".host",message="must be absent where region is set: another host is in no region of Segment's"
type Segment struct {
	// Where the workspace's data resides. Default: US. Segment answers success in the wrong region too, and keeps nothing.
	// +optional
	// +kubebuilder:validation:Enum=US;EU
	Region Region `json:"region,omitempty"`

	// The base URL of another server that speaks Segment's HTTP Tracking API, such as RudderStack's or Jitsu's, in place of
	// that of a region. Addresses inside the cluster are reached only where the operator allows it.
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:XValidation:rule="isURL(self) && url(self).getScheme() in ['http', 'https'] && url(self).getHostname() != ''",message="must be an http or https URL with a host, such as https://rudder.example.com"
	// +kubebuilder:validation:XValidation:rule="!self.matches('^[^/]*//[^/?#]*@')",message="must hold no user name or password: requests are let in by writeKey instead"
	Host string `json:"host,omitempty"`
}

var segmentTraits = Traits{
	Credentials: []string{"writeKey"},
	// 500 KiB a batch, of which what holds the events together is left out. One bad event has its batch refused.
	Limits:      Limits{Events: 100, Bytes: 480 << 10},
	HasEndpoint: true,
	// It is the customer's own data, only elsewhere: who gets it from there is told what the visitor decided.
	Consent:  Consent{Requires: []Purpose{AnalyticsStorage}, Identifiers: Identifiers{ClientID: true, UserID: true, SessionID: true}},
	TestMode: without("Segment"),
	Erasure: Erasure{
		Instruction: "Delete and suppress the person's userId, which is the user_id: in Segment under Settings, End User Privacy, or " +
			"by POST https://api.segmentapis.com/regulations (eu1.api.segmentapis.com in Europe) with the regulationType " +
			"SUPPRESS_WITH_DELETE. Segment cannot be asked by an anonymousId. Servers of others have interfaces of their own, and so " +
			"has everybody to whom they have sent the events on.",
		URL: "https://www.twilio.com/docs/segment/privacy/user-deletion-and-suppression",
	},
	Proof: Proof{Judges: []Judge{
		{Kind: ByFake, What: "a server that checks by the rules of Segment's documents", Since: "2026-11-24"},
		{Kind: ByFake, What: "Weir's own endpoint for Segment's clients reads the event that it was", Since: "2026-11-24"},
		{Kind: ByLibrary, What: "Segment's library for Node, `@segment/analytics-node` 3.1, sends the same message", Since: "2026-11-24"},
	}},
	Texts: []Text{
		{Name: "region", Values: []string{"US", "EU"}, Optional: true, of: func(s *Settings) string { return string(s.Segment.Region) }},
		{
			Name: "host", MaxLength: 2048, Optional: true, Rule: "must be an http or https URL with a host, such as https://rudder.example.com",
			of: func(s *Settings) string { return s.Segment.Host },
		},
	},
	isSet: func(s *Settings) bool { return s.Segment != nil },
}
