package platforms

// TypeGoogle is Google's Data Manager API.
const TypeGoogle Type = "Google"

// Google configures Google's Data Manager API.
type Google struct {
	// The id of the account that the events are for, digits alone. Quote it: it is text.
	// +required
	// +kubebuilder:validation:MaxLength=20
	// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9]+$')",message="must be the digits of an account's id, in quotes"
	AccountID string `json:"accountID"`
}

var googleTraits = Traits{
	Credentials: []string{"serviceAccountKey"},
	Limits:      Limits{Events: 2000},
	Consent:     advertising,
	HasEndpoint: true,
	Texts: []Text{
		{
			Name: "accountID", MaxLength: 20, Pattern: digits, Rule: "must be the digits of an account's id, in quotes",
			of: func(s *Settings) string { return s.Google.AccountID },
		},
	},
	isSet: func(s *Settings) bool { return s.Google != nil },
}
