package adapter

import (
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
