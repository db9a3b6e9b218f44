package ingest

import (
	"time"

	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/quality"
	"github.com/weir-dev/weir/collector/stream"
)

// prepared is an event that is valid: what is stored of it, and what is counted of it.
type prepared struct {
	stream.Addition
	observed quality.Observed
}

// observe returns what is counted of an event, whatever becomes of it. Of those that count for nobody nothing is.
func (t *tenant) observe(now time.Time, e *event.Event) quality.Observed {
	if t.Tally == nil || !e.Class.Counts() {
		return quality.Observed{}
	}
	return t.Tally.Observe(now, e.Name, quality.Traits{
		Client: e.ClientID != "", Email: !e.User.Get(event.EmailLower).IsZero(), Click: hasClick(&e.Context), Currency: e.Currency,
	})
}

// hasClick says whether an event has a click's id, or had one before its visitor's decision took it. The cookies of a platform that
// every visitor has are none.
func hasClick(c *event.Context) bool {
	for _, name := range event.ClickIDNames {
		if name != "fbp" && name != "ttp" && c.HasClick(name) {
			return true
		}
	}
	return false
}

// tally counts what has become of an event.
func (s *sender) tally(now time.Time, p *prepared, duplicate bool) {
	switch {
	case s.Tally == nil || !event.Class(p.IDSpace).Counts():
	case !duplicate:
		s.Tally.Stored(now, p.observed)
	case !s.fetched: // what is read from a shop was most often reported before
		s.Tally.Duplicate(now, p.observed)
	}
}

// additions are what is stored of some events.
func additions(list []prepared) []stream.Addition {
	some := make([]stream.Addition, len(list))
	for i := range list {
		some[i] = list[i].Addition
	}
	return some
}
