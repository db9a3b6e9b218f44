package platforms

// TypeLog is a line in the deliverer's log for each event. It needs no settings and no credential.
const TypeLog Type = "Log"

var logTraits = Traits{Limits: Limits{Events: 100}}
