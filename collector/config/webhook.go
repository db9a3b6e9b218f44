package config

import "github.com/weir-dev/weir/collector/event"

// TypeWebhook is an HTTP receiver of the customer's.
const TypeWebhook PlatformType = "Webhook"

// Webhook configures an HTTP receiver of the customer's. Credential: signingSecret.
type Webhook struct {
	URL string `json:"url"`
}

var webhookTraits = PlatformTraits{
	Credentials: []string{"signingSecret"},
	Variants:    event.Variants(event.EmailLower, event.PhoneE164, event.FirstNameLower),
	Settings: []Setting{
		{Name: "url", Rule: "must be an http or https URL with a host, such as https://crm.example.com/hook", of: func(p *Platform) string { return p.Webhook.URL }},
	},
	isSet: func(p *Platform) bool { return p.Webhook != nil },
}
