package imports

import (
	"github.com/weir-dev/weir/collector/analytics"
	"github.com/weir-dev/weir/collector/history/rows"
)

// mostOrigins is how many visitors' touches are remembered at most, twice. Where there are more the rows of some lack where their
// visitor comes from until [run.mend] has looked at them.
const mostOrigins = 1 << 20

// origins fills in where visitors come from, as far as what is imported tells. Rows have to come in the order of time.
type origins struct {
	opened        int64
	latest, older map[uint64]touch
	texts         map[string]string
}

// touch is where a visitor came from, and when.
type touch struct {
	text string
	ms   int64
}

func newOrigins() *origins {
	return &origins{latest: map[uint64]touch{}, older: map[uint64]touch{}, texts: map[string]string{}}
}

// fill fills in the origin of a row at a time.
func (o *origins) fill(row *rows.Event, ms int64) {
	if row.Visitor == 0 {
		return
	}
	lookback := analytics.TouchLookback.Milliseconds()
	if ms-o.opened > lookback || len(o.latest) >= mostOrigins {
		o.older, o.latest, o.opened = o.latest, map[uint64]touch{}, ms
		o.texts = map[string]string{}
	}
	if row.Touch != "" {
		text, known := o.texts[row.Touch]
		if !known {
			text = row.Touch
			o.texts[text] = text
		}
		o.latest[row.Visitor] = touch{text, ms}
		row.Origin, row.OriginAge = text, 0
		return
	}
	found, known := o.latest[row.Visitor]
	if !known {
		found, known = o.older[row.Visitor]
	}
	if known && ms-found.ms <= lookback {
		row.Origin, row.OriginAge = found.text, uint32(ms-found.ms)
	}
}
