package analytics

import (
	"context"
	"math/bits"
	"time"

	"github.com/weir-dev/weir/collector/stream"
)

// Funnel returns how many visitors came along the steps, in order, within the range: from each event of the
// first step's name an attempt begins, and takes for each further step the earliest later event of that name
// that is not more than window behind the attempt's beginning; a window of 0 means no such limit. A visitor is
// counted by the attempt that came furthest, of several the earliest. Steps are 1 to 64 names. It fails
// with [ErrReplaying] or where the context ends.
func (v *View) Funnel(ctx context.Context, r Range, steps []string, window time.Duration) (Funnel, error) {
	s, done, err := v.read(steps...)
	if err != nil {
		return Funnel{}, err
	}
	defer done()
	w := newFunnelWalk(s, s.in(r), window)
	if window > 0 && len(steps) > 1 {
		if err := w.reach(ctx); err != nil {
			return Funnel{}, err
		}
	}
	if err := w.walk(ctx); err != nil {
		return Funnel{}, err
	}
	return w.result(ctx, steps)
}

// funnelWalk goes through a funnel's rows in stream order, with a little state for each visitor. Rows are told by how
// many of the span lie before them.
//
// Without a window a visitor's best attempt is the first one, so that one pass finds it. With a window, a first
// pass finds how far each visitor comes at all and when they first come that far; any attempt that does begins no
// earlier than a window before that moment, and the earliest that begins there does: of two attempts that are both
// within their windows, the one that began earlier is never behind. So the second pass is the one
// without a window again, but for a row for each visitor before which no attempt begins.
type funnelWalk struct {
	rows span
	// window is in milliseconds.
	window int64
	steps  int
	// masks holds by a name's number the steps that it fills, a bit each; names are those that fill any.
	masks []uint64
	names []stepName
	// notBefore and depth are by visitor, nil without a window: the first row at which the best attempt may begin, and
	// how many steps it reaches; 0 where that is one at most.
	notBefore []uint32
	depth     []uint8
	// reached is by visitor how many steps the attempt has reached, finished once that is as far as it comes; at is
	// the event by which it came to the last of them.
	reached []uint8
	at      []stream.Position
	// visitors counts by step who came there; gaps holds how many milliseconds after the step before.
	visitors []int
	gaps     [][]int64

	// later are rows of the stretch that is looked at; the others are room to work in.
	later                  rowSet
	found, ordered, buffer []uint16
}

// stepName is a name that fills steps.
type stepName struct {
	number uint32
	mask   uint64
	// matters is 1 where a visitor who has reached so many steps may be taken further by an event of the name, at once
	// or once the steps between have been filled.
	matters [finished + 1]uint8
}

// finished is beyond any number of steps, so that no step's bit in a mask lies there. Nobody has it from the start, so
// that events without a visitor take no part.
const finished = 255

func newFunnelWalk(s *snapshot, rows span, window time.Duration) *funnelWalk {
	w := &funnelWalk{
		rows: rows, window: window.Milliseconds(), steps: len(s.numbers), masks: make([]uint64, len(s.names)),
		reached: make([]uint8, len(s.keys)), at: make([]stream.Position, len(s.keys)),
		visitors: make([]int, len(s.numbers)), gaps: make([][]int64, len(s.numbers)),
		found: make([]uint16, chunkRows), ordered: make([]uint16, 0, chunkRows), buffer: make([]uint16, 0, chunkRows),
	}
	w.reached[0] = finished
	for step, name := range s.numbers {
		if name != noName {
			w.masks[name] |= 1 << step
		}
	}
	for step, name := range s.numbers {
		if name == noName || w.masks[name]&(1<<step-1) != 0 {
			continue // no event has it, or it stands further up
		}
		own := stepName{number: name, mask: w.masks[name]}
		for reached := range w.steps {
			if own.mask>>reached != 0 {
				own.matters[reached] = 1
			}
		}
		w.names = append(w.names, own)
	}
	return w
}

// reach finds out how far each visitor comes within the window. For each step it keeps by visitor the row at which the
// latest of the attempts began that have come there: if that one is too old for a further step, all are.
func (w *funnelWalk) reach(ctx context.Context) error {
	w.notBefore, w.depth = make([]uint32, len(w.reached)), make([]uint8, len(w.reached))
	// Rows count from 1 on here, so that 0 can stand for none.
	begun := make([][]uint32, w.steps)
	for step := range w.steps - 1 {
		begun[step] = make([]uint32, len(w.reached))
	}
	first, oldest := begun[0], newTrail(w.rows)
	return w.rows.each(ctx, func(c stretch) {
		offset := c.offset(&w.rows)
		for i := range w.names {
			if name := &w.names[i]; name.mask > 1 {
				w.later.add(c.named(name.number, w.buffer))
			}
		}
		begins := w.begins(c)
		for _, row := range w.later.take(w.ordered[:0]) {
			for len(begins) > 0 && begins[0] < row {
				first[c.visitor[begins[0]&(chunkRows-1)]] = offset + uint32(begins[0]) + 1
				begins = begins[1:]
			}
			if visitor := c.visitor[row&(chunkRows-1)]; visitor != 0 {
				now := c.position[row&(chunkRows-1)].Milliseconds()
				w.advance(begun, w.masks[c.name[row&(chunkRows-1)]], visitor, oldest.to(now-w.window))
			}
		}
		for _, row := range begins {
			first[c.visitor[row&(chunkRows-1)]] = offset + uint32(row) + 1
		}
	})
}

// begins returns the stretch's rows that fill the first step.
func (w *funnelWalk) begins(c stretch) []uint16 {
	for i := range w.names {
		if name := &w.names[i]; name.mask&1 != 0 {
			return c.named(name.number, w.buffer)
		}
	}
	return nil
}

// advance takes the visitor's attempts on by an event that fills steps behind the first; oldest is the first row that
// is within the event's window. Later steps go first, since one event fills one step of an attempt.
func (w *funnelWalk) advance(begun [][]uint32, mask uint64, visitor, oldest uint32) {
	for step := w.steps - 1; step > 0; step-- {
		if mask>>step&1 == 0 {
			continue
		}
		began := begun[step-1][visitor]
		if began <= oldest {
			continue
		}
		if step < w.steps-1 {
			begun[step][visitor] = began
		}
		if int(w.depth[visitor]) <= step {
			w.depth[visitor] = uint8(step + 1)
			w.notBefore[visitor] = oldest
		}
	}
}

// walk follows each visitor's best attempt.
func (w *funnelWalk) walk(ctx context.Context) error {
	return w.rows.each(ctx, func(c stretch) {
		offset := c.offset(&w.rows)
		for i := range w.names {
			if name := &w.names[i]; name.mask == 1 {
				w.begin(c, offset, c.named(name.number, w.buffer))
			} else {
				w.choose(c, name)
			}
		}
		for _, row := range w.later.take(w.ordered[:0]) {
			visitor := c.visitor[row&(chunkRows-1)]
			step, at := w.reached[visitor], c.position[row&(chunkRows-1)]
			// The attempt may have begun further down in the stretch.
			if w.masks[c.name[row&(chunkRows-1)]]>>step&1 != 0 && at > w.at[visitor] {
				w.enter(visitor, offset+uint32(row), at)
			}
		}
	})
}

// begin begins the attempts of the stretch's rows that fill the first step alone.
func (w *funnelWalk) begin(c stretch, offset uint32, rows []uint16) {
	reached := w.reached
	for _, row := range rows {
		if visitor := c.visitor[row&(chunkRows-1)]; reached[visitor] == 0 {
			w.enter(visitor, offset+uint32(row), c.position[row&(chunkRows-1)])
		}
	}
}

// choose notes the rows of a name that may take their visitor to a later step. Most are of visitors for whom they
// mean nothing, so they are passed over without a branch.
func (w *funnelWalk) choose(c stretch, name *stepName) {
	count, reached := 0, w.reached
	for _, row := range c.named(name.number, w.buffer) {
		w.found[count&(chunkRows-1)] = row
		count += int(name.matters[reached[c.visitor[row&(chunkRows-1)]]])
	}
	w.later.add(w.found[:count])
}

// enter takes the visitor's attempt to the next step, by the event in a row.
func (w *funnelWalk) enter(visitor, row uint32, at stream.Position) {
	step := w.reached[visitor]
	last := w.steps
	if w.notBefore != nil {
		if step == 0 && row < w.notBefore[visitor] {
			return
		}
		last = max(1, int(w.depth[visitor]))
	}
	w.visitors[step]++
	if step > 0 {
		w.gaps[step] = append(w.gaps[step], at.Milliseconds()-w.at[visitor].Milliseconds())
	}
	w.at[visitor] = at
	w.reached[visitor] = step + 1
	if int(step)+1 == last {
		w.reached[visitor] = finished
	}
}

// rowSet is a set of a chunk's rows.
type rowSet [chunkRows / 64]uint64

func (s *rowSet) add(rows []uint16) {
	for _, row := range rows {
		s[row>>6&(chunkRows/64-1)] |= 1 << (row & 63)
	}
}

// take appends the rows to a list, in order, and empties the set.
func (s *rowSet) take(list []uint16) []uint16 {
	for i, word := range s {
		for ; word != 0; word &= word - 1 {
			list = append(list, uint16(i<<6|bits.TrailingZeros64(word)))
		}
		s[i] = 0
	}
	return list
}

// result returns the numbers of the steps.
func (w *funnelWalk) result(ctx context.Context, steps []string) (Funnel, error) {
	result := Funnel{Steps: make([]FunnelStep, len(steps))}
	first, previous := w.visitors[0], w.visitors[0]
	for i, name := range steps {
		if err := ctx.Err(); err != nil {
			return Funnel{}, err
		}
		visitors := w.visitors[i]
		step := FunnelStep{
			Event: name, Visitors: visitors, DropOff: previous - visitors,
			ConversionRate:     rateOf(int64(visitors), int64(first)),
			StepConversionRate: rateOf(int64(visitors), int64(previous)),
		}
		if i > 0 && visitors > 0 {
			median := medianOf(w.gaps[i])
			step.Median = &median
		}
		result.Steps[i] = step
		previous = visitors
	}
	result.ConversionRate = result.Steps[len(steps)-1].ConversionRate
	return result, nil
}
