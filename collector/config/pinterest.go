package config

import "github.com/weir-dev/weir/collector/event"

// TypePinterest is Pinterest's API for Conversions, v5.
const TypePinterest PlatformType = "Pinterest"

// Pinterest configures Pinterest's API for Conversions, v5. Credential: conversionToken.
type Pinterest struct {
	AdAccountID string `json:"adAccountID"`
	// Test makes the events test events: checked, shown in the Events Manager and not counted.
	Test bool `json:"test,omitempty"`
}

var pinterestTraits = PlatformTraits{
	Credentials: []string{"conversionToken"},
	Variants:    event.Variants(event.EmailLower, event.PhoneDigits, event.FirstNameLower),
	HasEndpoint: true,
	Settings: []Setting{
		{Name: "adAccountID", Pattern: digits, Rule: "must be the digits of an ad account's id", of: func(p *Platform) string { return p.Pinterest.AdAccountID }},
	},
	isSet: func(p *Platform) bool { return p.Pinterest != nil },
}
