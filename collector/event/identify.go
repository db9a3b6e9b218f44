package event

import (
	"slices"
	"strings"
)

// maxDigits is how many digits a text may have beside a phone number that could not be read: fewer than any number has.
const maxDigits = 6

// Identify returns the event's name and id where [Envelope.Validate] has found errors: as far as they are valid and
// nothing of a person is in them, "" otherwise. They are the caller's to keep.
func (e *Envelope) Identify(errs Errors) (name, id string) {
	known := personalDataOf(lower(trim(e.valid.person.email)), e.valid.person.phone, "")
	unread := slices.ContainsFunc(errs, func(err FieldError) bool { return err.Field == "user" || strings.HasPrefix(err.Field, "user.") })
	fit := func(field, text string) string {
		_, ours := CanonicalUUID(text)
		invalid := slices.ContainsFunc(errs, func(err FieldError) bool { return err.Field == field })
		if invalid || known.contactIn(text) || unread && !ours && digitsIn(text) > maxDigits {
			return ""
		}
		return strings.Clone(text)
	}
	return fit("event", e.valid.event.Name), fit("event_id", e.valid.event.ID)
}

// digitsIn counts the digits of a text, in whatever script.
func digitsIn(text string) (n int) {
	for _, r := range text {
		if _, is := digitValue(r); is {
			n++
		}
	}
	return n
}
