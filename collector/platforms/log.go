package platforms

import "time"

// TypeLog is a line in the deliverer's log for each event. It needs no settings and no credential.
const TypeLog Type = "Log"

var logTraits = Traits{
	Limits: Limits{Events: 100},
	// There is nobody at the other end: the log is Weir's own.
	Proof: Proof{Live: day(2026, time.November, 20), Judges: []Judge{
		{ByServer, "the log of a deliverer that runs, as the tests of the whole program read it", "2026-11-20"},
	}},
	TestMode: TestMode{
		Sends: true,
		Text:  "The event is a line in the deliverer's log.",
	},
	Erasure: Erasure{
		Instruction: "Delete the deliverer's log, or wait until the cluster does: its lines have the events' " +
			"ids and order ids.",
	},
}
