package config

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/weir-dev/weir/collector/platforms"
)

// Consent says by what rules visitors' decisions are kept, where these are not the platform types' own.
type Consent struct {
	// WhenAbsent is for all platforms that have none of their own; "" is Send.
	WhenAbsent platforms.WhenAbsent `json:"whenAbsent,omitempty"`
	// Categories are the purposes that senders' names for what visitors decide on mean, beside the well-known ones.
	Categories map[string][]platforms.Purpose `json:"categories,omitempty"`
	// Platforms are the platforms with rules of their own.
	Platforms []PlatformConsent `json:"platforms,omitempty"`
}

// PlatformConsent is a platform's own rule.
type PlatformConsent struct {
	// Name is the platform's.
	Name string `json:"name"`
	// Requires replaces what the type requires; nil leaves it, and an empty list requires nothing.
	Requires []platforms.Purpose `json:"requires,omitzero"`
	// WhenAbsent is "" for that of all.
	WhenAbsent platforms.WhenAbsent `json:"whenAbsent,omitempty"`
}

// Rule returns what a platform makes of visitors' decisions: its type's rule, as far as there is none of its own.
func (c *Consent) Rule(platform *platforms.Platform) platforms.ConsentRule {
	traits, _ := platform.Type.Traits()
	rule := platforms.ConsentRule{Consent: traits.ConsentOf(&platform.Settings), WhenAbsent: c.WhenAbsent, Categories: c.Categories}
	if i := slices.IndexFunc(c.Platforms, func(p PlatformConsent) bool { return p.Name == platform.Name }); i >= 0 {
		if c.Platforms[i].Requires != nil {
			rule.Requires, rule.Own = c.Platforms[i].Requires, true
		}
		rule.WhenAbsent = cmp.Or(c.Platforms[i].WhenAbsent, rule.WhenAbsent)
	}
	return rule
}

const maxCategoryLength = 100

func (c *Consent) validate(names map[string]bool, f *errs) {
	checkWhenAbsent(c.WhenAbsent, "consent.whenAbsent", f)
	for _, name := range slices.Sorted(maps.Keys(c.Categories)) {
		at := fmt.Sprintf("consent.categories[%q]", name)
		f.check(name != "" && utf8.RuneCountInString(name) <= maxCategoryLength && !strings.ContainsFunc(name, isControl), at,
			"must be 1 to 100 characters without control characters")
		checkPurposes(c.Categories[name], at, f)
	}
	seen := map[string]bool{}
	for i := range c.Platforms {
		p, at := &c.Platforms[i], fmt.Sprintf("consent.platforms[%d]", i)
		f.check(names[p.Name], at+".name", "must be the name of one of the platforms")
		f.check(!seen[p.Name], at+".name", "must be unique among the platforms with a rule of their own")
		seen[p.Name] = true
		checkPurposes(p.Requires, at+".requires", f)
		checkWhenAbsent(p.WhenAbsent, at+".whenAbsent", f)
	}
}

func checkWhenAbsent(w platforms.WhenAbsent, field string, f *errs) {
	f.check(w == "" || w == platforms.Send || w == platforms.Withhold, field, "must be Send or Withhold, or absent")
}

func checkPurposes(list []platforms.Purpose, field string, f *errs) {
	for i, p := range list {
		f.check(slices.Contains(platforms.Purposes(), p), fmt.Sprintf("%s[%d]", field, i), "must be one of "+joined(platforms.Purposes()))
	}
}
