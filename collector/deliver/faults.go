package deliver

import (
	"maps"

	"github.com/weir-dev/weir/collector/deliver/platform"
)

// Fault is why a platform gets nothing until a person has mended something. Its values are reasons of the Property's
// condition PlatformsReady.
type Fault string

// The faults. What passes by itself, such as throttling or an outage, is none.
const (
	// FaultCredentials: the platform refuses the credentials.
	FaultCredentials Fault = "CredentialsRejected"
	// FaultConfiguration: the platform refuses the settings, or is gone.
	FaultConfiguration Fault = "ConfigurationRejected"
	// FaultSecret: the platform's Secret lacks a key, or has an unfit value.
	FaultSecret Fault = "SecretInvalid"
	// FaultEgress: the platform's host has only addresses that deliveries may not go to.
	FaultEgress Fault = "EgressDenied"
)

// faultOf returns what has to be mended where a platform is paused for a verdict, "" where nothing has. It goes by the
// class: the same code of a platform's may be a reason to mend something or to wait.
func faultOf(verdict platform.Verdict) Fault {
	switch {
	case verdict.Class == platform.Auth:
		return FaultCredentials
	case verdict.Class == platform.Config:
		return FaultConfiguration
	case verdict.Reason == reasonEgressDenied:
		return FaultEgress
	default:
		return ""
	}
}

// Faults returns the platforms that are paused until a person has mended something, each with what.
func (m *Metrics) Faults() map[string]Fault {
	m.mu.Lock()
	defer m.mu.Unlock()
	return maps.Clone(m.mending)
}

// mend notes what of a platform has to be mended; "" for nothing.
func (m *Metrics) mend(platform string, fault Fault) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if fault == "" {
		delete(m.mending, platform)
		return
	}
	m.mending[platform] = fault
}
