package analytics

import (
	"context"
	"math/bits"
	"slices"
	"time"

	"github.com/weir-dev/weir/collector/analytics/columns"
	"github.com/weir-dev/weir/collector/event"
	"github.com/weir-dev/weir/collector/stream"
)

// Funnel returns how many visitors came along the steps, in order, within the range: from each event that fills the
// first step an attempt begins, and takes for each further step the earliest later event that fills it and is not
// more than window behind the attempt's beginning; a window of 0 means no such limit. A step is filled by the events of its
// names that the filter keeps, and one event fills one step of an attempt. A visitor is counted by the attempt that came
// furthest, of several the earliest. It fails with [ErrReplaying], [ErrTooCostly], [ErrBusy] or where the context ends.
func (v *View) Funnel(ctx context.Context, q FunnelQuery) (Funnel, error) {
	names := namesOf(event.Human, slices.Concat(q.Steps...)...)
	return runQuery(ctx, v, names, func(ctx context.Context, s *snapshot) (Funnel, error) { return s.funnel(ctx, q) })
}

// attemptBytes is what an attempt takes for each visitor, its bit among those who wait included.
const attemptBytes = 9

func (s *snapshot) funnel(ctx context.Context, q FunnelQuery) (Funnel, error) {
	w, err := newFunnelPass(s, q)
	if err != nil {
		return Funnel{}, err
	}
	// All attempts and what comes of one part of the rows, and twice the gaps of a step, of which the median is taken.
	bytes := 2*attemptBytes + 2*8
	if q.Window > 0 {
		bytes += 9 + 4*(len(q.Steps)-1)
	}
	if err := s.reservation.growFor(len(s.VisitorKeys), bytes); err != nil {
		return Funnel{}, err
	}
	if q.Window > 0 && len(q.Steps) > 1 {
		if err := w.reach(ctx); err != nil {
			return Funnel{}, err
		}
	}
	if err := w.follow(ctx); err != nil {
		return Funnel{}, err
	}
	return w.result(ctx, q.Steps)
}

// funnelPass finds each visitor's best attempt.
//
// Without a window the best attempt is the first: it comes to a step by the first event that fills it behind the
// one by which it came to the step before. So one step is found after the other, by a look at the rows of its names, of
// which several workers may take a part each. With a window, a pass over all steps finds beforehand how far each visitor
// comes at all and when they first come that far; any attempt that does begins no earlier than a window before that
// moment, and the earliest that begins there does: of two attempts that are both within their windows, the one that
// began earlier is never behind. So what follows is the same as without a window, except for a position for each visitor
// behind which the attempt begins, and a step at which it ends.
type funnelPass struct {
	*snapshot
	rows columns.RowRange
	// window is in milliseconds.
	window int64
	// numbers are by step those of its names, in order.
	numbers [][]uint32
	kept    selection
	// notBefore and depth are by visitor, nil without a window: the position behind which the best attempt begins, and
	// how many steps it reaches; 0 where that is one at most.
	notBefore []stream.Position
	depth     []uint8
	// visitors counts by step who came there; medians holds how long after the step before, nil where nobody came.
	visitors []int
	medians  []*time.Duration
}

func newFunnelPass(s *snapshot, q FunnelQuery) (*funnelPass, error) {
	kept, err := s.selecting(q.Filter)
	if err != nil {
		return nil, err
	}
	w := &funnelPass{
		snapshot: s, rows: s.in(q.Range), window: q.Window.Milliseconds(), kept: kept,
		visitors: make([]int, len(q.Steps)), medians: make([]*time.Duration, len(q.Steps)),
	}
	numbers := s.numbers
	for _, names := range q.Steps {
		w.numbers = append(w.numbers, inOrder(numbers[:len(names)]))
		numbers = numbers[len(names):]
	}
	return w, nil
}

// reach finds out how far each visitor comes within the window. For each step it keeps by visitor the row at which the
// latest of the attempts began that have come there: if that one is too old for a further step, all are. Rows are told by
// how many of the range lie before them.
func (w *funnelPass) reach(ctx context.Context) error {
	w.notBefore, w.depth = make([]stream.Position, len(w.VisitorKeys)), make([]uint8, len(w.VisitorKeys))
	// Rows count from 1 on here, so that 0 can stand for none.
	last := len(w.numbers) - 1
	begun := make([][]uint32, last+1)
	for step := range last {
		begun[step] = make([]uint32, len(w.VisitorKeys))
	}
	// masks holds by a name's number the steps that it fills, a bit each.
	masks := make([]uint64, len(w.Names))
	for step, names := range w.numbers {
		for _, name := range names {
			masks[name] |= 1 << step
		}
	}
	names := inOrder(slices.Concat(w.numbers[1:]...))
	first, oldest := begun[0], columns.NewCursor(w.rows)
	begins, later := newRowFinder(&w.kept), newRowFinder(&w.kept)
	return w.rows.Each(ctx, func(c columns.ChunkRange) {
		offset := c.Offset(&w.rows)
		begins := begins.rows(&c, w.numbers[0])
		for _, row := range later.rows(&c, names) {
			for len(begins) > 0 && begins[0] < row {
				first[c.Visitor[begins[0]&(columns.ChunkRows-1)]] = offset + uint32(begins[0]) + 1
				begins = begins[1:]
			}
			if visitor := c.Visitor[row&(columns.ChunkRows-1)]; visitor != 0 {
				now := c.Position[row&(columns.ChunkRows-1)].Milliseconds()
				w.advance(begun, masks[c.Name[row&(columns.ChunkRows-1)]], visitor, oldest.Advance(now-w.window))
			}
		}
		for _, row := range begins {
			first[c.Visitor[row&(columns.ChunkRows-1)]] = offset + uint32(row) + 1
		}
	})
}

// advance takes the visitor's attempts on by an event that fills steps behind the first; oldest is the first row that
// is within the event's window. Later steps go first, since one event fills one step of an attempt.
func (w *funnelPass) advance(begun [][]uint32, mask uint64, visitor, oldest uint32) {
	last := len(w.numbers) - 1
	for step := last; step > 0; step-- {
		if mask>>step&1 == 0 {
			continue
		}
		began := begun[step-1][visitor]
		if began <= oldest {
			continue
		}
		if step < last {
			begun[step][visitor] = began
		}
		if int(w.depth[visitor]) <= step {
			w.depth[visitor] = uint8(step + 1)
			c, row := w.rows.At(w.rows.First + uint64(oldest))
			w.notBefore[visitor] = c.Position[row] - 1
		}
	}
}

// follow follows each visitor's best attempt from step to step, as long as there is anybody.
func (w *funnelPass) follow(ctx context.Context) error {
	all := newAttempts(len(w.VisitorKeys))
	copy(all.at, w.notBefore)
	for visitor := 1; visitor < len(w.VisitorKeys); visitor++ { // events without a visitor take no part
		all.waiting.add(uint32(visitor))
	}
	var found []*attempts
	for step := range w.numbers {
		parts := w.split(w.rows)
		for len(found) < len(parts) {
			if len(found) > 0 {
				if err := w.reservation.growFor(len(w.VisitorKeys), attemptBytes); err != nil {
					return err
				}
			}
			found = append(found, newAttempts(len(w.VisitorKeys)))
		}
		err := together(len(parts), func(part int) error { return w.find(ctx, parts[part], step, all, found[part]) })
		if err != nil {
			return err
		}
		w.enter(step, all, found[:len(parts)])
		if w.visitors[step] == 0 {
			break
		}
	}
	return nil
}

// attempts are on their way to a step.
type attempts struct {
	// waiting are the visitors who have come to the step before and not to this one.
	waiting bitset
	// at is by visitor the event by which the attempt came to the last step that it has come to, or behind which it begins.
	at []stream.Position
}

func newAttempts(visitors int) *attempts {
	return &attempts{waiting: newBitset(visitors), at: make([]stream.Position, visitors)}
}

// find looks through rows for the events by which attempts come to a step, and notes them in found.
func (w *funnelPass) find(ctx context.Context, rows columns.RowRange, step int, all, found *attempts) error {
	names, waiting := w.numbers[step], found.waiting
	copy(waiting, all.waiting)
	chosen := columns.FirstRows{Rows: make([]uint16, columns.ChunkRows), Visitors: make([]uint32, columns.ChunkRows)}
	finder := newRowFinder(&w.kept)
	finder.onlyFirst = step == 0 && w.notBefore == nil && w.kept.all()
	return rows.Each(ctx, func(c columns.ChunkRange) {
		// Most of the rows are of visitors who do not wait for them, so they are passed over without a branch.
		count := 0
		if first := finder.first(&c, names); len(first.Rows) > 0 {
			for i, visitor := range first.Visitors {
				chosen.Rows[count&(columns.ChunkRows-1)], chosen.Visitors[count&(columns.ChunkRows-1)] = first.Rows[i], visitor
				count += waiting.bit(visitor)
			}
		} else {
			for _, row := range finder.rows(&c, names) {
				visitor := c.Visitor[row&(columns.ChunkRows-1)]
				chosen.Rows[count&(columns.ChunkRows-1)], chosen.Visitors[count&(columns.ChunkRows-1)] = row, visitor
				count += waiting.bit(visitor)
			}
		}
		for i, visitor := range chosen.Visitors[:count] {
			at := c.Position[chosen.Rows[i]&(columns.ChunkRows-1)]
			if waiting.bit(visitor) != 0 && at > all.at[visitor] {
				waiting[visitor>>6] &^= 1 << (visitor & 63)
				found.at[visitor] = at
			}
		}
	})
}

// enter takes the visitors to a step who were found, in parts of the rows, to come to it. The earliest of each counts.
func (w *funnelPass) enter(step int, all *attempts, found []*attempts) {
	var gaps []int64
	if step > 0 {
		gaps = make([]int64, 0, w.visitors[step-1])
	}
	for i, waiting := range all.waiting {
		all.waiting[i] = 0
		for _, f := range found {
			came := waiting &^ f.waiting[i]
			waiting &^= came
			w.visitors[step] += bits.OnesCount64(came)
			for ; came != 0; came &= came - 1 {
				visitor := i<<6 | bits.TrailingZeros64(came)
				at := f.at[visitor]
				if step > 0 {
					gaps = append(gaps, at.Milliseconds()-all.at[visitor].Milliseconds())
				}
				all.at[visitor] = at
				if len(w.depth) == 0 || int(w.depth[visitor]) > step+1 {
					all.waiting[i] |= came & -came
				}
			}
		}
	}
	if len(gaps) > 0 {
		median := medianOf(gaps)
		w.medians[step] = &median
	}
}

// result returns the numbers of the steps.
func (w *funnelPass) result(ctx context.Context, steps [][]string) (Funnel, error) {
	result := Funnel{Steps: make([]FunnelStep, len(steps)), CompleteFrom: w.completeFrom}
	first, previous := w.visitors[0], w.visitors[0]
	for i, names := range steps {
		if err := ctx.Err(); err != nil {
			return Funnel{}, err
		}
		visitors := w.visitors[i]
		step := FunnelStep{
			Events: names, Visitors: visitors, DropOff: previous - visitors,
			ConversionRate:     RateOf(int64(visitors), int64(first)),
			StepConversionRate: RateOf(int64(visitors), int64(previous)),
		}
		step.Median = w.medians[i]
		result.Steps[i] = step
		previous = visitors
	}
	result.ConversionRate = result.Steps[len(steps)-1].ConversionRate
	return result, nil
}
