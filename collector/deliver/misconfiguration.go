package deliver

import "github.com/weir-dev/weir/collector/deliver/adapter"

// Misconfiguration is why a platform gets nothing until a person has mended something. Its values are reasons of the
// Property's condition PlatformsReady.
type Misconfiguration string

// What can be misconfigured. What passes by itself, such as throttling or an outage, is none.
const (
	// CredentialsRejected: the platform refuses the credentials.
	CredentialsRejected Misconfiguration = "CredentialsRejected"
	// ConfigurationRejected: the platform refuses the settings, or is gone; or they can be none of the platform's.
	ConfigurationRejected Misconfiguration = "ConfigurationRejected"
	// SecretInvalid: the platform's Secret lacks a key, or has an unfit value.
	SecretInvalid Misconfiguration = "SecretInvalid"
	// EgressDenied: the platform's host has only addresses that deliveries may not go to.
	EgressDenied Misconfiguration = "EgressDenied"
)

// misconfigurationOf returns what has to be mended where a platform is paused for a verdict, "" where nothing has. It goes
// by the class: the same code of a platform's may be a reason to mend something or to wait.
func misconfigurationOf(verdict adapter.Verdict) Misconfiguration {
	switch {
	case verdict.Class == adapter.Auth:
		return CredentialsRejected
	case verdict.Class == adapter.Config:
		return ConfigurationRejected
	case verdict.Reason == reasonEgressDenied:
		return EgressDenied
	default:
		return ""
	}
}

// Misconfigured returns the platforms that are paused until a person has mended something, each with what.
func (m *Metrics) Misconfigured() map[string]Misconfiguration {
	found := map[string]Misconfiguration{}
	for platform, pause := range m.pausedPlatforms() {
		if pause.Misconfiguration != "" {
			found[platform] = Misconfiguration(pause.Misconfiguration)
		}
	}
	return found
}
