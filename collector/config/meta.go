package config

import "github.com/weir-dev/weir/collector/event"

// TypeMeta is Meta's Conversions API.
const TypeMeta PlatformType = "Meta"

// Meta configures Meta's Conversions API. Credential: accessToken.
type Meta struct {
	PixelID       string `json:"pixelID"`
	TestEventCode string `json:"testEventCode,omitempty"`
}

var metaTraits = PlatformTraits{
	Credentials: []string{"accessToken"},
	Variants:    event.Variants(event.EmailLower, event.PhoneDigits, event.FirstNameMeta),
	HasEndpoint: true,
	Settings: []Setting{
		{Name: "pixelID", Pattern: digits, Rule: "must be the digits of a pixel's or dataset's id", of: func(p *Platform) string { return p.Meta.PixelID }},
		{Name: "testEventCode", Pattern: testCode, Optional: true, Rule: "must be a code of the Events Manager, such as TEST12345, or absent", of: func(p *Platform) string { return p.Meta.TestEventCode }},
	},
	isSet: func(p *Platform) bool { return p.Meta != nil },
}
