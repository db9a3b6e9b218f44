package analytics

import (
	"context"
	"slices"
	"sort"
)

// giveToEnds gives each conversion to the first or the last touch in its window.
//
// The last touch is the nearest before the conversion, unless it is too old: so it is enough to go through the rows in
// stream order and keep each customer's newest touch. The first touch is the same the other way round: the nearest behind
// the window's beginning, unless it lies behind the conversion.
func (w *creditWalk) giveToEnds(ctx context.Context, conversions []conversion) error {
	spans := w.snapshot.split(w.rows)
	if w.query.Model == FirstTouch {
		slices.Reverse(spans)
	}
	parts := make([]endsWalk, len(spans))
	for i, rows := range spans {
		parts[i] = endsWalk{creditWalk: w, rows: rows, conversions: w.decidedIn(rows, conversions)}
	}
	if err := together(len(parts), func(part int) error { return parts[part].walk(ctx) }); err != nil {
		return err
	}
	for i := range parts {
		parts[i].decideOpen(parts[:i])
		for n, c := range parts[i].conversions {
			if n%chunkRows == 0 && ctx.Err() != nil {
				return ctx.Err()
			}
			group := w.direct
			if touch := parts[i].touches[n]; touch != 0 {
				group = w.group(touch)
			}
			w.ledger.give(group, c.value)
		}
	}
	return nil
}

// decider returns the row from which the nearest touch is looked for, back for the last touch and on for the first.
func (w *creditWalk) decider(c *conversion) uint32 {
	if w.query.Model == FirstTouch {
		return c.oldest
	}
	return c.at
}

// decidedIn returns the conversions whose decider is one of the rows.
func (w *creditWalk) decidedIn(rows span, conversions []conversion) []conversion {
	before := func(ordinal uint64) int {
		return sort.Search(len(conversions), func(i int) bool { return w.rows.first+uint64(w.decider(&conversions[i])) >= ordinal })
	}
	return conversions[before(rows.first):before(rows.end)]
}

// endsWalk goes through a part of the rows, for the last touch in stream order and for the first against it.
type endsWalk struct {
	*creditWalk
	rows span
	// conversions are those that are decided in the part. touches are what they are owed to, 0 for none. open are the places
	// of those before whose decider the part has no touch of the customer.
	conversions []conversion
	touches     []uint32
	open        []int
	// nearest is by visitor the touch that the walk came by last; touch 0 where it came by none.
	nearest []visit
}

func (w *endsWalk) walk(ctx context.Context) error {
	if err := w.snapshot.account.take(int64(nearestBytes*len(w.snapshot.keys) + 4*len(w.conversions))); err != nil {
		return err
	}
	w.touches, w.nearest = make([]uint32, len(w.conversions)), make([]visit, len(w.snapshot.keys))
	var buffer touched
	if w.query.Model == FirstTouch {
		next := len(w.conversions) - 1
		return w.rows.eachBackwards(ctx, func(c stretch) {
			t, offset := c.touched(&buffer), c.offset(&w.creditWalk.rows)
			i := len(t.rows) - 1
			for ; next >= 0 && w.conversions[next].oldest >= offset+uint32(c.from); next-- {
				for ; i >= 0 && offset+uint32(t.rows[i]) >= w.conversions[next].oldest; i-- {
					w.pass(t, i, offset)
				}
				w.decide(next, w.nearest)
			}
			for ; i >= 0; i-- {
				w.pass(t, i, offset)
			}
		})
	}
	next := 0
	return w.rows.each(ctx, func(c stretch) {
		t, offset := c.touched(&buffer), c.offset(&w.creditWalk.rows)
		i := 0
		for ; next < len(w.conversions) && w.conversions[next].at < offset+uint32(c.to); next++ {
			for ; i < len(t.rows) && offset+uint32(t.rows[i]) <= w.conversions[next].at; i++ {
				w.pass(t, i, offset)
			}
			w.decide(next, w.nearest)
		}
		for ; i < len(t.rows); i++ {
			w.pass(t, i, offset)
		}
	})
}

// pass comes by a touch; its row follows offset.
func (w *endsWalk) pass(t *touched, i int, offset uint32) {
	w.nearest[t.visitors[i]] = visit{offset + uint32(t.rows[i]), t.touches[i]}
}

// decide decides a conversion by the touches that a walk has come by last, before the conversion's decider.
func (w *endsWalk) decide(n int, passed []visit) {
	c := &w.conversions[n]
	switch nearest := passed[c.visitor]; {
	case nearest.touch == 0:
		w.open = append(w.open, n)
	case c.oldest <= nearest.at && nearest.at <= c.at:
		w.touches[n] = nearest.touch
	}
}

// decideOpen decides what the part could not, by those before it in the order of the walk.
func (w *endsWalk) decideOpen(before []endsWalk) {
	for i := range slices.Backward(before) {
		open := w.open
		w.open = nil
		for _, n := range open {
			w.decide(n, before[i].nearest)
		}
	}
}
