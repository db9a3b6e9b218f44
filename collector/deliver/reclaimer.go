package deliver

import (
	"context"

	"github.com/weir-dev/weir/collector/stream"
)

// reclaim takes over events that a deliverer claimed and never settled, because it died, until taking ends. A
// claim counts as abandoned when it is older than any attempt can be. What such an event's platform has seen of
// it is not known, so it is sent again, with the same id.
func (l *lane) reclaim(taking, sending context.Context) {
	if !l.resumeOwn(taking, sending) {
		return
	}
	// The first look is soon followed by a second: a reader that was stopped gives back what Redis handed it
	// too late.
	wait := 2 * l.timing.block
	for {
		p, err := l.gate.enter(taking, again)
		if err != nil {
			return
		}
		g := l.acquire(taking, p, again, false)
		if g.n == 0 {
			l.gate.giveBack(p)
			return
		}
		abandoned, _, err := l.stream.Reclaim(taking, l.cfg.Name, l.consumer, l.timing.claimIdle, l.count(p, g))
		if len(abandoned) > 0 {
			l.logger.Info("events of a deliverer that is gone were taken over", "events", len(abandoned))
			l.dispatch(sending, p, g, again, abandoned)
			continue
		}
		l.release(g)
		l.gate.giveBack(p)
		if err != nil {
			if !l.recover(taking, err) {
				return
			}
			continue
		}
		if !pause(taking, wait) {
			return
		}
		wait = l.timing.claimPoll
	}
}

// resumeOwn sends what a process of our own name held when it was killed; nobody else is busy with that, so there
// is nothing to wait for. It returns false when taking has ended.
func (l *lane) resumeOwn(taking, sending context.Context) bool {
	for after := stream.Position(0); after < l.resume; {
		p, err := l.gate.enter(taking, again)
		if err != nil {
			return false
		}
		g := l.acquire(taking, p, again, false)
		if g.n == 0 {
			l.gate.giveBack(p)
			return false
		}
		held, last, err := l.stream.Held(taking, l.cfg.Name, l.consumer, after, l.count(p, g))
		if err != nil {
			l.release(g)
			l.gate.giveBack(p)
			if !l.recover(taking, err) {
				return false
			}
			continue
		}
		if last == after {
			last = l.resume
		}
		after = last
		// What was handed out since is the worker's.
		for len(held) > 0 && held[len(held)-1].Position > l.resume {
			held = held[:len(held)-1]
		}
		if len(held) > 0 {
			l.logger.Info("events that this deliverer held when it was killed are sent again", "events", len(held))
		}
		l.dispatch(sending, p, g, again, held)
	}
	return true
}
