package config

import "github.com/weir-dev/weir/collector/event"

// TypeTikTok is TikTok's Events API 2.0.
const TypeTikTok PlatformType = "TikTok"

// TikTok configures TikTok's Events API 2.0. Credential: accessToken.
type TikTok struct {
	// EventSourceID is the pixel's code.
	EventSourceID string `json:"eventSourceID"`
	TestEventCode string `json:"testEventCode,omitempty"`
}

var tiktokTraits = PlatformTraits{
	Credentials: []string{"accessToken"},
	Variants:    event.Variants(event.EmailLower, event.PhoneE164, event.FirstNameLower),
	HasEndpoint: true,
	Settings: []Setting{
		{Name: "eventSourceID", Pattern: "^[A-Za-z0-9]+$", Rule: "must be a pixel's code: letters and digits", of: func(p *Platform) string { return p.TikTok.EventSourceID }},
		{Name: "testEventCode", Pattern: testCode, Optional: true, Rule: "must be a code of the Events Manager, such as TEST12345, or absent", of: func(p *Platform) string { return p.TikTok.TestEventCode }},
	},
	isSet: func(p *Platform) bool { return p.TikTok != nil },
}
