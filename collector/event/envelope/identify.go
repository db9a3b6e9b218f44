package envelope

import (
	"slices"
	"strings"

	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/event/personal"
)

// Identify returns the event's name and id where [Envelope.Validate] has found errors: as far as they are valid and
// nothing of a person is in them, "" otherwise. Where the person could not be read, nobody can tell whether it is in an id,
// however written: then only a UUID is returned, and a name without anything of an address or a number. They are the
// caller's to keep.
func (e *Envelope) Identify(errs event.Errors) (name, id string) {
	known := e.valid.person.Finder()
	unread := slices.ContainsFunc(errs, func(err event.FieldError) bool { return err.Field == "user" || strings.HasPrefix(err.Field, "user.") })
	fit := func(field, text string) string {
		invalid := slices.ContainsFunc(errs, func(err event.FieldError) bool { return err.Field == field })
		if invalid || known.ContactIn(text) {
			return ""
		}
		return strings.Clone(text)
	}
	name, id = fit("event", e.valid.event.Name), fit("event_id", e.valid.event.ID)
	if _, isUUID := event.CanonicalUUID(id); unread && !isUUID {
		id = ""
	}
	if unread && (strings.Contains(name, "@") || personal.MayHoldPhone(name)) {
		name = ""
	}
	return name, id
}
