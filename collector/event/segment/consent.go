package segment

import (
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/event/outline"
)

// Where clients write what the visitor decided: Segment's decisions by category, RudderStack's lists of those that were
// allowed and denied, and beside Segment's the members that an envelope's own consent has.
const (
	consentMember      = "context.consent"
	consentPreferences = consentMember + ".categoryPreferences"
	consentManagement  = "context.consentManagement"
	consentAllowed     = consentManagement + ".allowedConsentIds"
	consentDenied      = consentManagement + ".deniedConsentIds"
)

// ownConsent are the members of an envelope's consent.
var ownConsent = []string{
	"ad_user_data", "ad_personalization", "ad_storage", "analytics_storage", "tcf", "gpp", "gpp_sid", "us_privacy", "limited_data_use",
	"categories",
}

// part is what was said of consent in one place. An envelope gets them one by one, since it alone judges them, and
// knows which of several is the strictest.
type part struct {
	// place is the path of where it stands, in the message or, ofBatch, in the batch's own context.
	place   string
	ofBatch bool
	// members are those of an envelope's consent; or else categories are decided on, in lists all alike.
	members    []outline.Value
	categories []outline.Value
}

// consents reads what the visitor decided, by the message and by its batch. It fails where that cannot be read, since an event
// of which nobody knows what was denied may go nowhere.
func (t *Translator) consents(top *outline.Node) event.Errors {
	t.parts = t.parts[:0]
	context := top.Get("context")
	errs := t.consentsIn(&context, false)
	if len(t.context) > 0 {
		errs = append(errs, t.consentsIn(&outline.Node{Inner: t.context}, true)...)
	}
	return errs
}

// consentsIn reads what stands in one context.
func (t *Translator) consentsIn(context *outline.Node, ofBatch bool) event.Errors {
	consent, management := context.Get("consent"), context.Get("consentManagement")
	for _, object := range [...]struct {
		place string
		node  *outline.Node
	}{{consentMember, &consent}, {consentManagement, &management}} {
		if !object.node.Absent() && object.node.Kind() != jsontext.KindBeginObject {
			return t.failConsent(part{place: object.place, ofBatch: ofBatch}, "must be an object.")
		}
	}
	own := part{place: consentMember, ofBatch: ofBatch}
	for i := 0; i < len(consent.Inner); i += 1 + consent.Inner[i].Below {
		if member := &consent.Inner[i]; slices.Contains(ownConsent, member.Name) && !outline.Absent(member.Raw) {
			own.members = append(own.members, consent.Inner[i:i+1+member.Below]...)
		}
	}
	t.addPart(own)

	preferences := part{place: consentPreferences, ofBatch: ofBatch}
	if said := consent.Get("categoryPreferences"); !said.Absent() {
		if said.Kind() != jsontext.KindBeginObject {
			return t.failConsent(preferences, "must be an object.")
		}
		for i := 0; i < len(said.Inner); i += 1 + said.Inner[i].Below {
			preferences.categories = append(preferences.categories, outline.Value{Name: said.Inner[i].Name, Raw: said.Inner[i].Raw})
		}
	}
	t.addPart(preferences)

	for _, list := range [...]struct{ place, decision string }{{consentAllowed, "true"}, {consentDenied, "false"}} {
		all := part{place: list.place, ofBatch: ofBatch}
		categories, ok := listed(management.Get(list.place[len(consentManagement)+1:]))
		if !ok {
			return t.failConsent(all, "must be a list of texts.")
		}
		for _, category := range categories {
			all.categories = append(all.categories, outline.Value{Name: category, Raw: list.decision})
		}
		t.addPart(all)
	}
	return nil
}

// addPart notes a part that says something.
func (t *Translator) addPart(p part) {
	if len(p.members)+len(p.categories) > 0 {
		t.parts = append(t.parts, p)
	}
}

// failConsent is the error of a part that cannot be read.
func (t *Translator) failConsent(p part, what string) event.Errors {
	t.parts = append(t.parts, p)
	return t.fail(consentPrefix+strconv.Itoa(len(t.parts)-1), what)
}

// listed returns the texts of a list that may be absent, and whether there is nothing else in it.
func listed(n outline.Node) ([]string, bool) {
	if n.Absent() {
		return nil, true
	}
	if n.Kind() != jsontext.KindBeginArray || n.Length > maxListed {
		return nil, false
	}
	texts := make([]string, 0, n.Length)
	for element := range n.Elements() {
		if element.Kind() != jsontext.KindString {
			return nil, false
		}
		texts = append(texts, element.Text())
	}
	return texts, true
}

// consented adds the parts as the envelope's.
func (t *Translator) consented() {
	if len(t.parts) == 0 {
		return
	}
	t.builder.Array("consent")
	for i := range t.parts {
		p := &t.parts[i]
		t.builder.Object("")
		for i := 0; i < len(p.members); i += 1 + p.members[i].Below {
			member := outline.At(p.members[i:])
			t.builder.Copy(p.members[i].Name, &member)
		}
		if len(p.categories) > 0 {
			t.builder.Object("categories")
			for _, category := range p.categories {
				t.builder.Add(category.Name, category.Raw)
			}
			t.builder.Close()
		}
		t.builder.Close()
	}
	t.builder.Close()
}

// consentPrefix is what the paths of an envelope's parts begin with; their indices follow.
const consentPrefix = "consent."

// partAt returns the part that an envelope's path is of, and what of it; nil where it is of none.
func (t *Translator) partAt(field string) (p *part, member string) {
	path, within := strings.CutPrefix(field, consentPrefix)
	if !within {
		return nil, ""
	}
	index, member, _ := strings.Cut(path, ".")
	i, err := strconv.Atoi(index)
	if err != nil || i < 0 || i >= len(t.parts) {
		return nil, ""
	}
	if p = &t.parts[i]; len(p.categories) > 0 {
		return p, "" // which is all that there is in it
	}
	return p, member
}
