package deliver

import "context"

// reclaim takes over events that a deliverer claimed and never settled, because it died, until taking ends. A
// claim counts as abandoned when it is older than any attempt can be. What such an event's platform has seen of
// it is not known, so it is sent again, with the same id.
func (l *lane) reclaim(taking, sending context.Context) {
	// The first look is soon followed by a second: a reader that was stopped gives back what Redis handed it
	// too late.
	wait := 2 * l.timing.block
	for {
		p, err := l.gate.enterOpen(taking)
		if err != nil {
			return
		}
		slots := l.acquire(taking, l.room(p))
		if slots == 0 {
			return
		}
		count := min(slots*l.platform.Limits.Events, maxTaken)
		abandoned, _, err := l.stream.Reclaim(taking, l.cfg.Name, l.consumer, l.timing.claimIdle, count)
		if len(abandoned) > 0 {
			l.logger.Info("events of a deliverer that is gone were taken over", "events", len(abandoned))
			l.dispatch(sending, p, slots, abandoned)
			continue
		}
		l.release(slots)
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
