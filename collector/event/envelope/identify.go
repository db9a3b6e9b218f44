package envelope

import (
	"slices"
	"strings"

	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/event/personal"
)

// Identify returns the event's name and id where [Envelope.Validate] has found errors: as far as they are valid and
// nothing of a person is in them, "" otherwise. They are the caller's to keep.
func (e *Envelope) Identify(errs event.Errors) (name, id string) {
	known := e.valid.person.Finder()
	unread := slices.ContainsFunc(errs, func(err event.FieldError) bool { return err.Field == "user" || strings.HasPrefix(err.Field, "user.") })
	fit := func(field, text string) string {
		_, ours := event.CanonicalUUID(text)
		invalid := slices.ContainsFunc(errs, func(err event.FieldError) bool { return err.Field == field })
		if invalid || known.ContactIn(text) || unread && !ours && personal.MayHoldPhone(text) {
			return ""
		}
		return strings.Clone(text)
	}
	return fit("event", e.valid.event.Name), fit("event_id", e.valid.event.ID)
}
