package analytics

import (
	"context"
	"time"
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

// funnelWalk goes through a funnel's rows in stream order, with a little state for each visitor.
//
// Without a window a visitor's best attempt is the first one, so that one pass finds it. With a window, a first
// pass finds how far each visitor comes at all and when they first come that far; any attempt that does begins no
// earlier than a window before that moment, and the earliest that begins there does: of two attempts that are both
// within their windows, the one that began earlier is never behind. So the second pass is the one
// without a window again, but for a moment for each visitor before which no attempt begins.
type funnelWalk struct {
	rows span
	// window is in milliseconds.
	window int64
	steps  int
	// masks holds by a name's number the steps that it fills, a bit each.
	masks []uint64
	// notBefore and depth are by visitor, nil without a window: when the best attempt may begin, and how many
	// steps it reaches; 0 where that is one at most.
	notBefore []int64
	depth     []uint8
	// reached is by visitor how many steps the attempt has reached, finished once that is as far as it comes; at is
	// when it came to the last of them.
	reached []uint8
	at      []int64
	// visitors counts by step who came there; gaps holds how many milliseconds after the step before.
	visitors []int
	gaps     [][]int64
}

// finished is beyond any number of steps, so that no step's bit in a mask lies there.
const finished = 255

func newFunnelWalk(s *snapshot, rows span, window time.Duration) *funnelWalk {
	w := &funnelWalk{
		rows: rows, window: window.Milliseconds(), steps: len(s.numbers), masks: make([]uint64, len(s.names)),
		reached: make([]uint8, len(s.keys)), at: make([]int64, len(s.keys)),
		visitors: make([]int, len(s.numbers)), gaps: make([][]int64, len(s.numbers)),
	}
	for step, name := range s.numbers {
		if name != noName {
			w.masks[name] |= 1 << step
		}
	}
	return w
}

// reach finds out how far each visitor comes within the window. For each step it keeps by visitor when the latest
// of the attempts began that have come there: if that one is too old for a further step, all are.
func (w *funnelWalk) reach(ctx context.Context) error {
	w.notBefore, w.depth = make([]int64, len(w.reached)), make([]uint8, len(w.reached))
	// Times count from 1 on, so that 0 can stand for none.
	begun := make([][]int64, w.steps)
	for step := range w.steps - 1 {
		begun[step] = make([]int64, len(w.reached))
	}
	first, masks := begun[0], w.masks
	return w.rows.each(ctx, func(c stretch) {
		for i := c.from; i < c.to; i++ {
			mask := masks[c.name[i]]
			if mask == 0 {
				continue
			}
			visitor, now := c.visitor[i], c.position[i].Milliseconds()+1
			if mask > 1 && visitor != 0 {
				w.advance(begun, mask, visitor, now)
			}
			if mask&1 != 0 {
				first[visitor] = now
			}
		}
	})
}

// advance takes the visitor's attempts on by an event that fills steps behind the first. Later steps go
// first, since one event fills one step of an attempt.
func (w *funnelWalk) advance(begun [][]int64, mask uint64, visitor uint32, now int64) {
	for step := w.steps - 1; step > 0; step-- {
		if mask>>step&1 == 0 {
			continue
		}
		began := begun[step-1][visitor]
		if began == 0 || now-began > w.window {
			continue
		}
		if step < w.steps-1 {
			begun[step][visitor] = began
		}
		if int(w.depth[visitor]) <= step {
			w.depth[visitor] = uint8(step + 1)
			w.notBefore[visitor] = now - 1 - w.window
		}
	}
}

// walk follows each visitor's best attempt.
func (w *funnelWalk) walk(ctx context.Context) error {
	masks, reached := w.masks, w.reached
	return w.rows.each(ctx, func(c stretch) {
		for i := c.from; i < c.to; i++ {
			mask := masks[c.name[i]]
			if mask == 0 {
				continue
			}
			visitor := c.visitor[i]
			if mask>>reached[visitor]&1 != 0 && visitor != 0 {
				w.enter(visitor, c.position[i].Milliseconds())
			}
		}
	})
}

// enter takes the visitor's attempt to the next step.
func (w *funnelWalk) enter(visitor uint32, now int64) {
	step := w.reached[visitor]
	last := w.steps
	if w.notBefore != nil {
		if step == 0 && now < w.notBefore[visitor] {
			return
		}
		last = max(1, int(w.depth[visitor]))
	}
	w.visitors[step]++
	if step > 0 {
		w.gaps[step] = append(w.gaps[step], now-w.at[visitor])
	}
	w.at[visitor] = now
	w.reached[visitor] = step + 1
	if int(step)+1 == last {
		w.reached[visitor] = finished
	}
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
