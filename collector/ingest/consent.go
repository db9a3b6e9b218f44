package ingest

import (
	"slices"

	"github.com/weir-dev/weir/collector/config"
	"github.com/weir-dev/weir/collector/consent"
	"github.com/weir-dev/weir/collector/event"
)

// consents tells of the events of one property whether their visitors let statistics know them again, and where they do not,
// who else may.
type consents struct {
	categories consent.Categories
	// recognisers are the platforms that cannot do without identifiers, or tell people by them.
	recognisers []recogniser
}

// recogniser is such a platform.
type recogniser struct {
	rule   consent.Rule
	events []string
	needed event.Needed
}

func newConsents(property *config.Property) consents {
	c := consents{categories: consent.NewCategories(property.Consent.Categories)}
	for i := range property.Platforms {
		platform := &property.Platforms[i]
		traits, _ := platform.Type.Traits()
		if needed := event.Needed(traits.ConsentOf(&platform.Settings).Identifiers); needed != (event.Needed{}) {
			c.recognisers = append(c.recognisers, recogniser{consent.NewRule(property.Consent.Rule(platform)), platform.Events, needed})
		}
	}
	return c
}

// keep lets an event be nobody's whose visitor has denied analytics, and removes its identifiers. Those stay that a platform
// needs which may get the event by the rules of now; whether it has such an event delivery alone knows.
func (c *consents) keep(e *event.Event) {
	if !consent.DeniesAnalytics(&e.Consent, c.categories) {
		return
	}
	e.Anonymous = true
	var needed event.Needed
	if e.Class.Counts() && (e.ClientID != "" || e.UserID != "" || e.SessionID != "") {
		statement := consent.Read(&e.Consent, c.categories)
		for i := range c.recognisers {
			r := &c.recognisers[i]
			if len(r.events) > 0 && !slices.Contains(r.events, e.Name) || r.rule.JudgeStatement(&statement).Withheld != "" {
				continue
			}
			needed = event.Needed{
				ClientID: needed.ClientID || r.needed.ClientID, UserID: needed.UserID || r.needed.UserID, SessionID: needed.SessionID || r.needed.SessionID,
			}
		}
	}
	e.Keep(needed)
}
