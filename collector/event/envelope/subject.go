package envelope

import (
	"slices"

	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/event/outline"
	"github.com/weir-dev/weir/collector/event/personal"
)

// SubjectMembers are those of which a subject has one or several.
var SubjectMembers = [...]string{"email", "phone", "client_id", "user_id"}

var subjectShape = outline.Shape{Known: []outline.Member{
	{Name: SubjectMembers[0]}, {Name: SubjectMembers[1]}, {Name: SubjectMembers[2]}, {Name: SubjectMembers[3]},
}}

// Subject reads whom somebody asks to be forgotten: the [SubjectMembers] of an object that [outline.Decode] has accepted. Each is
// read by the rules of an event's user.email, user.phone, client_id and user_id, so that whatever spelling of an address
// is given, it is that of the events which had any other. It returns the identifiers that events of the property, which is
// "NAMESPACE/NAME", have of the subject, or the errors by member; an id of nobody is an error.
func Subject(object, property string) ([]event.Identifier, event.Errors) {
	c := newChecker("")
	top := outline.At(outline.Of(object, &subjectShape, nil))
	var ids []event.Identifier
	add := func(said event.Event) {
		for _, id := range said.Identifiers(property, nil).List {
			if !slices.Contains(ids, id) {
				ids = append(ids, id)
			}
		}
	}
	for _, name := range SubjectMembers {
		n, before, known := top.Get(name), len(c.errs), len(ids)
		if n.Absent() {
			continue
		}
		for _, said := range c.subject(name, n) {
			add(Pseudonymise(&said, Acceptance{}))
		}
		if len(c.errs) == before && len(ids) == known {
			c.malformed(name)
		}
	}
	if len(c.errs) > 0 {
		return nil, c.errs
	}
	return ids, nil
}

// subject reads a member as events may have it.
func (c *checker) subject(name string, n outline.Node) []Valid {
	switch name {
	case "email":
		email := c.email(name, n)
		said := Valid{person: personal.Person{Emails: []personal.Datum{email}}}
		// One that was sent as an id is kept as that hash as well.
		kept := Pseudonymise(&said, Acceptance{})
		hash := kept.User.Get(event.EmailLower).String()
		return []Valid{said, {event: event.Event{ClientID: hash, UserID: hash}}}
	case "phone":
		return []Valid{{person: personal.Person{Phones: []personal.Datum{c.phone(name, n)}}}}
	}
	id := c.identifier(name, n)
	said := event.Event{ClientID: id}
	if name == "user_id" {
		said = event.Event{UserID: id}
	}
	// An id that spells a phone number is hashed where that stands beside it, and kept as it is elsewhere.
	return []Valid{{event: said}, {event: said, person: personal.Person{Unread: []string{id}}}}
}
