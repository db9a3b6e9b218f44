package config

// TypeLog is a line in the deliverer's log for each event.
const TypeLog PlatformType = "Log"

// Log configures a platform that writes each event to the deliverer's log. It needs no credential.
type Log struct{}

var logTraits = PlatformTraits{
	isSet: func(p *Platform) bool { return p.Log != nil },
}
