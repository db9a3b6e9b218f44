package adapter

import (
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/weir-dev/weir/collector/event"
)

// standardNames maps event names to a platform's standard events. All other names are custom events, and no custom event may be
// taken for a standard one: that would be past the rules of money and of deduplication, and another event than the analytics count.
type standardNames struct {
	standard map[string]string
	// kept are the keys of the names that no custom event may have, money those of them by which money counts, or may.
	kept, money map[string]bool
}

// newStandardNames makes a table. others are further names of the platform's for the same events, such as older ones.
func newStandardNames(standard map[string]string, others ...string) standardNames {
	money := map[string]bool{}
	for _, name := range append(others, event.Purchase, event.Refund, standard[event.Purchase], standard[event.Refund]) {
		money[nameKey(name)] = true
	}
	delete(money, "")
	kept := maps.Clone(money)
	for _, name := range standard {
		kept[nameKey(name)] = true
	}
	return standardNames{standard: standard, kept: kept, money: money}
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
	case n.kept[nameKey(name)], custom != name && n.kept[nameKey(custom)]:
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
	case n.money[nameKey(own)] && nameKey(own) != nameKey(mapped):
		return namedOtherwise
	}
	return ""
}

// namedOtherwise is why a name may not be the platform's for a purchase, a refund or what else it counts in a way of its own.
const namedOtherwise = "must be none of the names that count as something else there, such as a purchase: for that bring the event to Weir's name by spec.eventAliases"

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
		if rule := checkName(of, names, name); rule != "" {
			wrong("eventNames."+name, rule)
		}
	}
}

func checkName(of Adapter, names map[string]string, name string) string {
	own := names[name]
	switch {
	case name != strings.TrimSpace(name) || name == "":
		return "must have as its key an event's name, without space around it"
	case strings.TrimSpace(own) != own || own == "":
		return "must be a name of the platform's, without space around it"
	}
	for _, money := range moneyNames {
		if name == money {
			continue
		}
		switch nameKey(money) {
		case nameKey(name):
			return "must have the key " + money + ": names are exact, and for another spelling there is spec.eventAliases"
		case nameKey(own):
			return "must be another name than " + money + ": for that bring the event to Weir's name by spec.eventAliases"
		}
		if given := names[money]; given != "" && nameKey(given) == nameKey(own) {
			return "must be another name than that of " + money + ", which it would count as"
		}
	}
	if known, knows := of.(namer); knows {
		return known.checkName(name, own)
	}
	if name == event.Refund {
		return noRefund
	}
	return ""
}

// moneyNames are the names of events that have rules of money.
var moneyNames = [...]string{event.Purchase, event.Refund}

// takenNames are the keys of the names that the Property gives to events with rules of money: no event by another name of Weir's may
// have one, as it would be past those rules. nil where there are none.
func takenNames(names map[string]string) map[string]bool {
	var taken map[string]bool
	for _, money := range moneyNames {
		if own := names[money]; own != "" {
			if taken == nil {
				taken = map[string]bool{}
			}
			taken[nameKey(own)] = true
		}
	}
	return taken
}

// The platforms' rules.

func (a *metaAdapter) checkName(name, own string) string { return metaNames.check(name, own) }

func (a *tiktokAdapter) checkName(name, own string) string { return tiktokNames.check(name, own) }

func (a *klaviyoAdapter) checkName(name, own string) string { return klaviyoNames.check(name, own) }

func (a *microsoftAdapter) checkName(name, own string) string { return microsoftNames.check(name, own) }

func (a *pinterestAdapter) checkName(name, own string) string {
	if !pinterestKnown[own] {
		return oneOf("Pinterest", pinterestKnown)
	}
	return pinterestNames.check(name, own)
}

func (a *snapchatAdapter) checkName(name, own string) string {
	if !snapchatKnown[own] {
		return oneOf("Snapchat", snapchatKnown)
	}
	return snapchatNames.check(name, own)
}

// oneOf says that a platform takes no names but its own.
func oneOf(platform string, known map[string]bool) string {
	return "must be one of " + platform + "'s names: " + strings.Join(slices.Sorted(maps.Keys(known)), ", ")
}

func (a *redditAdapter) checkName(name, own string) string {
	if utf8.RuneCountInString(own) > redditLongestName {
		return "must have 64 characters at most"
	}
	return redditNames.check(name, own)
}

func (a *openaiAdapter) checkName(name, own string) string {
	switch {
	case openaiOfApps[own] && name != event.Purchase && name != event.Refund:
		return ""
	case own == openaiCustom || !openaiCustomName.MatchString(own):
		return "must be one of OpenAI's types, or 1 to 64 letters, digits, hyphens and underscores, a letter or digit first and last, and not custom"
	}
	return openaiNames.check(name, own)
}

func (a *ga4Adapter) checkName(name, own string) string { return checkGA4Name(name, own) }

func checkGA4Name(name, own string) string {
	switch {
	case own != ga4Custom(own):
		return "must have 1 to 40 letters of A to Z, digits and underscores, a letter first and no underscore last"
	case ga4Reserved[own], ga4Keeps(own):
		return "must be none of the names that Google keeps for itself"
	}
	return ga4Names.check(name, own)
}

func (a *googleAdapter) checkName(name, own string) string {
	switch {
	case a.analytics():
		return checkGA4Name(name, own)
	case name == event.Refund:
		return "must be absent: a refund goes to the conversion action of purchase, whose value it changes"
	case !googleAction.MatchString(own):
		return "must be the id of a conversion action of Google's: digits, in quotes"
	}
	return ""
}

func (a *linkedinAdapter) checkName(name, own string) string {
	switch {
	case name == event.Refund:
		return noRefund
	case !linkedinRule.MatchString(own):
		return "must be the id of a conversion rule of LinkedIn's: digits, in quotes"
	}
	return ""
}

func (a *mixpanelAdapter) checkName(_, own string) string {
	if strings.HasPrefix(own, "$") {
		return "must not begin with $, as Mixpanel's own do"
	}
	return ""
}

func (a *amplitudeAdapter) checkName(_, own string) string {
	if amplitudeKeeps(own) {
		return "must begin neither with $ nor with [Amplitude], as Amplitude's own do"
	}
	return ""
}

func (a *posthogAdapter) checkName(name, own string) string {
	if strings.HasPrefix(own, "$") && own != posthogNames[name] {
		return "must not begin with $, as PostHog's own do"
	}
	return ""
}

func (a *segmentAdapter) checkName(name, own string) string {
	key, known := nameKey(own), segmentNames[name]
	if segmentKept[key] && key != nameKey(known.name) && key != nameKey(known.several) {
		return namedOtherwise
	}
	return ""
}

// ownNamesAlone is why there are no other names where an event keeps its own.
const ownNamesAlone = "must be absent: each event has its own name there, after spec.eventAliases"

func (a *webhookAdapter) checkName(_, _ string) string { return ownNamesAlone }

func (a *s3Adapter) checkName(_, _ string) string { return ownNamesAlone }

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
