package adapter

import (
	"maps"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"github.com/weir-dev/weir/collector/event"
)

// standardNames maps event names to a platform's standard events. All other names are custom events, and no custom event may be
// taken for a standard one: that would be past the rules of money and of deduplication, and another event than the analytics count.
type standardNames struct {
	standard map[string]string
	// kept are the keys of the names that no custom event may have.
	kept map[string]bool
}

// newStandardNames makes a table. others are further names of the platform's for the same events, such as older ones.
func newStandardNames(standard map[string]string, others ...string) standardNames {
	kept := map[string]bool{nameKey(event.Purchase): true, nameKey(event.Refund): true}
	for _, name := range standard {
		kept[nameKey(name)] = true
	}
	for _, name := range others {
		kept[nameKey(name)] = true
	}
	return standardNames{standard: standard, kept: kept}
}

// of returns the platform's name for an event: the one that the Property gives it, else that of the table, else custom; or the
// reason why the event is not sent.
func (n *standardNames) of(e *Event, custom string) (mapped, reason string) {
	name := e.Name
	mapped, known := n.standard[name]
	switch {
	case e.as != "":
		return e.as, ""
	case known:
		return mapped, ""
	case name == event.Refund:
		// A custom event would count as a conversion.
		return "", "no_mapping"
	case n.kept[nameKey(name)], n.kept[nameKey(custom)]:
		return "", "name_reserved"
	}
	return custom, ""
}

// check says what is wrong with a name that the Property gives an event on the platform; "" where nothing is.
func (n *standardNames) check(name, own string) string {
	mapped, known := n.standard[name]
	switch {
	case name == event.Refund && !known:
		return noRefund
	case n.kept[nameKey(own)] && nameKey(own) != nameKey(mapped):
		return "must be none of the platform's names for other events: for that bring the event to Weir's name by spec.eventAliases"
	}
	return ""
}

// noRefund is why refunds may have no name where a platform has none.
const noRefund = "must be absent: the platform has no refund, and would count it as a conversion"

// namer is an adapter that knows by which names the platform may be told of events.
type namer interface {
	// checkName says what is wrong with a name that the Property gives an event, "" where nothing is.
	checkName(name, own string) string
}

// checkNames calls wrong for each of a platform's names that may not be.
func checkNames(of Adapter, names map[string]string, wrong func(member, rule string)) {
	for _, name := range slices.Sorted(maps.Keys(names)) {
		rule := ""
		switch known, knows := of.(namer); {
		case name != strings.TrimSpace(name) || name == "":
			rule = "must have as its key an event's name, without space around it"
		case strings.TrimSpace(names[name]) != names[name] || names[name] == "":
			rule = "must be a name of the platform's, without space around it"
		case knows:
			rule = known.checkName(name, names[name])
		case name == event.Refund:
			rule = noRefund
		}
		if rule != "" {
			wrong("eventNames."+name, rule)
		}
	}
}

// The platforms' rules.

func (a *metaAdapter) checkName(name, own string) string { return metaNames.check(name, own) }

func (a *tiktokAdapter) checkName(name, own string) string { return tiktokNames.check(name, own) }

func (a *pinterestAdapter) checkName(name, own string) string {
	if !pinterestKnown[own] {
		return "must be one of Pinterest's names: " + strings.Join(slices.Sorted(maps.Keys(pinterestKnown)), ", ")
	}
	return pinterestNames.check(name, own)
}

func (a *ga4Adapter) checkName(name, own string) string {
	switch {
	case own != ga4Custom(own):
		return "must have 1 to 40 letters of A to Z, digits and underscores, a letter first and no underscore last"
	case ga4Reserved[own], ga4Keeps(own):
		return "must be none of the names that Google keeps for itself"
	}
	return ga4Names.check(name, own)
}

func (a *mixpanelAdapter) checkName(_, own string) string {
	if strings.HasPrefix(own, "$") {
		return "must not begin with $, as Mixpanel's own do"
	}
	return ""
}

// ownNamesAlone is why a webhook and the log take no other names.
const ownNamesAlone = "must be absent: each event has its own name there, after spec.eventAliases"

func (a *webhookAdapter) checkName(_, _ string) string { return ownNamesAlone }

func (logAdapter) checkName(_, _ string) string { return ownNamesAlone }

// nameKey is what of a name is left when its spelling is not looked at: case, width, separators and what cannot be seen.
func nameKey(name string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) {
			return -1
		}
		return unicode.ToLower(r)
	}, norm.NFKC.String(name))
}

// ownName is the platform's name for an event where the platform has none but those that the Property gives: ids of what the owner
// has set up there. Without one the event is not sent.
func ownName(e *Event) (name, reason string) {
	if e.as == "" {
		return "", "no_mapping"
	}
	return e.as, ""
}
