package platforms

// TypeLog is a line in the deliverer's log for each event. It needs no settings and no credential.
const TypeLog Type = "Log"

var logTraits = Traits{
	Limits: Limits{Events: 100},
	Erasure: Erasure{
		Instruction: "Delete the deliverer's log, or wait until the cluster does: its lines have the events' " +
			"ids and order ids.",
	},
}
