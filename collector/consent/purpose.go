// Package consent decides what may happen with an event by what its visitor decided: in whatever forms that was said, it
// ends in one set of purposes, each granted, denied or unsaid, and a platform's rule makes of it whether the platform gets
// the event, gets it in a milder form, or does not get it and why. All of it is pure; docs/reference/consent.md is the rule
// in words.
package consent

import (
	"slices"

	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/platforms"
)

// Purpose is what a visitor decides on.
type Purpose uint8

// The purposes. The first four are Google's consent mode's.
const (
	// AdStorage: devices keep something for advertising, such as a click's id, and it is read.
	AdStorage Purpose = iota
	// AdUserData: personal data goes to advertising platforms.
	AdUserData
	// AdPersonalization: advertisements are made personal by them.
	AdPersonalization
	// AnalyticsStorage: a visitor is known again in statistics.
	AnalyticsStorage
	// Sale: personal data is sold, shared or used for targeted advertising, as laws of American states have these words.
	// There people opt out: where nothing is said it may be done.
	Sale

	// count is how many there are.
	count = int(iota)
)

var names = [...]string{"ad_storage", "ad_user_data", "ad_personalization", "analytics_storage", "sale"}

// String returns the purpose as senders and the Property write it.
func (p Purpose) String() string { return names[p] }

// ParsePurpose reads what [Purpose.String] writes.
func ParsePurpose(text string) (Purpose, bool) {
	i := slices.Index(names[:], text)
	return Purpose(max(i, 0)), i >= 0
}

// Purposes is a set of them.
type Purposes uint8

// Of is the set of some purposes.
func Of(list ...Purpose) Purposes {
	var set Purposes
	for _, p := range list {
		set |= 1 << p
	}
	return set
}

// named is the set of those purposes of a list that there are.
func named(list []platforms.Purpose) Purposes {
	var set Purposes
	for _, name := range list {
		if p, ok := ParsePurpose(string(name)); ok {
			set |= Of(p)
		}
	}
	return set
}

// ads are the purposes of advertising that a visitor consents to.
var ads = Of(AdStorage, AdUserData, AdPersonalization)

// Has says whether a purpose is in the set.
func (s Purposes) Has(p Purpose) bool { return s&(1<<p) != 0 }

// Any says whether one of some purposes is in the set.
func (s Purposes) Any(list ...Purpose) bool { return s&Of(list...) != 0 }

// Decisions are the decision on each purpose.
type Decisions [count]event.Decision

// add notes what one form says of some purposes. Denied in one form is denied, whatever others say.
func (d *Decisions) add(purposes Purposes, said event.Decision) {
	for p := range d {
		if purposes.Has(Purpose(p)) {
			d[p] = max(d[p], said) // denied is the highest, unsaid the lowest
		}
	}
}

// decided is the decision that a yes or no is.
func decided(yes bool) event.Decision {
	if yes {
		return event.Granted
	}
	return event.Denied
}
