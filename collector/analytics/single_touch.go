package analytics

import (
	"context"
	"slices"
	"sort"

	"github.com/weir-dev/weir/collector/analytics/columns"
)

// creditSingleTouch gives each conversion to the first or the last touch in its window.
//
// The last touch is the nearest before the conversion, unless it is too old: so it is enough to go through the rows in
// stream order and keep each customer's newest touch. The first touch is the same the other way round: the nearest behind
// the window's beginning, unless it lies behind the conversion.
func (w *attributor) creditSingleTouch(ctx context.Context, conversions []conversion) error {
	ranges := w.snapshot.split(w.rows)
	if w.query.Model == FirstTouch {
		slices.Reverse(ranges)
	}
	parts := make([]singleTouchPass, len(ranges))
	for i, rows := range ranges {
		parts[i] = singleTouchPass{attributor: w, rows: rows, conversions: w.decidedIn(rows, conversions)}
	}
	if err := together(len(parts), func(part int) error { return parts[part].walk(ctx) }); err != nil {
		return err
	}
	for i := range parts {
		parts[i].decideOpen(parts[:i])
		for n, c := range parts[i].conversions {
			if n%columns.ChunkRows == 0 && ctx.Err() != nil {
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
func (w *attributor) decider(c *conversion) uint32 {
	if w.query.Model == FirstTouch {
		return c.oldest
	}
	return c.at
}

// decidedIn returns the conversions whose decider is one of the rows.
func (w *attributor) decidedIn(rows columns.RowRange, conversions []conversion) []conversion {
	before := func(ordinal uint64) int {
		return sort.Search(len(conversions), func(i int) bool { return w.rows.First+uint64(w.decider(&conversions[i])) >= ordinal })
	}
	return conversions[before(rows.First):before(rows.End)]
}

// singleTouchPass goes through a part of the rows, for the last touch in stream order and for the first against it.
type singleTouchPass struct {
	*attributor
	rows columns.RowRange
	// conversions are those that are decided in the part. touches are those that get their credit, 0 for none. open are the places
	// of those before whose decider the part has no touch of the customer.
	conversions []conversion
	touches     []uint32
	open        []int
	// nearest is by visitor the touch that the walk came by last; touch 0 where it came by none.
	nearest []touchpoint
}

func (w *singleTouchPass) walk(ctx context.Context) error {
	if err := w.snapshot.reservation.grow(int64(nearestBytes*len(w.snapshot.VisitorKeys) + 4*len(w.conversions))); err != nil {
		return err
	}
	w.touches, w.nearest = make([]uint32, len(w.conversions)), make([]touchpoint, len(w.snapshot.VisitorKeys))
	var buffer columns.TouchRows
	if w.query.Model == FirstTouch {
		next := len(w.conversions) - 1
		return w.rows.EachBackwards(ctx, func(c columns.ChunkRange) {
			t, offset := c.Touches(&buffer), c.Offset(&w.attributor.rows)
			i := len(t.Rows) - 1
			for ; next >= 0 && w.conversions[next].oldest >= offset+uint32(c.From); next-- {
				for ; i >= 0 && offset+uint32(t.Rows[i]) >= w.conversions[next].oldest; i-- {
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
	return w.rows.Each(ctx, func(c columns.ChunkRange) {
		t, offset := c.Touches(&buffer), c.Offset(&w.attributor.rows)
		i := 0
		for ; next < len(w.conversions) && w.conversions[next].at < offset+uint32(c.To); next++ {
			for ; i < len(t.Rows) && offset+uint32(t.Rows[i]) <= w.conversions[next].at; i++ {
				w.pass(t, i, offset)
			}
			w.decide(next, w.nearest)
		}
		for ; i < len(t.Rows); i++ {
			w.pass(t, i, offset)
		}
	})
}

// pass comes by a touch; its row follows offset.
func (w *singleTouchPass) pass(t *columns.TouchRows, i int, offset uint32) {
	w.nearest[t.Visitors[i]] = touchpoint{offset + uint32(t.Rows[i]), t.Touches[i]}
}

// decide decides a conversion by the touches that a walk has come by last, before the conversion's decider.
func (w *singleTouchPass) decide(n int, passed []touchpoint) {
	c := &w.conversions[n]
	switch nearest := passed[c.visitor]; {
	case nearest.touch == 0:
		w.open = append(w.open, n)
	case c.oldest <= nearest.at && nearest.at <= c.at:
		w.touches[n] = nearest.touch
	}
}

// decideOpen decides what the part could not, by those before it in the order of the walk.
func (w *singleTouchPass) decideOpen(before []singleTouchPass) {
	for i := range slices.Backward(before) {
		open := w.open
		w.open = nil
		for _, n := range open {
			w.decide(n, before[i].nearest)
		}
	}
}
