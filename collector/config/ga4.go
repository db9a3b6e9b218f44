package config

// TypeGA4 is Google Analytics 4.
const TypeGA4 PlatformType = "GA4"

// GA4 configures Google Analytics 4, spoken to by the Measurement Protocol. Credential: apiSecret.
type GA4 struct {
	// MeasurementID is the web data stream's, such as G-ABC123DEF4.
	MeasurementID string `json:"measurementID"`
	// Region is RegionEU where the events are to be collected in the EU, else "".
	Region Region `json:"region,omitempty"`
}

var ga4Traits = PlatformTraits{
	// Google takes the hashes of a person with a user_id alone, which an envelope does not have: there are no variants.
	Credentials: []string{"apiSecret"},
	HasEndpoint: true,
	Settings: []Setting{
		{Name: "measurementID", Pattern: "^G-[A-Z0-9]+$", Rule: "must be a web data stream's id, such as G-ABC123DEF4", of: func(p *Platform) string { return p.GA4.MeasurementID }},
		{Name: "region", Values: []string{"EU"}, Optional: true, Rule: "must be EU, or absent", of: func(p *Platform) string { return string(p.GA4.Region) }},
	},
	isSet: func(p *Platform) bool { return p.GA4 != nil },
}
