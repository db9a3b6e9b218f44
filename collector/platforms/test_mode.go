package platforms

import "regexp"

// TestMode is how a made-up event is sent to a platform of a type, for its owner to see whether it is taken.
type TestMode struct {
	// Text says in whole sentences, for people, how it is sent and where it shows; or why nothing is sent.
	Text string
	// Sends says that something is sent: the type has a mode for it, or the platform is the owner's own.
	Sends bool
	// Event is the name of the made-up event; "" for a purchase.
	Event string
	// Code is where the platform's own code for test events is copied from, without which none is sent; "" where there is no such
	// code.
	Code string

	// code reads the code that the settings have; nil where there is none.
	code func(*Settings) string
	// enter puts settings into the mode, with a code where there is one; nil where no setting does.
	enter func(s *Settings, code string)
}

// testCodeForm is what a platform's code for test events may be.
var testCodeForm = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// IsTestCode says whether a text may be a platform's code for test events.
func IsTestCode(text string) bool { return testCodeForm.MatchString(text) }

// HasTestCode says whether the settings of a type that needs a code for test events have one.
func (t Type) HasTestCode(settings *Settings) bool {
	mode := table[t].TestMode
	return mode.code != nil && mode.code(settings) != ""
}

// InTestMode returns a copy of settings of the type that makes of all events what the platform does not count, as far as settings
// can do that. The code, unless it is "", is used in place of theirs.
func (t Type) InTestMode(settings *Settings, code string) Settings {
	own := *settings.DeepCopy()
	mode := table[t].TestMode
	if mode.code != nil && code == "" {
		code = mode.code(&own)
	}
	if mode.enter != nil {
		mode.enter(&own, code)
	}
	return own
}

// without is the mode of a type that documents none.
func without(text string) TestMode {
	return TestMode{Text: text + " documents no test mode: an event that was sent would count. So nothing is sent, and what would be sent is shown."}
}
