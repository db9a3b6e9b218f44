package config

// TypeMixpanel is Mixpanel's import of events.
const TypeMixpanel PlatformType = "Mixpanel"

// Mixpanel configures Mixpanel's import of events. Credentials: serviceAccountUsername, serviceAccountSecret.
type Mixpanel struct {
	ProjectID string `json:"projectID"`
	// Region is where the project's data resides: "" for the US, RegionEU or RegionIN.
	Region Region `json:"region,omitempty"`
}

var mixpanelTraits = PlatformTraits{
	Credentials: []string{"serviceAccountUsername", "serviceAccountSecret"},
	HasEndpoint: true,
	Settings: []Setting{
		{Name: "projectID", Pattern: digits, Rule: "must be the digits of a project's id", of: func(p *Platform) string { return p.Mixpanel.ProjectID }},
		{Name: "region", Values: []string{"US", "EU", "IN"}, Optional: true, Rule: "must be US, EU or IN, or absent", of: func(p *Platform) string { return string(p.Mixpanel.Region) }},
	},
	isSet: func(p *Platform) bool { return p.Mixpanel != nil },
}
