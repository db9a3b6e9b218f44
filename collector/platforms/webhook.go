package platforms

import "time"

// TypeWebhook is an HTTP receiver of the customer's.
const TypeWebhook Type = "Webhook"

// WebhookTest is the type of the event that a receiver is tried with.
const WebhookTest = "weir.test"

// Webhook configures an HTTP receiver of the owner's, spoken to as Standard Webhooks has it.
type Webhook struct {
	// Where each event is posted to. Addresses inside the cluster are reached only where the operator allows it.
	// +required
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:XValidation:rule="isURL(self) && url(self).getScheme() in ['http', 'https'] && url(self).getHostname() != ''",message="must be an http or https URL with a host, such as https://crm.example.com/hook"
	// +kubebuilder:validation:XValidation:rule="!self.matches('^[^/]*//[^/?#]*@')",message="must hold no user name or password: requests are signed with signingSecret instead"
	URL string `json:"url"`
}

var webhookTraits = Traits{
	Credentials: []string{"signingSecret"},
	Hashes:      []Hash{EmailLower, PhoneE164, FirstNameLower, LastNameLower, Street, City, State, Zip, DateOfBirth, Gender},
	Limits:      Limits{Events: 1},
	// No vendor has a server: whoever runs a receiver is the platform.
	Proof: Proof{Live: day(2026, time.November, 20), Judges: []Judge{
		{ByFake, "a receiver that checks by the rules of Standard Webhooks 1.0", "2026-11-20"},
		{ByLibrary, "the reference library of Standard Webhooks: the signatures", "2026-11-20"},
		{ByServer, "a receiver that is a program of its own, which `make e2e` has delivered to from a cluster", "2026-11-21"},
	}},
	TestMode: TestMode{
		Sends: true, Event: WebhookTest,
		Text: "An event of the type weir.test is sent and signed like any other. The receiver must answer it with success, and do " +
			"nothing with it.",
	},
	Erasure: Erasure{
		Instruction: "Erase the person in whatever stores what your receiver was sent: each event there has the client_id, " +
			"the user_id and the hashes.",
		Forwarded: true,
	},
	Texts: []Text{
		{
			Name: "url", MaxLength: 2048, Rule: "must be an http or https URL with a host, such as https://crm.example.com/hook",
			of: func(s *Settings) string { return s.Webhook.URL },
		},
	},
	isSet: func(s *Settings) bool { return s.Webhook != nil },
}
