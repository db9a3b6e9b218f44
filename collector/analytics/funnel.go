package analytics

import (
	"context"
	"slices"
	"time"
)

// Funnel returns how many visitors came along the steps, in order, within the range: from each event of the
// first step's name an attempt begins, and takes for each further step the earliest later event of that name
// that is not more than window behind the attempt's beginning; a window of 0 means no such limit. A visitor is
// counted by the attempt that came furthest, of several the earliest. Steps are 1 to 64 names. It fails
// only where the context ends.
func (v *View) Funnel(ctx context.Context, r Range, steps []string, window time.Duration) (Funnel, error) {
	s, done := v.read(steps...)
	defer done()
	w := newFunnelWalk(s, s.in(r), window)
	chosen, err := w.choose(ctx)
	if err != nil {
		return Funnel{}, err
	}
	chosen.sort()
	for visitor := range chosen.count {
		if visitor%chunkRows == 0 && ctx.Err() != nil {
			return Funnel{}, ctx.Err()
		}
		if rows := chosen.of(visitor); len(rows) > 0 {
			if err := w.follow(ctx, rows); err != nil {
				return Funnel{}, err
			}
		}
	}
	return w.result(steps), nil
}

// funnelWalk goes through the visitors of a funnel.
type funnelWalk struct {
	snapshot *snapshot
	rows     span
	window   time.Duration
	// names are the numbers of the steps' names.
	names []uint32
	// gaps holds per step how many milliseconds after the step before each visitor came.
	gaps [][]int64

	// What follows is of one visitor, kept to be used again for the next: the rows' times and steps, and the
	// current and the best attempt's rows.
	times   []int64
	masks   []uint64
	attempt []int
	best    []int
}

func newFunnelWalk(s *snapshot, rows span, window time.Duration) *funnelWalk {
	return &funnelWalk{
		snapshot: s, rows: rows, window: window, names: s.numbers,
		gaps: make([][]int64, len(s.numbers)), attempt: make([]int, len(s.numbers)),
	}
}

// choose returns the rows that may fill a step: those with a step's name, from each visitor's first event of
// the first step on.
func (w *funnelWalk) choose(ctx context.Context) (*visits, error) {
	chosen := newVisits(len(w.snapshot.keys))
	var begun numberSet
	names := slices.Compact(slices.Sorted(slices.Values(w.names)))
	err := w.rows.each(ctx, func(c stretch) {
		for i := c.from; i < c.to; i++ {
			if c.visitor[i] == 0 || !slices.Contains(names, c.name[i]) {
				continue
			}
			if c.name[i] == w.names[0] {
				begun.add(c.visitor[i])
			} else if !begun.has(c.visitor[i]) {
				continue
			}
			chosen.add(c.visitor[i], uint32(c.ordinal-w.rows.first)+uint32(i-c.from))
		}
	})
	return chosen, err
}

// follow finds the best attempt among a visitor's rows and counts it. Each attempt's rows lie at or behind
// those of the attempt before, so that all attempts together pass over the rows once per step.
func (w *funnelWalk) follow(ctx context.Context, offsets []uint32) error {
	w.times, w.masks, w.best = w.times[:0], w.masks[:0], w.best[:0]
	for _, offset := range offsets {
		c, row := w.rows.at(w.rows.first + uint64(offset))
		mask := uint64(0)
		for step, name := range w.names {
			if name == c.name[row] {
				mask |= 1 << step
			}
		}
		w.times = append(w.times, c.position[row].Time().UnixMilli())
		w.masks = append(w.masks, mask)
	}
	clear(w.attempt)
	for begin, mask := range w.masks {
		if mask&1 == 0 {
			continue
		}
		if begin%chunkRows == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		if reached := w.try(begin); reached > len(w.best) {
			w.best = append(w.best[:0], w.attempt[:reached]...)
		}
		// Without a window no later attempt comes further than the first.
		if len(w.best) == len(w.attempt) || w.window == 0 {
			break
		}
	}
	for step := range w.best {
		gap := int64(0)
		if step > 0 {
			gap = w.times[w.best[step]] - w.times[w.best[step-1]]
		}
		w.gaps[step] = append(w.gaps[step], gap)
	}
	return nil
}

// try takes the attempt that begins at a row and returns how many steps it reached.
func (w *funnelWalk) try(begin int) int {
	w.attempt[0] = begin
	for step := 1; step < len(w.attempt); step++ {
		row := max(w.attempt[step], w.attempt[step-1]+1)
		for row < len(w.masks) && w.masks[row]&(1<<step) == 0 {
			row++
		}
		w.attempt[step] = row
		if row == len(w.masks) || w.window > 0 && time.Duration(w.times[row]-w.times[begin])*time.Millisecond > w.window {
			return step
		}
	}
	return len(w.attempt)
}

// result returns the numbers of the steps.
func (w *funnelWalk) result(steps []string) Funnel {
	result := Funnel{Steps: make([]FunnelStep, len(steps))}
	first, previous := len(w.gaps[0]), len(w.gaps[0])
	for i, name := range steps {
		visitors := len(w.gaps[i])
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
	return result
}

// medianOf returns the median of at least one number of milliseconds, the mean of the two middle ones where
// their count is even.
func medianOf(ms []int64) time.Duration {
	slices.Sort(ms)
	middle := len(ms) / 2
	if len(ms)%2 == 1 {
		return time.Duration(ms[middle]) * time.Millisecond
	}
	return time.Duration(ms[middle-1]+ms[middle]) * time.Millisecond / 2
}
