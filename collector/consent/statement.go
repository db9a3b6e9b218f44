package consent

import (
	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/event/iab"
)

// Statement is what an event's consent says, with its strings read.
type Statement struct {
	// said are the decisions of all forms but those of IAB Europe's framework, which says of each platform another thing.
	said Decisions
	// tcf are the strings of that framework.
	tcf []*iab.TCF
	// unreadable are the purposes that a string may have denied which cannot be read.
	unreadable Purposes
}

// Read gathers what a consent says in all of its forms. A string that cannot be read denies whatever it could have denied.
func Read(c *event.Consent, categories Categories) Statement {
	s := Statement{said: Decisions{
		AdStorage: c.AdStorage, AdUserData: c.AdUserData, AdPersonalization: c.AdPersonalization, AnalyticsStorage: c.AnalyticsStorage,
	}}
	for name, yes := range c.Categories {
		s.said.add(categories.Of(name), decided(yes))
	}
	if c.LimitedDataUse {
		s.said.add(Of(Sale), event.Denied)
	}
	if c.USPrivacy != "" {
		s.readUSPrivacy(c.USPrivacy)
	}
	if c.TCF != "" {
		s.readTCF(c.TCF)
	}
	if c.GPP != "" {
		s.readGPP(c.GPP, c.GPPSections)
	}
	return s
}

// Vendor is what a platform has declared in IAB Europe's framework.
type Vendor struct {
	// ID is its number in the Global Vendor List; 0 where it has none, so that what counts are the purposes alone.
	ID int
	// LegitimateInterest are the framework's purposes whose legal basis is not consent, Flexible those whose basis a
	// publisher may change.
	LegitimateInterest, Flexible []int
}

// Decisions returns what the statement says of each purpose where it is a vendor who pursues it.
func (s *Statement) Decisions(v *Vendor) Decisions {
	d := s.said
	for _, tcf := range s.tcf {
		addTCF(&d, tcf, v)
	}
	d.add(s.unreadable, event.Denied)
	return d
}

// DeniesAnalytics says whether a visitor has denied in any form that the customer's own statistics know them again. It reads
// nothing where nothing that was said can deny that.
func DeniesAnalytics(c *event.Consent, categories Categories) bool {
	switch {
	case c.AnalyticsStorage == event.Denied:
		return true
	case len(c.Categories) == 0 && c.TCF == "" && (c.GPP == "" || nothingApplies(c.GPPSections)):
		return false
	}
	s := Read(c, categories)
	return s.Decisions(new(Vendor))[AnalyticsStorage] == event.Denied
}
