package segment

import (
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/event/outline"
)

// Where clients write what the visitor decided: Segment's decisions by category, RudderStack's lists of those that were
// allowed and denied.
const (
	consentPreferences = "context.consent.categoryPreferences"
	consentAllowed     = "context.consentManagement.allowedConsentIds"
	consentDenied      = "context.consentManagement.deniedConsentIds"
)

// decision is one on a category. Of several on one the last counts.
type decision struct{ category, raw string }

// decisions reads what the visitor decided: of the message, else of its batch. It fails where it cannot be read, since an
// event of which nobody knows what was denied may go nowhere.
func (t *Translator) decisions(top *outline.Node) ([]decision, event.Errors) {
	context := top.Get("context")
	consent, management := context.Get("consent"), context.Get("consentManagement")
	if consent.Absent() && management.Absent() && len(t.context) > 0 {
		context = outline.Node{Inner: t.context}
		consent, management = context.Get("consent"), context.Get("consentManagement")
	}
	if consent.Absent() && management.Absent() {
		return nil, nil
	}
	if !consent.Absent() && consent.Kind() != jsontext.KindBeginObject {
		return nil, t.fail("context.consent", "must be an object.")
	}
	if !management.Absent() && management.Kind() != jsontext.KindBeginObject {
		return nil, t.fail("context.consentManagement", "must be an object.")
	}
	var all []decision
	if preferences := consent.Get("categoryPreferences"); !preferences.Absent() {
		if preferences.Kind() != jsontext.KindBeginObject {
			return nil, t.fail(consentPreferences, "must be an object.")
		}
		for i := 0; i < len(preferences.Inner); i += 1 + preferences.Inner[i].Below {
			all = append(all, decision{preferences.Inner[i].Name, preferences.Inner[i].Raw})
		}
	}
	allowed, ok := listed(management.Get("allowedConsentIds"))
	if !ok {
		return nil, t.fail(consentAllowed, "must be a list of texts.")
	}
	denied, ok := listed(management.Get("deniedConsentIds"))
	if !ok {
		return nil, t.fail(consentDenied, "must be a list of texts.")
	}
	for _, category := range allowed {
		if !slices.Contains(all, decision{category, "false"}) {
			all = append(all, decision{category, "true"})
		}
	}
	for _, category := range denied {
		all = append(all, decision{category, "false"})
	}
	return all, nil
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

// consented adds the decisions as the envelope's.
func (t *Translator) consented(all []decision) {
	if len(all) == 0 {
		return
	}
	t.builder.Object("consent")
	t.builder.Object("categories")
	for _, d := range all {
		t.builder.Add(d.category, d.raw)
	}
	t.builder.Close()
	t.builder.Close()
}
