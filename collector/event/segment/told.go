package segment

import (
	"strconv"
	"strings"

	"github.com/weir-dev/weir/collector/event"
)

// Told puts errors of the message that was translated last, or of the envelope that it became, into the sender's words: by
// the paths of the message's own members.
func (t *Translator) Told(errs event.Errors) event.Errors {
	told := make(event.Errors, 0, len(errs))
	for _, err := range errs {
		path := t.pathOf(err.Field)
		told.Add(path, strings.Replace(err.Message, " "+err.Field+" ", " "+path+" ", 1))
	}
	return told
}

// pathOf returns where in the body an envelope's member stands, or would have to.
func (t *Translator) pathOf(field string) string {
	message := ""
	if t.index >= 0 {
		message = "batch[" + strconv.Itoa(t.index) + "]"
	}
	var member string
	if said, of := t.partAt(field); said != nil {
		if member = strings.TrimSuffix(said.place+"."+of, "."); said.ofBatch {
			return member
		}
	} else {
		member = t.memberOf(field)
	}
	if member == "" {
		return message
	}
	return strings.TrimPrefix(message+"."+member, ".")
}

// renamedMembers are the members of an envelope that are no row of the table.
var renamedMembers = map[string]string{"event_id": "messageId"}

// memberOf returns where in the message an envelope's member stands, or would have to.
func (t *Translator) memberOf(field string) string {
	if member, known := renamedMembers[field]; known {
		return member
	}
	if i := t.form.rowOf(field); i >= 0 && len(t.form.rows[i].From) > 0 {
		rank := 0
		if t.found[i].at > 0 {
			rank = int(t.found[i].rank) % ofBatch
		}
		return t.form.rows[i].From[rank]
	}
	if item, within := strings.CutPrefix(field, "data.contents."); within {
		index, member, _ := strings.Cut(item, ".")
		if member == "id" {
			member = "product_id"
		}
		if !t.listed {
			return "properties." + member
		}
		return strings.TrimSuffix("properties.products["+index+"]."+member, ".")
	}
	if field == "consent.categories" { // of all parts together
		return consentMember
	}
	return field
}
