package consent

import (
	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/platforms"
)

// Rule is what a platform makes of visitors' decisions. The zero Rule demands nothing.
type Rule struct {
	// Requires are the purposes of which a denial withholds an event.
	Requires Purposes
	// Limits are those of which a denial is passed on to the platform, where it withholds nothing.
	Limits Purposes
	// WithholdUnsaid says that what visitors have said nothing of counts as denied, [Sale] apart: people opt out of it, and who
	// did not has said nothing. WithholdUnsaidSale says the same of that, where it is required.
	WithholdUnsaid, WithholdUnsaidSale bool
	Vendor                             Vendor
	Categories                         Categories
}

// NewRule returns a platform's rule.
func NewRule(r platforms.ConsentRule) Rule {
	withhold := r.WhenAbsent == platforms.Withhold
	return Rule{
		Requires: named(r.Requires), Limits: named(r.Limits),
		// A type that requires sale has no form for who has opted out; that does not ask everybody to say that they have not.
		WithholdUnsaid: withhold, WithholdUnsaidSale: withhold && r.Own,
		Vendor:     Vendor{ID: r.TCF.Vendor, LegitimateInterest: r.TCF.LegitimateInterest, Flexible: r.TCF.Flexible},
		Categories: NewCategories(r.Categories),
	}
}

// Outcome is what a rule makes of a consent.
type Outcome struct {
	// Withheld is why the platform does not get the event, a short code; "" where it does.
	Withheld string
	// Limited are the denied purposes that the platform is to be told of, Granted those that were granted.
	Limited, Granted Purposes
}

// The reasons for which an event is withheld, beside those that name the purpose that was denied; see [denied].
const (
	// unreadable: a consent string cannot be read, and may deny a purpose that the platform requires.
	unreadable = "consent_unreadable"
	// vendor: a string of IAB Europe's framework allows the purpose, but not to this platform.
	vendor = "consent_vendor"
	// absent: nothing was said of a purpose that the platform requires, and that is not enough.
	absent = "consent_absent"
)

// denied is the reason for which an event is withheld whose visitor denied a purpose: consent_ad_user_data.
func denied(p Purpose) string { return "consent_" + p.String() }

// Judge reads a consent and says what the rule makes of it.
func (r *Rule) Judge(c *event.Consent) Outcome {
	s := Read(c, r.Categories)
	return r.JudgeStatement(&s)
}

// JudgeStatement is [Rule.Judge] for a consent that has been read with the rule's categories.
func (r *Rule) JudgeStatement(s *Statement) Outcome {
	var o Outcome
	decisions := s.Decisions(&r.Vendor)
	for i, said := range decisions {
		p := Purpose(i)
		unsaid := r.withholdsUnsaid(p) && said == event.Unstated
		switch {
		case !r.Requires.Has(p):
		case said == event.Denied:
			return Outcome{Withheld: r.reason(s, p)}
		case unsaid && o.Withheld == "":
			o.Withheld = absent // unless another purpose was denied, which says more
		}
		switch {
		case said == event.Granted:
			o.Granted |= Of(p)
		case r.Limits.Has(p) && (said == event.Denied || unsaid && p != Sale): // nobody is told of an opt-out that there was not
			o.Limited |= Of(p)
		}
	}
	if o.Withheld != "" {
		return Outcome{Withheld: o.Withheld}
	}
	return o
}

// withholdsUnsaid says whether a purpose of which nothing was said counts as denied.
func (r *Rule) withholdsUnsaid(p Purpose) bool {
	if p == Sale {
		return r.WithholdUnsaidSale
	}
	return r.WithholdUnsaid
}

// reason is why an event is withheld for whose platform a purpose counts as denied.
func (r *Rule) reason(s *Statement, p Purpose) string {
	own := s.Decisions(new(Vendor))
	switch {
	case s.said[p] == event.Denied:
		return denied(p)
	case s.unreadable.Has(p):
		return unreadable
	case own[p] != event.Denied:
		return vendor
	}
	return denied(p)
}
